"""A running brain, a running fleet, and a stock clip to play the caller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

import pytest
import soundfile
from anyio.from_thread import start_blocking_portal

from rig.agents.brain_client import BrainClient
from rig.agents.children import brain
from rig.agents.fleet import Spec, fleet


@pytest.fixture(scope="session")
def caller_pcm() -> bytes:
    """ "One moment while I do that for you.", 24 kHz PCM16 mono."""
    with files("rig.agents").joinpath("stock/acting.flac").open("rb") as file:
        samples, rate_hz = soundfile.read(file, dtype="int16")
    assert rate_hz == 24_000
    return bytes(samples.tobytes())


@pytest.fixture(scope="session")
def running_brain() -> Iterator[BrainClient]:
    """A real brain process."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(brain()) as client:
        yield client


@pytest.fixture(scope="session")
def running_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Spec, str]]:
    """Base URLs of a real fleet: all dialects with local-acoustic, the rig socket with local-cascade too."""
    specs = [(dialect, "local-acoustic") for dialect in ("openai_realtime", "rig_socket", "chat_audio")]
    logs: Path = tmp_path_factory.mktemp("fleet")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(fleet([*specs, ("rig_socket", "local-cascade")], logs)) as urls,
    ):
        yield urls
