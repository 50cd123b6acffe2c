"""The answer's state machine under any order of events."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import Capabilities, TurnMode
from captures import events as ev
from captures.capture import Ending
from captures.frames import ClosedBy
from turn_control.answer import AnswerTracker
from turn_control.limits import Limits
from turn_control.notes import Notes

_ABLE = Capabilities(
    text_twin=True,
    probe=True,
    turn_modes=frozenset({TurnMode.MANUAL}),
    input_rates_hz=(24_000,),
    output_rate_hz=24_000,
)
_IDS = st.sampled_from(["a", "b", "c"])
_NAMES = st.sampled_from(["pay", "escalate", None])
_EVENTS = st.one_of(
    st.just(ev.SessionReady()),
    st.just(ev.TurnCommitted()),
    st.just(ev.SpeechStarted()),
    st.just(ev.SpeechStopped()),
    st.just(ev.InputTranscript("x")),
    st.builds(ev.ToolCallStarted, _IDS, _NAMES, st.integers(0, 3)),
    st.builds(ev.ToolCallArguments, _IDS, st.text(max_size=5)),
    st.builds(ev.ToolCall, _IDS, _NAMES, st.just("{}"), st.sampled_from([None, {}]), st.integers(0, 3)),
    st.just(ev.TextDelta("x")),
    st.just(ev.TranscriptDelta("x")),
    st.builds(ev.AudioDelta, st.binary(max_size=3), st.just(24_000)),
    st.just(ev.Interrupted()),
    st.builds(ev.AnswerEnded, st.sampled_from(ev.AnswerEnd)),
    st.just(ev.Usage({})),
    st.just(ev.Warned("w", "m")),
    st.just(ev.Refused("r", "m")),
    st.builds(ev.Failed, st.sampled_from(ev.FailureKind), st.just("f"), st.just("m")),
    st.just(ev.Unrecognised("?")),
    st.just("caller done"),
    st.builds(ClosedBy, st.just(0), st.sampled_from([None, 1000, 1008]), st.just(""), st.booleans()),
)
_STEPS = st.lists(st.tuples(st.integers(0, 3_000_000_000), _EVENTS), max_size=25)


@settings(max_examples=150)
@given(_STEPS, st.booleans(), st.sampled_from([0.0, 0.5]))
def test_any_order_of_events_has_exactly_one_ending(steps, waits, grace_s):
    tracker = AnswerTracker(replace(_ABLE, waits_for_tool_result=waits, late_call_grace_s=grace_s), Limits(), Notes(50))
    now_ns, endings = 0, set()
    for gap_ns, what in steps:
        now_ns += gap_ns
        if what == "caller done":
            tracker.caller_done(now_ns)
        elif isinstance(what, ClosedBy):
            tracker.closed(replace(what, t_ns=now_ns))
        else:
            tracker.feed(ev.TimedEvent(now_ns, what))
        verdict = tracker.verdict(now_ns)
        if verdict is not None:
            endings.add((verdict, str(tracker.calls())))
    tracker.caller_done(now_ns)
    final = tracker.verdict(tracker.deadline_ns())
    endings.add((final, str(tracker.calls())))
    assert len(endings) == 1
    assert (final.error is not None) == (not final.ending.scored)
    if final.ending is Ending.CALLED:
        assert tracker.calls()
    if final.ending in (Ending.DECLINED, Ending.NO_ANSWER):
        assert not tracker.calls()
    indices = [one.output_index for one in tracker.calls()]
    assert indices == sorted(indices)


def test_b02_fragments_that_interleave_stay_with_their_calls():
    tracker = AnswerTracker(_ABLE, Limits(), Notes(50))
    steps = [
        ev.ToolCallStarted("c1", "get_weather", 0),
        ev.ToolCallStarted("c2", "get_time", 1),
        ev.ToolCallArguments("c1", '{"city":'),
        ev.ToolCallArguments("c2", '{"zone":'),
        ev.ToolCallArguments("c1", '"Oslo"}'),
        ev.ToolCallArguments("c2", '"CET"}'),
        ev.ToolCall("c2", None, '{"zone":"CET"}', {"zone": "CET"}, 1),
    ]
    for t_ns, event in enumerate(steps):
        tracker.feed(ev.TimedEvent(t_ns, event))
    first, second = tracker.calls()
    assert (first.name, first.arguments_json, first.complete) == ("get_weather", '{"city":"Oslo"}', False)
    assert (second.name, second.arguments, second.complete) == ("get_time", {"zone": "CET"}, True)


def test_calls_and_their_arguments_are_bounded():
    notes = Notes(50)
    tracker = AnswerTracker(_ABLE, Limits(max_calls=2, max_text_chars=10), notes)
    for index in range(5):
        tracker.feed(ev.TimedEvent(index, ev.ToolCall(str(index), "t", "x" * 50, {}, index)))
    assert [(one.arguments_json, one.arguments) for one in tracker.calls()] == [("x" * 10, None)] * 2
    assert "more than 2 calls: the others are not kept" in notes.kept()
