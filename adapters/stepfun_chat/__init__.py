"""StepFun's audio models over chat completions.

No reference page was at hand: OpenAI's shape with a data URI is an assumption. Where the vendor wants bare base64, use
`adapter: chat_audio` with this base URL.
"""

from __future__ import annotations

from pydantic import Field

from adapters.chat_audio import ChatDialect, wire
from adapters.chat_audio.profile import ClientProfile, ServerProfile
from adapters.chat_audio.settings import Modalities, SpeakingSettings
from adapters.chat_audio.usage import without_split
from adapters.foreign_json import JsonObject


class StepFunChatSettings(SpeakingSettings):
    """`settings:` of a target."""

    modalities: Modalities = Field(default=["text"])

    @property
    def usual_voice(self) -> str:
        """Of the realtime models."""
        return "linjiajiejie"


def _audio(data: str) -> JsonObject:
    return {"type": "input_audio", "input_audio": {"data": f"data:audio/wav;base64,{data}", "format": "wav"}}


DIALECT = ChatDialect(
    "stepfun_chat",
    "STEP_API_KEY",
    ClientProfile(
        StepFunChatSettings, base_url="https://api.stepfun.com/v1", vendor="StepFun", rate_hz=16_000, audio_part=_audio
    ),
    ServerProfile(audio_of_part=wire.data_uri_audio_data, may_stream=True, usage=without_split),
)
