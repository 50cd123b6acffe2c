"""Loading banks: real files unchanged, every problem of a file at once, nothing trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rig.bank.lint import lint
from rig.bank.loader import MAX_ITEM_BYTES, BankError, load_bank

WriteBank = Callable[..., Path]
SHA = "ab" * 32
HOSTILE_BYTES = b"\x00\t\n :-[]{}&*!|>'\"#%@~\xff0a"


def problems_of(root: Path) -> dict[tuple[str, str], str]:
    """(file, field) → message of all errors."""
    with pytest.raises(BankError) as caught:
        load_bank(root)
    return {(p.file, p.field): p.message for p in caught.value.problems if p.level == "error"}


@pytest.mark.shared_data
def test_all_voxparity_files_load_unchanged(shared_dir: Path) -> None:
    bank = load_bank(shared_dir / "voxparity-dev")
    assert len(bank.items) == 20
    assert bank.warnings == ()
    assert sum(len(item.variants) for item in bank.items) == 40
    address = bank.item("vxp-gasdrp-0001").variant("full_report").gold.args["address"]
    assert address[0] == "1420 Maple"
    assert bank.sources["vxp-gasdrp-0001"] == "items/vxp-gasdrp-0001.yaml"


def test_the_packaged_bank_is_ours() -> None:
    bank = load_bank("demo")
    assert bank.info.origin == "own"
    assert bank.items


def test_every_problem_of_a_file_is_named_at_once(write_bank: WriteBank, item: dict[str, Any]) -> None:
    del item["scenario"]
    item["policy_mode"] = "sometimes"
    item["tools"][0]["params"][0]["type"] = "int"
    item["variants"][0]["gold"]["args"]["amount"] = 900
    item["variants"][1]["gold"]["acceptable"][0]["credit"] = 1
    item["perception_probe"]["options"] = [True, "b"]
    found = problems_of(write_bank({"items/a.yaml": item, "items/b.yaml": "- 1"}))
    assert set(found) == {
        ("items/a.yaml", "scenario"),
        ("items/a.yaml", "policy_mode"),
        ("items/a.yaml", "tools[0].params[0].type"),
        ("items/a.yaml", "variants[0].gold.args.amount"),
        ("items/a.yaml", "variants[1].gold.acceptable[0].credit"),
        ("items/a.yaml", "perception_probe.options[0]"),
        ("items/b.yaml", ""),
    }
    assert found["items/a.yaml", "scenario"] == "is missing"
    assert found["items/a.yaml", "perception_probe.options[0]"].endswith("(found True: quote it)")


def test_unknown_keys_warn_and_never_fail(write_bank: WriteBank, item: dict[str, Any]) -> None:
    item["colour"] = "red"
    item["variants"][1]["scene"]["loudness"] = 3
    bank = load_bank(write_bank({"a.yaml": item, "annotations.yaml": {"own-0001": {"sectr": "x"}}}))
    assert [(p.file, p.field, p.level) for p in bank.warnings] == [
        ("a.yaml", "colour", "warning"),
        ("a.yaml", "variants[1].scene.loudness", "warning"),
        ("annotations.yaml", "own-0001.sectr", "warning"),
    ]


def test_doubled_ids_name_both_files(write_bank: WriteBank, item: dict[str, Any]) -> None:
    found = problems_of(write_bank({"a.yaml": item, "deep/er/b.yaml": item}))
    assert found == {("deep/er/b.yaml", "id"): "own-0001 is already the id of a.yaml: ids are unique"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: &x [1]\nb: *x\n", "alias *x: write the value out, aliases are not read (line 2)"),
        ("[" * 40 + "]" * 40, "nested deeper than 30 (line 1)"),
        ("id: a\nid: b\n", "key 'id' twice (line 2)"),
        ("id: 'a\n", "found unexpected end of stream"),
        ("seed: .nan\n", ".nan is not a number (line 1)"),
        ("at: 19:30\n", "19:30 would be read as a base-60 number: quote it (line 1)"),
        (f"seed: {'9' * 5000}\n", "not a usable number (line 1)"),
        (f"maximum: {2**64}\n", f"{2**64} is beyond 64 bits, which no message can carry: quote it (line 1)"),
        ("x: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("id: \x00\n", "control characters are not allowed"),
        ("# " + "x" * MAX_ITEM_BYTES, "larger than"),
    ],
)
def test_hostile_files_are_refused_with_a_reason(write_bank: WriteBank, text: str, complaint: str) -> None:
    found = problems_of(write_bank({"a.yaml": text}))
    assert list(found) == [("a.yaml", "")]
    assert complaint in found["a.yaml", ""]
    assert "\n" not in found["a.yaml", ""]


def test_text_that_is_not_utf_8_is_named(write_bank: WriteBank) -> None:
    root = write_bank({"a.yaml": ""})
    (root / "a.yaml").write_bytes(b"id: caf\xe9\n")
    assert problems_of(root)["a.yaml", ""] == "not UTF-8 at byte 7: save it as UTF-8"


@pytest.mark.parametrize("name", ["../up", "a/b", "", "a b", "\x1b[31m"])
def test_ids_are_safe_as_file_names(write_bank: WriteBank, item: dict[str, Any], name: str) -> None:
    item["id"] = name
    assert ("a.yaml", "id") in problems_of(write_bank({"a.yaml": item}))


def test_absent_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(BankError, match="no such folder"):
        load_bank(tmp_path / "nope")
    with pytest.raises(BankError, match="no item files"):
        load_bank(tmp_path)


def _entry(engine: str, variant_id: str = "clear", **more: Any) -> dict[str, Any]:
    return {"item_id": "own-0001", "variant_id": variant_id, "sha256": SHA, "engine": engine, **more}


def test_manifest_engine_picks(write_bank: WriteBank, item: dict[str, Any]) -> None:
    entries = [_entry("one", speech_end_s=1.5, licence="CC0"), _entry("two", sha256="cd" * 32), _entry("one", "masked")]
    root = write_bank({"a.yaml": item, "audio/manifest.yaml": entries})
    with pytest.raises(BankError, match=r"own-0001/clear has several clips \(one, two\): choose an engine"):
        load_bank(root)
    with pytest.raises(BankError, match="no clip of engine 'three'; there are: one, two"):
        load_bank(root, engine="three")
    bank = load_bank(root, engine="one")
    clip = bank.clips["own-0001", "clear"]
    assert (clip.sha256, clip.speech_end_s, clip.model_extra) == (SHA, 1.5, {"licence": "CC0"})
    assert set(bank.clips) == {("own-0001", "clear"), ("own-0001", "masked")}
    assert bank.warnings == ()


def test_clip_path_finds_the_file(write_bank: WriteBank, item: dict[str, Any]) -> None:
    root = write_bank({"a.yaml": item, "audio/manifest.yaml": [_entry("one", sha256=SHA.upper())]})
    bank = load_bank(root)
    clip = bank.clips["own-0001", "clear"]
    assert bank.clip_path(clip) is None
    (root / "audio" / f"{SHA}.wav").write_bytes(b"")
    assert bank.clip_path(clip) == root / "audio" / f"{SHA}.wav"


def test_a_hash_that_is_none_is_named(write_bank: WriteBank, item: dict[str, Any]) -> None:
    root = write_bank({"a.yaml": item, "audio/manifest.yaml": [_entry("one", sha256="../../etc/passwd")]})
    assert ("audio/manifest.yaml", "[0].sha256") in problems_of(root)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 1_800), st.sampled_from(list(HOSTILE_BYTES))), max_size=6))
def test_damaged_files_give_a_bank_or_named_problems(
    write_bank: WriteBank, item: dict[str, Any], edits: list[tuple[int, int]]
) -> None:
    path = write_bank({"a.yaml": item}) / "a.yaml"
    data = bytearray(path.read_bytes())
    for position, value in edits:
        data[position % len(data)] = value
    path.write_bytes(data)
    try:
        lint(load_bank(path.parent))
        files = {"a.yaml"}
    except BankError as error:
        files = {problem.file for problem in error.problems}
    assert files <= {"a.yaml", "."}
