"""Text that nobody vouches for, made plain for a format that would act on some of its characters."""

from __future__ import annotations

import re

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def markdown_escaped(text: str) -> str:
    """`text` with every character that Markdown, or HTML inside it, would act on made plain."""
    return _MARKDOWN.sub(r"\\\1", text)
