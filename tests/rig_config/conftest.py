"""Config files on disk, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rig.config import ConfigError, ResolvedConfig, load_config

TARGET = {"name": "agent", "adapter": "rig_socket", "base_url": "ws://127.0.0.1:9876/"}


class _WithoutAliases(yaml.SafeDumper):
    """Writes what is used twice out twice, as people do."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class ConfigFile:
    """One config file; written anew by each call."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self, content: str | bytes | Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Any:
        """Write `content` and load it."""
        if isinstance(content, Mapping):
            content = yaml.dump(dict(content), Dumper=_WithoutAliases, allow_unicode=True, sort_keys=False)
        self.path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_config(self.path, environ or {})

    def with_target(self, environ: Mapping[str, str] | None = None, **target: Any) -> ResolvedConfig:
        """Load a config of one rig-socket target with these changes; None leaves a field out."""
        changed = {name: value for name, value in (TARGET | target).items() if value is not None}
        loaded: ResolvedConfig = self.load({"version": 1, "bank": "demo", "targets": [changed]}, environ)
        return loaded

    def problems(self, content: str | bytes | Mapping[str, Any], environ: Mapping[str, str] | None = None) -> list[str]:
        """What is said of a config that cannot be used, without the file's name, which begins each line."""
        with pytest.raises(ConfigError) as caught:
            self.load(content, environ)
        return self.said(caught.value)

    def target_problems(self, environ: Mapping[str, str] | None = None, **target: Any) -> list[str]:
        """`problems` of `with_target`."""
        with pytest.raises(ConfigError) as caught:
            self.with_target(environ, **target)
        return self.said(caught.value)

    def said(self, error: ConfigError) -> list[str]:
        """One line per problem, each beginning with the file."""
        lines = str(error).splitlines()
        assert lines == [f"{self.path}: {problem}" for problem in error.problems]
        return error.problems


@pytest.fixture
def config_file(tmp_path: Path) -> ConfigFile:
    """A config file to write and load."""
    return ConfigFile(tmp_path / "config.yaml")


@pytest.fixture
def one_target() -> Callable[..., dict[str, Any]]:
    """A whole config of one good target, with changes at its top."""
    return lambda **changes: {"version": 1, "bank": "demo", "targets": [dict(TARGET)]} | changes
