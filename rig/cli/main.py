"""The command line: names, options and help texts. What a command does is in the module that it imports."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(
    name="rig",
    help="Test rig for voice agents: streams real speech in real time, scores the first action, measures latency.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, keys among them
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # rich help would double the time that `rig --help` takes
)
bank_app = typer.Typer(help="Look at and check banks of items.", no_args_is_help=True)
app.add_typer(bank_app, name="bank")
template_app = typer.Typer(help="Templates: agents with a JSON protocol of their own.", no_args_is_help=True)
app.add_typer(template_app, name="template")

device_app = typer.Typer(help="Sound devices: which there are, and how late they are.", no_args_is_help=True)
app.add_typer(device_app, name="device")

cassette_app = typer.Typer(help="Single cassettes: shown, cut short, played to a client.", no_args_is_help=True)
app.add_typer(cassette_app, name="cassette")


def _one_format(context: typer.Context, wanted: bool) -> bool:
    """Refuses the second of `--json` and `--markdown`, in whatever order they are given."""
    if wanted and (context.params.get("as_json") or context.params.get("markdown")):
        raise typer.BadParameter("--json and --markdown are two formats; give one of them")
    return wanted


Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Run folder; an existing one is resumed. Default: runs/<id>.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="List cells, minutes of audio and of wall time; connect to nothing.")
]
AsJson = Annotated[
    bool, typer.Option("--json", callback=_one_format, help="Print machine-readable JSON on standard output.")
]
AsMarkdown = Annotated[bool, typer.Option("--markdown", callback=_one_format, help="Print Markdown.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every attempt to standard error.")]


@app.command()
def demo(
    out: Out = None,
    quick: Annotated[bool, typer.Option("--quick", help="A third of the items, every kind of cue among them.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run the demo bank on the embedded agents.

    Over loopback, in real time, with the report at the end. Needs no key and no network; takes two to three minutes,
    about one with --quick.

    Example: rig demo --quick
    """
    from rig.cli.chosen import Chosen
    from rig.cli.run_command import DEMO_QUICK_ITEMS, demo_config_path, run_and_report

    chosen = Chosen(DEMO_QUICK_ITEMS if quick else ())
    code = run_and_report(demo_config_path(), out, dry_run=dry_run, as_json=as_json, verbose=verbose, chosen=chosen)
    raise typer.Exit(code)


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="Config file (YAML); see configs/.", show_default=False)],
    out: Out = None,
    dry_run: DryRun = False,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.01, help="Stop at this many US dollars (estimated).")
    ] = None,
    workers: Annotated[
        int,
        typer.Option("--workers", min=1, max=256, help="Processes that make attempts, each on a core."),
    ] = 1,
    on: Annotated[
        str | None, typer.Option("--on", help="A Dask scheduler, tcp://host:8786: its workers make the attempts.")
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="Keep the run folder also in this fsspec store, e.g. s3://bucket/run.")
    ] = None,
    item: Annotated[list[str] | None, typer.Option("--item", help="Only items of this id or glob, repeatable.")] = None,
    condition: Annotated[
        list[str] | None, typer.Option("--condition", help="Only audio, text_twin or probe, repeatable.")
    ] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="Only this target, repeatable.")] = None,
    mix: Annotated[
        bool,
        typer.Option("--mix", help="Go on although results in --out were made with another clip, prompt or setting."),
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a config, or go on with a run.

    Runs every cell that the run folder does not have yet. Results there that this config or bank would now make
    otherwise are named, with what changed, and nothing is run (exit code 2) unless --mix says so. Exit code 0: all
    cells done; 2: not all done (run again with the same --out to resume); 130: interrupted.

    Examples: rig run configs/openai-realtime.yaml --out runs/first
    rig run configs/openai-realtime.yaml --out runs/first --dry-run
    """
    if on is not None and workers > 1:
        raise typer.BadParameter("--workers are processes of this machine, --on a cluster; give one of them")
    from rig.cli.chosen import Chosen
    from rig.cli.run_command import run_and_report
    from rig.engine.run import Places

    code = run_and_report(
        config,
        out,
        dry_run=dry_run,
        as_json=as_json,
        verbose=verbose,
        max_cost=max_cost,
        chosen=Chosen(item or (), condition or (), target or ()),
        places=Places(workers, on),
        store_url=store,
        mix=mix,
    )
    raise typer.Exit(code)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", show_default=False)],
    null: Annotated[
        list[str] | None,
        typer.Option("--null", help="Words-only target, repeatable, the main one first; default: by role."),
    ] = None,
    bank: Annotated[Path | None, typer.Option("--bank", help="Bank folder; default: the run's own.")] = None,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one self-contained HTML file here (extra: report).")
    ] = None,
    audio: Annotated[bool, typer.Option("--audio/--no-audio", help="Embed clips and replies in the HTML file.")] = True,
    full: Annotated[
        bool, typer.Option("--full", help="Also null tests in full, harm, and hearing against deciding.")
    ] = False,
    floors: Annotated[
        bool, typer.Option("--floors", help="Also degenerate agents on the same clips, and what they meet or beat.")
    ] = False,
    audit_sample: Annotated[
        Path | None, typer.Option("--audit-sample", help="Write 60 classified outcomes here for a person to check.")
    ] = None,
    audit: Annotated[
        Path | None, typer.Option("--audit", help="Such a file with the person's classes: say how far they agree.")
    ] = None,
) -> None:
    """Print the tables of one or more runs.

    Credit, null gain, probe, endings, latency, pacing; with --full also robustness, harm, and hearing against
    deciding. Markdown and HTML hold all of them; HTML adds plots and every cell.

    Example: rig report runs/first --json
    """
    from rig.cli.report_command import print_report

    print_report(
        runs,
        null or [],
        bank,
        as_json=as_json,
        markdown=markdown,
        html=html,
        audio=audio,
        full=full,
        floors=floors,
        audit_sample=audit_sample,
        audit=audit,
    )


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders: two to compare, one for its serving modes.")],
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", help="A=B: target of the first run against one of the second; or REALTIME=FILE."),
    ] = None,
    serving: Annotated[
        bool, typer.Option("--serving", help="Realtime minus file mode within pairs, over all the runs.")
    ] = False,
    bank: Annotated[Path | None, typer.Option("--bank", help="Bank folder; default: the run's own.")] = None,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
    html: Annotated[Path | None, typer.Option("--html", help="Serving modes as one HTML file (extra: report).")] = None,
) -> None:
    """Compare two runs, or serving modes, cell by cell.

    Two runs: credit, harm, probe and latency on the cells that both measured. One run, or --serving: realtime minus
    file mode within the pairs of the config (docs/serving-modes.md); exit code 2 if a pair is refused.

    Example: rig compare runs/before runs/after; rig compare runs/both-modes --html serving.html
    """
    from rig.cli.compare_command import print_comparison, print_serving

    if serving or len(runs) == 1:
        raise typer.Exit(print_serving(runs, pair or [], bank, as_json=as_json, markdown=markdown, html=html))
    if len(runs) > 2 or html is not None:
        raise typer.BadParameter("two runs are compared; for serving modes of several, or --html, give --serving")
    print_comparison(runs[0], runs[1], pair or [], bank, as_json=as_json, markdown=markdown)


@app.command("replay-cascade")
def replay_cascade(
    run: Annotated[Path, typer.Argument(help="Run folder with a cascade's transcripts.", show_default=False)],
    config: Annotated[Path, typer.Option("--config", help="Config with the new targets (adapter: cascade).")],
    target: Annotated[
        list[str] | None, typer.Option("--target", help="New target of the config, repeatable; default: its cascades.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Target of the run that heard the clips; default: the only one."),
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Tell a run's stored transcripts to other text models.

    Without audio and without a new transcription, into a run folder that reports and compares like any other. Exit
    codes as of rig run.

    Example: rig replay-cascade runs/first --config models.yaml --target newer-model
    """
    from rig.cli.replay_cascade_command import replay

    raise typer.Exit(replay(run, config, target or [], source, out, as_json=as_json, verbose=verbose))


@app.command()
def leaderboard(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.", show_default=False)],
    null: Annotated[
        list[str] | None, typer.Option("--null", help="Words-only target to compare with; default: by role.")
    ] = None,
    bank: Annotated[Path | None, typer.Option("--bank", help="Bank folder; default: the run's own.")] = None,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
) -> None:
    """Rank the targets of many runs in one table.

    Example: rig leaderboard runs/*
    """
    from rig.cli.compare_command import print_leaderboard

    print_leaderboard(runs, null or [], bank, as_json=as_json, markdown=markdown)


@app.command()
def check(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    config: Annotated[Path, typer.Option("--config", help="Limits (YAML); see configs/checks/slo.yaml.")],
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="An earlier run, to compare with cell by cell.")
    ] = None,
    bank: Annotated[Path | None, typer.Option("--bank", help="Bank folder; default: the run's own.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")] = None,
    summary: Annotated[Path | None, typer.Option("--summary", help="Write a Markdown summary here.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a run to limits, for CI.

    Exit code 0: all limits kept; 1: one is broken; 2: one could not be measured, or not well enough.

    Example: rig check runs/first --config configs/checks/slo.yaml --junit rig.xml
    """
    from rig.cli.check_command import check_run

    raise typer.Exit(check_run(run, config, baseline, bank, junit=junit, summary=summary, as_json=as_json))


@app.command()
def smoke(
    config: Annotated[Path, typer.Argument(help="Config file (YAML).", show_default=False)],
    out: Out = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="Only this target, repeatable.")] = None,
    own_items: Annotated[
        bool, typer.Option("--own-items", help="The config's own bank and items, for agents that take no others.")
    ] = False,
    credit: Annotated[
        float | None, typer.Option("--credit", min=0, max=1, help="Least mean credit on audio; default: not judged.")
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Try whether a config's agents work: a small fixed suite, in under two minutes.

    Eight items of the demo bank with every kind of cue, as audio and as text: no cell may end in an error, every one is
    answered, and tools are called. Exit code 0: so it is; 1: not; 2: it could not be measured.

    Example: rig smoke configs/bring-your-own-socket.yaml --junit smoke.xml
    """
    from rig.cli.smoke_command import smoke as run_smoke

    code = run_smoke(
        config,
        out,
        target or [],
        own_items=own_items,
        credit_at_least=credit,
        junit=junit,
        as_json=as_json,
        verbose=verbose,
    )
    raise typer.Exit(code)


@app.command()
def cells(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    target: Annotated[list[str] | None, typer.Option("--target", help="Only this target, repeatable.")] = None,
    bank: Annotated[Path | None, typer.Option("--bank", help="Bank folder; default: the run's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what became of every cell of a run: what was called, heard and said, credit, times.

    Exit code 2: there is none.

    Example: rig cells runs/first --json
    """
    from rig.cli.cells_command import print_cells

    raise typer.Exit(print_cells(run, target or [], bank, as_json=as_json))


@app.command("floors")
def floors_(
    bank: Annotated[str, typer.Argument(help="A bank folder, or the name of a packaged bank.")] = "demo",
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
) -> None:
    """Show what degenerate agents score on a bank.

    Always the same tool, always a hand-over, never a call, at random and the like; needs no audio and no run.

    Example: rig floors my-bank/
    """
    from rig.cli.floors_command import print_floors

    print_floors(bank, as_json=as_json, markdown=markdown)


@app.command("import")
def import_(
    records: Annotated[list[Path], typer.Argument(help="Published per-cell records (JSON lines).", show_default=False)],
    bank: Annotated[Path, typer.Option("--bank", help="Bank folder that the records are about.")],
    name: Annotated[str, typer.Option("--name", help="Target name in reports.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Run folder to write.")],
    role: Annotated[
        str, typer.Option("--role", help="contestant, words_only, ladder, instrument or floor.")
    ] = "contestant",
) -> None:
    """Turn published records into a run folder.

    It can then be reported and compared like any other.

    Example: rig import records.jsonl --bank items/ --name gem25 --role contestant --out runs/gem25
    """
    from rig.cli.import_command import import_run

    import_run(records, bank, name, role, out)


@app.command()
def calibrate(
    sessions: Annotated[str, typer.Option("--sessions", help="Sessions at once, one level after the other.")] = (
        "1,50,100,200"
    ),
    turns: Annotated[int, typer.Option("--turns", min=1, max=100_000, help="Turns per level, at least.")] = 120,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Keep it: runs and reports carry the last one.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Measure the error of the rig's own time marks.

    Plays turns with a peer on this machine that stamps each frame as it sends it. Takes about three minutes; keep the
    machine otherwise idle. Exit code 1: worse than promised (docs/latency.md).

    Example: rig calibrate --sessions 1,100
    """
    from rig.cli.calibrate_command import run_calibration

    raise typer.Exit(run_calibration(sessions, turns, save=save, as_json=as_json))


@app.command()
def timing(
    files: Annotated[list[Path], typer.Argument(help="Two-channel recordings (WAV, FLAC).", show_default=False)],
    caller: Annotated[str, typer.Option("--caller", help="The caller's channel: left or right.")] = "left",
    transcript: Annotated[
        Path | None,
        typer.Option("--transcript", help='JSON list of {"side": "caller"|"agent", "word", "start_s", "end_s"}.'),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write one row per reply here.")] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the call here: .svg, .png or .pdf (extra: report).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the timing of calls recorded elsewhere.

    Response latency, interruptions, turn taking, pauses, dead air, pitch and level, from recordings with caller and
    agent on channels of their own. Exit code 2: a recording could not be measured.

    Example: rig timing call.wav --picture call.svg
    """
    if caller not in ("left", "right"):
        raise typer.BadParameter("--caller is left or right")
    from rig.cli.timing_command import print_timing

    side: Literal["left", "right"] = "left" if caller == "left" else "right"
    raise typer.Exit(print_timing(files, side, transcript, csv, picture, as_json=as_json))


@app.command()
def timeline(
    run: Annotated[Path | None, typer.Argument(help="Run folder.", show_default=False)] = None,
    target: Annotated[str, typer.Option("--target", help="Only targets of this name, * for any.")] = "*",
    cell: Annotated[str, typer.Option("--cell", help="Only these calls, as item/variant, * for any.")] = "*",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default: RUN/timelines.")] = None,
    self_check: Annotated[
        bool, typer.Option("--self-check", help="Instead: play a call of tones, find them again, tell the distance.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write calls as stereo files: left the caller as sent, right the agent as it would have been heard.

    FLAC, sample by sample on the clock of the capture's marks, which stand beside it as JSON. Made from stored
    frames; may be deleted. Exit code 2: a call could not be laid out; 1: the self-check is over 1 ms off.

    Example: rig timeline runs/first --cell 'demo-banking-01/*'
    """
    from rig.cli.timeline_command import check_alignment, write_timelines

    if self_check:
        raise typer.Exit(check_alignment(out))
    if run is None:
        raise typer.BadParameter("give a RUN folder, or --self-check")
    raise typer.Exit(write_timelines(run, target, cell, out or run / "timelines", as_json=as_json))


@app.command()
def load(
    config: Annotated[Path, typer.Argument(help="Config file (YAML).", show_default=False)],
    target: Annotated[str | None, typer.Option("--target", help="Which of its targets; default: its only one.")] = None,
    ramp: Annotated[str, typer.Option("--ramp", help="Calls at once, one level after the other.")] = "1,10,50",
    hold: Annotated[str, typer.Option("--hold", help="How long each level lasts, e.g. 60s or 2m.")] = "60s",
    max_errors: Annotated[
        float, typer.Option("--max-errors", min=0, max=100, help="Ends once more than this % of a level's calls fail.")
    ] = 20.0,
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0.01, help="Ends at this many US dollars (estimated).")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the curves here: .svg, .png or .pdf (extra: report).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put more and more calls at once on one target.

    Latency and errors against concurrency, and beside them the harness's own state, so that its limit is not taken
    for the target's. Only against loopback, or a target whose config says `i_own_this: true`. Exit code 1: a bound
    ended it.

    Example: rig load configs/bring-your-own-socket.yaml --ramp 1,10,50 --hold 60s
    """
    from rig.cli.load_command import run_load, seconds_of
    from rig.load.ramp import Bounds

    bounds = Bounds(seconds_of(hold), max_errors / 100, max_cost)
    raise typer.Exit(run_load(config, target, ramp, bounds, picture, as_json=as_json))


@app.command()
def sweep(
    config: Annotated[Path, typer.Argument(help="Config file (YAML).", show_default=False)],
    out: Out = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the frontier here: .svg, .png or .pdf (extra: report).")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Try ways of ending the caller's turn, and weigh added latency against false cut-offs.

    Every target of the config runs once per way: those of its `sweep:`, else server_vad at three lengths of silence,
    semantic_vad and manual where offered; on items whose caller hesitates or breaks off. Resumes like rig run.

    Example: rig sweep configs/openai-realtime.yaml --out runs/sweep --picture sweep.svg
    """
    from rig.cli.sweep_command import run_sweep

    raise typer.Exit(run_sweep(config, out, picture, as_json=as_json, verbose=verbose))


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    apply: Annotated[
        bool, typer.Option("--apply", help="Write what today's code derives; the file before is kept beside it.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Make damaged lines of captures.jsonl anew from their cassettes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Feed a run's stored frames to today's code again.

    Every finished capture is derived anew from its frames, without a request: equal, or a difference by field. So a
    mended parser re-reads a paid run. Exit code 1: something differs; 2: not all could be derived.

    With --repair, lines of captures.jsonl that were damaged (a disk, an editor) are made anew from their frames, or set
    aside where there are none, so that their cells run again (exit code 2); the file before is kept beside it.

    Examples: rig replay runs/first
    rig replay runs/first --repair
    """
    from rig.cli.replay_command import repair_run, replay_run

    if repair and apply:
        raise typer.BadParameter("--repair comes before --apply; give one of them")
    raise typer.Exit(repair_run(run, as_json=as_json) if repair else replay_run(run, apply=apply, as_json=as_json))


@app.command()
def verify(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    bank: Annotated[Path | None, typer.Option("--bank", help="Bank folder; default: the run's own.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check that a run is what it says it is.

    Bank, clips, frames, captures against their frames, completeness, pacing, calibration; a summary that can be filed.
    Exit code 0: verified; 1: a check failed; 2: one was not possible.

    Example: rig verify runs/first
    """
    from rig.cli.verify_command import print_verification

    raise typer.Exit(print_verification(run, bank, as_json=as_json))


@app.command()
def emulate(
    dialect: Annotated[str, typer.Argument(help="An adapter's name, e.g. openai-realtime.", show_default=False)],
    agent: Annotated[str, typer.Option("--agent", help="local-acoustic or local-cascade.")] = "local-acoustic",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 picks a free one.")] = 8765,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; any but this machine's own needs --token-env.")
    ] = "127.0.0.1",
    token_env: Annotated[
        str | None, typer.Option("--token-env", help="Environment variable whose value clients must show as their key.")
    ] = None,
    tls: Annotated[
        Path | None, typer.Option("--tls", help="Speak TLS; write the self-signed certificate here, for clients.")
    ] = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="NAME[=VALUE][@CHANCE], repeatable; see docs/emulators.md.")
    ] = None,
    stamps: Annotated[
        Path | None, typer.Option("--stamps", help="Append here, as JSON lines, which frame was sent when.")
    ] = None,
) -> None:
    """Serve an embedded agent in a vendor's dialect.

    To anybody's client, until Ctrl-C.

    Example: rig emulate openai-realtime --agent local-acoustic --fault delay=uniform:0.2:0.8 --fault drop@0.1
    """
    from rig.cli.emulate_command import serve

    raise typer.Exit(serve(dialect, agent, host, port, tls, fault or [], stamps, token_env))


@app.command()
def conformance(
    agent: Annotated[
        str, typer.Argument(help="ws:// address, or a config with a rig_socket target.", show_default=False)
    ],
    target: Annotated[str | None, typer.Option("--target", help="Which target of the config.")] = None,
    token_env: Annotated[
        str | None, typer.Option("--token-env", help="Environment name of the token for the address, sent as Bearer.")
    ] = None,
    check: Annotated[list[str] | None, typer.Option("--check", help="Only this check, repeatable.")] = None,
    turn_limit: Annotated[
        float, typer.Option("--turn-limit", min=0.5, max=300, help="Longest wait for the end of an answer, seconds.")
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Check that an agent keeps the rig socket's contract, and say what to mend.

    Holds short conversations with it; docs/bring-your-own-agent.md lists the checks. Exit code 0: none failed; 1: one
    did; 2: nothing could be checked.

    Example: rig conformance ws://127.0.0.1:9876
    """
    from rig.cli.conformance_command import check_agent

    raise typer.Exit(check_agent(agent, target, token_env, check or [], turn_limit, as_json=as_json))


@bank_app.command()
def lint(
    bank: Annotated[str, typer.Argument(help="A bank folder, or the name of a packaged bank.")] = "demo",
    as_json: AsJson = False,
) -> None:
    """Check a bank: every problem of every file, with file and field.

    Exit code 1 if there is any error.

    Example: rig bank lint my-bank/
    """
    from rig.cli.bank_command import print_lint

    raise typer.Exit(print_lint(bank, as_json=as_json))


@bank_app.command("render")
def render_(
    bank: Annotated[str, typer.Argument(help="A bank folder, or the name of a packaged bank.")] = "demo",
    item: Annotated[list[str] | None, typer.Option("--item", help="Only this item, repeatable.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Render also what has not changed.")] = False,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, max=64, help="At most so many; default: one per core.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a bank's clips from its items and recipes.yaml, gate them, and write the audio manifest.

    Renders only what changed. A clip that fails a gate is named and not shipped. Needs the extra `render`. Exit code 0:
    all clips are there; 1: some failed; 130: interrupted.

    Example: rig bank render my-bank/
    """
    from rig.cli.bank_render_command import render

    raise typer.Exit(render(bank, set(item or ()), force=force, processes=processes, as_json=as_json))


@bank_app.command("show")
def show_(
    bank: Annotated[str, typer.Argument(help="A bank folder, or the name of a packaged bank.")] = "demo",
    item: Annotated[list[str] | None, typer.Option("--item", help="Only this item, repeatable.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one page with clips and spectrograms here (extra: report).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every clip of a bank: what is to be heard in it, what was measured, what people ruled.

    Exit code 0: all clips are there; 1: some are missing or withheld.

    Example: rig bank show --html bank.html
    """
    from rig.cli.bank_show_command import show

    raise typer.Exit(show(bank, set(item or ()), html, as_json_text=as_json))


@bank_app.command("import")
def bank_import_(
    table: Annotated[Path, typer.Argument(help="CSV file (UTF-8).", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The bank's folder; must not be there yet.")],
    tools: Annotated[
        Path | None, typer.Option("--tools", help="Tool definitions (JSON list); default: derived from the rows.")
    ] = None,
    scenario: Annotated[
        str, typer.Option("--scenario", help="What the agent knows, where a row says nothing of its own.")
    ] = "You answer a telephone line. A caller is on the line.",
    voice: Annotated[str, typer.Option("--voice", help="Speaks the rows without a recording.")] = "hibari",
    render: Annotated[
        bool, typer.Option("--render/--no-render", help="Render now, or later with rig bank render.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Make a bank of a table of utterances and the calls that are expected.

    Columns: utterance, tool (or none), and optionally arguments (JSON), wav, id, variant, emotion, speaker, scenario,
    policy, sector, voice. Recordings are read from the wav column; other rows are spoken (extra render). Exit code 1:
    a clip failed.

    Example: rig bank import calls.csv --tools tools.json --out my-bank/
    """
    from rig.cli.bank_import_command import import_bank

    raise typer.Exit(import_bank(table, out, tools, scenario, voice, render=render, as_json=as_json))


@bank_app.command("new")
def new_(
    bank: Annotated[Path, typer.Argument(help="The bank's folder; made if it is not there.", show_default=False)],
    item_id: Annotated[str | None, typer.Option("--id", help="E.g. own-parking-01.")] = None,
    sector: Annotated[str | None, typer.Option("--sector", help="E.g. parking.")] = None,
    transcript: Annotated[str | None, typer.Option("--transcript", help="The caller's words.")] = None,
    scenario: Annotated[str | None, typer.Option("--scenario", help="What the agent knows.")] = None,
    policy: Annotated[str | None, typer.Option("--policy", help="The rule that the agent is told.")] = None,
    implicit: Annotated[bool, typer.Option("--implicit", help="No rule is told; do not ask for one.")] = False,
    tool: Annotated[list[str] | None, typer.Option("--tool", help="NAME: what it does; repeatable.")] = None,
    cue: Annotated[
        str | None, typer.Option("--cue", help="KIND:WHAT: emotion, speaker, sound, voice, masked, cut or halting.")
    ] = None,
    intensity: Annotated[float, typer.Option("--intensity", min=0, max=1, help="Of an emotion.")] = 0.8,
    neutral_tool: Annotated[str | None, typer.Option("--neutral-tool", help="Right without the cue, or none.")] = None,
    cue_tool: Annotated[str | None, typer.Option("--cue-tool", help="Right with the cue, or none.")] = None,
    harm_class: Annotated[str | None, typer.Option("--harm-class", help="Default: consumer_rights.")] = None,
    severity: Annotated[str | None, typer.Option("--severity", help="Default: friction.")] = None,
    grounding: Annotated[str | None, typer.Option("--grounding", help="Default: practice.")] = None,
    citation: Annotated[str | None, typer.Option("--citation", help="The rule, by name and section.")] = None,
    voice: Annotated[str | None, typer.Option("--voice", help="Default: hibari.")] = None,
) -> None:
    """Draft a new item: two variants, a probe, annotations and a recipe, which pass the lint.

    Asks on a terminal for what no option gave.

    Example: rig bank new my-bank/
    """
    from rig.cli.bank_new_command import Given, new

    given = Given(
        item_id=item_id,
        sector=sector,
        transcript=transcript,
        scenario=scenario,
        policy=policy,
        implicit=implicit,
        tools=tool or (),
        cue=cue,
        intensity=intensity,
        neutral_tool=neutral_tool,
        cue_tool=cue_tool,
        harm_class=harm_class,
        severity=severity,
        grounding=grounding,
        citation=citation,
        voice=voice,
    )
    raise typer.Exit(new(bank, given))


@bank_app.command("commit")
def bank_commit(
    bank: Annotated[str, typer.Argument(help="A bank's folder, or demo.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The commitment, JSON, to be published.", show_default=False)
    ],
    secret: Annotated[
        Path | None,
        typer.Option("--secret", help="Hide names and hashes under a new secret, written here; for items held back."),
    ] = None,
) -> None:
    """Commit to a bank as it is: SHA-256 of its item files, clips and ids, and one root over all of them.

    Published before results, it lets anybody check later that nothing was changed, added or taken away.

    Example: rig bank commit my-bank/ --out my-bank.commitment.json
    """
    from rig.cli.bank_commit_command import write_commitment

    raise typer.Exit(write_commitment(bank, out, secret))


@bank_app.command("check")
def bank_check(
    bank: Annotated[str, typer.Argument(help="A bank's folder, or demo.", show_default=False)],
    commitment: Annotated[Path, typer.Argument(help="What rig bank commit wrote.", show_default=False)],
    secret: Annotated[Path | None, typer.Option("--secret", help="The secret of a hidden commitment.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a bank to its commitment, naming every file that differs. Exit code 0: the same; 1: it differs.

    Example: rig bank check my-bank/ my-bank.commitment.json
    """
    from rig.cli.bank_commit_command import check_commitment

    raise typer.Exit(check_commitment(bank, commitment, secret, as_json=as_json))


@template_app.command("try")
def template_try(
    template: Annotated[
        str, typer.Argument(help="A template's YAML file, or a shipped one's name.", show_default=False)
    ],
    session: Annotated[
        Path, typer.Argument(help="A recorded session: JSON lines, or wire/*.jsonl.zst of a run.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Show which message of a recorded session becomes which event.

    Connects to nothing and reads no environment. A line of the session is a message of the agent as it came, or
    {"direction": "received", "text": …}, with "json" or base64 in "binary" instead of "text"; lines with
    "direction": "sent" are left out. Exit code 1: a message was not understood.

    Example: rig template try my-agent.yaml session.jsonl
    """
    from rig.cli.template_command import try_template

    raise typer.Exit(try_template(template, session, as_json=as_json))


@template_app.command("show")
def template_show(
    name: Annotated[str | None, typer.Argument(help="A shipped template; without it, their names.")] = None,
) -> None:
    """Print a shipped template, as a start for one's own.

    Example: rig template show plain_json > my-agent.yaml
    """
    from rig.cli.template_command import show_template

    raise typer.Exit(show_template(name))


Cassette = Annotated[
    Path, typer.Argument(help="A run's wire/*.jsonl.zst; its sound lies beside it.", show_default=False)
]


@cassette_app.command("show")
def cassette_show(cassette: Cassette, as_json: AsJson = False) -> None:
    """List a cassette's frames: seconds, direction, size, kind, and the start of what is no audio.

    Example: rig cassette show runs/first/wire/9a0ab9-1.jsonl.zst
    """
    from rig.cli.cassette_command import show_cassette

    raise typer.Exit(show_cassette(cassette, as_json=as_json))


@cassette_app.command("trim")
def cassette_trim(
    cassette: Cassette,
    out: Annotated[Path, typer.Option("--out", "-o", help="The small one, *.jsonl.zst.", show_default=False)],
    audio_s: Annotated[
        float, typer.Option("--audio-s", min=0.0, max=600, help="Seconds of sound to keep each way.")
    ] = 2.0,
) -> None:
    """Make a small cassette for a bug report: every message, and the first seconds of sound both ways.

    Example: rig cassette trim runs/first/wire/9a0ab9-1.jsonl.zst --out bug.jsonl.zst
    """
    from rig.cli.cassette_command import trim_cassette

    raise typer.Exit(trim_cassette(cassette, out, audio_s))


@cassette_app.command("serve")
def cassette_serve(
    cassette: Cassette,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="On loopback; 0: any free one.")] = 8765,
    speed: Annotated[float, typer.Option("--speed", min=0.1, max=100, help="2 answers in half the time.")] = 1.0,
    repeat: Annotated[int, typer.Option("--repeat", min=0, help="Sessions to serve; 0: until interrupted.")] = 0,
) -> None:
    """Answer a live client as the vendor did, with the original timing.

    Every message comes as long after the client's own step as it did then. A client that takes other steps is told so
    on standard error, and goes on.

    Example: rig cassette serve runs/first/wire/9a0ab9-1.jsonl.zst --port 8765
    """
    from rig.cli.cassette_command import serve_cassette

    raise typer.Exit(serve_cassette(cassette, port, speed, repeat))


@device_app.command("list")
def device_list(as_json: AsJson = False) -> None:
    """List the sound devices by number and name, as a config's `output` and `input` want them.

    Example: rig device list
    """
    from rig.cli.device_command import list_devices

    raise typer.Exit(list_devices(as_json=as_json))


@device_app.command("latency")
def device_latency(
    output: Annotated[
        str, typer.Option("--output", help="Name or number of the device that plays.", show_default=False)
    ],
    loop_input: Annotated[
        str,
        typer.Option("--input", help="The device on which it is heard: a cable, a sink's monitor.", show_default=False),
    ],
    rate_hz: Annotated[int, typer.Option("--rate", min=8000, max=48000, help="Of both, in Hz.")] = 48000,
    chirps: Annotated[
        int, typer.Option("--chirps", min=3, max=100, help="How many are played, one in two seconds.")
    ] = 9,
    keep: Annotated[bool, typer.Option("--save/--no-save", help="Keep it for the runs to come.")] = True,
    as_json: AsJson = False,
) -> None:
    """Measure how late what is played on one device is heard on another.

    Plays chirps and finds them again. Runs with `adapter: device` on the same pair take the median off their reply
    times and state its uncertainty.

    Example: rig device latency --output to_agent --input to_agent_monitor
    """
    from rig.cli.device_command import measure_latency

    raise typer.Exit(measure_latency(output, loop_input, rate_hz, chirps, keep=keep, as_json=as_json))


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("voice-agent-rig"))
        raise typer.Exit


@app.callback()
def main(
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Test rig for voice agents: streams real speech in real time, scores the first action, measures latency."""


def run_cli() -> None:
    """Entry point. What a user can mend is told in plain lines (exit code 2); anything else is a bug and shows."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # An output that cannot show a minus sign or a name shows its number: no figure loses its sign.
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except Exception as error:
        from rig.cli.failures import explained

        lines = explained(error)
        if lines is None:
            raise
        for line in lines:
            typer.echo(f"rig: {line}", err=True)
        sys.exit(2)
