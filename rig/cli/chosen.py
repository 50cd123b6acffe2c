"""Options of the command line that take a part of a config: some of its items, conditions or targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from captures.capture import Condition
from rig.config import ConfigError, ResolvedConfig


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the options name; what is empty leaves the config's own choice."""

    items: Sequence[str] = ()
    """Ids or globs."""
    conditions: Sequence[str] = ()
    targets: Sequence[str] = ()

    def of(self, resolved: ResolvedConfig) -> ResolvedConfig:
        """The config with this choice in place of its own. Raises ConfigError for a name that it does not know."""
        config, changes, public = resolved.config, dict[str, Any](), dict(resolved.public)
        problems = [
            f"--condition {one}: not one of {', '.join(Condition)}" for one in self.conditions if one not in _ALL
        ]
        names = [target.name for target in config.targets]
        problems += [
            f"--target {one}: no such target; there are: {', '.join(names)}" for one in self.targets if one not in names
        ]
        if problems:
            raise ConfigError("command line", problems)
        if self.items:
            changes["items"] = public["items"] = tuple(self.items)
        if self.conditions:
            changes["conditions"] = tuple(one for one in Condition if one in self.conditions)
            public["conditions"] = tuple(map(str, changes["conditions"]))
        if self.targets:
            kept = [target.name in self.targets for target in config.targets]
            changes["targets"] = tuple(target for target, keep in zip(config.targets, kept, strict=True) if keep)
            public["targets"] = [entry for entry, keep in zip(public["targets"], kept, strict=True) if keep]
            changes |= {"pairs": (), "steps": ()}  # they may name targets that are left out
            public = {key: value for key, value in public.items() if key not in ("pairs", "steps")}
        return replace(resolved, config=config.model_copy(update=changes), public=public)


_ALL = frozenset(map(str, Condition))
EVERYTHING = Chosen()
