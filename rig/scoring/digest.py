"""Which bank this is: one hash over what scores depend on. Tells two banks apart, says nothing of their clips."""

from __future__ import annotations

import hashlib

from rig.bank.models import Bank


def bank_digest(bank: Bank) -> str:
    """SHA-256 over the item texts as loaded, sorted by id: equal for equal items, wherever the files lie."""
    digest = hashlib.sha256()
    for item in bank.items:
        digest.update(item.model_dump_json().encode())
    return digest.hexdigest()
