"""What a dialect is: capabilities, the session's setup, and the client half's interface.

A dialect is sans-I/O. Verbs become frames, frames become events; it never reads a clock and never waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from captures.clock import Clock
from captures.events import Event
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.tool_channel import ToolChannel
from transports.transport import Endpoint, Transport, TransportError


class TurnMode(StrEnum):
    """How the caller's turn ends."""

    MANUAL = "manual"
    SERVER_VAD = "server_vad"
    SEMANTIC_VAD = "semantic_vad"
    PUSH_TEXT = "push_text"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a dialect can do; differences are declared here and never tested by vendor name elsewhere."""

    text_twin: bool
    probe: bool
    turn_modes: frozenset[TurnMode]
    input_rates_hz: tuple[int, ...]
    """Preferred rate first."""
    output_rate_hz: int
    takes_setup: bool = True
    """False for agents with a prompt and tools of their own."""
    declared_tools: frozenset[str] | None = None
    """Names of those tools: only items that offer no other can be run. None where they are not known."""
    sees_tools: bool = True
    """False where the agent's tool calls cannot be seen: actions are then not applicable, never "no call"."""
    deterministic_turns: bool = True
    second_turn: bool = True
    streams_audio: bool = True
    """False in file mode: the clip is held and posted once at commit, and nothing is paced."""
    waits_for_tool_result: bool = False
    """True when the peer sends no end of its turn until the call is answered: a quiet limit ends it."""
    confirms_setup: bool = True
    """False where nothing says that the settings were taken: audio follows them at once."""
    ends_by_silence_s: float | None = None
    """Set where the agent's audio never pauses and no event ends its turn: the turn is over once nothing audible and no
    call came for this long, with no delegated work open."""
    continuous_audio: bool = False
    """Caller audio must not pause: after the clip, silence goes on at its pace until the answer has ended."""
    late_call_grace_s: float = 0.0
    """How long after the dialect's end of turn a call may still come."""
    min_commit_s: float = 0.0
    """Shortest caller audio that may be committed; shorter clips are padded with silence."""
    max_input_bytes: int | None = None
    """Largest request body, where the dialect posts one."""
    ready_grace_s: float | None = None
    """Set where the peer may never confirm its settings: once it has opened, this long without an error is enough."""
    one_at_a_time: bool = False
    """True where two calls at once would be heard in each other (sound devices)."""
    chunk_ms: int | None = None
    """The one length of audio messages, where the wire has no other."""
    greeting_s: float = 0.0
    """How long an agent that speaks first may do so before the session is ready, on top of the set-up limit."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to the agent."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of the arguments (an object schema)."""


@dataclass(frozen=True, slots=True)
class TurnControlSettings:
    """How turns end on this target, with the mode's own parameters."""

    mode: TurnMode = TurnMode.MANUAL
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a session starts with."""

    instructions: str
    tools: tuple[ToolSpec, ...]
    """In menu order; empty for a probe."""
    input_rate_hz: int
    turn_control: TurnControlSettings = field(default_factory=TurnControlSettings)


@dataclass(frozen=True, slots=True)
class DeviceLatency:
    """From writing a piece of audio to an output device to receiving it back, seconds."""

    median_s: float
    uncertainty_s: float
    made: str
    """When it was measured (UTC, ISO 8601)."""


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """One target as a dialect needs it."""

    model: str
    base_url: str | None = None
    """The vendor's own by default."""
    api_key: str | None = field(default=None, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The target's `settings:` of the config; a dialect refuses keys it does not know."""
    tool_channel: ToolChannel | None = field(default=None, repr=False, compare=False)
    """Where its tool calls are seen, if not on its connection; None while nothing runs."""
    device_latency: DeviceLatency | None = field(default=None, compare=False)
    """Of its sound devices, where it has some and they were measured."""


@dataclass(frozen=True, slots=True)
class EncodedClip:
    """A clip as frames, made before the turn and cached by clip; `frames[k]` holds chunk k."""

    frames: tuple[OutFrame, ...]
    chunk_ms: int
    rate_hz: int
    samples: int
    """Of the clip itself, without padding."""
    filler_samples: int = 0
    """Silence that fills up the last frame, where all frames must be of one length."""


class SettingsError(ValueError):
    """A target's settings are not acceptable to its dialect; one line that names the key."""


class InputTooLargeError(ValueError):
    """A clip that no request of its dialect could carry; one line that names size and limit in bytes."""

    def __init__(self, size: int, limit: int, vendor: str = "") -> None:
        whose = f"{vendor}'s limit" if vendor else "the limit"
        super().__init__(f"the request would be {size:,} bytes, more than {whose} of {limit:,}: use a shorter clip")
        self.limit = limit


class InputTooLongError(InputTooLargeError):
    """A clip that lasts longer than its vendor takes; one line that names both in seconds."""

    def __init__(self, length_s: float, limit_s: float, vendor: str) -> None:
        text = f"the clip lasts {length_s:.1f} s, more than {vendor}'s limit of {limit_s:g} s: use a shorter clip"
        ValueError.__init__(self, text)


class ClientDialect(Protocol):
    """The client half of a dialect, for one session."""

    capabilities: Capabilities

    def endpoint(self) -> Endpoint:
        """Where to connect, secrets included."""
        ...

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """Frames to send once connected; some dialects send more after the peer's greeting (see `receive`)."""
        ...

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """PCM16 mono as frames. Touches no session state.

        Every piece holds whole samples; the last may be shorter.
        """
        ...

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One frame of silence (padding, trailing silence). Touches no session state."""
        ...

    def start_turn(self) -> Sequence[OutFrame]:
        """The caller begins to speak."""
        ...

    def hold(self, frame: OutFrame) -> None:
        """Keep a `held` frame until commit (file mode only)."""
        ...

    def commit_turn(self) -> Sequence[OutFrame]:
        """The explicit end of the caller's turn, and the request to answer it."""
        ...

    def text(self, text: str) -> Sequence[OutFrame]:
        """A whole caller turn as text, and the request to answer it (text twin)."""
        ...

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The result of a call, and the request to go on."""
        ...

    def cancel(self) -> Sequence[OutFrame]:
        """Stop the running answer."""
        ...

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """Tell the peer how much of its speech was heard."""
        ...

    def close(self) -> Sequence[OutFrame]:
        """Frames owed before the connection is closed."""
        ...

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events in the frame, and frames owed in return (e.g. the settings after a greeting). Never raises."""
        ...

    def connect_failed(self, error: TransportError) -> Event:
        """`Refused` or `Failed` for a refused handshake or request, by the vendor's meaning of it."""
        ...

    def closed(self, closed: ClosedBy) -> Event | None:
        """What the peer's close means; None when it ends nothing (after a finished answer)."""
        ...


class DialectInfo(Protocol):
    """A dialect's entry: module-level object `DIALECT` of its folder."""

    name: str
    wire_version: int
    parser_version: int
    default_key_env: str | None
    """Environment name that usually holds the key."""

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        ...

    def server(self) -> Any:
        """A server half (`adapters.server.ServerDialect`) for one connection."""
        ...


@runtime_checkable
class OwnTransport(Protocol):
    """A dialect that brings its own transport (a vendor's SDK) instead of taking a WebSocket."""

    def transport(self, clock: Clock) -> Transport:
        """A transport for one attempt."""
        ...


@runtime_checkable
class Preloads(Protocol):
    """A dialect with something slow to import."""

    def preload(self) -> None:
        """Import it; called before any audio is paced, since an import holds up every stream."""
        ...


@runtime_checkable
class ReadsFiles(Protocol):
    """A dialect with settings in a file beside the config: its content goes into `settings.declared`."""

    def declared(self, settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
        """What the file named in `settings` holds; relative to `folder`. Raises SettingsError."""
        ...

    def secret_names(self, settings: Mapping[str, Any], folder: Path) -> Sequence[str]:
        """Environment names that the file may use; none where it cannot be read."""
        ...


@runtime_checkable
class Timed(Protocol):
    """A client half that owes something at a time of its own (a mark once its audio has played), without a clock."""

    def opened(self, t_ns: int) -> None:
        """The frames of `open` have left; times count from here (monotonic ns)."""
        ...

    def next_due_ns(self) -> int | None:
        """When `due` should be called next; None while nothing is owed."""
        ...

    def due(self, now_ns: int) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events and frames that are due by now. Never raises."""
        ...


@runtime_checkable
class StampsAudio(Protocol):
    """A client half whose audio messages hold their number or their time: they are finished as they are sent."""

    def on_wire(self, frame: OutFrame, t_ns: int) -> OutFrame:
        """A binary frame (of `encode_clip` or `encode_silence`) as the message that leaves at `t_ns`."""
        ...


@runtime_checkable
class NamesItself(Protocol):
    """A client half that gives its session names of its own: a stored one is read by those it had then."""

    def recall(self, sent: bytes) -> None:
        """A text message that was sent when the session was made. Never raises."""
        ...


@runtime_checkable
class SeesToolsBeside(Protocol):
    """A client half whose agent's tool calls come beside the connection, as frames of `adapters.tool_requests`."""

    tool_channel: ToolChannel | None
    call_id: str
    """What the agent's requests name this session by."""


@runtime_checkable
class UsesDevices(Protocol):
    """A dialect whose settings name sound devices: `output`, `input`, `loop_input`, `rate_hz`."""

    uses_devices: bool


@runtime_checkable
class Hosted(Protocol):
    """A dialect whose agent is a process that the rig itself starts: a target of it has no address of its own."""

    hosted: bool
