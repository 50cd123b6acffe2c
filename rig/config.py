"""The config file: one YAML file, unknown keys refused, `${NAME}` for environment values.

Secrets come by environment *name* (`api_key_env`, or `${NAME}` inside `headers` and `base_url`); the resolved values
are collected so that everything that is written can be scrubbed of them.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from adapters import registry
from adapters.dialect import Hosted, ReadsFiles, TurnMode, UsesDevices
from captures.capture import Condition
from captures.scrub import Scrubber, is_secret, secrets_in_url
from rig.agents import faults
from rig.bank.yaml_file import YamlFileError, read_yaml

MAX_CONFIG_BYTES = 1_000_000
EmbeddedAgentName = Literal["local-cascade", "local-acoustic"]
TARGET_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Name = Annotated[str, StringConstraints(pattern=TARGET_NAME)]
EnvName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

_UNFIT = "holds a line break, an outer space or a character that is not plain ASCII; copy the value again"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)
_LONG_VALUE = 16
_SIDES = ("realtime", "file")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ConfigError(ValueError):
    """The config cannot be used. `problems` has one line each: what, where, what to do."""

    def __init__(self, path: str, problems: list[str]) -> None:
        super().__init__("\n".join(f"{path}: {problem}" for problem in problems))
        self.problems = problems


class Role(StrEnum):
    """What a target is in the comparison; only contestants enter families of tests."""

    CONTESTANT = "contestant"
    WORDS_ONLY = "words_only"
    LADDER = "ladder"
    INSTRUMENT = "instrument"
    FLOOR = "floor"


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TurnControlConfig(_Section):
    """How the caller's turn ends."""

    mode: TurnMode = TurnMode.MANUAL
    parameters: dict[str, Any] = Field(default_factory=dict)
    """The mode's own parameters, e.g. `silence_duration_ms` for `server_vad`."""


class BargeInConfig(_Section):
    """On audio cells the caller cuts in on the agent's speech. It changes what is measured: use a run of its own."""

    clip: str = "self"
    """`self` (the cell's clip again), or `item/variant` of a clip of the chosen items."""
    after_s: float = Field(default=0.5, ge=0, le=60)
    """How long the agent's speech has been audible by then."""


class LimitsConfig(_Section):
    """Bounds of one attempt."""

    setup_s: float = Field(default=15.0, gt=0, le=600)
    """From connecting to confirmed settings."""
    turn_s: float = Field(default=30.0, gt=0, le=3600)
    """From the commit to the end of the answer."""
    quiet_s: float = Field(default=1.0, gt=0, le=60)
    """After the last call, for dialects that wait for its result."""
    trailing_silence_s: float = Field(default=10.0, gt=0, le=120)
    """Longest paced silence after the clip under server turn detection."""
    attempts: int = Field(default=3, ge=1, le=20)
    """Tries at a cell whose attempt failed for infrastructure."""
    backoff_s: float = Field(default=1.0, ge=0, le=300)
    """First wait before another try; doubles each time, with jitter."""
    quota_wait_s: float = Field(default=60.0, ge=0, le=3600)
    """Longest wait for a used-up quota that the peer asks for; a longer one stops the target."""
    void_ms: float = Field(default=20.0, gt=0)
    """Our own lateness above which a latency is void."""


class Price(_Section):
    """What a target costs, in US dollars. Rates that do not apply are 0."""

    per_session_minute: float = Field(default=0.0, ge=0)
    input_audio_per_minute: float = Field(default=0.0, ge=0)
    output_audio_per_minute: float = Field(default=0.0, ge=0)
    input_audio_per_million: float = Field(default=0.0, ge=0)
    """Per million tokens, like the three below."""
    input_text_per_million: float = Field(default=0.0, ge=0)
    output_audio_per_million: float = Field(default=0.0, ge=0)
    output_text_per_million: float = Field(default=0.0, ge=0)

    @property
    def by_token(self) -> bool:
        """True when tokens cost something."""
        return any(
            (
                self.input_audio_per_million,
                self.input_text_per_million,
                self.output_audio_per_million,
                self.output_text_per_million,
            )
        )


class TargetConfig(_Section):
    """One system under test."""

    name: Name
    adapter: str
    model: str = ""
    base_url: str | None = None
    api_key_env: EnvName | None = None
    api_key_envs: tuple[EnvName, ...] = ()
    """A pool of keys: when one has used up its quota the next is taken."""
    sessions_per_key: int | None = Field(default=None, ge=1)
    requests_per_minute: float | None = Field(default=None, gt=0)
    """Sessions opened per minute, evenly spaced."""
    price: Price | None = None
    """For the spend ceiling; default: the shipped price of the model, if there is one."""
    role: Role = Role.CONTESTANT
    family: str | None = None
    embedded_agent: EmbeddedAgentName | None = None
    """Start this embedded agent on loopback and measure it through the adapter; instead of `base_url`."""
    faults: tuple[str, ...] = ()
    """What the embedded agent's emulator does wrong, each `NAME[=VALUE][@CHANCE]` (docs/emulators.md)."""
    turn_control: TurnControlConfig | None = None
    concurrency: int | None = Field(default=None, ge=1, le=1000)
    i_own_this: bool = False
    """Only then does `rig load` call a host other than loopback."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The adapter's own settings (voice, output modality, headers, …)."""

    @field_validator("adapter")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in registry.names():
            raise ValueError(f"no adapter {value!r}; there are: {', '.join(registry.names())}")
        return value

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        try:
            _ = urlsplit(value or "").port
        except ValueError:
            # Python's own message repeats a part of the address, which may hold a secret.
            raise ValueError("is not an address; write it like ws://127.0.0.1:9876/") from None
        return value

    @field_validator("faults")
    @classmethod
    def _readable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        faults.parse(value)
        return value


class PairConfig(_Section):
    """One model served in two ways; `rig compare` tells realtime minus file."""

    realtime: Name
    file: Name


class StepsConfig(_Section):
    """Targets in an order of their own (generations of a model, rungs of a ladder); each is compared with the next."""

    name: str = ""
    targets: tuple[Name, ...] = Field(min_length=2)


class Config(_Section):
    """A whole config file."""

    version: Literal[1]
    bank: str
    engine: str | None = None
    """Which rendering to use where the bank has several."""
    items: tuple[str, ...] = Field(default=("*",), min_length=1)
    conditions: tuple[Condition, ...] = Field(
        default=(Condition.AUDIO, Condition.TEXT_TWIN, Condition.PROBE), min_length=1
    )
    concurrency: int = Field(default=8, ge=1, le=1000)
    max_sessions: int = Field(default=50, ge=1, le=5000)
    pace: float = Field(default=1.0, ge=0, le=100)
    chunk_ms: int = Field(default=20, ge=5, le=1000)
    turn_control: TurnControlConfig = Field(default_factory=TurnControlConfig)
    repeats: int = Field(default=1, ge=1, le=1000)
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    max_cost: float | None = Field(default=None, gt=0)
    """Spend ceiling in US dollars over all targets; needs a price for every target with a key."""
    second_turn: bool = True
    """Play the second turn that an item scripts, once the first call starts it."""
    barge_in: BargeInConfig | None = None
    sweep: dict[TurnMode, dict[str, tuple[Any, ...]]] | None = Field(default=None, min_length=1)
    """For `rig sweep`: ways of ending turns, each with its parameters and the values to try. Nothing else reads it."""
    preflight: bool = True
    """Open and set up one session per target before its first cell."""
    pairs: tuple[PairConfig, ...] = ()
    """Realtime against file mode, for `rig compare`; default: by `family`."""
    steps: tuple[StepsConfig, ...] = ()
    targets: tuple[TargetConfig, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A config with its environment values filled in, and what must never be written."""

    config: Config
    folder: Path
    """Of the config file; relative paths in it start here."""
    keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Target name → environment name → API key, in the config's order; empty without a key."""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """All secret values, for scrubbing."""
    secret_names: tuple[str, ...] = ()
    """Environment names that were read."""
    public: Mapping[str, Any] = field(default_factory=dict)
    """The config as written, `${NAME}` unresolved: what a run folder may hold."""


def load_config(path: Path, environ: Mapping[str, str] | None = None) -> ResolvedConfig:
    """Read, check and resolve a config file.

    Raises:
        ConfigError: unreadable, unknown keys, wrong values, or environment values missing; all problems at once.
    """
    try:
        raw = read_yaml(path, MAX_CONFIG_BYTES)
    except YamlFileError as error:
        raise ConfigError(str(path), [str(error)]) from None
    return _resolved(raw, str(path), path.resolve().parent, os.environ if environ is None else environ)


def parse_config(text: str, where: str, folder: Path, environ: Mapping[str, str]) -> ResolvedConfig:
    """`load_config` for text of the caller's own making, not bounded like a file; `where` names it in errors."""
    return _resolved(yaml.safe_load(text), where, folder, environ)


def _resolved(raw: object, where: str, folder: Path, environ: Mapping[str, str]) -> ResolvedConfig:
    if not isinstance(raw, dict):
        raise ConfigError(where, ["must be a mapping with `version: 1`, `bank:` and `targets:`"])
    problems: list[str] = []
    used: dict[str, str] = {}
    filled = _fill(raw, "", environ, used, problems)
    try:
        config = Config.model_validate(filled)
    except ValidationError as error:
        problems += _lines(error)
    else:
        keys = {
            target.name: _keys(target, f"targets[{number}] ({target.name})", environ, used, problems)
            for number, target in enumerate(config.targets)
        }
        own = dict(_file_secrets(config, folder, environ, used, problems))
        names = [target.name for target in config.targets]
        problems += [f"targets: name {name!r} is used twice" for name in dict.fromkeys(names) if names.count(name) > 1]
        problems += _unknown_names(config, names)
    if problems:
        mask = Scrubber(used.values()).mask  # a message may repeat what stands in the file, filled in
        raise ConfigError(where, [mask(problem) for problem in problems])
    return ResolvedConfig(
        config=config,
        folder=folder,
        keys=keys,
        secrets=frozenset(_secrets_in(config, used, _secret_values(keys, own))),
        secret_names=tuple(sorted(used)),
        public=raw,
    )


def _file_secrets(
    config: Config, folder: Path, environ: Mapping[str, str], used: dict[str, str], problems: list[str]
) -> Iterator[tuple[str, str]]:
    """Environment names and values that files beside the config may use."""
    for number, target in enumerate(config.targets):
        dialect = registry.dialect(target.adapter)
        if isinstance(dialect, ReadsFiles):
            place = f"targets[{number}] ({target.name})"
            for name in dialect.secret_names(target.settings, folder):
                yield name, _value(name, place, environ, used, problems)


def _secret_values(keys: Mapping[str, Mapping[str, str]], own: Mapping[str, str]) -> Iterator[str]:
    yield from (key for pool in keys.values() for key in pool.values())
    yield from own.values()


def _unknown_names(config: Config, known: Collection[str]) -> Iterator[str]:
    """One line per name in `pairs` or `steps` that is no target's."""
    places = [(f"pairs[{n}].{side}", getattr(one, side)) for n, one in enumerate(config.pairs) for side in _SIDES]
    places += [(f"steps[{n}].targets", name) for n, one in enumerate(config.steps) for name in one.targets]
    for place, name in places:
        if name not in known:
            yield f"{place}: no target {name!r}; there are: {', '.join(known)}"


def _keys(
    target: TargetConfig, place: str, environ: Mapping[str, str], used: dict[str, str], problems: list[str]
) -> dict[str, str]:
    """The target's API keys by environment name; what its fields say together is checked as well."""
    if target.embedded_agent and target.base_url:
        problems.append(f"{place}: give base_url or embedded_agent, not both")
    if target.faults and not target.embedded_agent:
        problems.append(f"{place}: faults are for an embedded_agent; another emulator has its own --fault")
    envs = list(dict.fromkeys([*([target.api_key_env] if target.api_key_env else []), *target.api_key_envs]))
    hosted = isinstance(registry.dialect(target.adapter), Hosted | ReadsFiles | UsesDevices)
    if not envs and not target.embedded_agent and not target.base_url and not hosted:
        default = registry.dialect(target.adapter).default_key_env
        hint = f"api_key_env: {default}" if default else "base_url"
        problems.append(f"{place}: needs {hint} (or base_url of an agent, or embedded_agent)")
    found = {env: _value(env, place, environ, used, problems) for env in envs}
    problems += [
        f"{place}: environment variable {env} {_UNFIT}" for env, key in found.items() if not _fits_a_header(key)
    ]
    return {env: key for env, key in found.items() if key}


def _value(name: str, place: str, environ: Mapping[str, str], used: dict[str, str], problems: list[str]) -> str:
    """An environment value, noted in `used`; empty, with a problem, where it cannot be had."""
    value = environ.get(name, "")
    if not value:
        problems.append(f"{place}: environment variable {name} is not set; export its value")
        return ""
    used[name] = value
    return value


def _fits_a_header(value: str) -> bool:
    """False for what would begin another header or cannot be sent in one (a pasted quotation mark, say)."""
    return value.isascii() and value.isprintable() and value == value.strip()


def _fill(value: Any, place: str, environ: Mapping[str, str], used: dict[str, str], problems: list[str]) -> Any:
    """`${NAME}` in every string, replaced; what is no plain data is named."""
    if isinstance(value, dict):
        problems += [f"{place or 'config'}: key {key!r} is not text; quote it" for key in value if type(key) is not str]
        return {
            str(k): _fill(v, f"{place}.{k}" if place else str(k), environ, used, problems) for k, v in value.items()
        }
    if isinstance(value, list):
        return [_fill(v, f"{place}[{n}]", environ, used, problems) for n, v in enumerate(value)]
    if isinstance(value, str):
        before = len(problems)
        filled = _REFERENCE.sub(lambda match: _value(match[1], place, environ, used, problems), value)
        is_sent = ".headers." in place or place.endswith(".base_url")
        if is_sent and len(problems) == before and not _fits_a_header(filled):
            problems.append(f"{place}: {_UNFIT}")
        return filled
    if value is not None and not isinstance(value, bool | int | float):
        problems.append(f"{place}: {value} is read as a {type(value).__name__}; quote it")
    return value


def _secrets_in(config: Config, used: Mapping[str, str], keys: Iterable[str]) -> Iterator[str]:
    """What must never be written: keys, values of environment names that sound secret or are long, and what stands
    where secrets stand (headers, credentials and query of an address).

    Not every `${NAME}`: a host or a day masked everywhere would alter what agents said; an address is masked in part.
    """
    yield from keys
    for name, value in used.items():
        if _SECRET_NAME.search(name) or (len(value) >= _LONG_VALUE and "://" not in value):
            yield value
    for target in config.targets:
        yield from _secrets_in_settings(target.settings)
        if target.base_url:
            yield from secrets_in_url(target.base_url)


def _secrets_in_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    """Of headers, and of keys and addresses of stages that have settings of their own (a cascade's)."""
    headers = settings.get("headers")
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if is_secret(str(name), str(value)):
            yield str(value)
            yield str(value).split()[-1]  # the token of "Bearer <token>"
    for name, value in settings.items():
        # What the rig has read from a file is public: secrets stand there by name.
        if isinstance(value, Mapping) and name not in ("headers", "declared"):
            yield from _secrets_in_settings(value)
        elif name in ("api_key", "token", "auth_token") and isinstance(value, str):
            yield value
        elif name == "base_url" and isinstance(value, str):
            yield from secrets_in_url(value)


def _lines(error: ValidationError) -> Iterator[str]:
    """One line per problem: place and what is wrong, never the value that stands there."""
    for detail in error.errors():
        location, kind = detail["loc"], detail["type"]
        if kind == "too_short" and detail["input"]:
            continue  # said only because entries with problems, named beside it, are not counted
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
        if kind == "extra_forbidden":
            close = difflib.get_close_matches(str(location[-1]), _keys_beside(location), n=1)
            yield f"{place}: unknown key" + (f"; did you mean `{close[0]}`?" if close else "")
        elif kind in ("tuple_type", "model_type", "dict_type"):
            yield f"{place}: must be a {'list' if kind == 'tuple_type' else 'mapping'}"
        else:
            yield f"{place}: {detail['msg'].removeprefix('Value error, ')}"


def _keys_beside(location: tuple[str | int, ...]) -> list[str]:
    """Keys that are known where an unknown one stands."""
    model: Any = Config
    for part in location[:-1]:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            inner = [a for a in (annotation, *get_args(annotation)) if isinstance(a, type) and issubclass(a, BaseModel)]
            if not inner:
                return []
            model = inner[0]
    return list(model.model_fields)
