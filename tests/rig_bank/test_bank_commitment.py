"""Commitments to a bank, held against what somebody may do to it; and canaries."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from rig.bank.loader import BankError, load_bank
from rig.cli.main import app
from rig.config import load_config
from rig.engine.prepare import prepare

CANARY = "rig-canary-5f1d7c52-0b7e-4a1c-9a55-1c3b2f60aa11"


@pytest.fixture
def bank(repo_dir: Path, tmp_path: Path) -> Path:
    """The demo bank, to be tampered with."""
    folder = tmp_path / "bank"
    shutil.copytree(repo_dir / "rig" / "bank" / "demo", folder)
    return folder


def rig(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def committed(bank: Path, tmp_path: Path) -> Path:
    path = tmp_path / "c.json"
    done = rig("bank", "commit", bank, "--out", path)
    assert done.exit_code == 0, done.output
    return path


def test_a_bank_is_the_same_as_committed_to(bank: Path, committed: Path) -> None:
    done = rig("bank", "check", bank, committed)
    assert done.exit_code == 0
    told = json.loads(committed.read_text())
    assert (told["items"], told["clips"]) == (32, 102)  # 115 clips in 102 files: some are equal
    assert f"the same in all {told['files']} files" in done.output


def test_every_tampering_is_named(bank: Path, committed: Path) -> None:
    items = bank / "items"
    (items / "demo-clinic-01.yaml").write_text((items / "demo-clinic-01.yaml").read_text() + "\n")
    (items / "demo-legal-01.yaml").unlink()
    shutil.copy(items / "demo-meals-01.yaml", bank / "more.yaml")
    (bank / "more.yaml").write_text((bank / "more.yaml").read_text().replace("demo-meals-01", "demo-meals-99"))
    clip = sorted((bank / "audio").glob("*.flac"))[0]
    clip.write_bytes(clip.read_bytes() + b"x")
    done = rig("bank", "check", bank, committed, "--json")
    assert done.exit_code == 1
    found = {(one["what"], one["where"]) for one in json.loads(done.output)["differences"]}
    assert found == {
        ("changed", "items/demo-clinic-01.yaml (demo-clinic-01)"),
        ("missing", "items/demo-legal-01.yaml (demo-legal-01)"),
        ("added", "more.yaml (demo-meals-99)"),
        ("changed", f"audio/{clip.name}"),
    }


def test_an_altered_commitment_is_told(bank: Path, committed: Path) -> None:
    told = json.loads(committed.read_text())
    told["entries"][0]["sha256"] = "0" * 64
    committed.write_text(json.dumps(told))
    done = rig("bank", "check", bank, committed)
    assert done.exit_code != 0
    assert "it was altered" in str(done.exception)


def test_a_hidden_commitment_names_nothing_and_checks_with_its_secret(bank: Path, tmp_path: Path) -> None:
    path, secret = tmp_path / "h.json", tmp_path / "h.secret"
    assert rig("bank", "commit", bank, "--out", path, "--secret", secret).exit_code == 0
    published = path.read_text()
    assert "demo-clinic-01" not in published
    assert "flac" not in published
    assert secret.read_text().strip() not in published
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert rig("bank", "check", bank, path, "--secret", secret).exit_code == 0
    assert "give its secret" in str(rig("bank", "check", bank, path).exception)
    (bank / "items" / "demo-legal-01.yaml").unlink()
    done = rig("bank", "check", bank, path, "--secret", secret)
    assert done.exit_code == 1
    assert "1 committed entries" in done.output
    again = rig("bank", "commit", bank, "--out", path, "--secret", secret)
    assert "is there already" in str(again.exception)
    secret.unlink()
    secret.write_text("ab" * 32)
    assert "another secret" in str(rig("bank", "check", bank, path, "--secret", secret).exception)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 2}', "\x00\xff"])
def test_what_is_no_commitment_is_one_line(bank: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    done = rig("bank", "check", bank, path)
    assert "is no commitment" in str(done.exception)
    assert "\n" not in str(done.exception)


def with_canary(bank: Path, leave_out: str = "") -> None:
    info = yaml.safe_load((bank / "bank.yaml").read_text())
    (bank / "bank.yaml").write_text(yaml.safe_dump(info | {"canary": CANARY}))
    for path in (bank / "items").glob("*.yaml"):
        if path.stem != leave_out:
            path.write_text(path.read_text() + f"canary: {CANARY}\n")


def test_a_declared_canary_must_stand_in_every_item(bank: Path) -> None:
    with_canary(bank, leave_out="demo-clinic-01")
    with pytest.raises(BankError) as error:
        load_bank(bank)
    (problem,) = [one for one in error.value.problems if one.level == "error"]
    assert (problem.file, problem.field) == ("items/demo-clinic-01.yaml", "canary")


def test_a_canary_is_told_to_no_agent(bank: Path, tmp_path: Path) -> None:
    with_canary(bank)
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "version": 1, "bank": str(bank), "conditions": ["audio", "text_twin", "probe"],
                "targets": [{"name": "one", "adapter": "rig_socket", "embedded_agent": "local-cascade"}],
            }
        )
    )  # fmt: skip
    cells = prepare(load_config(config, {})).plan.cells
    assert len(cells) > 100
    assert all(CANARY not in f"{cell.setup} {cell.text}" for cell in cells)
