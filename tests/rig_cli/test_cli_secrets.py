"""A refused key is told in one line, and stands in nothing that is written or shown (bug case B26)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import zstandard

from captures.scrub import MASK

KEY = "TESTKEY-not-real-7f3a9c"
PART = 8


def readable(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of a folder by name, unpacked, and the names themselves."""
    for path in sorted(folder.rglob("*")):
        yield f"name of {path.name}", str(path).encode()
        if path.is_file():
            content = path.read_bytes()
            yield path.name, content
            if path.suffix == ".zst":
                yield f"{path.name}, unpacked", zstandard.ZstdDecompressor().decompressobj().decompress(content)


def spellings() -> set[bytes]:
    """Parts of the key of 8 characters as they would stand in text, in an address and in base64 of any alignment."""
    parts = [KEY[at : at + PART] for at in range(len(KEY) - PART + 1)]
    spelt = {part.encode() for part in parts}
    spelt |= {"".join(f"%{byte:02X}" for byte in part.encode()).encode() for part in parts}
    spelt |= {quote(part, safe="").replace("-", "%2D").encode() for part in parts}
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + KEY.encode())
        inner = coded[4 : len(coded) - 4]  # what does not depend on the characters around the key
        spelt |= {inner[at : at + 12] for at in range(len(inner) - 11)}
    return spelt


def assert_nowhere(texts: dict[str, bytes]) -> None:
    for where, text in texts.items():
        for spelling in spellings():
            assert spelling not in text, f"{spelling!r} in {where}"


@pytest.fixture(autouse=True)
def bank(tmp_path: Path, banks: Any) -> Path:
    made: Path = banks.write_bank(tmp_path / "bank", {"clear": banks.wav(banks.tone(0.1))})
    return made


REPEATED = f'{{"error": {{"message": "Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}}}'


def test_a_refused_key(cli: Any, serve: Any, realtime: Any) -> None:
    """Sent as a header, as a query parameter, and in file mode; the vendor repeats it in its refusal."""
    servers = {status: serve([("refuse", status, REPEATED)]) for status in (401, 403)}
    bearer = {"headers": {"Authorization": "Bearer ${MY_KEY}"}}
    targets = {}
    for status, server in servers.items():
        agent = f"ws://127.0.0.1:{server.port}/agent"
        for target in (
            realtime(server.ws_url, name=f"key-{status}", api_key_env="MY_KEY"),
            realtime(f"{agent}?token=${{MY_KEY}}", name=f"query-{status}", adapter="rig_socket"),
            realtime(agent, name=f"header-{status}", adapter="rig_socket", settings=bearer),
            realtime(server.http_url, name=f"file-{status}", adapter="chat_audio", api_key_env="MY_KEY"),
        ):
            targets[target["name"]] = (target, status, f"127.0.0.1:{server.port}")
    config = cli.config(targets=[target for target, _, _ in targets.values()])
    done = cli("run", config, "--out", "run", "-v", MY_KEY=KEY, PYTHONASYNCIODEBUG="1")
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    for server in servers.values():
        assert len(server.connections) == 4, "a refused key is not tried again"
        for sent in server.connections:
            assert any(KEY in value for value in (*sent.headers.values(), *sent.query.values())), "it was sent"
    for name, (_, status, host) in targets.items():
        (line,) = [line for line in done.stderr.splitlines() if line.startswith(f"{name} stopped")]
        assert host in line
        assert str(status) in line
        assert "key" in line.removeprefix(name) or "token" in line
    texts = dict(readable(cli.folder / "run"))
    assert any(name.endswith("unpacked") for name in texts)
    assert any(MASK.encode() in text or b"***" in text for text in texts.values())
    assert all(host.encode() in texts["captures.jsonl"] for _, _, host in targets.values()), "hosts stay readable"
    assert_nowhere(texts | {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()})
    shown = cli("report", "run", "--json")
    reported = json.loads(shown.stdout)["targets"]
    assert all(reported[name]["endings"]["configuration_error"] == 1 for name in targets)
    assert_nowhere({"report": (shown.stdout + shown.stderr).encode()})


def test_the_search_would_find_it() -> None:
    """Each way in which a key could be written is one that `assert_nowhere` sees."""
    for text in (
        f"Bearer {KEY}",
        KEY[5:14],
        base64.b64encode(f"user:{KEY}".encode()).decode(),
        "".join(f"%{byte:02X}" for byte in KEY.encode()),
    ):
        with pytest.raises(AssertionError):
            assert_nowhere({"text": text.encode()})
