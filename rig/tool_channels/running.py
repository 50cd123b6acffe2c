"""Starts the tool channels of a run's targets, and ends them with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from adapters.tool_requests import ToolRequests, WebhookSettings
from captures.clock import Clock
from rig.agents.children import ChildError
from rig.tool_channels.hub import Hub
from rig.tool_channels.tail import Tail


@dataclass(slots=True)
class Channels:
    """The running channels of a run."""

    of: dict[str, Hub] = field(default_factory=dict)
    """By target; targets with equal settings share one."""
    addresses: dict[str, str] = field(default_factory=dict)
    """Of the webhooks, by target: their real ports."""
    tails: list[Tail] = field(default_factory=list)

    def notes(self) -> list[str]:
        """What a run should say of them."""
        hubs = list({id(hub): hub for hub in self.of.values()}.values())
        return [note for hub in hubs for note in hub.notes()] + [note for tail in self.tails for note in tail.notes()]


@asynccontextmanager
async def channels(wanted: Mapping[str, Any], folder: Path, clock: Clock) -> AsyncIterator[Channels]:
    """Serve and follow what `wanted` (target → its `settings.tool_calls`) names; logs are relative to `folder`.

    Raises ChildError when a webhook cannot listen, or two of one address and path differ.
    """
    running = Channels()
    webhooks: dict[str, dict[str, tuple[WebhookSettings, Hub, list[str]]]] = {}
    logs: dict[str, Hub] = {}
    for target, given in wanted.items():
        requests = ToolRequests(given)
        if requests.webhook is not None:
            settings = requests.webhook
            beside = webhooks.setdefault(settings.listen, {})
            found = beside.get(settings.path)
            if found is not None and found[0] != settings:
                where = f"{settings.listen}{settings.path}"
                raise ChildError(f"webhook {where}: targets {found[2][0]} and {target} give it different settings")
            if found is None:
                found = settings, Hub(requests, f"webhook {settings.listen}{settings.path}"), []
                beside[settings.path] = found
            found[2].append(target)
            running.of[target] = found[1]
        elif requests.log is not None:
            key = requests.log.model_dump_json()
            if key not in logs:
                logs[key] = Hub(requests, requests.log.path)
                running.tails.append(Tail(folder / requests.log.path, logs[key], clock))
            running.of[target] = logs[key]
    async with AsyncExitStack() as stack:
        for listen, beside in webhooks.items():
            from rig.tool_channels.webhook import served  # aiohttp's server: slow to import

            address = await stack.enter_async_context(
                served(listen, [(settings, hub) for settings, hub, _ in beside.values()], clock)
            )
            for settings, _, targets in beside.values():
                running.addresses |= dict.fromkeys(targets, address + settings.path)
        if not running.tails:
            yield running
            return
        async with anyio.create_task_group() as group:
            for tail in running.tails:
                tail.start()
                group.start_soon(tail.follow)
            yield running
            group.cancel_scope.cancel()
