"""Every fault of the emulators, through the real engine, ends in the one ending that fits, in every dialect."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
import zstandard
from anyio.from_thread import start_blocking_portal

from adapters import registry
from adapters.misbehaviour import Misbehaves
from adapters.server import Reply, ReplyCall
from captures.capture import Capture, Ending, Mark
from captures.scrub import MASK
from rig.agents.emulator import ROUTES, base_url, serve
from rig.agents.faults import KINDS, parse
from rig.agents.send_stamps import SendStamps
from rig.cli.run_command import run_and_report
from rig.config import ConfigError, parse_config
from rig.engine.prepare import prepare

BOOKED = {"party": 4, "time": "19:30"}
SPEECH = b"\x10\x27\xf0\xd8" * 6_000
"""Half a second, loud, 24 kHz."""
CALLED, DECLINED, NO_ANSWER = Ending.CALLED, Ending.DECLINED, Ending.NO_ANSWER
BROKEN, REFUSED = Ending.INFRASTRUCTURE_ERROR, Ending.CONFIGURATION_ERROR
GROUPS = (
    ("openai_realtime", "rig_socket", "chat_audio", "cascade"),
    ("gemini_live", "xai_realtime", "qwen_omni_realtime"),
    ("openai_live",),
    ("nova_sonic",),
    ("openai_realtime_beta", "azure_realtime", "azure_realtime_preview"),
    ("vercel_gateway", "qwen_audio_realtime", "stepfun_realtime"),
    ("openai_chat", "openrouter", "dashscope", "mistral", "stepfun_chat", "groq", "llamacpp", "vllm", "gemini_file"),
)
"""Every dialect of the emulators; each group is one run."""
TARGETS: Mapping[str, dict[str, Any]] = {
    "cascade": {"settings": {"transcriber": {"model": "w"}}},
    "gemini_live": {"model": "gemini-3.8-live"},
    "vercel_gateway": {"model": "openai/gpt-realtime"},
    "openai_live": {"settings": {"delegate_model": "d"}, "turn_control": {"mode": "server_vad"}},
    "nova_sonic": {
        "model": "amazon.nova-2-sonic-v1:0",
        "settings": {"stream": "websocket"},
        "turn_control": {"mode": "server_vad"},
    },
}


class Clerk:
    """Books the table, or only talks."""

    def __init__(self, talks: bool = False) -> None:
        self._talks = talks

    async def reply(self, setup: Any, pcm: bytes, rate_hz: int, text: str | None, earlier: object = None) -> Reply:
        if self._talks:
            return Reply(text="At half past seven?", pcm=SPEECH)
        return Reply(calls=(ReplyCall("book_table", BOOKED),))

    def after_result(self, call: ReplyCall | None) -> Reply:
        return Reply(text="One moment.", pcm=SPEECH)


@dataclass(frozen=True)
class Row:
    """What a fault must lead to."""

    fault: str
    ending: Ending
    kind: str | None = None
    """Of the error."""
    says: str = ""
    """What the error's code and message hold."""
    close: tuple[int, str] | None = None
    calls: int | None = None
    talks: bool = False

    @property
    def faults(self) -> list[str]:
        return self.fault.split(" + ")

    def problems(self, dialect: str, captures: list[Capture]) -> Iterator[str]:
        """What is not as it should be."""
        found = captures[-1]
        if found.ending is not self.ending:
            yield f"ended as {found.ending} ({found.ending_detail} {found.error})"
        if found.ending is NO_ANSWER and len(captures) != 2:
            yield "was not asked once more"
        if (found.error.kind if found.error else None) != self.kind:
            yield f"error {found.error}"
        if found.error is not None and self.says not in f"{found.error.code}: {found.error.message}":
            yield f"does not keep {self.says!r}: {found.error}"
        if self.close is not None and (found.close_code, found.close_reason) != self.close:
            yield f"closed as {found.close_code} {found.close_reason}"
        if self.calls is not None and len(found.calls) != self.calls:
            yield f"{len(found.calls)} calls"
        if self.calls and "cut" not in self.fault and found.calls and found.calls[0].arguments != BOOKED:
            yield f"another first call: {found.calls[0]}"


LATE = "late-call=0.05"
NOT_ENABLED = "close-on-connect=1008:not enabled"
QUOTA = "http=429:insufficient_quota"
ROWS = (
    Row("duplicate", CALLED, calls=1),
    Row("unknown", CALLED, calls=1),
    Row("big-frame", CALLED, calls=1),
    Row("slow-ack=0.1", CALLED, calls=1),
    Row("delay=0.25", CALLED, calls=1),
    Row("speech-and-call", CALLED, calls=1),
    Row("call-in-deltas", CALLED, calls=1),
    Row("call-in-done", CALLED, calls=1),
    Row("spurious-interrupted", CALLED, calls=1),
    Row("second-call", CALLED, calls=2),
    Row("interleaved-calls", CALLED, calls=2),
    Row("cut-arguments", CALLED, calls=1),
    Row(LATE, DECLINED),
    Row("leading-silence=0.4", DECLINED, talks=True, calls=0),
    Row("mute", NO_ANSWER, calls=0),
    Row("drop", BROKEN, "transient"),
    Row("drop-on-connect", BROKEN, "transient"),
    Row("drop-mid-audio", BROKEN, "transient"),
    Row("close=1011:overloaded, alas", BROKEN, "transient", "overloaded, alas", (1011, "overloaded, alas"), talks=True),
    Row("close-mid-audio=1011:overloaded", BROKEN, "transient", "overloaded", (1011, "overloaded")),
    Row("close-on-connect=1011:overloaded", BROKEN, "transient", "overloaded", (1011, "overloaded")),
    Row(NOT_ENABLED, REFUSED, "refused", "not enabled", (1008, "not enabled")),
    Row("cap=0.4 + mute", BROKEN, "transient", "maximum duration of 0.4 s"),
    Row("failed=server_error:the engine stalled", BROKEN, "transient", "the engine stalled", calls=0),
    Row("deaf", BROKEN, "audio_not_heard", "counts no audio"),
    Row("error-in-body", BROKEN, "transient", "Provider returned error"),
    Row("no-ack", BROKEN, "not_ready"),
    Row("http=401", REFUSED, "refused", "invalid_api_key"),
    Row("http=403", REFUSED, "refused", "permission_denied"),
    Row("http=404:model_not_found", REFUSED, "refused", "model_not_found"),
    Row("http=429", BROKEN, "rate_limit", "rate_limit_exceeded"),
    Row(QUOTA, BROKEN, "quota", "insufficient_quota"),
    Row("http=500", BROKEN, "transient", "500"),
)
EXCEPTIONS: Mapping[tuple[str, str], Row] = {
    # A call within the dialect's grace counts, and so does one before the silence that ends a turn.
    ("gemini_live", LATE): Row(LATE, CALLED, calls=1),
    ("openai_live", LATE): Row(LATE, CALLED, calls=1),
    ("nova_sonic", LATE): Row(LATE, CALLED, calls=1),
    # Nova confirms no settings: none can be missing, and a close before any answer is a broken turn.
    ("nova_sonic", "no-ack"): Row("no-ack", CALLED, calls=1),
    ("nova_sonic", NOT_ENABLED): Row(NOT_ENABLED, BROKEN, "protocol", "not enabled", (1008, "not enabled")),
    # A peer that waits for the result owes nothing after its call.
    ("gemini_live", "drop"): Row("drop", CALLED, calls=1),
    # Its handshakes are refused by status alone.
    ("rig_socket", QUOTA): Row(QUOTA, BROKEN, "rate_limit", "insufficient_quota"),
}


def has(dialect: str, fault: str) -> bool:
    """Whether an emulator of the dialect can have a fault."""
    name = fault.split("=")[0]
    if KINDS[name].from_dialect:
        server = registry.dialect(dialect).server()
        return isinstance(server, Misbehaves) and name in server.answer_faults
    return KINDS[name].in_file_mode or ROUTES[dialect].websocket


@pytest.fixture(scope="module")
def portal() -> Iterator[Any]:
    """An event loop of its own for the emulators, so that neither side holds up the other."""
    with start_blocking_portal() as own:
        yield own


@pytest.fixture
def emulated(portal: Any) -> Iterator[Any]:
    """Start an emulator: `emulated(dialect, *faults)`; its base URL."""
    with ExitStack() as stack:

        def start(dialect: str, *faults: str, talks: bool = False, stamps: SendStamps | None = None) -> str:
            context = serve(dialect, Clerk(talks), plan=parse(faults), stamps=stamps)
            return base_url(dialect, "127.0.0.1", stack.enter_context(portal.wrap_async_context_manager(context)))

        yield start


@pytest.fixture
def bank(rig: Any, banks: Any) -> Path:
    return Path(banks.write_bank(rig.folder / "bank", {"clear": banks.wav(banks.tone(0.16))}))


def target(dialect: str, name: str, url: str, **more: Any) -> dict[str, Any]:
    own = {"name": name, "adapter": dialect, "model": "m", "base_url": url, "api_key_env": "KEY"}
    return copy.deepcopy(own | TARGETS.get(dialect, {}) | more)  # YAML would write what is shared as an alias


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_every_fault_ends_as_it_should(rig: Any, emulated: Any, group: tuple[str, ...]) -> None:
    cases = {
        f"{dialect}.{number}": (dialect, EXCEPTIONS.get((dialect, row.fault), row))
        for dialect in group
        for number, row in enumerate(ROWS)
        if all(has(dialect, fault) for fault in row.faults)
    }
    targets = [
        target(dialect, name, emulated(dialect, *row.faults, talks=row.talks)) for name, (dialect, row) in cases.items()
    ]
    slow = any("turn_control" in TARGETS.get(dialect, {}) for dialect in group)
    limits = {"turn_s": 5.0 if slow else 1.5, "setup_s": 1.5, "attempts": 1}
    done = rig.run(rig.config("", max_sessions=200, limits=limits, targets=targets), environ={"KEY": "k-123456789"})
    problems = []
    for name, (dialect, row) in cases.items():
        captures = [capture for capture in done.captures if capture.target == name]
        problems += [f"{dialect} {row.fault}: {problem}" for problem in row.problems(dialect, captures)]
    assert problems == [], "\n".join(problems)


@pytest.mark.usefixtures("bank")
class TestMeasured:
    def test_delay_and_stamps(self, rig: Any, emulated: Any, tmp_path: Path) -> None:
        with (tmp_path / "stamps").open("ab") as file:
            url = emulated("openai_realtime", "delay=0.25", stamps=SendStamps(file, "openai_realtime"))
            found = rig.run(rig.config(url)).only
        rows = [json.loads(line) for line in (tmp_path / "stamps").read_text().splitlines()]
        assert [row["kind"] for row in rows][-1] == "response.done"
        assert {(row["session"], row["answer"], row["dialect"]) for row in rows} == {(1, 1, "openai_realtime")}
        assert rows[0]["sent_ns"] - rows[0]["wanted_ns"] >= 249_000_000
        whole = next(row for row in rows if row["kind"] == "response.function_call_arguments.done")
        assert found.marks[Mark.COMMIT] <= whole["wanted_ns"] <= whole["sent_ns"]
        assert whole["sent_ns"] <= found.marks[Mark.FIRST_CALL_COMPLETE]

    def test_leading_silence(self, rig: Any, emulated: Any) -> None:
        found = rig.run(rig.config(emulated("openai_realtime", "leading-silence=0.4", talks=True))).only
        assert found.reply_audio.leading_silence_s == pytest.approx(0.4, abs=0.03)

    def test_cut_arguments_are_scored_as_a_call(self, rig: Any, emulated: Any) -> None:
        done = rig.run(rig.config(emulated("openai_realtime", "cut-arguments")))
        (call,) = done.only.calls
        assert (call.name, call.arguments, call.arguments_json) == ("book_table", None, '{"party":4,"t')
        assert done.report()["targets"]["agent"]["credit"]["neutral"]["mean"] < 1


@pytest.mark.usefixtures("bank")
def test_faults_are_part_of_a_cells_identity(rig: Any) -> None:
    def identity(*faults: str) -> str:
        own = {"name": "a", "adapter": "rig_socket", "embedded_agent": "local-cascade", "faults": list(faults)}
        text = yaml.safe_dump(rig.config("", targets=[own]))
        return prepare(parse_config(text, "c.yaml", rig.folder, {})).plan.cells[0].identity

    assert len({identity(), identity("drop"), identity("drop@0.5"), identity("drop@0.5", "seed=1")}) == 4
    assert identity("drop") == identity("drop")


@pytest.mark.usefixtures("bank")
def test_a_fault_that_the_dialect_cannot_have_is_named_before_any_connection(rig: Any) -> None:
    own = {"name": "a", "adapter": "chat_audio", "model": "m", "embedded_agent": "local-cascade", "faults": ["no-ack"]}
    with pytest.raises(ConfigError, match=r"targets\[0\] \(a\): chat_audio has no fault no-ack"):
        rig.run(rig.config("", targets=[own]))


@pytest.mark.usefixtures("bank")
class TestChances:
    def test_transient_faults_are_tried_again(self, rig: Any, emulated: Any) -> None:
        seed = next(n for n in range(99) if drawn(f"seed={n}", "http=503@0.5")[:3] == [True, True, False])
        done = rig.run(rig.config(emulated("openai_realtime", f"seed={seed}", "http=503@0.5")))
        assert [capture.ending for capture in done.captures] == [BROKEN, BROKEN, CALLED]


def drawn(*faults: str) -> list[bool]:
    """In which of the first sessions a handshake is refused."""
    return [parse(faults).for_session(number).http is not None for number in range(1, 9)]


KEY, TOKEN, HEADER = "sk-planted-in-the-key-7f3a", "planted-in-the-query-91bc", "planted-in-a-header-55de"
LEAKY = (
    "http=401",
    "http=400",
    "http=429",
    "http=500",
    "close=1008:no",
    "close-on-connect=1011:no",
    "cap=0.05",
    "failed=server_error:no",
    "duplicate",
)


@pytest.mark.usefixtures("bank")
@pytest.mark.parametrize("dialect", [name for group in GROUPS for name in group])
def test_b26_no_key_in_any_artefact(
    rig: Any, emulated: Any, dialect: str, capsys: Any, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vendor repeats key, header and query in whatever it says; `rig run` writes and shows nothing of them."""
    faults = [fault for fault in LEAKY if has(dialect, fault)]
    headers = {"headers": {"X-Team": "${HEADER}"}}
    own: dict[str, Any] = TARGETS.get(dialect, {}).get("settings", {})
    if dialect == "cascade":  # each stage has its own
        own = {"transcriber": own["transcriber"] | {"settings": headers}}
    elif dialect != "nova_sonic":  # nobody sends headers of one's own to Bedrock
        own = own | headers
    settings = {"settings": own}
    query = "?token=${TOKEN}" if ROUTES[dialect].websocket else ""  # a base URL of file mode has none
    targets = [
        target(dialect, f"t{number}", emulated(dialect, fault, "echo-secrets") + query, **settings)
        for number, fault in enumerate(faults)
    ]
    secrets = {"KEY": KEY, "TOKEN": TOKEN, "HEADER": HEADER}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    config = rig.config("", limits={"turn_s": 2.0, "attempts": 2}, targets=targets)
    (rig.folder / "config.yaml").write_text(yaml.safe_dump(config))
    run_and_report(rig.folder / "config.yaml", rig.folder / "run", dry_run=False, as_json=False, verbose=True)
    shown = capsys.readouterr()
    written = [unpacked(path) for path in (rig.folder / "run").rglob("*") if path.is_file()]
    texts = [*written, shown.out.encode(), shown.err.encode(), caplog.text.encode()]
    assert any(MASK.encode() in text or b"***" in text for text in written), "the emulator repeated something"
    assert shown.err.count("t1") > 0
    for text in texts:
        for secret in secrets.values():
            for part in (secret, secret[:12], secret[-12:]):
                assert part.encode() not in text


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    packed = data.startswith(b"\x28\xb5\x2f\xfd")
    return zstandard.ZstdDecompressor().decompressobj().decompress(data) if packed else data
