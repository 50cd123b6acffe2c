"""Reads a form with one file (multipart/form-data, RFC 7578), as audio endpoints are given it. The SDK writes them."""

from __future__ import annotations

import re
from typing import Final

FILE_NAME: Final = "clip.wav"
"""Servers read the type of the audio from the extension."""
_NAME: Final = re.compile(rb'\bname="([^"\r\n]*)"')


class FormError(ValueError):
    """Not such a form; the text says why."""


def decode_form(body: bytes) -> tuple[dict[str, str], bytes]:
    """Fields and file of a form; the boundary is read from its first line.

    Raises:
        FormError: no form, or one without a file.
    """
    boundary, newline, _ = body.partition(b"\r\n")
    if not boundary.startswith(b"--") or not newline or len(boundary) > 80:
        raise FormError("the body is not a form (multipart/form-data)")
    fields: dict[str, str] = {}
    file: bytes | None = None
    for part in (b"\r\n" + body).split(b"\r\n" + boundary)[1:]:
        head, blank, content = part.partition(b"\r\n\r\n")
        name = _NAME.search(head)
        if not blank or name is None:
            continue
        if name[1] == b"file":
            file = content
        else:
            fields[name[1].decode(errors="replace")] = content.decode(errors="replace")
    if file is None:
        raise FormError("the form has no file")
    return fields, file
