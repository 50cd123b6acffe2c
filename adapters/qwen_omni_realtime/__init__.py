"""Qwen-Omni-Realtime (DashScope); a member of `adapters.openai_family` with beta event names and nested tools.

Facts: Model Studio's pages "client-events", "server-events" and user guide (October 2026); `dashscope` 2.0.2,
`audio/qwen_omni`. Not here: `qwen_audio_realtime`, the sibling that also takes the caller's turn as text.
"""

from __future__ import annotations

from adapters.openai_family import FamilyDialect
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile
from adapters.qwen_omni_realtime.endpoint import KEY_ENV, address, headers
from adapters.qwen_omni_realtime.faults import FAULTS
from adapters.qwen_omni_realtime.messages import DashScopeMessages
from adapters.qwen_omni_realtime.rules import OmniRules, refuses_answer
from adapters.qwen_omni_realtime.server_events import dashscope_events, no_model
from adapters.qwen_omni_realtime.session import CAPABILITIES, PLACES, OmniSettings, check, omni_session

CLIENT = ClientProfile(
    settings=OmniSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=address,
    session=omni_session,
    places=PLACES,
    headers=headers,
    faults=FAULTS,
    check=check,
    truncates=False,
    errors_name_event=False,
    messages=DashScopeMessages(),
)
SERVER = ServerProfile(
    OmniRules(),
    outgoing=dashscope_events,
    takes_text=False,
    min_commit_s=0.001,
    truncates=False,
    refuses_answer=refuses_answer,
    one_result_per_call=True,
    denied=no_model,
)
DIALECT = FamilyDialect(Profile("qwen_omni_realtime", KEY_ENV, CLIENT, SERVER))
