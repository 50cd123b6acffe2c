"""The core shared by OpenAI Realtime and everything that speaks like it.

A member of the family is a thin folder `adapters/<name>/` whose `DIALECT` is a `FamilyDialect` made from a `Profile`
(`profile.py`): data and a few pure functions, never a subclass and never a test for a vendor's name here.

    CLIENT = ClientProfile(
        settings=MySettings,            # FamilySettings + the vendor's keys of `settings:`
        capabilities=lambda settings: CAPABILITIES,
        address=model_in_query("wss://…/v1/realtime"),      # or a function of target and settings
        session=my_session,             # (settings, setup) -> `session` of session.update; see ga.py, beta.py,
                                        #   turn_detection.py, flat_tool / nested_tool
        places=PLACES,                  # where session.updated states what: recorded, and turn detection compared
        headers=…, faults=FaultCodes(…), quiet=…, created_may_confirm=…     # only where they differ
    )
    SERVER = ServerProfile(
        rules=MyRules(),                # what the emulator accepts and how it reads a session; see ga_rules.py
        outgoing=beta_events,           # GA events → the vendor's shape (drop, rename, repeat)
        greeting=…, model_key=…, takes_text=…, text_types=…, truncates=…, denied=…,    # only where they differ
    )
    DIALECT = FamilyDialect(Profile("my_realtime", "MY_API_KEY", CLIENT, SERVER))

The client half reads the GA and the beta event names, flat and nested tool echoes, calls in whatever events carry
them, cumulative or repeated input transcripts, usage at either place, `response.cancelled`; a member declares only
what is left. Audio in at `capabilities.input_rates_hz`, out at `capabilities.output_rate_hz`.
"""

from __future__ import annotations

from typing import Any

from adapters.dialect import ClientDialect, TargetSettings
from adapters.openai_family.client import RealtimeClient
from adapters.openai_family.profile import Profile
from adapters.openai_family.server import RealtimeServer
from adapters.server import ServerDialect


class FamilyDialect:
    """`DialectInfo` of one member of the family."""

    def __init__(self, profile: Profile[Any]) -> None:
        self.name = profile.name
        self.default_key_env = profile.default_key_env
        self.wire_version = profile.wire_version
        self.parser_version = profile.parser_version
        self._profile = profile

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session.

        Raises:
            SettingsError: unknown or invalid settings.
        """
        return RealtimeClient(self._profile.client, settings)

    def server(self) -> ServerDialect:
        """A server half for one connection."""
        return RealtimeServer(self._profile.server)
