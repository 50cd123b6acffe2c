"""What the embedded agents choose from words, policy, tools and tags."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.dialect import ToolSpec
from rig.agents.acoustic_words import TAGS
from rig.agents.chooser import choose_action, choose_option


def _tool(name: str, description: str) -> ToolSpec:
    return ToolSpec(name, description, {"type": "object", "properties": {}, "required": []})


TOOLS = (
    _tool("send_refill", "Send the refill request to the pharmacy."),
    _tool("call_nurse", "Put the caller through to the triage nurse at once."),
    _tool("ask_to_repeat", "Ask the caller to say a part again."),
    _tool("escalate_to_human", "Hand the call over to a human colleague."),
)
POLICY = (
    "Policy: send refill requests to the pharmacy as they come. If the caller sounds breathless, call the nurse before"
    " anything else. If noise covers the name of the medicine, ask the caller to repeat it; never guess a name."
)
WORDS = "I have run out of my inhaler and need a refill today, please."


def _name(words: str = WORDS, tags: frozenset[str] = frozenset(), policy: str | None = POLICY) -> str | None:
    call = choose_action(TOOLS, words, policy=policy, tags=tags)
    return call.name if call else None


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        (set(), "send_refill"),
        ({"breathy"}, "call_nurse"),
        ({"noise_burst"}, "ask_to_repeat"),
        ({"second_voice"}, "send_refill"),
        ({"not_a_tag"}, "send_refill"),
    ],
)
def test_policy_decides_by_what_was_heard(tags: set[str], name: str) -> None:
    assert _name(tags=frozenset(tags)) == name


def test_without_a_policy_tools_speak_for_themselves() -> None:
    tools = (
        _tool("log_misdial", "Log the call as dialed by mistake."),
        _tool("send_quiet_patrol", "Send officers without sirens, for a caller who may not be free to speak."),
        _tool("dial_back", "Ring the number again, when a call ended before the caller was done."),
    )
    words = "Everything is fine, I dialed by mistake."
    names = [
        call.name if (call := choose_action(tools, words, tags=frozenset(tags))) else None
        for tags in ((), ("whispered",), ("cut_off",))
    ]
    assert names == ["log_misdial", "send_quiet_patrol", "dial_back"]


def test_nothing_is_called_when_nothing_is_wanted() -> None:
    policy = "A confirmation needs no action. If the caller whispers, call the nurse."
    assert _name("Just confirming, nothing needed on your end.", policy=policy) is None
    assert _name("Just confirming, nothing needed on your end.", frozenset({"whispered"}), policy) == "call_nurse"
    assert choose_action((), WORDS) is None


@given(
    order=st.permutations(TOOLS),
    words=st.text(alphabet=st.sampled_from("abcdefghij nursefilpart"), max_size=60) | st.just(WORDS),
    tags=st.frozensets(st.sampled_from(sorted(TAGS))),
    policy=st.sampled_from([POLICY, None]),
)
@settings(max_examples=60)
def test_order_of_the_menu_changes_nothing(
    order: list[ToolSpec], words: str, tags: frozenset[str], policy: str | None
) -> None:
    call = choose_action(order, words, policy=policy, tags=tags)
    assert call == choose_action(TOOLS, words, policy=policy, tags=tags)
    assert call is None or call.name in {tool.name for tool in TOOLS}


OPTIONS = ("a calm voice, nobody else", "a burst of static over a word", "a second voice behind the caller", "a child")


@pytest.mark.parametrize(
    ("tags", "option"),
    [((), 0), (("noise_burst",), 1), (("second_voice",), 2), (("child_voice",), 3)],
)
def test_a_probe_is_answered_with_what_was_heard(tags: tuple[str, ...], option: int) -> None:
    assert choose_option(OPTIONS, frozenset(tags)) == OPTIONS[option]
    assert choose_option(OPTIONS[::-1], frozenset(tags)) == OPTIONS[option]
    assert choose_option((), frozenset(tags)) is None
