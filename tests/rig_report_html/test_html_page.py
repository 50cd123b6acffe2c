"""The HTML report: what is on the page, that nothing comes from elsewhere, and that a browser opens it quietly."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml
from matplotlib import image

from captures.capture import (
    BargeIn,
    Capture,
    Condition,
    Ending,
    ErrorInfo,
    LaterTurn,
    ObservedCall,
    ReplyAudio,
    SecondTurn,
)
from rig.bank.loader import load_bank
from rig.report.build import build_report
from rig.report.html import page as page_module
from rig.report.html.evidence import evidence_of
from rig.report.html.page import page, write_html
from rig.report.html.plots import plots
from rig.report.layout import mean
from rig.report.runs import ReportError
from rig.report.scored import scored_runs
from rig.report.tables import tables

HOSTILE = '</td><script>alert(1)</script><img src="http://example.org/x">{{ 7*7 }}\x1b[31m\u202e'
VOID = {"meta", "link", "img", "br", "input", "path", "use"}


class Reader(HTMLParser):
    """Tags with their attributes, and whether every one is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture
def run(
    make_listener: Callable[..., list[Capture]], make_capture: Callable[..., Capture], write_run: Callable[..., Path]
) -> Path:
    """Two contestants and a null; one cell failed, one agent sends markup, one reply has sound."""
    hostile = make_capture("keen", "alpha", "alarm", Condition.AUDIO, "act", text=HOSTILE)
    failed = make_capture(
        "keen", "beta", "alarm", Condition.AUDIO, ending=Ending.INFRASTRUCTURE_ERROR, finished=False,
        error=ErrorInfo(kind="transient", code="1011", message="<b>went away</b>"),
    )  # fmt: skip
    spoken = make_capture(
        "keen", "gamma", "alarm", Condition.AUDIO, "act",
        reply_audio=ReplyAudio(rate_hz=16000, received_s=0.5, leading_silence_s=0.1, file="replies/gamma.flac"),
    )  # fmt: skip
    escaping = make_capture(
        "keen", "delta", "alarm", Condition.AUDIO, "act",
        reply_audio=ReplyAudio(rate_hz=16000, received_s=0.5, leading_silence_s=0.1, file="../secret.wav"),
    )  # fmt: skip
    replaced = {one.identity: one for one in (hostile, failed, spoken, escaping)}
    keen = [replaced.get(one.identity, one) for one in make_listener("keen")]
    null = make_listener("deaf", deaf_on=("alpha", "beta", "gamma", "delta"))
    targets = {
        "keen": {"role": "contestant", "adapter": "rig_socket", "model": HOSTILE},
        "half": {"role": "contestant", "adapter": "rig_socket", "settings": {"temperature": 0.3}},
        "deaf": {"role": "words_only", "adapter": "rig_socket"},
    }
    captures = [*keen, *make_listener("half", deaf_on=("alpha", "delta")), *null]
    path = write_run(captures, "run", targets=targets)
    tone = np.sin(np.arange(8000) * 2 * math.pi * 440 / 16000).astype(np.float32)
    soundfile.write(path / "replies" / "gamma.flac", tone, 16000)
    soundfile.write(path.parent / "secret.wav", tone, 16000)
    return path


def made(run: Path, audio: bool = True) -> str:
    return page(build_report([run]), evidence_of([run]), audio=audio)


def test_tables_plots_map_and_cells_are_there(run: Path) -> None:
    report = build_report([run])
    reader = read(made(run))
    count = Counter(tag for tag, _ in reader.tags)
    labels = {attrs["aria-label"] for tag, attrs in reader.tags if tag == "svg"}
    assert {
        "Forest plot of gains beyond the words",
        "Scatter of unsafe execution against over-trigger",
        "Heat map of credit by kind of cue",
        "Distribution of commit_to_tool_call",
        "commit_to_tool_call against credit",
    } <= labels
    assert count["details"] == 5
    text = "".join(reader.text)
    for figure in (mean(report.target("half").credit_cue_bearing), mean(report.target("keen").credit_neutral)):
        assert figure in text
    assert text.count("✗") - 1 == 2 + 4  # half misses two alarms, deaf all four; one more in the legend
    assert "temperature0.3" in text.replace("\n", "")
    assert "1011 <b>went away</b>" in text
    assert "first call complete 1.500" in text


def test_what_followed_is_in_the_drill_down(
    make_listener: Callable[..., list[Capture]], make_capture: Callable[..., Capture], write_run: Callable[..., Path]
) -> None:
    call = ObservedCall(call_id="c", name="act", arguments_json="{}", arguments={}, output_index=0)
    asked = make_capture(
        "keen", "alpha", "alarm", Condition.AUDIO, "act",
        second_turn=SecondTurn(
            call_id="c", tool="ask", result="ok", reply="The <b>blue</b> one.", reply_as="audio",
            answer=LaterTurn(ending=Ending.CALLED, calls=(call,), reply_text="Done."),
        ),
    )  # fmt: skip
    cut = make_capture(
        "keen", "beta", "alarm", Condition.AUDIO, "act",
        barge_in=BargeIn(clip="self", after_s=0.5, onset_ns=1, stop_latency_s=0.234, stopped_by="peer"),
        reply_audio=ReplyAudio(rate_hz=16000, received_s=0.5, leading_silence_s=0.1, gaps=2, gaps_s=0.25),
    )  # fmt: skip
    replaced = {one.identity: one for one in (asked, cut)}
    path = write_run([replaced.get(one.identity, one) for one in make_listener("keen")], "run")
    text = "".join(read(made(path)).text)
    assert "second turn: the caller said: The <b>blue</b> one. → act({})" in text
    assert "and said: Done." in text
    assert "barge-in with self after 0.5 s: silent after 0.234 s, by peer" in text
    assert "the reply would have run dry 2 times, 0.25 s in all" in text


def test_nothing_comes_from_elsewhere(run: Path) -> None:
    reader = read(made(run))
    assert Counter(tag for tag, _ in reader.tags)["script"] == 0
    for tag, attrs in reader.tags:
        assert tag not in ("iframe", "object", "embed", "img", "base", "form")
        assert not [name for name in attrs if name.startswith("on")]
        for name in ("href", "src", "xlink:href"):
            if name in attrs:
                assert re.match(r"#|data:(audio/(flac|wav);base64,|,$)", attrs[name] or ""), (tag, attrs[name])
    policy = next(attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "script" not in policy


def test_what_agents_sent_is_shown_as_text(run: Path) -> None:
    text = "".join(read(made(run)).text)
    assert '</td><script>alert(1)</script><img src="http://example.org/x">{{ 7*7 }} [31m' in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_a_bank_holds_is_shown_as_text(
    tmp_path: Path, make_capture: Callable[..., Capture], write_run_over: Callable[..., Path]
) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    item = {
        "id": "beta", "policy_mode": "explicit", "domain": HOSTILE, "transcript": HOSTILE, "scenario": HOSTILE,
        "explicit_policy": HOSTILE,
        "tools": [{"name": "wait", "description": HOSTILE}, {"name": "act", "description": HOSTILE}],
        "variants": [
            {"variant_id": "calm", "gold": {"tool": "wait", "rationale": HOSTILE}},
            {"variant_id": "alarm", "emotion": HOSTILE, "gold": {"tool": "act", "args": {"why": [HOSTILE]}}},
        ],
    }  # fmt: skip
    (folder / "beta.yaml").write_text(yaml.safe_dump(item), encoding="utf-8")
    (folder / "annotations.yaml").write_text(yaml.safe_dump({"beta": {"sector": HOSTILE, "citation": HOSTILE}}))
    bank = load_bank(folder)
    call = ObservedCall(call_id=HOSTILE, name=HOSTILE, arguments_json=HOSTILE, arguments=None, output_index=0)
    captures = [
        make_capture(
            "keen", "beta", variant, Condition.AUDIO, "act", calls=(call,), reply_transcript=HOSTILE,
            input_transcript=HOSTILE, input_tags=(HOSTILE,), host=HOSTILE, echoed={"model": HOSTILE},
            served={"upstream": HOSTILE}, identity=f"keen-{variant}",
        )
        for variant in ("calm", "alarm")
    ]  # fmt: skip
    made_of = write_run_over(tmp_path / "run", bank, captures)
    reader = read(made(made_of))
    assert not {"script", "img"} & {tag for tag, _ in reader.tags}
    text = "".join(reader.text)
    assert text.count("<script>alert(1)</script>") > 15
    assert "{{ 7*7 }}" in text


def test_audio_is_embedded_or_left_out_and_said(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sources(text: str) -> int:
        return sum(tag == "audio" for tag, _ in read(text).tags)

    assert sources(made(run)) == 1  # the other names a file outside the run
    without = made(run, audio=False)
    assert sources(without) == 0
    assert "--no-audio" in without
    monkeypatch.setattr(page_module, "MOST_AUDIO_BYTES", 10)
    full = made(run)
    assert sources(full) == 0
    assert "1 clips or replies were left out" in full


def test_the_same_run_gives_the_same_page(run: Path) -> None:
    assert made(run) == made(run)


def test_a_run_that_measured_nothing(write_run: Callable[..., Path], make_capture: Callable[..., Capture]) -> None:
    failed = make_capture("keen", "beta", "alarm", Condition.AUDIO, ending=Ending.INFRASTRUCTURE_ERROR, finished=False)
    text = made(write_run([failed], "nothing"))
    assert "Nothing was measured that could be drawn." in text
    assert "not measured" in text
    assert "nan" not in "".join(read(text).text).lower().split()


def test_an_unwritable_file_and_a_missing_extra_are_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = build_report([run])
    with pytest.raises(ReportError, match="cannot be written"):
        write_html(run / "no" / "x.html", report, scored_runs([run]), audio=False)
    monkeypatch.setattr(page_module, "find_spec", lambda name: None if name == "jinja2" else name)
    with pytest.raises(ReportError, match=r"jinja2: install the extra, voice-agent-rig\[report\]"):
        write_html(run / "x.html", report, scored_runs([run]), audio=False)


def rig(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rig", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_the_command(run: Path, tmp_path: Path) -> None:
    done = rig("report", run, "--html", tmp_path / "r.html", "--no-audio")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "r.html" in done.stderr
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == made(run, audio=False)


def test_every_table_and_plot_says_what_kind_of_finding_it_is(run: Path) -> None:
    report = build_report([run])
    captions = [one.caption for one in tables(report)]
    captions += [caption for _, _, caption in plots(report, evidence_of([run]))]
    assert len(captions) > 15
    assert [one for one in captions if not re.search(r"\b(exploratory|confirmatory)\b", one.lower())] == []


def test_figures_stand_under_each_other(run: Path) -> None:
    reader = read(made(run))
    aligned = Counter(tag for tag, attrs in reader.tags if attrs.get("class") == "n")
    assert aligned["th"] > 10
    assert aligned["td"] > aligned["th"]


def _shown(chromium: str, page: Path, picture: Path, *flags: str) -> tuple[float, bool]:
    """Brightness of the page's corner, and whether there is anything on it."""
    subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--window-size=800,1200",
            f"--user-data-dir={picture.parent / 'profile'}", f"--screenshot={picture}", *flags, page.as_uri(),
        ],
        capture_output=True, check=True, stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip
    pixels = image.imread(picture)[..., :3]
    return float(pixels[0, 0].mean()), float(np.ptp(pixels)) > 0.5


@pytest.mark.chromium
def test_light_dark_and_print(run: Path, tmp_path: Path, chromium: str) -> None:
    path = tmp_path / "report.html"
    write_html(path, build_report([run]), scored_runs([run]), audio=False)
    dark = "--blink-settings=preferredColorScheme=0"
    assert _shown(chromium, path, tmp_path / "light.png", "--blink-settings=preferredColorScheme=1") == (1.0, True)
    brightness, something = _shown(chromium, path, tmp_path / "dark.png", dark)
    assert brightness < 0.15
    assert something
    # As printed from a dark desktop: the print rules, made to hold on the screen.
    path.write_text(path.read_text(encoding="utf-8").replace("@media print {", "@media screen {", 1), encoding="utf-8")
    assert _shown(chromium, path, tmp_path / "print.png", dark) == (1.0, True)


@pytest.mark.chromium
def test_a_browser_opens_it_without_a_complaint(run: Path, tmp_path: Path, chromium: str) -> None:
    path = tmp_path / "report.html"
    write_html(path, build_report([run]), scored_runs([run]), audio=True)
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    dom = read(done.stdout)
    assert sum(tag == "svg" for tag, _ in dom.tags) >= 5
    assert sum(tag == "audio" for tag, _ in dom.tags) == 1
    assert not any(tag in ("script", "img") for tag, _ in dom.tags)
