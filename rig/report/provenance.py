"""Where figures come from: what was measured, where, when and with which versions. The same for every format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rig.report.layout import plain
from rig.report.runs import LoadedRun, TargetRun

_DEFAULT = "vendor default"
_MOST_HOSTS = 5


def provenance(target: TargetRun) -> tuple[tuple[str, str], ...]:
    """What and its value, one line each; what is not recorded is said to be so."""
    return tuple((what, plain(told)) for what, told in _provenance(target))


def _provenance(target: TargetRun) -> list[tuple[str, str]]:
    run, settings = target.run, target.settings
    bank = run.section("bank")
    own = settings.get("settings")
    given: Mapping[str, Any] = own if isinstance(own, Mapping) else _configured(target)
    hosts = sorted({capture.host for capture in target.captures if capture.host})
    versions = run.section("versions")
    models = {str(model) for capture in target.captures if (model := capture.echoed.get("model"))}
    echoed = sorted(models | set(_stated(target, "model")))
    wires = sorted({f"{one.adapter} wire {one.wire_version}, parser {one.parser_version}" for one in target.captures})
    return [
        ("model", str(settings.get("model") or "not stated")),
        ("model as echoed", _few(echoed) or "not echoed"),
        ("role", target.role),
        ("adapter", ", ".join(wires) or str(settings.get("adapter") or "not stated")),
        ("embedded agent", str(settings.get("embedded_agent") or "none")),
        ("hosts that served", _few(hosts) or "not recorded"),
        ("upstream as stated", _few(_stated(target, "upstream")) or "not stated"),
        ("temperature", str(given.get("temperature", _DEFAULT if target.captures else "not stated"))),
        ("settings", ", ".join(f"{key} = {value}" for key, value in given.items()) or "all the vendor's defaults"),
        ("turn control", str(settings.get("turn_control") or "not stated")),
        ("run", f"{run.path.name}, started {run.run_json.get('created', 'at an unknown time')}"),
        (
            "bank",
            f"{bank.get('name', 'not named')}, {str(bank.get('digest', 'no digest'))[:16]}",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items()) or "not recorded"),
        ("machine", ", ".join(f"{key} {value}" for key, value in run.section("host").items()) or "not recorded"),
    ]


def _configured(target: TargetRun) -> Mapping[str, Any]:
    """The adapter's settings as the config gave them."""
    entries = target.run.section("config").get("targets")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and entry.get("name") == target.original:
            own = entry.get("settings")
            return own if isinstance(own, Mapping) else {}
    return {}


def _stated(target: TargetRun, field: str) -> list[str]:
    """What the peers of file mode say of who answered."""
    return sorted({str(told) for capture in target.captures if (told := (capture.served or {}).get(field))})


def _few(names: list[str]) -> str:
    more = len(names) - _MOST_HOSTS
    return ", ".join(names[:_MOST_HOSTS]) + (f" and {more} more" if more > 0 else "")


def device_latencies(run: LoadedRun) -> list[str]:
    """One line for each target on sound devices: what was taken off its reply times."""
    lines = []
    targets = run.run_json.get("targets")
    for name, told in targets.items() if isinstance(targets, Mapping) else ():
        device = told.get("device") if isinstance(told, Mapping) else None
        if not isinstance(device, Mapping):
            continue
        found = device.get("latency")
        if not isinstance(found, Mapping):
            why = "the latency of its devices was not measured, and is within its reply times (rig device latency)"
            lines.append(plain(f"{run.path.name}: {name}: {why}"))
            continue
        taken = f"{found['median_s'] * 1000:.1f} ms ± {found['uncertainty_s'] * 1000:.1f}"
        lines.append(plain(f"{run.path.name}: {name}: {taken} of its devices, measured {found['made']}, is taken off"))
    return lines


def calibration(run: LoadedRun) -> str:
    """How far the rig's own marks were off when the run was made, in one line."""
    found = run.run_json.get("calibration")
    if not isinstance(found, Mapping):
        return f"{run.path.name}: not calibrated on its machine (rig calibrate)"
    told = []
    for level in found.get("levels") or ():
        marks = level.get("marks") or {}
        figures = [
            f"{name.replace('_', ' ')} {mark['bias_ms']:+.2f} / {_ms(mark.get('p99_ms'))}"
            for name in ("tool_call", "first_audio", "first_audible")
            if isinstance(mark := marks.get(name), Mapping) and mark.get("bias_ms") is not None
        ]
        told.append(f"{level.get('sessions')} at once: {', '.join(figures)}")
    other = found.get("rig_version") != run.run_json.get("rig_version")
    by = f", by another version of the rig ({found.get('rig_version')})" if other else ""
    return plain(f"{run.path.name}: calibrated {found.get('made')}{by}; bias / p99 in ms: {'; '.join(told)}")


def _ms(value: Any) -> str:
    return "n too small" if value is None else f"{value:.2f}"
