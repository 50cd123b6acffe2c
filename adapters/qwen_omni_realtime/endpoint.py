"""Where DashScope's realtime models are reached, and the handshake's headers.

Keys belong to a region. The shared Singapore host opens the socket for a workspace's key as well, and then answers
the settings with AccessDenied (voxparity-bench): name the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import StringConstraints

from adapters.dialect import SettingsError, TargetSettings
from adapters.openai_family.profile import FamilySettings, session_url
from adapters.target_settings import bearer_headers

KEY_ENV: Final = "DASHSCOPE_API_KEY"
PATH: Final = "/api-ws/v1/realtime"
WORKSPACE_HEADER: Final = "X-DashScope-WorkSpace"
"""As the vendor's SDK spells it."""

Region = Literal["cn-beijing", "ap-southeast-1"]
DEFAULT_REGION: Final[Region] = "cn-beijing"
"""The default of the vendor's SDK."""
_SHARED_HOSTS: Final[Mapping[Region, str]] = {
    "cn-beijing": "dashscope.aliyuncs.com",
    "ap-southeast-1": "dashscope-intl.aliyuncs.com",
}


class DashScopeSettings(FamilySettings):
    """`settings:` of every DashScope target."""

    region: Region | None = None
    """Of the vendor's own hosts: Beijing by default, or Singapore."""
    workspace: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")] | None = None
    """A workspace's id: its own host is used, unless `base_url` names one, and its header is sent."""


def address(target: TargetSettings, settings: DashScopeSettings) -> tuple[str, str]:
    """`base_url`, else the workspace's host, else the region's shared one.

    Raises:
        SettingsError: not an address, a region beside one, or no model: the handshake would be refused.
    """
    if not target.model:
        raise SettingsError("model: DashScope needs one, e.g. qwen3.5-omni-plus-realtime")
    if target.base_url and settings.region:
        raise SettingsError("settings.region: base_url names the host already")
    region = settings.region or DEFAULT_REGION
    host = f"{settings.workspace}.{region}.maas.aliyuncs.com" if settings.workspace else _SHARED_HOSTS[region]
    return session_url(target.base_url or f"wss://{host}{PATH}", {"model": target.model})


def headers(target: TargetSettings, settings: DashScopeSettings) -> dict[str, str]:
    """The key, and the workspace if there is one."""
    found = bearer_headers(settings.headers, target.api_key)
    return found | ({WORKSPACE_HEADER: settings.workspace} if settings.workspace else {})
