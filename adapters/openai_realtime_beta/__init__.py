"""The beta shape of OpenAI Realtime, for servers that still speak it; OpenAI itself refuses it since May 2026."""

from __future__ import annotations

from adapters.dialect import TargetSettings
from adapters.openai_family import FamilyDialect
from adapters.openai_family.beta import PLACES, BetaSettings, beta_session
from adapters.openai_family.beta_rules import OLD_TEXT_TYPES, BetaRules, beta_events
from adapters.openai_family.ga import CAPABILITIES
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile, model_in_query
from adapters.target_settings import bearer_headers


def _headers(target: TargetSettings, settings: BetaSettings) -> dict[str, str]:
    return {"OpenAI-Beta": "realtime=v1", **bearer_headers(settings.headers, target.api_key)}


CLIENT = ClientProfile(
    settings=BetaSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=model_in_query("wss://api.openai.com/v1/realtime"),
    session=beta_session,
    places=PLACES,
    headers=_headers,
)
SERVER = ServerProfile(BetaRules(), outgoing=beta_events, text_types=OLD_TEXT_TYPES)
DIALECT = FamilyDialect(Profile("openai_realtime_beta", "OPENAI_API_KEY", CLIENT, SERVER))
