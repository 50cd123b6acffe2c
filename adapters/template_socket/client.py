"""Client half of a template: an agent's own JSON protocol, as its template file describes it. Sans-I/O; one session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote, urlsplit

import orjson
from pydantic import Field

from adapters.chunks import pieces, samples_in
from adapters.dialect import Capabilities, EncodedClip, SettingsError, Setup, TargetSettings, ToolSpec, TurnMode
from adapters.foreign_json import JsonObject, brief, decode, masked, too_deep
from adapters.rig_socket.faults import fault_of_connect
from adapters.target_settings import HeaderText, StrictSettings, read_address, read_settings, secret_values
from adapters.template_socket import pipecat_frames
from adapters.template_socket.expressions import SECRETS, Rendered, as_text, expression, search
from adapters.template_socket.faults import fault_of_close
from adapters.template_socket.reading import Reader
from adapters.template_socket.sound import Format, to_base64
from adapters.template_socket.template import Template, TemplateError, checked, read_template
from captures.events import (
    AnswerEnded,
    AudioDelta,
    Event,
    Failed,
    Refused,
    Unrecognised,
    Warned,
)
from captures.frames import ClosedBy, InFrame, OutFrame
from transports.transport import Endpoint, RequestedEndpoint, SessionRequest, TransportError

_SUMMARY: Final = 200
_HTTP: Final = ("http", "https")


class TemplateSettings(StrictSettings):
    """`settings:` of a target."""

    template: Annotated[str, Field(min_length=1)]
    """A shipped template's name, or a YAML file relative to the config's folder."""
    values: dict[str, Any] = Field(default_factory=dict)
    """For the template's `{{ values.NAME }}`, over its own defaults."""
    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the handshake; values are secret."""
    tools: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(default=(), strict=False)
    """Names of the agent's own tools, where the template has `takes_setup: false`."""
    declared: dict[str, Any] = Field(default_factory=dict)
    """Filled in by the rig: the template's content."""


class TemplateClient:
    """`ClientDialect` of a template for one session."""

    def __init__(self, target: TargetSettings, environment: Mapping[str, str] = os.environ) -> None:
        """`environment` is read for the names under the template's `secrets:` alone.

        Raises:
            SettingsError: unknown or invalid settings, a template with faults, no address.
        """
        settings = read_settings(TemplateSettings, target.extra)
        try:
            given = settings.declared or read_template(settings.template, Path())
            template = checked(given, settings.template)
        except TemplateError as error:
            raise SettingsError(str(error)) from None
        self._template = template
        file = template.file
        own_secrets = {name: environment.get(name, "") for name in file.secrets}
        self._context: dict[str, Any] = {
            SECRETS: own_secrets,
            "values": _values(file.values, settings.values),
            "api_key": target.api_key,
            "input_rate_hz": file.audio_in.rate_hz,
        }
        headers = _headers(template.headers, self._context) | settings.headers
        self._session = _session_request(target, template, self._context)
        if self._session is None:
            self._endpoint = _endpoint(target, template.url, self._context, headers)
        else:
            _, label = read_address(self._session.url, _HTTP, "https://agent.example/calls")
            self._endpoint = RequestedEndpoint(self._session.url, headers, label, self._session)
            headers = {**headers, **self._session.headers}
        query = urlsplit(self._endpoint.url).query
        keys = [secret for secret in (*own_secrets.values(), target.api_key or "") if len(secret) >= 4]
        self._secrets = (*keys, *secret_values(headers, query))
        self._input = Format(file.audio_in.encoding, file.audio_in.rate_hz)
        self._reader = Reader(template)
        self._pipecat = file.framing == "pipecat"
        self._over = False
        """The answer has ended or failed: a close ends nothing more."""
        self.capabilities = _capabilities(template, settings, made=self._session is not None)

    # Verbs

    def endpoint(self) -> Endpoint:
        """The agent's address, or the request that makes a session with what `open` was given; no query in a label."""
        body = self._template.session.get("body")
        if self._session is None or body is None:
            return self._endpoint
        asked = replace(self._session, body=orjson.dumps(body(self._context)))
        return RequestedEndpoint(self._endpoint.url, self._endpoint.headers, self._endpoint.label, asked)

    def open(self, setup: Setup) -> Sequence[OutFrame]:
        """The messages `send.open`."""
        takes = self.capabilities.takes_setup
        self._context |= {
            "instructions": setup.instructions if takes else "",
            "tools": [_tool(tool) for tool in setup.tools] if takes else [],
            "input_rate_hz": setup.input_rate_hz,
        }
        return self._send("open")

    def encode_clip(self, pcm: bytes, rate_hz: int, chunk_ms: int) -> EncodedClip:
        """Audio messages of the template.

        Raises:
            ValueError: another rate than the template's, half a sample, or a chunk length below 1 ms.
        """
        if rate_hz != self._input.rate_hz:
            raise ValueError(f"this template takes audio at {self._input.rate_hz} Hz, not {rate_hz}")
        frames = tuple(self._audio(piece) for piece in pieces(pcm, rate_hz, chunk_ms))
        return EncodedClip(frames, chunk_ms, rate_hz, len(pcm) // 2)

    def encode_silence(self, rate_hz: int, duration_ms: int) -> OutFrame:
        """One audio message of zeros."""
        return self._audio(bytes(2 * samples_in(rate_hz, duration_ms)))

    def start_turn(self) -> Sequence[OutFrame]:
        """The messages `send.start`."""
        self._new_turn()
        return self._send("start")

    def hold(self, frame: OutFrame) -> None:
        """Not in file mode: no frame is held."""

    def commit_turn(self) -> Sequence[OutFrame]:
        """The messages `send.commit`."""
        return self._send("commit")

    def text(self, text: str) -> Sequence[OutFrame]:
        """The messages `send.text`."""
        self._new_turn()
        return self._send("text", text=text)

    def tool_result(self, call_id: str, output: str) -> Sequence[OutFrame]:
        """The messages `send.tool_result`."""
        self._new_turn()
        name, arguments = self._reader.calls.get(call_id, (None, None))
        return self._send("tool_result", call_id=call_id, output=output, name=name, arguments=arguments)

    def cancel(self) -> Sequence[OutFrame]:
        """The messages `send.cancel`."""
        return self._send("cancel")

    def truncate(self, audio_ms: int) -> Sequence[OutFrame]:
        """The messages `send.truncate`."""
        return self._send("truncate", audio_ms=audio_ms)

    def close(self) -> Sequence[OutFrame]:
        """The messages `send.close`."""
        return self._send("close")

    # Reading

    def receive(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame]]:
        """Events of one message by the template's rules, and the replies that they owe."""
        events, owed, _ = self.explain(frame)
        return events, owed

    def explain(self, frame: InFrame) -> tuple[Sequence[Event], Sequence[OutFrame], list[int]]:
        """`receive`, and the numbers of the rules that the message met."""
        if not frame.binary:
            return self._on_json(frame.payload)
        if self._pipecat:
            return self._on_pipecat(frame.payload)
        if self._template.file.audio_out.binary:
            return self._reader.speech(frame.payload), (), []
        return self._on_json(frame.payload)

    def connect_failed(self, error: TransportError) -> Event:
        """401, 403, 404 and other 4xx refuse the target; 429, 5xx and network failures may be tried again."""
        return self._masked(fault_of_connect(error))

    def closed(self, closed: ClosedBy) -> Event | None:
        """None after a finished or failed answer and for our own close."""
        if self._over or (not closed.by_peer and closed.code is not None):
            return None
        return self._masked(fault_of_close(closed, self._reader.ready or not self.capabilities.confirms_setup))

    def _on_json(self, payload: bytes) -> tuple[Sequence[Event], Sequence[OutFrame], list[int]]:
        message = decode(payload)
        if message is None:
            return self._reader.unreadable(payload), (), []
        return self._on_message(message, payload)

    def _on_message(self, message: JsonObject, payload: bytes) -> tuple[Sequence[Event], Sequence[OutFrame], list[int]]:
        if too_deep(message):
            return self._reader.unreadable(payload), (), []
        matches = self._reader.read(message)
        if not matches:
            return [Unrecognised(brief(payload[:_SUMMARY].decode("utf-8", "replace"), _SUMMARY))], (), []
        owed: list[OutFrame] = []
        for match in matches:
            owed += self._rendered(self._template.replies[match.number], message=message)
        events = [self._masked(event) for match in matches for event in match.events]
        self._over = self._over or any(isinstance(event, AnswerEnded | Refused | Failed) for event in events)
        return events, owed, [match.number for match in matches]

    def _on_pipecat(self, payload: bytes) -> tuple[Sequence[Event], Sequence[OutFrame], list[int]]:
        frame = pipecat_frames.read_frame(payload)
        if isinstance(frame, pipecat_frames.Audio):
            return ([AudioDelta(frame.pcm, frame.rate_hz)] if frame.pcm else []), (), []
        if frame is None:
            return self._reader.unreadable(payload), (), []
        if frame.kind == "message":
            return self._on_json(frame.text.encode())
        return self._on_message({"type": frame.kind, "text": frame.text}, frame.text.encode())

    # Frames

    def _send(self, name: str, /, **more: Any) -> list[OutFrame]:
        return self._rendered(self._template.send[name], **more)

    def _rendered(self, messages: Sequence[Rendered], **more: Any) -> list[OutFrame]:
        if not messages:
            return []
        context = self._context | more
        return [self._json(orjson.dumps(message(context))) for message in messages]

    def _json(self, text: bytes) -> OutFrame:
        return OutFrame(pipecat_frames.message_frame(text), binary=True) if self._pipecat else OutFrame(text)

    def _audio(self, pcm: bytes) -> OutFrame:
        coded = self._input.encode(pcm)
        if self._pipecat:
            return OutFrame(pipecat_frames.audio_frame(coded, self._input.rate_hz), binary=True)
        if self._template.audio is None:
            return OutFrame(coded, binary=True)
        return OutFrame(orjson.dumps(self._template.audio(self._context | {"audio": to_base64(coded)})))

    # State

    def _new_turn(self) -> None:
        self._over = False
        self._reader.new_turn()

    def _masked(self, event: Event) -> Event:
        if isinstance(event, Refused | Failed | Warned):
            return replace(event, message=masked(event.message, self._secrets))
        return event


def _capabilities(template: Template, settings: TemplateSettings, *, made: bool) -> Capabilities:
    file = template.file
    takes_setup = file.session.takes_setup if made and file.session is not None else file.takes_setup
    if takes_setup and settings.tools:
        raise SettingsError("settings.tools: only for an agent with tools of its own (takes_setup: false)")
    if not takes_setup and not settings.tools:
        raise SettingsError(
            f"settings.tools: {settings.template} does not take the items' tools; list the names of the agent's own"
        )
    modes = {TurnMode.MANUAL} if file.send.commit else set()
    if file.turn.detected:
        modes.add(TurnMode.SERVER_VAD)
    return Capabilities(
        text_twin=bool(file.send.text),
        probe=takes_setup,
        turn_modes=frozenset(modes),
        input_rates_hz=(file.audio_in.rate_hz,),
        output_rate_hz=file.audio_out.rate_hz,
        takes_setup=takes_setup,
        declared_tools=None if takes_setup else frozenset(settings.tools),
        deterministic_turns=bool(file.send.commit),
        second_turn=bool(file.send.tool_result),
        waits_for_tool_result=file.turn.waits_for_tool_result,
        confirms_setup=any(rule.event == "ready" for rule in file.events),
        ends_by_silence_s=file.turn.ends_by_silence_s,
        continuous_audio=file.turn.continuous_audio,
        late_call_grace_s=file.turn.late_call_grace_s,
    )


def _values(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    for name in given:
        if name not in defaults:
            known = ", ".join(defaults) or "none"
            raise SettingsError(f"settings.values.{name}: the template has no such value (known: {known})")
    values = {**defaults, **given}
    for name, value in values.items():
        if value is None:
            raise SettingsError(f"settings.values.{name}: required by the template")
    return values


def _headers(parts: Mapping[str, Rendered], context: Mapping[str, Any]) -> dict[str, str]:
    """Headers whose values are all there."""
    made = {name: part(context) for name, part in parts.items()}
    headers = {name: as_text(value) for name, value in made.items() if value is not None}
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and (name + value).isprintable() and value == value.strip()):
            raise SettingsError(f"headers.{brief(name, 40)}: holds what no header can carry; check the key or secret")
    return headers


def _session_request(target: TargetSettings, template: Template, context: Mapping[str, Any]) -> SessionRequest | None:
    """The request that makes a session; None without one, without its key, or where the socket's address is given."""
    step, parts = template.file.session, template.session
    given = target.base_url or ""
    if step is None or given.startswith(("ws:", "wss:")):
        return None
    headers = _headers({name: parts[f"headers.{name}"] for name in step.headers}, context)
    if len(headers) < len(step.headers):
        return None
    url = parts["url"](_quoted(context))
    own, _ = read_address(url if isinstance(url, str) else "", _HTTP, "https://agent.example/calls")
    if given:
        there, _ = read_address(given, _HTTP, "https://agent.example")
        own = own._replace(scheme=there.scheme, netloc=there.netloc)
    if step.body is not None:
        headers = {"Content-Type": "application/json"} | headers
    address = expression(step.address)

    def read(answer: bytes) -> str | None:
        found = search(address, decode(answer) or {})
        try:
            read_address(found if isinstance(found, str) else "", ("ws", "wss"), "wss://agent.example")
        except SettingsError:
            return None
        return str(found)

    return SessionRequest(step.method, own._replace(fragment="").geturl(), headers, None, read)


def _quoted(context: Mapping[str, Any]) -> dict[str, Any]:
    """For expressions in an address: values with what is special there escaped."""
    values = {name: quote(as_text(value), safe="") for name, value in context["values"].items()}
    return dict(context) | {"values": values, "api_key": quote(context["api_key"] or "", safe="")}


def _endpoint(
    target: TargetSettings, url: Rendered | None, context: Mapping[str, Any], headers: Mapping[str, str]
) -> Endpoint:
    """The template's address, the config's `base_url` before it: whole, or another host for the template's path."""
    example = "wss://agent.example/path"
    own = None if url is None else url(_quoted(context))
    address = target.base_url or own
    if not isinstance(address, str):
        raise SettingsError(f"base_url: required, the template has no url; the agent's address, e.g. {example}")
    parts, label = read_address(address, ("ws", "wss"), example)
    if target.base_url and isinstance(own, str) and parts.path in ("", "/") and not parts.query:
        inner, _ = read_address(own, ("ws", "wss"), example)
        parts = parts._replace(path=inner.path, query=inner.query)
        label = label.rstrip("/") + inner.path
    return Endpoint(parts._replace(fragment="").geturl(), headers, label)


def _tool(tool: ToolSpec) -> dict[str, Any]:
    """A tool for expressions; `parameter_list` is for protocols that describe each parameter by itself."""
    properties, required = tool.parameters.get("properties", {}), tool.parameters.get("required", [])
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "parameter_list": [
            {"name": name, "schema": schema, "required": name in required} for name, schema in properties.items()
        ],
    }
