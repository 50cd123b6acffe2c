"""Faults that an emulator can be told to have: their names, values and chances, and which of them a session has.

A fault is written `NAME[=VALUE][@CHANCE]`; several combine. Chances and distributions are drawn per session from a
seed, so that the n-th session of a run fails as it did before. Pure: `rig.agents.host_session` and
`rig.agents.emulator` act on it. What each name does, and how a run must end by it, is told in docs/emulators.md.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adapters.misbehaviour import Misbehaves

MAX_WAIT_S: Final = 600.0
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
BIG_FRAME_BYTES: Final = 1_500_000
_MAX_SIGMA: Final = 10.0
TRAITS: Final = ("acts", "hears")
"""Of the agent, not of a session."""
MIDDLE: Final = 5
"""Which client message after the settings is taken for the middle of the caller's audio."""


class FaultError(ValueError):
    """A fault that cannot be had; one line that names it and says what would do."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in seconds: fixed, or drawn anew for every answer."""

    shape: str
    """`fixed` (a), `uniform` (from a to b), `exponential` (mean a) or `lognormal` (median a, b the log's sigma)."""
    a: float
    b: float = 0.0

    def draw(self, rng: random.Random) -> float:
        """Seconds, at most `MAX_WAIT_S`."""
        match self.shape:
            case "uniform":
                drawn = rng.uniform(self.a, self.b)
            case "exponential":
                drawn = rng.expovariate(1 / self.a)
            case "lognormal":
                drawn = rng.lognormvariate(math.log(self.a), self.b)
            case _:
                drawn = self.a
        return min(drawn, MAX_WAIT_S)


@dataclass(frozen=True, slots=True)
class Cut:
    """An end of the connection."""

    code: int | None = None
    """Close code; None when the connection is lost without one."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """A refused handshake or request."""

    status: int
    code: str
    retry_after_s: int | None = None
    """For the header, which holds whole seconds."""


@dataclass(frozen=True, slots=True)
class AnswerFailure:
    """An answer that fails on the vendor's side, with an empty output."""

    code: str = "server_error"
    message: str = "The server had an error while processing your request. Sorry about that!"


@dataclass(frozen=True, slots=True)
class SessionFaults:
    """The faults of one session; the defaults are none. Times in seconds."""

    delay: Wait | None = None
    leading_silence_s: float = 0.0
    http: HttpRefusal | None = None
    ack_delay_s: float | None = None
    """`math.inf`: the settings are never acknowledged."""
    cut_on_connect: Cut | None = None
    cut_mid_audio: Cut | None = None
    cut_before_done: Cut | None = None
    cap_s: float | None = None
    mute: bool = False
    failed: AnswerFailure | None = None
    speech_and_call: bool = False
    second_call: bool = False
    late_call_s: float | None = None
    duplicate: bool = False
    unknown: bool = False
    big_frame_bytes: int = 0
    echo_secrets: bool = False
    acts: float = 1.0
    """Of the agent, like `hears`: the same for every session."""
    hears: float = 1.0
    answer_faults: tuple[str, ...] = ()
    """Names that the dialect's server half knows (`adapters.misbehaviour`)."""
    rng: random.Random = field(default_factory=random.Random, compare=False)

    @property
    def ack_missing(self) -> bool:
        """The settings are never acknowledged."""
        return self.ack_delay_s == math.inf

    def delay_s(self) -> float:
        """From the wish for an answer to its first frame of content, at the earliest."""
        return self.delay.draw(self.rng) if self.delay is not None else 0.0


NO_FAULTS: Final = SessionFaults()


@dataclass(frozen=True, slots=True)
class _Kind:
    """One name of the grammar."""

    read: Callable[[str | None], Mapping[str, Any]]
    """Its value, None when left out, as fields of `SessionFaults`. Raises ValueError, saying what is wanted."""
    takes: str
    """The value, as it is shown to users; empty for none."""
    in_file_mode: bool = True
    from_dialect: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a plan."""

    name: str
    fields: Mapping[str, Any]
    chance: float = 1.0


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """What an emulator is to do wrong."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0

    def for_session(self, number: int) -> SessionFaults:
        """The faults of the `number`-th session, the same in every run."""
        rng = random.Random(f"{self.seed}/{number}")
        fields: dict[str, Any] = {"rng": rng}
        # One draw for each fault, had or not, so that a chance changed for one changes no other.
        for fault, drawn in [(fault, rng.random()) for fault in self.faults]:
            if drawn < fault.chance:
                own = fields.get("answer_faults", ())
                fields |= fault.fields
                if "answer_faults" in fault.fields:
                    fields["answer_faults"] = (*own, *fault.fields["answer_faults"])
        return SessionFaults(**fields)


def parse(texts: Iterable[str]) -> FaultPlan:
    """A plan from faults as users write them.

    Raises:
        FaultError: an unknown name, a value that does not fit, or two faults that exclude each other.
    """
    faults: dict[str, Fault] = {}
    seed = 0
    for text in texts:
        found = _WRITTEN.fullmatch(text.strip())
        name = found["name"] if found else text
        if found is None or (name != "seed" and name not in KINDS):
            raise FaultError(f"no fault {name!r}; there are {', '.join(sorted([*KINDS, 'seed']))}")
        if name == "seed":
            seed = _seed(found["value"])
            continue
        kind = KINDS[name]
        if name in faults:
            raise FaultError(f"fault {name} is given twice")
        if found["value"] is not None and not kind.takes:
            raise FaultError(f"fault {name} takes no value")
        try:
            fields = kind.read(found["value"])
        except ValueError as error:
            raise FaultError(f"fault {name}={found['value'] or ''}: {error}; write {name}={kind.takes}") from None
        if name in TRAITS and found["chance"] is not None:
            raise FaultError(f"fault {name} takes no chance: its share is drawn for every turn")
        chance = 1.0 if found["chance"] is None else float(found["chance"])
        if chance > 1:
            raise FaultError(f"fault {name}: the chance after @ must be between 0 and 1")
        faults[name] = Fault(name, fields, chance)
    for moment in ("", "-on-connect", "-mid-audio"):
        if f"drop{moment}" in faults and f"close{moment}" in faults:
            raise FaultError(f"drop{moment} and close{moment} exclude each other")
    return FaultPlan(tuple(faults.values()), seed)


def check(plan: FaultPlan, dialect_name: str, server: object, *, file_mode: bool) -> None:
    """Raises FaultError when an emulator with this server half cannot have a fault of the plan."""
    own: Iterable[str] = server.answer_faults if isinstance(server, Misbehaves) else ()
    for fault in plan.faults:
        kind = KINDS[fault.name]
        if kind.from_dialect and fault.name not in own:
            have = f"it has {', '.join(own)}" if own else "it has none of this sort"
            raise FaultError(f"{dialect_name} has no fault {fault.name}; {have}")
        if file_mode and not kind.in_file_mode:
            raise FaultError(f"{dialect_name} has no fault {fault.name}: it answers one request with one body")


_WRITTEN = re.compile(r"(?P<name>[a-z][a-z-]*)(?:=(?P<value>.*?))?(?:@(?P<chance>[0-9]+(?:\.[0-9]+)?))?", re.DOTALL)
_SENDABLE = (*range(1000, 1004), *range(1007, 1015), *range(3000, 5000))
"""Close codes that a frame may hold (RFC 6455, section 7.4)."""


def _seed(value: str | None) -> int:
    if value is None or not re.fullmatch(r"[0-9]{1,18}", value):
        raise FaultError("seed takes a whole number: seed=7")
    return int(value)


def _seconds(value: str | None, least: float = 0.0) -> float:
    try:
        seconds = float(value or "")
    except ValueError:
        raise ValueError("no number of seconds") from None
    if not least <= seconds <= MAX_WAIT_S:
        raise ValueError(f"seconds must be from {least:g} to {MAX_WAIT_S:g}")
    return seconds


def _wait(value: str | None) -> Wait:
    shape, *numbers = (value or "").split(":")
    if not numbers:
        return Wait("fixed", _seconds(value))
    if shape == "exponential" and len(numbers) == 1:
        return Wait(shape, _seconds(numbers[0], 0.001))
    if shape == "uniform" and len(numbers) == 2:
        low, high = _seconds(numbers[0]), _seconds(numbers[1])
        if low <= high:
            return Wait(shape, low, high)
        raise ValueError("the first bound is above the second")
    if shape == "lognormal" and len(numbers) == 2:
        median, sigma = _seconds(numbers[0], 0.001), _seconds(numbers[1])
        if sigma <= _MAX_SIGMA:
            return Wait(shape, median, sigma)
        raise ValueError(f"sigma must be at most {_MAX_SIGMA:g}")
    raise ValueError("no such distribution")


def _http(value: str | None) -> HttpRefusal:
    status, _, rest = (value or "").partition(":")
    code, _, after = rest.partition(":")
    if not status.isdecimal() or not 400 <= int(status) <= 599:
        raise ValueError("the status must be from 400 to 599")
    if after and not re.fullmatch(r"[0-9]{1,5}", after):
        raise ValueError("the time to wait must be whole seconds")
    known = _HTTP_CODES.get(int(status), "server_error" if int(status) >= 500 else "invalid_request_error")
    return HttpRefusal(int(status), code or known, int(after) if after else None)


_HTTP_CODES: Final = {401: "invalid_api_key", 403: "permission_denied", 429: "rate_limit_exceeded"}


def _close(value: str | None) -> Cut:
    code, _, reason = (value or "").partition(":")
    if not code.isdecimal() or int(code) not in _SENDABLE:
        raise ValueError("the code must be one that a close frame may hold")
    return Cut(int(code), reason)


def _bytes(value: str | None) -> int:
    if value is None:
        return BIG_FRAME_BYTES
    if not re.fullmatch(r"[0-9]{1,9}", value) or not 1 <= int(value) <= MAX_FRAME_BYTES:
        raise ValueError(f"bytes must be from 1 to {MAX_FRAME_BYTES}")
    return int(value)


def _failure(value: str | None) -> AnswerFailure:
    code, _, message = (value or "").partition(":")
    default = AnswerFailure()
    return AnswerFailure(code or default.code, message or default.message)


def _share(value: str | None) -> float:
    if value is None or not re.fullmatch(r"[01](\.[0-9]+)?", value) or float(value) > 1:
        raise ValueError("a share is from 0 to 1")
    return float(value)


def _plain(**fields: Any) -> Callable[[str | None], Mapping[str, Any]]:
    return lambda _: fields


def _of_dialect(name: str, also: Mapping[str, Any] | None = None) -> _Kind:
    fields = {"answer_faults": (name,), **(also or {})}
    return _Kind(lambda _: fields, "", from_dialect=True)


def _cuts(moment: str, target: str, *, in_file_mode: bool) -> dict[str, _Kind]:
    return {
        f"drop{moment}": _Kind(_plain(**{target: Cut()}), "", in_file_mode),
        f"close{moment}": _Kind(lambda value: {target: _close(value)}, "CODE[:REASON]", in_file_mode=False),
    }


_WAITS = "SECONDS | uniform:LOW:HIGH | exponential:MEAN | lognormal:MEDIAN:SIGMA"

KINDS: Final[Mapping[str, _Kind]] = {
    "delay": _Kind(lambda value: {"delay": _wait(value)}, _WAITS),
    "leading-silence": _Kind(lambda value: {"leading_silence_s": _seconds(value)}, "SECONDS"),
    "http": _Kind(lambda value: {"http": _http(value)}, "STATUS[:CODE[:RETRY_AFTER_S]]"),
    "slow-ack": _Kind(lambda value: {"ack_delay_s": _seconds(value)}, "SECONDS", in_file_mode=False),
    "no-ack": _Kind(_plain(ack_delay_s=math.inf), "", in_file_mode=False),
    **_cuts("", "cut_before_done", in_file_mode=True),
    **_cuts("-on-connect", "cut_on_connect", in_file_mode=True),
    **_cuts("-mid-audio", "cut_mid_audio", in_file_mode=False),
    "cap": _Kind(lambda value: {"cap_s": _seconds(value)}, "SECONDS", in_file_mode=False),
    "mute": _Kind(_plain(mute=True), ""),
    "failed": _Kind(lambda value: {"failed": _failure(value)}, "CODE[:MESSAGE]"),
    "speech-and-call": _Kind(_plain(speech_and_call=True), ""),
    "second-call": _Kind(_plain(second_call=True), ""),
    "late-call": _Kind(lambda value: {"late_call_s": _seconds(value)}, "SECONDS", in_file_mode=False),
    "duplicate": _Kind(_plain(duplicate=True), "", in_file_mode=False),
    "unknown": _Kind(_plain(unknown=True), "", in_file_mode=False),
    "big-frame": _Kind(lambda value: {"big_frame_bytes": _bytes(value)}, "BYTES"),
    "echo-secrets": _Kind(_plain(echo_secrets=True), ""),
    "acts": _Kind(lambda value: {"acts": _share(value)}, "SHARE"),
    "hears": _Kind(lambda value: {"hears": _share(value)}, "SHARE"),
    "call-in-deltas": _of_dialect("call-in-deltas"),
    "call-in-done": _of_dialect("call-in-done"),
    "cut-arguments": _of_dialect("cut-arguments"),
    "deaf": _of_dialect("deaf"),
    "error-in-body": _of_dialect("error-in-body"),
    "interleaved-calls": _of_dialect("interleaved-calls", {"second_call": True}),
    "spurious-interrupted": _of_dialect("spurious-interrupted"),
}
"""All names but `seed`."""
