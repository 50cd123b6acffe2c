"""What a client sends to DashScope where it differs from OpenAI."""

from __future__ import annotations

from adapters.openai_family.wire import Messages, encode
from captures.frames import OutFrame


class DashScopeMessages(Messages):
    """The family's messages; an answer to stop is not named."""

    def cancel_response(self, response_id: str | None) -> OutFrame:
        """`response.cancel` of the running answer: the API documents no other field, and the SDK sends none."""
        return encode({"type": "response.cancel"})
