"""Client half of a pair of sound devices: PCM out, PCM in, and nothing else. Sans-I/O.

Tool calls come from beside the connection (`adapters.tool_requests`), with no name of the call: one call at a time.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

from adapters.chunks import pieces, samples_in
from adapters.device.settings import DeviceSettings, check
from adapters.dialect import Capabilities, EncodedClip, Setup, TargetSettings, TurnMode
from adapters.foreign_json import brief, decode, int_of
from adapters.greeting import Waiting, longest_s
from adapters.target_settings import read_settings
from adapters.tool_requests import ToolRequests
from captures.events import (
    AudioDelta,
    Event,
    Failed,
    FailureKind,
    Refused,
    SessionReady,
    ToolCall,
    Unrecognised,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from captures.playback import is_loud
from transports.device import STATUS, DeviceEndpoint
from transports.transport import Endpoint, TransportError

_CONFIGURATION: Final = ("no_device", "no_pyaudio", "device_rate")


class DeviceClient:
    """`ClientDialect` of a pair of devices for one session. Also `Timed`, `StampsAudio`, `SeesToolsBeside`."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown, missing or invalid settings."""
        self._settings = read_settings(DeviceSettings, target.extra)
        self._requests = ToolRequests(self._settings.tool_calls)
        check(self._settings, self._requests.sees)
        self._latency = target.device_latency
        self.tool_channel = target.tool_channel
        self.call_id = "device-" + secrets.token_hex(8)
        rate_hz = self._settings.rate_hz
        self.capabilities = Capabilities(
            text_twin=False,
            probe=False,
            turn_modes=frozenset({TurnMode.SERVER_VAD}),
            input_rates_hz=(rate_hz,),
            output_rate_hz=rate_hz,
            takes_setup=False,
            declared_tools=frozenset(self._settings.tools) if self._requests.sees else None,
            sees_tools=self._requests.sees,
            deterministic_turns=False,
            second_turn=False,
            ends_by_silence_s=self._settings.end_silence_s,
            continuous_audio=True,
            one_at_a_time=True,
            greeting_s=longest_s(self._settings.greeting),
        )
        self._greeting = Waiting(self._settings.greeting)
        self._turn_begun = False
        self._speaking = False
        self._told: dict[str, int] = {}

    # Verbs

    def endpoint(self) -> Endpoint:
        """The devices; nothing secret in it."""
        settings = self._settings
        label = f"device://{settings.output} > {settings.input}"
        latency_ns = 0 if self._latency is None else round(self._latency.median_s * 1e9)
        return DeviceEndpoint(
            label,
            label=label,
            output=settings.output,
            input=settings.input,
            rate_hz=settings.rate_hz,
            latency_ns=latency_ns,
        )

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """Nothing is said: the agent has a prompt and tools of its own."""
        return ()

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """Binary frames of PCM.

        Raises:
            ValueError: another rate than the devices', half a sample, or a chunk length below 1 ms.
        """
        if rate_hz != self._settings.rate_hz:
            raise ValueError(f"these devices play {self._settings.rate_hz} Hz, not {rate_hz}")
        frames = tuple(OutFrame(piece, binary=True) for piece in pieces(pcm, rate_hz, chunk_ms))
        return EncodedClip(frames, chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One binary frame of zeros."""
        return OutFrame(bytes(2 * samples_in(rate_hz, duration_ms)), binary=True)

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is owed."""
        self._turn_begun = True
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """Nothing commits a turn over the air."""
        return ()

    def text(self, text: str) -> Sequence[OutFrame]:
        """No text turn over the air."""
        return ()

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The webhook answers by itself."""
        return ()

    def cancel(self) -> Sequence[OutFrame]:
        """A caller cuts in by speaking."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """The agent hears for itself what was heard."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """Nothing is owed."""
        return ()

    def on_wire(self, frame: OutFrame, t_ns: int) -> OutFrame:
        """See `StampsAudio`: the frame as it is; whether the caller is speaking is remembered."""
        self._speaking = any(frame.payload)
        return frame

    # The greeting

    def opened(self, t_ns: int) -> None:
        """See `Timed`."""
        self._greeting.begin(t_ns)

    def next_due_ns(self) -> int | None:
        """See `Timed`: when the caller may speak."""
        return self._greeting.due_ns()

    def due(self, now_ns: int) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """See `Timed`."""
        if not self._greeting.is_over(now_ns):
            return (), ()
        echoed: dict[str, Any] = {"device_latency_s": None}
        notes: list[Event] = []
        if self._latency is None:
            why = "the devices' latency was not measured: reply times hold it (rig device latency)"
            notes.append(Warned("device_latency", why))
        else:
            echoed = {"device_latency_s": self._latency.median_s, "device_uncertainty_s": self._latency.uncertainty_s}
        return [SessionReady(None, echoed), *notes], ()

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """The agent's sound, a tool request, or what the devices did wrong."""
        if frame.binary:
            return self._on_sound(frame), ()
        requested = self._requests.events(frame)
        if requested is not None:
            return self._in_turn(requested), ()
        fields = decode(frame.payload)
        if fields is None or fields.get("event") != STATUS:
            return [Unrecognised("a text frame that no device sends")], ()
        return self._on_status({name: int_of(fields, name) or 0 for name in ("ran_dry", "dropped", "input_lost")}), ()

    def _on_sound(self, frame: InFrame) -> Sequence[Event]:
        rate_hz = self._settings.rate_hz
        if self._turn_begun:
            return [AudioDelta(frame.payload, rate_hz)]
        if is_loud(frame.payload, rate_hz):
            self._greeting.heard(frame.t_ns + len(frame.payload) // 2 * 1_000_000_000 // rate_hz)
        return ()

    def _on_status(self, counts: dict[str, int]) -> Sequence[Event]:
        """A gap in the caller's own words is another clip than the item's: nothing was measured."""
        new = {name for name, count in counts.items() if count > self._told.get(name, 0)}
        self._told = counts
        if "ran_dry" in new or "dropped" in new:
            text = "the output device and the clock fell out of step: the caller's audio had a gap"
            if self._speaking and self._turn_begun:
                return [Failed(FailureKind.TRANSIENT, "device_gap", text)]
            return [Warned("device_gap", f"{text} in its trailing silence")]
        return [Warned("device_input", "the input device lost some of the agent's audio")] if new else []

    def _in_turn(self, events: list[Event]) -> list[Event]:
        """A call before the caller has spoken is no answer to the turn."""
        if self._turn_begun or not any(isinstance(event, ToolCall) for event in events):
            return events
        names = ", ".join(event.name or "?" for event in events if isinstance(event, ToolCall))
        return [Warned("call_before_turn", brief(f"{names} was called before the caller spoke; it is no answer", 200))]

    def connect_failed(self, error: TransportError) -> Event:
        """What is not there refuses the target; a device that somebody else holds may be free later."""
        if error.code in _CONFIGURATION:
            return Refused(error.code, brief(str(error)))
        return Failed(FailureKind.TRANSIENT, error.code, brief(str(error)))

    def closed(self, closed: ClosedBy) -> Event | None:
        """Devices close when we do."""
        return None
