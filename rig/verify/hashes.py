"""The hash by which a capture holds its cassette."""

from __future__ import annotations

import hashlib
from pathlib import Path


def cassette_sha256(path: Path) -> str:
    """SHA-256 over a cassette and its blob, as captures keep it. Raises OSError."""
    digest = hashlib.sha256(path.read_bytes())
    digest.update(path.with_name(path.name.replace(".jsonl.zst", ".blob.zst")).read_bytes())
    return digest.hexdigest()
