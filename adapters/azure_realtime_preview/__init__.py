"""Azure OpenAI Realtime, preview endpoint: the beta wire at `/openai/realtime`; deprecated since April 2026.

A session of today's shape is refused there, after the socket opened: use `azure_realtime` for the GA endpoint.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from adapters.azure_realtime.endpoint import error_body, key_headers, resource_url
from adapters.dialect import TargetSettings
from adapters.openai_family import FamilyDialect
from adapters.openai_family.beta import PLACES, BetaSettings, beta_session
from adapters.openai_family.beta_rules import OLD_TEXT_TYPES, BetaRules, beta_events
from adapters.openai_family.ga import CAPABILITIES
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile, session_url
from adapters.server import Denied, Handshake


class PreviewSettings(BetaSettings):
    """`settings:` of a target on the preview endpoint."""

    api_version: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}(-preview)?$")] = "2025-04-01-preview"
    auth: Literal["api-key", "bearer"] = "api-key"
    """`bearer`: the environment variable holds an Entra token."""


def _address(target: TargetSettings, settings: PreviewSettings) -> tuple[str, str]:
    query = {"api-version": settings.api_version, "deployment": target.model}
    return session_url(resource_url(target.base_url, "/openai/realtime"), query)


def _headers(target: TargetSettings, settings: PreviewSettings) -> dict[str, str]:
    return key_headers(settings.headers, target.api_key, settings.auth)


def _denied(handshake: Handshake) -> Denied | None:
    missing = next((name for name in ("api-version", "deployment") if not handshake.query.get(name)), None)
    return Denied(400, error_body("BadRequest", f"Missing query parameter: {missing}")) if missing else None


CLIENT = ClientProfile(
    settings=PreviewSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=_address,
    session=beta_session,
    places=PLACES,
    headers=_headers,
)
SERVER = ServerProfile(
    BetaRules(), outgoing=beta_events, text_types=OLD_TEXT_TYPES, denied=_denied, model_key="deployment"
)
DIALECT = FamilyDialect(Profile("azure_realtime_preview", "AZURE_OPENAI_API_KEY", CLIENT, SERVER))
