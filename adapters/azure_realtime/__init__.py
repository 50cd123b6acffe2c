"""Azure OpenAI Realtime, GA endpoint: OpenAI's GA wire at `/openai/v1/realtime`, the model being a deployment's name.

Facts: Microsoft's how-to "realtime-audio-websockets" and its migration guide.
"""

from __future__ import annotations

from adapters.azure_realtime.endpoint import AzureSettings, azure_headers, error_body, resource_url
from adapters.dialect import TargetSettings
from adapters.openai_family import FamilyDialect
from adapters.openai_family.ga import CAPABILITIES, PLACES, ga_session
from adapters.openai_family.ga_rules import GaRules
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile, session_url
from adapters.server import Denied, Handshake


def _address(target: TargetSettings, settings: AzureSettings) -> tuple[str, str]:
    return session_url(resource_url(target.base_url, "/openai/v1/realtime"), {"model": target.model})


def _denied(handshake: Handshake) -> Denied | None:
    """Preview's `api-version` has no place here; how the service itself takes it is not documented."""
    if "api-version" in handshake.query:
        return Denied(400, error_body("BadRequest", "api-version query parameter is not allowed when using /v1 path"))
    if not handshake.query.get("model"):
        return Denied(400, error_body("BadRequest", "Missing query parameter: model"))
    return None


CLIENT = ClientProfile(
    settings=AzureSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=_address,
    session=ga_session,
    places=PLACES,
    headers=azure_headers,
)
DIALECT = FamilyDialect(
    Profile("azure_realtime", "AZURE_OPENAI_API_KEY", CLIENT, ServerProfile(GaRules(), denied=_denied))
)
