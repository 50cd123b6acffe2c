"""Everything that can go wrong without a network, found before one is touched: bank, clips, settings, plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapters import registry
from adapters.dialect import Hosted, OwnTransport, ReadsFiles, SettingsError, Setup, TargetSettings, UsesDevices
from captures.scrub import Scrubber
from rig.agents import faults
from rig.bank.loader import PACKAGED_BANK, load_bank
from rig.bank.models import Bank, Item
from rig.config import Config, ConfigError, Price, ResolvedConfig, TargetConfig
from rig.devices.record import latency_of
from rig.engine.clips import prepare_clips
from rig.engine.costs import known_prices
from rig.engine.plan import Plan, Target, barge_in_key, chosen_items, plan, turn_control_of
from rig.python_agents.hosting import AgentClassError, describe, spec_of

_ITEMS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to start."""

    resolved: ResolvedConfig
    bank: Bank
    targets: tuple[Target, ...]
    plan: Plan
    prices: Mapping[str, Price]
    """By target, where known."""
    input_errors: tuple[str, ...]
    """Clips that cannot be played, one line each; their cells are counted and never scored."""

    def settings(self, target: TargetConfig, base_url: str | None) -> TargetSettings:
        """The target as its dialect needs it, with its first key; `base_url`: where an embedded agent listens."""
        return target_settings(self.resolved, target, base_url)


def prepare(resolved: ResolvedConfig) -> Prepared:
    """Load the bank, read the clips, check the targets, plan the cells.

    Raises:
        BankError: the bank cannot be loaded.
        ConfigError: settings that a dialect refuses, a turn mode it lacks, items that do not exist.
    """
    config = resolved.config
    bank = load_bank(bank_location(resolved), config.engine)
    targets, problems = checked_targets(resolved)
    prices = prices_of(resolved)
    if config.max_cost is not None:
        problems += [
            f"targets ({target.name}): max_cost needs its price; add `price:` to the target"
            for target in config.targets
            if resolved.keys[target.name] and target.name not in prices
        ]
    try:
        items = chosen_items(bank, config.items)
    except ValueError as error:
        problems.append(str(error))
    else:
        problems += undeclared_tools(bank, items, targets)
    if problems:
        raise ConfigError("config", problems)
    clips, errors = prepare_clips(bank, items)
    if config.barge_in and config.barge_in.clip != "self" and barge_in_key(config.barge_in) not in clips:
        where = f"barge_in.clip: {config.barge_in.clip!r} is no clip of the chosen items"
        raise ConfigError("config", [f"{where}; name one as item/variant, or self"])
    return Prepared(
        resolved=resolved,
        bank=bank,
        targets=tuple(targets),
        plan=plan(config, bank, targets, clips, errors),
        prices=prices,
        input_errors=tuple(errors.values()),
    )


def undeclared_tools(bank: Bank, items: Sequence[Item], targets: Sequence[Target]) -> list[str]:
    """One line per target with tools of its own that lacks some that the items offer: it could never call them."""
    problems = []
    for number, target in enumerate(targets):
        own = target.capabilities.declared_tools
        if own is None:
            continue
        lacking = {item.id: [tool.name for tool in bank.menu(item) if tool.name not in own] for item in items}
        named = [f"{item_id} ({', '.join(tools)})" for item_id, tools in lacking.items() if tools]
        if named:
            more = len(named) - _ITEMS_SHOWN
            shown = "; ".join(named[:_ITEMS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
            problems.append(
                f"targets[{number}] ({target.name}): takes_setup is false, and settings.tools lacks tools of "
                f"{len(named)} of {len(items)} items: {shown}; choose others with items:, or declare the tools it has"
            )
    return problems


def prices_of(resolved: ResolvedConfig) -> dict[str, Price]:
    """By target, where known: the config's own, else the shipped one of a model that is paid for."""
    return {
        target.name: price
        for target in resolved.config.targets
        if (price := target.price or (known_prices().get(target.model) if resolved.keys[target.name] else None))
    }


def bank_location(resolved: ResolvedConfig) -> str | Path:
    """The config's bank: a packaged bank's name, else a folder relative to the config file."""
    name = resolved.config.bank
    return name if name == PACKAGED_BANK else resolved.folder / name


def target_settings(resolved: ResolvedConfig, target: TargetConfig, base_url: str | None) -> TargetSettings:
    """The target as its dialect needs it."""
    key = next(iter(resolved.keys[target.name].values()), None)
    settings = _settings(resolved, target)
    made = TargetSettings(target.model, base_url or target.base_url, key, settings)
    if isinstance(registry.dialect(target.adapter), UsesDevices):
        pair = (
            settings.get("output"),
            settings.get("loop_input") or settings.get("input"),
            settings.get("rate_hz", 48_000),
        )
        return replace(made, device_latency=latency_of(str(pair[0]), str(pair[1]), pair[2]))
    return made


def _settings(resolved: ResolvedConfig, target: TargetConfig) -> Mapping[str, Any]:
    """The target's settings; of a hosted agent with what its class declares, or with the file that its dialect reads.

    Raises AgentClassError, SettingsError.
    """
    told = target.settings
    dialect = registry.dialect(target.adapter)
    if isinstance(dialect, ReadsFiles) and "declared" not in told:
        return {**told, "declared": dict(dialect.declared(told, resolved.folder))}
    if not isinstance(dialect, Hosted) or "driver" not in told or "declared" in told:
        return told
    declared = describe(spec_of(target.settings, resolved.folder))
    return {**target.settings, "declared": dict(declared)}


def complain_if_shared(config: TargetConfig, whole: Config, place: str, complain: Callable[[str], None]) -> None:
    """Two calls at once on one pair of devices would be heard in each other."""
    if (config.concurrency or 1) > 1:
        complain(f"{place}: devices hold one call at a time; leave concurrency out")
    mine = {config.settings.get("output"), config.settings.get("input")}
    for other in whole.targets[: whole.targets.index(config)]:
        if other.adapter == config.adapter and mine & {other.settings.get("output"), other.settings.get("input")}:
            complain(f"{place}: uses a device of {other.name}; run one after the other, with --target")


def checked_targets(resolved: ResolvedConfig) -> tuple[list[Target], list[str]]:
    """The targets whose settings their dialects take, and what is wrong with the others, one line each."""
    targets: list[Target] = []
    problems: list[str] = []
    complain: Callable[[str], None] = problems.append
    scrubber = Scrubber(resolved.secrets)
    for number, config in enumerate(resolved.config.targets):
        place = f"targets[{number}] ({config.name})"
        dialect = registry.dialect(config.adapter)
        # An embedded agent has no address before it runs; any of the right scheme will do to check its settings.
        pending = "http://127.0.0.1:1/v1" if isinstance(dialect, OwnTransport) else "ws://127.0.0.1:1/"
        try:
            client = dialect.client(target_settings(resolved, config, pending if config.embedded_agent else None))
        except SettingsError as error:
            complain(f"{place}: {error}")
            continue
        except AgentClassError as error:
            for problem in error.problems:
                complain(f"{place}: {problem}")
            continue
        turn_control = turn_control_of(resolved.config, config)
        if turn_control.mode not in client.capabilities.turn_modes:
            modes = ", ".join(sorted(client.capabilities.turn_modes))
            complain(f"{place}: {config.adapter} has no turn_control mode {turn_control.mode}; it has {modes}")
        else:
            try:
                client.open(Setup("", (), client.capabilities.input_rates_hz[0], turn_control))
            except SettingsError as error:
                complain(f"{place}: {error}")
        if client.capabilities.one_at_a_time:
            complain_if_shared(config, resolved.config, place, complain)
        length_ms = client.capabilities.chunk_ms
        if length_ms not in (None, resolved.config.chunk_ms):
            complain(f"{place}: {config.adapter} sends pieces of {length_ms} ms; set chunk_ms: {length_ms}")
        try:
            if config.faults:
                file_mode = not client.capabilities.streams_audio
                faults.check(faults.parse(config.faults), config.adapter, dialect.server(), file_mode=file_mode)
        except faults.FaultError as error:
            complain(f"{place}: {error}")
        shown = scrubber.mask_values({"base_url": config.base_url, "settings": dict(_settings(resolved, config))})
        targets.append(
            Target(config, turn_control, client.capabilities, dialect.wire_version, dialect.parser_version, shown)
        )
    return targets, problems
