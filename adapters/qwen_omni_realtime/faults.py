"""What DashScope's codes and texts mean.

Sources: Model Studio's page "error-code"; fatal account states as QwenAudio/qwen-audio-agent has them
(`server/src/voice/providers/dashscope.mjs`); texts of the realtime API as seen in practice.
"""

from __future__ import annotations

from typing import Final

from adapters.openai_family.faults import FaultCodes

FAULTS: Final = FaultCodes(
    quota=frozenset({"Arrearage", "AllocationQuota.FreeTierOnly", "insufficient_quota"}),
    refusal=frozenset(
        {
            "InvalidApiKey",
            "invalid_api_key",
            "Model.AccessDenied",
            "AccessDenied",
            "AccessDenied.Unpurchased",
            "ModelNotFound",
            "model_not_found",
        }
    ),
    rate=frozenset(
        {
            "Throttling",
            "Throttling.RateQuota",
            "Throttling.BurstRate",
            "Throttling.AllocationQuota",
            "limit_requests",
            "rate_limit_exceeded",
        }
    ),
    expired=frozenset({"response_idle_timeout", "session_expired"}),
    expired_words=("no response was generated for",),
    benign_words=(
        "already has an active response",
        "has none active response",
        "another response is in progress",
        "duplicate function call output",
    ),
    # "quota" is a word of limits per minute here, which pass.
    quota_words=("arrearage", "freetieronly", "overdue"),
)
