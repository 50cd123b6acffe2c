"""The Vercel AI Gateway as a route to OpenAI and xAI: one envelope around either vendor's own events.

The model is `openai/<model>` or `xai/<model>`. What is measured goes through the gateway's own hop: captures name this
adapter and its host, and `echoed.route`. Facts: vercel.com/docs/ai-gateway/modalities/realtime; names of turn
detection as in the AI SDK; parameters of it and the results of calls are not documented there (UNCERTAIN).
"""

from __future__ import annotations

from adapters.dialect import ClientDialect, SettingsError, TargetSettings
from adapters.openai_family.client import RealtimeClient
from adapters.openai_family.faults import FaultCodes
from adapters.openai_family.profile import ClientProfile, session_url
from adapters.server import ServerDialect
from adapters.vercel_gateway.envelope import GatewayMessages, unwrapped
from adapters.vercel_gateway.server import CREATORS, GatewayServer
from adapters.vercel_gateway.session import PLACES, GatewaySettings, capabilities, gateway_config

URL = "wss://ai-gateway.vercel.sh/v4/ai/realtime-model"
FAULTS = FaultCodes(
    benign_words=("no active response", "already has an active response", "truncat"),
    quota_words=("insufficient", "credit", "balance", "payment required", "quota", "billing"),
    error_quota_words=("insufficient", "credit", "balance", "payment required", "quota"),
    error_rate_words=("rate limit",),
)


def _address(target: TargetSettings, settings: GatewaySettings) -> tuple[str, str]:
    creator, _, model = target.model.partition("/")
    if creator not in CREATORS or not model:
        raise SettingsError(f"model: must be <creator>/<model> with a creator of {', '.join(sorted(CREATORS))}")
    return session_url(target.base_url or URL, {"ai-model-id": target.model})


CLIENT = ClientProfile(
    settings=GatewaySettings,
    capabilities=capabilities,
    address=_address,
    session=gateway_config,
    places=PLACES,
    faults=FAULTS,
    messages=GatewayMessages(),
    unwrap=unwrapped,
    notes={"route": "vercel_ai_gateway"},
)


class _GatewayDialect:
    """`DialectInfo` of the route."""

    name = "vercel_gateway"
    default_key_env: str | None = "AI_GATEWAY_API_KEY"
    wire_version = 1
    parser_version = 1

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings, or a model of no known creator.
        """
        return RealtimeClient(CLIENT, settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return GatewayServer()


DIALECT = _GatewayDialect()
