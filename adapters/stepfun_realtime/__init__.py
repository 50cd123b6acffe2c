"""StepFun Realtime; a member of `adapters.openai_family` in the beta shape with nested tools.

Facts: StepFun's realtime guide and API reference; package `stepfun_realtime_api` 0.1.3; its published console. The
reference shows no tool events: they are read in whatever events of the family carry them. Outside China the address is
`base_url: wss://api.stepfun.ai/v1/realtime`. Older models want a fixed sentence at the end of the instructions to
sound like their voice, which a bank's instructions do not have.
"""

from __future__ import annotations

from adapters.openai_family import FamilyDialect
from adapters.openai_family.beta_rules import OLD_TEXT_TYPES
from adapters.openai_family.faults import FaultCodes
from adapters.openai_family.profile import ClientProfile, Profile, ServerProfile
from adapters.stepfun_realtime.rules import StepRules
from adapters.stepfun_realtime.server_events import no_model, stepfun_events
from adapters.stepfun_realtime.session import CAPABILITIES, PLACES, StepSettings, address, check, step_session

CLIENT = ClientProfile(
    settings=StepSettings,
    capabilities=lambda settings: CAPABILITIES,
    address=address,
    session=step_session,
    places=PLACES,
    faults=FaultCodes(quota_words=("quota", "billing", "balance")),
    quiet=frozenset({"response.thinking.delta", "response.thinking.done"}),
    created_may_confirm=True,
    check=check,
    truncates=False,
    errors_name_event=False,
    commit_may_answer=True,
)
SERVER = ServerProfile(
    StepRules(),
    outgoing=stepfun_events,
    text_types=OLD_TEXT_TYPES,
    min_commit_s=0.001,
    truncates=False,
    denied=no_model,
)
DIALECT = FamilyDialect(Profile("stepfun_realtime", "STEP_API_KEY", CLIENT, SERVER))
