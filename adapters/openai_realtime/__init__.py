"""OpenAI Realtime (GA shape) over WebSocket; a member of `adapters.openai_family`."""

from __future__ import annotations

from adapters.openai_family import FamilyDialect
from adapters.openai_family.ga import CAPABILITIES, PLACES, GaSettings, ga_session
from adapters.openai_family.ga_rules import GaRules
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile, model_in_query

CLIENT = ClientProfile(
    settings=GaSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=model_in_query("wss://api.openai.com/v1/realtime"),
    session=ga_session,
    places=PLACES,
)
DIALECT = FamilyDialect(Profile("openai_realtime", "OPENAI_API_KEY", CLIENT, ServerProfile(GaRules())))
