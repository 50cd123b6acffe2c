"""What a member of the family changes, declared once; the core reads it and tests no vendor's name.

Two halves: `ClientProfile` for what we send and read, `ServerProfile` for how the vendor's server behaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import Field

from adapters.dialect import Capabilities, SettingsError, Setup, TargetSettings, ToolSpec
from adapters.foreign_json import JsonObject
from adapters.openai_family.faults import FaultCodes
from adapters.openai_family.rules import AnswerAsked, Complaint, SessionView
from adapters.openai_family.wire import Messages
from adapters.server import Denied, Handshake
from adapters.target_settings import HeaderText, StrictSettings, bearer_headers


class FamilySettings(StrictSettings):
    """`settings:` that every member has; a member's own model adds to it."""

    headers: dict[HeaderText, HeaderText] = Field(default_factory=dict, repr=False)
    """More headers of the handshake."""


S = TypeVar("S", bound=FamilySettings)

BETA_EVENT_NAMES: Final[Mapping[str, str]] = {
    "response.audio.delta": "response.output_audio.delta",
    "response.audio.done": "response.output_audio.done",
    "response.audio_transcript.delta": "response.output_audio_transcript.delta",
    "response.audio_transcript.done": "response.output_audio_transcript.done",
    "response.text.delta": "response.output_text.delta",
    "response.text.done": "response.output_text.done",
}
"""Server event names of the older shape, by which many servers still speak, and their names today."""


def session_url(base_url: str, query: Mapping[str, str]) -> tuple[str, str]:
    """The address to connect to, and its label without query and credentials.

    `http(s)` stands for `ws(s)`; the path is used as given; `query` is added where the address does not name it.

    Raises:
        SettingsError: not a WebSocket or HTTP address.
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SettingsError(f"base_url: {error}") from None
    scheme = {"http": "ws", "https": "wss"}.get(parts.scheme, parts.scheme)
    if scheme not in ("ws", "wss") or not host:
        raise SettingsError("base_url: must look like wss://host/v1/realtime")
    given = parse_qsl(parts.query, keep_blank_values=True)
    named = {name for name, _ in given}
    given += [(name, value) for name, value in query.items() if name not in named]
    shown = f"[{host}]" if ":" in host else host
    label = f"{scheme}://{shown}{f':{port}' if port else ''}{parts.path}"
    return urlunsplit((scheme, parts.netloc, parts.path, urlencode(given), "")), label


def model_in_query(default_url: str) -> Callable[[TargetSettings, Any], tuple[str, str]]:
    """The usual address: the target's `base_url`, else `default_url`, with `?model=`."""
    return lambda target, settings: session_url(target.base_url or default_url, {"model": target.model})


def flat_tool(tool: ToolSpec) -> JsonObject:
    """A tool as OpenAI Realtime has it."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def nested_tool(tool: ToolSpec) -> JsonObject:
    """A tool as chat completions have it: one object deeper."""
    flat = flat_tool(tool)
    return {"type": flat.pop("type"), "function": flat}


@dataclass(frozen=True, slots=True)
class ClientProfile(Generic[S]):
    """The client half of a member."""

    settings: type[S]
    """What a target's `settings:` may hold."""
    capabilities: Callable[[S], Capabilities]
    """By the target's settings; most members ignore them."""
    address: Callable[[TargetSettings, S], tuple[str, str]]
    """URL and label of the session. May raise `SettingsError`."""
    session: Callable[[S, Setup], JsonObject]
    """`session` of `session.update`. Raises `SettingsError` for turn control that the vendor does not have."""
    places: Mapping[str, tuple[str, ...]]
    """Where the confirmed session states a setting: short name → path. `turn_detection` is compared with what was
    sent."""
    headers: Callable[[TargetSettings, S], dict[str, str]] = lambda target, settings: bearer_headers(
        settings.headers, target.api_key
    )
    """Headers of the handshake, the key among them. May raise `SettingsError`."""
    faults: FaultCodes = field(default_factory=FaultCodes)
    aliases: Mapping[str, str] = field(default_factory=lambda: BETA_EVENT_NAMES)
    """Server event names that stand for another one."""
    quiet: frozenset[str] = frozenset()
    """More server events that say nothing the rig measures."""
    created_may_confirm: bool = False
    """True where the confirmation of the settings may come as a second `session.created`."""
    check: Callable[[TargetSettings, S, Setup], None] = lambda target, settings, setup: None
    """Raises `SettingsError` for a setup that the target could not serve, e.g. tools for a model that never calls."""
    truncates: bool = True
    """False where there is no `conversation.item.truncate`."""
    errors_name_event: bool = True
    """False where an `error` does not say which message of ours it is about: one that comes while an answer is
    awaited then ends the turn, for nothing else would."""
    commit_may_answer: bool = False
    """True where a commit may start the answer by itself: our request for it is then refused, and nothing is lost."""
    messages: Messages = field(default_factory=Messages)
    unwrap: Callable[[JsonObject], JsonObject] = lambda message: message
    """The family's event in a received message, for routes that wrap it."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Recorded beside the echoed settings, e.g. the route taken."""


class ServerRules(Protocol):
    """What a vendor's server accepts as a session, and how it is read."""

    def default(self, session_id: str, model: str) -> JsonObject:
        """The session before any `session.update`."""
        ...

    def updated(self, session: JsonObject, change: object, audio_heard: bool) -> JsonObject | Complaint:
        """The session after `session.update`; `audio_heard`: caller audio has come already."""
        ...

    def for_answer(self, session: JsonObject, change: object) -> JsonObject | Complaint:
        """The session as `response` of one `response.create` changes it (None changes nothing)."""
        ...

    def view(self, session: JsonObject) -> SessionView:
        """A session in the core's words."""
        ...

    def answer_fields(self, session: JsonObject) -> JsonObject:
        """The settings that a response object repeats."""
        ...


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """The server half of a member: the vendor's behaviour, for emulators."""

    rules: ServerRules
    outgoing: Callable[[JsonObject], Iterable[JsonObject]] = lambda event: (event,)
    """An event as the vendor sends it: the core makes events of OpenAI's GA shape; none drops it, several repeat it."""
    greeting: tuple[str, ...] = ("session.created",)
    """Of `session.created` and `conversation.created`."""
    model_key: str = "model"
    """Name under which the query holds the model."""
    takes_text: bool = True
    """False where `conversation.item.create` takes results of calls alone."""
    text_types: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"user": ("input_text",), "system": ("input_text",), "assistant": ("output_text",)}
    )
    """Content types of message items that a client may add, by role."""
    min_commit_s: float = 0.1
    """A shorter commit is answered with `input_audio_buffer_commit_empty`."""
    truncates: bool = True
    """False where there is no `conversation.item.truncate`."""
    refuses_answer: Callable[[AnswerAsked], Complaint | None] = lambda asked: None
    """What the vendor has against an answer that `response.create` asks for."""
    one_result_per_call: bool = False
    """True where a second result of a call is refused (`duplicate_call_output`)."""
    denied: Callable[[Handshake], Denied | None] = lambda handshake: None
    """Looks at the handshake, as far as the emulators do: keys are not checked, for they have none."""


@dataclass(frozen=True, slots=True)
class Profile(Generic[S]):
    """One member of the family."""

    name: str
    default_key_env: str | None
    client: ClientProfile[S]
    server: ServerProfile
    wire_version: int = 1
    parser_version: int = 1
