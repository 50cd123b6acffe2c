"""xAI Grok Voice over WebSocket: OpenAI's events with a session layout of its own.

Facts: the vendor's voice agent guide (docs.x.ai); the xAI clients of pipecat, livekit and tau2-bench.
"""

from __future__ import annotations

from adapters.openai_family import FamilyDialect
from adapters.openai_family.faults import FaultCodes
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile, model_in_query
from adapters.xai_realtime.rules import XaiRules, xai_events
from adapters.xai_realtime.session import PLACES, XaiSettings, capabilities, xai_session

FAULTS = FaultCodes(
    # The codes are not OpenAI's: benign races are told by their words (docs.x.ai; pipecat).
    benign_words=("no active response", "already has an active response", "truncat"),
    quota_words=("quota", "billing", "credit", "spending limit"),
)
CLIENT = ClientProfile(
    settings=XaiSettings,
    capabilities=capabilities,
    address=model_in_query("wss://api.x.ai/v1/realtime"),
    session=xai_session,
    places=PLACES,
    faults=FAULTS,
)
SERVER = ServerProfile(XaiRules(), outgoing=xai_events, greeting=("session.created", "conversation.created"))
DIALECT = FamilyDialect(Profile("xai_realtime", "XAI_API_KEY", CLIENT, SERVER))
