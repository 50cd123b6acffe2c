"""Qwen-Audio-Realtime (DashScope): as Qwen-Omni, with the caller's turn as text and settings of its own.

Facts: Model Studio's pages "fun-audiochat-client-events" and "qwen-audio-realtime-server-events". `voice` counts in the
first `session.update` alone, which is the only one that the client half sends. The answer's transcript comes whole.
Long manual turns lost their tail in one report (53 s): keep clips below about 25 s.
"""

from __future__ import annotations

from adapters.openai_family import FamilyDialect
from adapters.openai_family.beta_rules import OLD_TEXT_TYPES
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile
from adapters.qwen_audio_realtime.rules import AudioRules
from adapters.qwen_audio_realtime.server_events import qwen_audio_events
from adapters.qwen_audio_realtime.session import CAPABILITIES, PLACES, AudioSettings, audio_session
from adapters.qwen_omni_realtime.endpoint import KEY_ENV, address, headers
from adapters.qwen_omni_realtime.faults import FAULTS
from adapters.qwen_omni_realtime.messages import DashScopeMessages
from adapters.qwen_omni_realtime.rules import refuses_answer
from adapters.qwen_omni_realtime.server_events import no_model

CLIENT = ClientProfile(
    settings=AudioSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=address,
    session=audio_session,
    places=PLACES,
    headers=headers,
    faults=FAULTS,
    truncates=False,
    errors_name_event=False,
    messages=DashScopeMessages(),
)
SERVER = ServerProfile(
    AudioRules(),
    outgoing=qwen_audio_events,
    text_types=OLD_TEXT_TYPES,
    min_commit_s=0.001,
    truncates=False,
    refuses_answer=refuses_answer,
    one_result_per_call=True,
    denied=no_model,
)
DIALECT = FamilyDialect(Profile("qwen_audio_realtime", KEY_ENV, CLIENT, SERVER))
