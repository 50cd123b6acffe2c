"""`rig conformance`: an agent held to the rig socket's contract."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import anyio

from adapters.dialect import SettingsError, Setup, TargetSettings, TurnControlSettings
from adapters.rig_socket.client import RigSocketClient
from adapters.target_settings import secret_values
from rig.bank.loader import PACKAGED_BANK, load_bank
from rig.cli.report_command import report_console
from rig.cli.secrets_seen import remember
from rig.conformance.caller import Limits, SceneName, Stage
from rig.conformance.findings import Verdict
from rig.conformance.run import ConformanceError, Report, chosen_checks, conform
from rig.engine.clips import prepare_clips
from rig.report.layout import ABSENT, table
from rig.report.terminal import print_table

_CLIP_OF = "demo-clinic-01"


def check_agent(
    agent: str,
    target: str | None,
    token_env: str | None,
    names: Sequence[str],
    turn_limit_s: float,
    *,
    as_json: bool,
) -> int:
    """Run the checks against an address or a config's target and print; 0: none failed, 1: one did.

    Raises:
        ConformanceError: nothing answers, there is no such check or no such target.
        ConfigError: the config cannot be read.
    """
    checks = chosen_checks(names)
    settings, turn_control = _target(agent, target, token_env)
    try:
        client = RigSocketClient(settings)
        client.open(Setup("", (), client.capabilities.input_rates_hz[0], turn_control))
    except SettingsError as error:
        raise ConformanceError(str(error)) from None
    if turn_control.mode not in client.capabilities.turn_modes:
        raise ConformanceError(
            f"turn_control.mode: this target has {', '.join(sorted(client.capabilities.turn_modes))} alone"
        )
    stage = Stage(
        lambda: RigSocketClient(settings),
        _speech(client.capabilities.input_rates_hz[0]),
        turn_control,
        Limits(turn_s=turn_limit_s),
    )

    def tell(scene: SceneName) -> None:
        if not as_json and sys.stderr.isatty():
            print(f"{scene} …", file=sys.stderr, flush=True)

    endpoint = client.endpoint()
    report = anyio.run(conform, stage, checks, secret_values(endpoint.headers, endpoint.url.partition("?")[2]), tell)
    if as_json:
        print(json.dumps({"format": 1, **asdict(report)}))
    else:
        _print(report)
    return 1 if report.count(Verdict.FAILED) else 0


def _target(agent: str, name: str | None, token_env: str | None) -> tuple[TargetSettings, TurnControlSettings]:
    """The agent's settings, from an address alone or from a config."""
    if "://" in agent:
        if name is not None:
            raise ConformanceError("--target names a target of a config; give the config instead of an address")
        return TargetSettings("", agent, _token(token_env)), TurnControlSettings()
    from rig.config import load_config
    from rig.engine.plan import turn_control_of
    from rig.engine.prepare import target_settings

    if token_env is not None:
        raise ConformanceError("--token-env is for an address; a config names its own (api_key_env)")
    resolved = load_config(Path(agent))
    remember(resolved.secrets)
    chosen = [t for t in resolved.config.targets if t.adapter == "rig_socket" and name in (None, t.name)]
    if len(chosen) != 1:
        there = ", ".join(t.name for t in resolved.config.targets if t.adapter == "rig_socket") or "none"
        raise ConformanceError(f"{agent}: name one target of adapter rig_socket with --target; there are: {there}")
    return target_settings(resolved, chosen[0], None), turn_control_of(resolved.config, chosen[0])


def _token(name: str | None) -> str | None:
    if name is None:
        return None
    token = os.environ.get(name)
    if not token:
        raise ConformanceError(f"--token-env: the environment has no {name}")
    remember([token])
    return token


def _speech(rate_hz: int) -> bytes:
    bank = load_bank(PACKAGED_BANK)
    item = next(item for item in bank.items if item.id == _CLIP_OF)
    clips, _ = prepare_clips(bank, [item])
    return next(iter(clips.values())).pcm_at(rate_hz)


def _print(report: Report) -> None:
    rows = []
    for result in report.results:
        what = result.rule
        if result.verdict is Verdict.NOT_SEEN:
            what = f"{result.rule} ({result.note})"
        rows.append((result.name, result.verdict.value, what))
    counts = ", ".join(f"{report.count(verdict)} {verdict.value}" for verdict in Verdict)
    named = f" ({report.agent})" if report.agent else ""
    console = report_console()
    print_table(table(f"{report.address}{named}", ("check", "verdict", "rule"), rows, counts), console)
    for result in report.results:
        for finding in result.findings:
            at = ABSENT if finding.at_s is None else f"{finding.at_s:.2f} s"
            print(f"\n{result.name}: {finding.mend}\n  in {finding.scene}, {at}: {finding.message or 'nothing came'}")
        if result.more:
            print(f"\n{result.name}: and {result.more} more of these")
