"""Which dialects there are. A new vendor is one new folder plus one row here; its code is imported when first used."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from adapters.dialect import DialectInfo

_FOLDERS: dict[str, str] = {
    "openai_realtime": "adapters.openai_realtime",
    "openai_realtime_beta": "adapters.openai_realtime_beta",
    "azure_realtime": "adapters.azure_realtime",
    "azure_realtime_preview": "adapters.azure_realtime_preview",
    "xai_realtime": "adapters.xai_realtime",
    "vercel_gateway": "adapters.vercel_gateway",
    "gemini_live": "adapters.gemini_live",
    "nova_sonic": "adapters.nova_sonic",
    "openai_live": "adapters.openai_live",
    "rig_socket": "adapters.rig_socket",
    "python_agent": "adapters.python_agent",
    "template_socket": "adapters.template_socket",
    "twilio_media": "adapters.twilio_media",
    "device": "adapters.device",
    "chat_audio": "adapters.chat_audio",
    "cascade": "adapters.cascade",
    "openai_chat": "adapters.openai_chat",
    "gemini_file": "adapters.gemini_file",
    "openrouter": "adapters.openrouter",
    "dashscope": "adapters.dashscope",
    "mistral": "adapters.mistral",
    "stepfun_chat": "adapters.stepfun_chat",
    "groq": "adapters.groq",
    "llamacpp": "adapters.llamacpp",
    "vllm": "adapters.vllm",
    "qwen_omni_realtime": "adapters.qwen_omni_realtime",
    "qwen_audio_realtime": "adapters.qwen_audio_realtime",
    "stepfun_realtime": "adapters.stepfun_realtime",
}


def names() -> tuple[str, ...]:
    """Names of all dialects, as a config's `adapter:` has them."""
    return tuple(_FOLDERS)


def dialect(name: str) -> DialectInfo:
    """The dialect called `name`.

    Raises:
        KeyError: there is none of that name.
    """
    return cast(DialectInfo, import_module(_FOLDERS[name]).DIALECT)
