"""One attempt at one cell: open a session, play the turn, close, and write down what was observed."""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from adapters import registry
from adapters.dialect import (
    EncodedClip,
    InputTooLargeError,
    OwnTransport,
    Preloads,
    SettingsError,
    Setup,
    TargetSettings,
    TurnMode,
)
from adapters.session import Session, SessionError
from captures.capture import BargeIn, Capture, Ending, ErrorInfo, Mark, SecondTurn
from captures.clock import Clock, KnowsSleep
from captures.events import Failed, FailureKind, Refused
from captures.playback import Playback, whole_samples
from captures.writer import AttemptRecord
from rig.config import Config
from rig.engine.barge_in import kept
from rig.engine.clips import PreparedClip
from rig.engine.heard import heard, reply_audio
from rig.engine.keys import Key
from rig.engine.plan import Cell, Target
from rig.engine.second_turn import play_second_turn, started_by
from transports.transport import Transport
from turn_control.barge_in import barge_in
from turn_control.limits import Limits
from turn_control.silence import SilentCaller
from turn_control.ticker import Ticker
from turn_control.turn import CallerTurn, SpokenTurn, TextTurn, TurnRecord, play_turn

_ENCODED_CLIPS_KEPT = 64
_SLEEP_NS = 20_000_000
"""The two clocks are read one after the other; any real sleep is longer."""
_ENCODING = anyio.CapacityLimiter(1)


class TurnRules(TypedDict):
    """What all turns of a cell share."""

    ticker: Ticker
    clock: Clock
    limits: Limits
    mode: TurnMode
    pace: float


class Attempts:
    """Makes attempts on one target. Keeps encoded clips, since every attempt at a clip sends the same frames."""

    def __init__(
        self,
        config: Config,
        target: Target,
        settings: TargetSettings,
        clock: Clock,
        ticker: Ticker,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._config = config
        self._target = target
        self._settings = settings
        self._dialect = registry.dialect(target.config.adapter)
        # What is slow to import holds up every stream, so it is not left for the first session.
        if isinstance(self._dialect, Preloads):
            self._dialect.preload()
        if not isinstance(self._dialect, OwnTransport):
            import transports.websocket  # noqa: F401 - not at the top: file-mode runs need no WebSocket client
        self._clock = clock
        self._ticker = ticker
        self._ssl_context = ssl_context
        self._limits = Limits(
            turn_s=config.limits.turn_s,
            quiet_s=config.limits.quiet_s,
            trailing_silence_s=config.limits.trailing_silence_s,
        )
        self._encoded: OrderedDict[tuple[str, int], EncodedClip] = OrderedDict()

    async def make(self, cell: Cell, number: int, key: Key) -> AttemptRecord:
        """Attempt `cell` for the `number`-th time. Peer and network faults end in a capture, never in an exception."""
        started_ns = self._clock.now_ns()
        if cell.input_error is not None:
            error = ErrorInfo(kind="input", code="clip", message=cell.input_error)
            return AttemptRecord(self._capture(cell, number, started_ns, Ending.INPUT_ERROR, error))
        session = self._session(key.value)
        asleep_ns = self._slept_ns()
        try:
            turn = await self._turn(cell, session)
            await session.open(cell.setup, self._config.limits.setup_s)
            record, cut_in = await self._first_turn(cell, session, turn)
            second = None
            if cut_in is None or cut_in.not_played:
                second = await self._second_turn(cell, session, turn, record)
        except (SessionError, SettingsError) as failed:
            return self._never_ready(cell, number, started_ns, session, failed)
        except InputTooLargeError as too_large:
            error = ErrorInfo(kind="input", code="too_large", message=str(too_large))
            return AttemptRecord(self._capture(cell, number, started_ns, Ending.INPUT_ERROR, error))
        finally:
            await session.close()
        playback = await heard(record)
        slept_ns = self._slept_ns() - asleep_ns
        if slept_ns > _SLEEP_NS:
            # Its stamps stand still in sleep while the peer's world goes on: nothing of this call can be believed.
            message = f"the machine slept for {slept_ns / 1e9:.1f} s during the call"
            asleep = ErrorInfo(kind=FailureKind.TRANSIENT.value, code="machine_slept", message=message)
            record = replace(record, ending=Ending.INFRASTRUCTURE_ERROR, error=asleep)
        capture = self._capture(cell, number, started_ns, record.ending, record.error, session, record, playback)
        capture = capture.model_copy(update={"second_turn": second, "barge_in": cut_in})
        if cell.stored is not None:
            capture = cell.stored.on(capture)
        pcm, _ = whole_samples(piece for _, piece in record.reply_pieces)
        return AttemptRecord(capture, tuple(session.log), pcm)

    def unfit(self, cells: Iterable[Cell]) -> Cell | None:
        """The first cell whose setup the dialect cannot put on its wire (a tool it cannot translate). No I/O."""
        last: Setup | None = None
        for cell in cells:
            if cell.setup == last:
                continue
            try:
                self._dialect.client(self._settings).open(cell.setup)
            except SettingsError:
                return cell
            last = cell.setup
        return None

    async def preflight(self, cell: Cell, number: int, key: Key) -> AttemptRecord | None:
        """Open and set up a session as for `cell`, and close it: nothing is said and no answer is asked for.

        None when the session became ready, else the record of an attempt that ended there.
        """
        started_ns = self._clock.now_ns()
        session = self._session(key.value)
        try:
            await session.open(cell.setup, self._config.limits.setup_s)
        except (SessionError, SettingsError) as failed:
            return self._never_ready(cell, number, started_ns, session, failed)
        finally:
            await session.close()
        return None

    def _slept_ns(self) -> int:
        return self._clock.slept_ns() if isinstance(self._clock, KnowsSleep) else 0

    def _session(self, key: str | None) -> Session:
        client = self._dialect.client(replace(self._settings, api_key=key))
        return Session(client, self._transport(), self._clock)

    def _never_ready(
        self, cell: Cell, number: int, started_ns: int, session: Session, failed: SessionError | SettingsError
    ) -> AttemptRecord:
        """The record of an attempt whose session never became ready."""
        if isinstance(failed, SettingsError):
            ending, error = Ending.CONFIGURATION_ERROR, ErrorInfo(kind="refused", code="settings", message=str(failed))
        else:
            ending, error = _typed(failed.event)
        return AttemptRecord(self._capture(cell, number, started_ns, ending, error, session), tuple(session.log))

    def _transport(self) -> Transport:
        if isinstance(self._dialect, OwnTransport):
            return self._dialect.transport(self._clock)
        from transports.websocket import WebSocketTransport

        return WebSocketTransport(self._clock, self._ssl_context)

    async def _first_turn(self, cell: Cell, session: Session, turn: CallerTurn) -> tuple[TurnRecord, BargeIn | None]:
        if cell.barge_in is None:
            return await self._play(cell, session, turn), None
        clip = await self._spoken(cell, session, cell.barge_in.clip)
        record = await barge_in(session, turn, clip, after_s=cell.barge_in.after_s, **self._rules(cell))
        return record.interrupted, await kept(cell.barge_in, record)

    async def _play(self, cell: Cell, session: Session, turn: CallerTurn) -> TurnRecord:
        return await play_turn(session, turn, **self._rules(cell))

    def _rules(self, cell: Cell) -> TurnRules:
        return {
            "ticker": self._ticker,
            "clock": self._clock,
            "limits": self._limits,
            "mode": cell.setup.turn_control.mode,
            "pace": self._config.pace,
        }

    async def _second_turn(
        self, cell: Cell, session: Session, turn: CallerTurn, first: TurnRecord
    ) -> SecondTurn | None:
        call = started_by(cell.planned_reply, first)
        if cell.planned_reply is None or call is None:
            return None
        quiet = None
        if isinstance(turn, SpokenTurn) and session.dialect.capabilities.continuous_audio:
            quiet = SilentCaller(session, self._ticker, turn.clip.rate_hz, turn.clip.chunk_ms)
        return await play_second_turn(
            cell.planned_reply,
            call,
            first,
            session,
            play=lambda later: self._play(cell, session, later),
            encode=lambda clip: self._spoken(cell, session, clip),
            quiet=quiet,
        )

    async def _turn(self, cell: Cell, session: Session) -> SpokenTurn | TextTurn:
        if cell.text is not None:
            return TextTurn(cell.text)
        assert cell.clip is not None, "a cell without text has a clip"
        return await self._spoken(cell, session, cell.clip)

    async def _spoken(self, cell: Cell, session: Session, clip: PreparedClip) -> SpokenTurn:
        key = (clip.pcm_sha256, clip.source_rate_hz)
        encoded = self._encoded.get(key)
        if encoded is None:
            # In a thread, since other turns are being played meanwhile; in one alone, since each would take its share
            # of the interpreter from them.
            encoded = await anyio.to_thread.run_sync(self._encode, cell, session, clip, limiter=_ENCODING)
            self._encoded[key] = encoded
            if len(self._encoded) > _ENCODED_CLIPS_KEPT:
                self._encoded.popitem(last=False)
        else:
            self._encoded.move_to_end(key)
        return SpokenTurn(encoded, clip.speech_end_s)

    def _encode(self, cell: Cell, session: Session, clip: PreparedClip) -> EncodedClip:
        rate_hz = cell.setup.input_rate_hz
        return session.encode_clip(clip.pcm_at(rate_hz), rate_hz, self._config.chunk_ms)

    def _capture(
        self,
        cell: Cell,
        number: int,
        started_ns: int,
        ending: Ending,
        error: ErrorInfo | None,
        session: Session | None = None,
        turn: TurnRecord | None = None,
        playback: Playback | None = None,
    ) -> Capture:
        marks = dict(session.marks) if session else {}
        if turn is not None:
            marks |= turn.marks
        if playback is not None and playback.first_audible_ns is not None:
            marks[Mark.FIRST_AUDIBLE] = playback.first_audible_ns
        closed = turn.closed if turn is not None and turn.closed else session.closed if session else None
        by_peer = closed is not None and closed.by_peer
        return Capture(
            identity=cell.identity,
            target=cell.target,
            item_id=cell.item_id,
            variant_id=cell.variant_id,
            condition=cell.condition,
            repeat=cell.repeat,
            attempt=number,
            finished=ending.scored,
            started_ns=started_ns,
            adapter=self._dialect.name,
            wire_version=self._dialect.wire_version,
            parser_version=self._dialect.parser_version,
            ending=ending,
            ending_detail=turn.detail if turn else "",
            error=error,
            tools_seen=self._target.capabilities.sees_tools,
            calls=turn.calls if turn else (),
            reply_text=turn.reply_text if turn else "",
            reply_transcript=turn.reply_transcript if turn else "",
            input_transcript=turn.input_transcript if turn else None,
            input_tags=turn.input_tags if turn else None,
            marks=marks,
            pacing=turn.pacing if turn else None,
            reply_audio=reply_audio(turn, playback) if turn else None,
            usage=turn.usage if turn else None,
            served=turn.served if turn else None,
            network=session.network_times() if session else None,
            echoed=dict(session.ready.echoed) if session and session.ready else {},
            warnings=(turn.warnings if turn else ()) + (cell.clip.clip.notes if cell.clip else ()),
            close_code=closed.code if closed and by_peer else None,
            close_reason=closed.reason if closed and by_peer else "",
            host=urlsplit(session.dialect.endpoint().label).netloc if session else "",
        )


def _typed(event: Refused | Failed) -> tuple[Ending, ErrorInfo]:
    """A session that never became ready."""
    if isinstance(event, Refused):
        info = ErrorInfo(kind="refused", code=event.code, message=event.message, where=event.where)
        return Ending.CONFIGURATION_ERROR, info
    kind = "not_ready" if event.code == "not_ready" else event.kind.value
    info = ErrorInfo(kind=kind, code=event.code, message=event.message, retry_after_s=event.retry_after_s)
    return Ending.INFRASTRUCTURE_ERROR, info
