"""Tables of latencies and of the parts of voice to voice."""

from __future__ import annotations

from captures.playback import AUDIBLE_DBFS, AUDIBLE_STEPS, STEP_S
from rig.report.layout import ABSENT, Table, number, seconds, table
from rig.report.model import LatencySummary, Report, TargetReport


def latency_tables(report: Report) -> list[Table]:
    """Latencies by target and origin; their parts where any target has one."""
    tables = [_latency(report)]
    if any(found for target in report.targets for found in target.latency_parts.values()):
        tables.append(_parts(report))
    if any(target.gaps for target in report.targets):
        tables.append(_gaps(report))
    return tables


def _gaps(report: Report) -> Table:
    return table(
        "Replies that ran dry",
        ("target", "replies", "with gaps", "gaps, s", "longest share"),
        [
            (
                target.name,
                str(target.gaps.replies),
                str(target.gaps.with_gaps),
                number(target.gaps.seconds),
                f"{100 * target.gaps.longest_share:.0f} %",
            )
            for target in report.targets
            if target.gaps is not None
        ],
        "Received audio laid out as it would be heard: a gap is where all that had come was heard before more came. "
        "Longest share: of one reply's time. Exploratory.",
    )


def _latency(report: Report) -> Table:
    rows = [
        (
            target.name,
            f"{name}\nfrom {report.origins[name]}",
            *_figures(found),
            ABSENT if name.startswith("request") or target.chunk_ms is None else str(target.chunk_ms),
        )
        for target, name, found in _measured(report, "latency")
    ]
    limits = " or ".join(f"{limit:g}" for limit in report.void_limit_ms)
    return table(
        "Latency, seconds",
        ("target", "latency", "p50", "p90", "p95", "p99", "n", "void", "chunk\nms"),
        rows,
        "Audio cells; the median with its 95 % interval (item-clustered bootstrap). Void: our own lateness passed "
        f"{limits} ms, in no percentile. First audible: {AUDIBLE_STEPS * STEP_S * 1000:.0f} ms above {AUDIBLE_DBFS:g} "
        f"dBFS (rule version {report.audible_version}). Negative values are kept. A percentile that needs more values "
        "says so. File mode has another origin and is not comparable. Exploratory.",
    )


def _parts(report: Report) -> Table:
    return table(
        "Parts of voice to voice, seconds",
        ("target", "part", "p50", "p90", "p95", "p99", "n", "void"),
        [(target.name, name.replace("_", " "), *_figures(found)) for target, name, found in _measured(report, "parts")],
        "Endpointing hold: from the end of the caller's speech until the peer says that it has stopped; network: one "
        "round trip, the turn's shortest ping; model: from the peer's word, or from our commit less the round trip, to "
        "the first byte; leading silence: from there to the first audible sample. Where no ping was answered the "
        "network is inside the model. Exploratory.",
    )


def _measured(report: Report, which: str) -> list[tuple[TargetReport, str, LatencySummary]]:
    return [
        (target, name, found)
        for target in report.targets
        for name, found in (target.latency if which == "latency" else target.latency_parts).items()
        if found is not None
    ]


def _figures(found: LatencySummary) -> tuple[str, ...]:
    median = seconds(found.p50, found.n)
    if found.lo is not None and found.hi is not None:
        median += f"\n[{found.lo:.3f}, {found.hi:.3f}]"
    higher = tuple(seconds(value, found.n) for value in (found.p90, found.p95, found.p99))
    return (median, *higher, str(found.n), str(found.void))
