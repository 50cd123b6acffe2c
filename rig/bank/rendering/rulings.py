"""What people ruled about clips: `rulings.yaml` in a bank's folder. A ruling goes before the gates.

One entry a ruling: `item`, `variant`, `verdict` (`ship` or `withhold`), `who`, `when` (a date), `reason`; `turn: 2` for
the reply of a followup; `pcm_sha256` where it is about one rendering only, and void for the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from rig.bank.items import Identifier, Text
from rig.bank.loader import MAX_TABLE_BYTES
from rig.bank.models import Bank
from rig.bank.yaml_file import YamlFileError, read_yaml

ClipKey = tuple[str, str, int]
"""Item id, variant id, turn."""


class Ruling(BaseModel):
    """What one person decided about one clip."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: Identifier
    variant: Identifier
    turn: Literal[1, 2] = 1
    verdict: Literal["ship", "withhold"]
    who: Text
    when: date
    reason: Text
    pcm_sha256: Annotated[str, StringConstraints(to_lower=True, pattern=r"^[0-9a-fA-F]{64}$")] | None = None
    """Of the samples that were listened to; any rendering where absent."""

    def applies_to(self, pcm_sha256: str) -> bool:
        """True where the ruling is about these samples."""
        return self.pcm_sha256 in (None, pcm_sha256)

    def __str__(self) -> str:
        return f"{self.verdict}, {self.who}, {self.when}: {self.reason}"


_RULINGS = TypeAdapter(list[Ruling])


def read_rulings(bank: Bank) -> Mapping[ClipKey, Ruling]:
    """The bank's rulings by clip, empty without a file.

    Raises ValueError that names file and field for what is wrong, for a clip ruled on twice, and for one that the bank
    does not have.
    """
    path = bank.root / "rulings.yaml"
    if not path.exists():
        return {}
    try:
        rulings = _RULINGS.validate_python(read_yaml(path, MAX_TABLE_BYTES) or [])
    except YamlFileError as error:
        raise ValueError(f"{path}: {error}") from error
    except ValidationError as error:
        lines = [f"{path}: {'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors()]
        raise ValueError("\n".join(lines)) from error
    known = {(item.id, variant.variant_id) for item in bank.items for variant in item.variants}
    found: dict[ClipKey, Ruling] = {}
    for at, ruling in enumerate(rulings):
        key = (ruling.item, ruling.variant, ruling.turn)
        if key[:2] not in known:
            raise ValueError(f"{path}: {at}: no variant {ruling.item}/{ruling.variant} in the bank")
        if key in found:
            raise ValueError(
                f"{path}: {at}: {ruling.item}/{ruling.variant} is ruled on twice: keep the ruling that holds"
            )
        found[key] = ruling
    return found
