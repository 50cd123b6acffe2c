"""Settings of a device target, and what its frames mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.device import DIALECT
from adapters.device.client import DeviceClient
from adapters.dialect import DeviceLatency, SettingsError, TargetSettings
from captures.events import AudioDelta, Failed, SessionReady, Warned
from captures.frames import InFrame
from transports.device import STATUS, DeviceEndpoint
from transports.transport import TransportError

GIVEN = {"output": "a", "input": "b", "tools": ["pay"], "tool_calls": {"webhook": {}}}
LOUD = np.full(480, 9000, "<i2")
LOUD[::2] = -9000


def client(latency: DeviceLatency | None = None, **more: Any) -> DeviceClient:
    made = DIALECT.client(TargetSettings("", None, None, {**GIVEN, **more}, device_latency=latency))
    assert isinstance(made, DeviceClient)
    return made


def status(**counts: int) -> InFrame:
    return InFrame(orjson.dumps({"event": STATUS, **counts}), False, 1)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"output": ""}, "settings.output"),
        ({"rate_hz": 44100}, "settings.rate_hz"),
        ({"tools": []}, "settings.tools: required"),
        ({"tool_calls": {"log": {"path": "x"}}}, "settings.tool_calls.log.name"),
        ({"inptu": "b"}, "settings.inptu"),
    ],
)
def test_a_wrong_setting_is_named(more: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told.replace(".", r"\.")):
        client(**more)


def test_devices_have_no_address_and_no_emulator() -> None:
    with pytest.raises(SettingsError, match="devices have no address"):
        DIALECT.client(TargetSettings("", "ws://127.0.0.1:1/", None, GIVEN))
    with pytest.raises(SettingsError, match="has no emulator"):
        DIALECT.server()


def test_the_measured_latency_is_taken_off_and_stated() -> None:
    one = client(DeviceLatency(0.080, 0.005, "2026-12-01T00:00:00+00:00"), greeting="none")
    endpoint = one.endpoint()
    assert isinstance(endpoint, DeviceEndpoint)
    assert (endpoint.latency_ns, endpoint.rate_hz, endpoint.label) == (80_000_000, 48_000, "device://a > b")
    one.opened(5)
    (ready,), _ = one.due(5)
    assert ready == SessionReady(None, {"device_latency_s": 0.080, "device_uncertainty_s": 0.005})


def test_what_was_not_measured_is_said_and_not_taken_for_zero() -> None:
    one = client(greeting="none")
    one.opened(5)
    (ready, note), _ = one.due(5)
    assert ready == SessionReady(None, {"device_latency_s": None})
    assert isinstance(note, Warned)
    assert "was not measured" in note.message


def test_sound_before_the_turn_is_the_greeting() -> None:
    one = client(greeting={"wait_s": 3.0, "quiet_s": 0.5})
    one.opened(0)
    assert one.next_due_ns() == 3_000_000_000
    assert one.receive(InFrame(LOUD.tobytes(), True, 1_000_000_000)) == ((), ())
    assert one.next_due_ns() == 1_510_000_000
    one.start_turn()
    events, _ = one.receive(InFrame(LOUD.tobytes(), True, 2_000_000_000))
    assert events == [AudioDelta(LOUD.tobytes(), 48_000)]


def test_a_gap_in_the_callers_words_is_no_measurement_and_one_behind_them_is_noted() -> None:
    one = client()
    clip = one.encode_clip(LOUD.tobytes(), 48_000, 10)
    one.start_turn()
    one.on_wire(clip.frames[0], 1)
    (failed,), _ = one.receive(status(ran_dry=1))
    assert isinstance(failed, Failed)
    assert failed.code == "device_gap"
    one.on_wire(one.encode_silence(48_000, 20), 2)
    (noted,), _ = one.receive(status(ran_dry=2))
    assert isinstance(noted, Warned)
    (lost,), _ = one.receive(status(ran_dry=2, input_lost=1))
    assert isinstance(lost, Warned)
    assert lost.code == "device_input"


@pytest.mark.parametrize("code", ["no_device", "no_pyaudio", "device_rate"])
def test_what_would_be_the_same_again_refuses_the_target(code: str) -> None:
    assert type(client().connect_failed(TransportError("x", code=code))).__name__ == "Refused"


def test_a_busy_device_may_be_free_later() -> None:
    assert isinstance(client().connect_failed(TransportError("x", code="device_busy")), Failed)


@given(st.binary(max_size=100).map(lambda raw: raw[: len(raw) // 2 * 2]), st.booleans(), st.booleans())
def test_no_bytes_raise(payload: bytes, binary: bool, begun: bool) -> None:
    one = client()
    one.opened(0)
    if begun:
        one.start_turn()
    one.receive(InFrame(payload, binary, 1))
