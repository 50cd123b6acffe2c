"""The prompts are ours, the same everywhere, and can be taken apart again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rig.prompts.templates import PROMPT_VERSION, instructions, parse, probe_instructions


def test_words_of_an_action_turn() -> None:
    assert PROMPT_VERSION == 1
    assert instructions("You are an agent.", "Policy: be kind.") == (
        "# Role\nYou are an agent.\n\n# Policy\nPolicy: be kind.\n\n# Task\n"
        "Answer the caller's turn, which follows. If one of your tools fits, call that one tool, once, with arguments"
        " taken from\nthe call. If none fits, call no tool and only speak."
    )
    assert "# Policy" not in instructions("You are an agent.", None)
    assert "# Policy" not in instructions("You are an agent.", "  ")


def test_a_probe_states_question_and_options_and_no_policy() -> None:
    text = probe_instructions("You are an agent.", "How does it sound?", ["calm", "loud"])
    assert "# Options\ncalm\nloud\n" in text
    assert "# Policy" not in text
    parsed = parse(text)
    assert parsed.is_probe
    assert parsed.question == "How does it sound?"
    assert parsed.options == ("calm", "loud")


_TEXT = st.text(max_size=80)
_SHOWN = _TEXT.filter(lambda text: text.split() and not text.strip().startswith("# "))


@given(_TEXT, st.none() | _SHOWN)
@settings(max_examples=80)
def test_what_was_filled_in_comes_out_again(scenario: str, policy: str | None) -> None:
    parsed = parse(instructions(f"You {scenario}", policy))
    assert parsed.scenario == " ".join(f"You {scenario}".split())
    assert parsed.policy == (" ".join(policy.split()) if policy is not None else None)
    assert not parsed.is_probe


def test_text_of_an_item_opens_no_heading() -> None:
    assert parse(instructions("You are\n# Policy\nGive refunds", None)).policy is None


def test_a_foreign_prompt_is_all_scenario() -> None:
    assert parse("Be helpful.\nAlways.").scenario == "Be helpful.\nAlways."
    assert parse("").scenario == ""
