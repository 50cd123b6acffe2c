"""Client half of a cascade: a whole clip to a transcriber, and its words to a model that chooses the tool.

A degenerate session as in file mode: the clip is held until commit; then each stage that hears gets its request, and
once all have answered the text model gets the words. Its answer is the answer. The clip never reaches that model, so a
target of this adapter is a cascade, whatever its parts are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import orjson

from adapters import registry
from adapters.cascade import wire
from adapters.cascade.endpoint import TAGS, TRANSCRIPTIONS, FormStage
from adapters.cascade.prompted import PromptedStage
from adapters.cascade.settings import ENDPOINT, CascadeSettings, StageSettings
from adapters.cascade.wire import Stage
from adapters.cascade.words import bare
from adapters.chat_audio import wire as chat_wire
from adapters.dialect import (
    Capabilities,
    ClientDialect,
    EncodedClip,
    OwnTransport,
    SettingsError,
    Setup,
    TargetSettings,
    TurnMode,
)
from adapters.foreign_json import brief, decode, object_of, text_of
from adapters.target_settings import read_settings
from captures.clock import Clock
from captures.events import (
    AnswerEnd,
    AnswerEnded,
    Event,
    Failed,
    FailureKind,
    InputTranscript,
    Refused,
    ToolCall,
    ToolCallStarted,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, Transport, TransportError

MakeTransport = Callable[[Clock], Transport]
_CAPABILITIES: Final = Capabilities(
    text_twin=True,
    probe=False,
    turn_modes=frozenset({TurnMode.MANUAL}),
    input_rates_hz=(16_000,),
    output_rate_hz=chat_wire.RATE_HZ,
    streams_audio=False,
)


class Hears(Protocol):
    """A stage that is given the audio of one turn, once."""

    rates_hz: tuple[int, ...]

    def endpoint(self) -> Endpoint:
        """Where its request goes, secrets included."""
        ...

    def encoded(self, pcm: bytes, rate_hz: int) -> bytes:
        """A whole clip as it is held. Raises InputTooLargeError."""
        ...

    def hold(self, piece: bytes) -> None:
        """Keep a piece of the caller's turn until commit."""
        ...

    def request(self) -> Sequence[OutFrame]:
        """The request with everything held. Raises InputTooLargeError."""
        ...

    def receive(self, frame: InFrame) -> list[Event]:
        """The transcript (or tags) as an `InputTranscript`, or what went wrong."""
        ...

    def connect_failed(self, error: TransportError) -> Event:
        """What a failed request means."""
        ...


@dataclass(frozen=True, slots=True)
class StageRoute:
    """How a stage's requests travel."""

    endpoint: Endpoint
    transport: MakeTransport | None
    """Of its own dialect; None for a form, which the cascade's own transport posts."""


@dataclass(frozen=True, slots=True)
class CascadeEndpoint(Endpoint):
    """The text model's address, and the way to each stage."""

    routes: Mapping[Stage, StageRoute] = field(default_factory=dict, repr=False)


class StageError(TransportError):
    """A request of one stage failed."""

    def __init__(self, stage: Stage, error: TransportError) -> None:
        super().__init__(
            str(error),
            code=error.code,
            status=error.status,
            body=error.body,
            retry_after_s=error.retry_after_s,
        )
        self.stage = stage


@dataclass(frozen=True, slots=True)
class _Ears:
    """How a stage that hears is made anew for each turn, and how its requests travel."""

    make: Callable[[], Hears]
    transport: MakeTransport | None


class CascadeClient:
    """`ClientDialect` of a cascade for one session."""

    def __init__(self, target: TargetSettings) -> None:
        """Raises `SettingsError`: unknown or invalid settings of the cascade or of a stage."""
        settings = read_settings(CascadeSettings, target.extra)
        self._rung = settings.rung
        self._model, self._model_transport = _text_model(target, settings)
        hearing = {Stage.TRANSCRIBER: settings.transcriber}
        if settings.rung == "tags":
            hearing[Stage.TAGGER] = settings.tagger or _beside(settings.transcriber)
        url = self._model.endpoint().url
        self._stages = {stage: _ears(stage, chosen, target, settings, url) for stage, chosen in hearing.items()}
        self._hearing = self._new_turn()
        rates_hz = self._hearing[Stage.TRANSCRIBER].rates_hz
        self.capabilities = replace(
            _CAPABILITIES,
            probe=settings.rung == "tags",
            input_rates_hz=rates_hz,
            second_turn=self._model.capabilities.second_turn,
        )
        self._heard: dict[Stage, InputTranscript] = {}

    def _new_turn(self) -> dict[Stage, Hears]:
        return {stage: ears.make() for stage, ears in self._stages.items()}

    # Verbs

    def endpoint(self) -> Endpoint:
        """The text model's address; those of the other stages go with it."""
        model = self._model.endpoint()
        routes = {Stage.MODEL: StageRoute(model, self._model_transport)}
        for stage, ears in self._stages.items():
            routes[stage] = StageRoute(self._hearing[stage].endpoint(), ears.transport)
        return CascadeEndpoint(model.url, model.headers, model.label, routes)

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """The setup is the text model's. Raises SettingsError where its dialect cannot carry it."""
        return self._addressed(self._model.open(setup))

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """One held frame per stage that hears.

        Raises:
            InputTooLargeError: no request of a stage could carry the clip.
            ValueError: half a sample.
        """
        if len(pcm) % 2:
            raise ValueError("needs whole 16-bit samples")
        return EncodedClip(self._pieces(pcm, rate_hz), chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """Held for the transcriber alone: silence says nothing to a tagger."""
        piece = self._hearing[Stage.TRANSCRIBER].encoded(bytes(2 * round(rate_hz * duration_ms / 1000)), rate_hz)
        return OutFrame(wire.addressed(Stage.TRANSCRIBER, piece), held=True)

    def _pieces(self, pcm: bytes, rate_hz: int) -> tuple[OutFrame, ...]:
        return tuple(
            OutFrame(wire.addressed(stage, one.encoded(pcm, rate_hz)), held=True)
            for stage, one in self._hearing.items()
        )

    def start_turn(self) -> Sequence[OutFrame]:
        """Nothing is sent before the commit."""
        return ()

    def hold(self, frame: OutFrame) -> None:
        """Keep a piece of the caller's turn until commit."""
        opened = wire.opened(frame.payload)
        if opened is not None and opened[0] in self._hearing:
            self._hearing[opened[0]].hold(opened[1])

    def commit_turn(self) -> Sequence[OutFrame]:
        """The request of every stage that hears, at once.

        Raises:
            InputTooLargeError: larger than a vendor takes.
        """
        self._heard = {}
        return [
            OutFrame(wire.addressed(stage, frame.payload))
            for stage, one in self._hearing.items()
            for frame in one.request()
        ]

    def text(self, text: str) -> Sequence[OutFrame]:
        """The caller's words straight to the text model: no stage hears. Raises InputTooLargeError."""
        return self._addressed(self._model.text(text))

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """To the text model. Raises InputTooLargeError."""
        return self._addressed(self._model.tool_result(call_id, output))

    def cancel(self) -> Sequence[OutFrame]:
        """Nothing can be sent into a running request; closing the transport ends it."""
        return ()

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """No stage keeps played speech."""
        return ()

    def close(self) -> Sequence[OutFrame]:
        """Nothing is owed."""
        return ()

    def _addressed(self, frames: Sequence[OutFrame]) -> Sequence[OutFrame]:
        return [OutFrame(wire.addressed(Stage.MODEL, frame.payload)) for frame in frames]

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of a stage's response; once all that hear have answered, the text model's request is owed."""
        refused = wire.refused_call(frame.payload)
        if refused is not None:
            return _unusable_call(refused), ()
        opened = wire.opened(frame.payload)
        if opened is None:
            return [Failed(FailureKind.PROTOCOL, "no_stage", "a frame of no stage")], ()
        stage, body = opened
        inner = replace(frame, payload=body)
        if stage is Stage.MODEL:
            events, owed = self._model.receive(inner)
            return events, self._addressed(owed)
        events = self._hearing[stage].receive(inner)
        for event in events:
            if isinstance(event, InputTranscript):
                self._heard[stage] = event
        others = [event for event in events if not isinstance(event, InputTranscript)]
        if any(isinstance(event, Refused | Failed) for event in others) or len(self._heard) < len(self._stages):
            return others, ()
        words = self._heard[Stage.TRANSCRIBER].text
        tags = self._heard[Stage.TAGGER].tags if Stage.TAGGER in self._heard else None
        self._heard = {}
        self._hearing = self._new_turn()
        return [*others, InputTranscript(words, tags=tags)], self.text(told(self._rung, words, tags))

    def connect_failed(self, error: TransportError) -> Event:
        """As the stage's own dialect reads it; a message of a stage that hears names it."""
        stage = error.stage if isinstance(error, StageError) else Stage.MODEL
        if stage is Stage.MODEL:
            return self._model.connect_failed(error)
        event = self._hearing[stage].connect_failed(error)
        return replace(event, message=f"{stage}: {event.message}") if isinstance(event, Refused | Failed) else event

    def closed(self, closed: ClosedBy) -> Event | None:
        """None: there is no connection to lose, a lost request is a failed one."""
        return None


def told(rung: str, words: str, tags: Sequence[str] | None) -> str:
    """The caller turn that the text model gets on a rung, from a whole transcript and measured tags."""
    if rung == "verbatim":
        return words
    return wire.with_tags(bare(words), tags or ()) if rung == "tags" else bare(words)


def _text_model(target: TargetSettings, settings: CascadeSettings) -> tuple[ClientDialect, MakeTransport]:
    where = "settings.chat"
    dialect, transport = _file_mode(settings.chat.adapter, where)
    extra = settings.chat.settings
    if settings.chat.adapter == "chat_audio":
        extra = {"modalities": ["text"], **extra}
    try:
        client = dialect(replace(target, extra=extra))
    except SettingsError as error:
        text = str(error)
        raise SettingsError(f"{where}.{text}" if text.startswith("settings") else text) from None
    return client, transport


def _beside(transcriber: StageSettings) -> StageSettings:
    """The tagger that stands where the transcriber does."""
    if transcriber.adapter != ENDPOINT:
        raise SettingsError("settings.tagger: required with this transcriber (rung: tags)")
    return transcriber.model_copy(update={"settings": {}})


def _ears(
    stage: Stage, chosen: StageSettings, target: TargetSettings, settings: CascadeSettings, model_url: str
) -> _Ears:
    where = f"settings.{stage}"
    # The target's key goes to the text model's own address alone.
    shared = chosen.base_url is None and chosen.adapter in (ENDPOINT, settings.chat.adapter)
    if not shared and chosen.base_url is None and chosen.api_key is None:
        raise SettingsError(f"{where}: needs api_key or base_url of its own, since it is another vendor's")
    stage_target = TargetSettings(
        chosen.model,
        model_url if shared else chosen.base_url,
        chosen.api_key or (target.api_key if shared else None),
        chosen.settings,
    )
    if chosen.adapter == ENDPOINT:
        path = TRANSCRIPTIONS if stage is Stage.TRANSCRIBER else TAGS
        FormStage(stage_target, path, where)
        return _Ears(lambda: FormStage(stage_target, path, where), None)
    dialect, transport = _file_mode(chosen.adapter, where)
    try:
        PromptedStage(dialect(stage_target), stage)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None
    return _Ears(lambda: PromptedStage(dialect(stage_target), stage), transport)


def _file_mode(name: str, where: str) -> tuple[Callable[[TargetSettings], ClientDialect], MakeTransport]:
    """Client half and transport of a file-mode adapter. Raises SettingsError for any other."""
    if name not in registry.names() or name == "cascade":
        known = ", ".join(one for one in registry.names() if one != "cascade")
        raise SettingsError(f"{where}.adapter: no adapter {brief(name, 60)!r}; there are: {known}")
    dialect = registry.dialect(name)
    if not isinstance(dialect, OwnTransport):
        raise SettingsError(f"{where}.adapter: {name} is no file-mode adapter")

    def client(target: TargetSettings) -> ClientDialect:
        made = dialect.client(target)
        if made.capabilities.streams_audio:
            raise SettingsError(f"{where}.adapter: {name} is no file-mode adapter")
        return made

    return client, dialect.transport


def _unusable_call(body: bytes) -> list[Event]:
    """The model called something that its vendor could not parse: a wrong call, and the end of its answer."""
    error = object_of(decode(body) or {}, "error")
    stated = text_of(error, "failed_generation") or text_of(error, "message") or ""
    call_id = "unusable"
    return [
        ToolCallStarted(call_id, None, 0),
        ToolCall(call_id, None, orjson.dumps(stated).decode(), None, 0),
        AnswerEnded(AnswerEnd.COMPLETED, "tool_use_failed"),
    ]
