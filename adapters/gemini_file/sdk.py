"""Transport of generateContent: posts one JSON body through google-genai's async client. The only importer of it here.

Its tap is the JSON boundary: the body as it is handed to the SDK, and the response's text as it came. The SDK's own
retries and automatic function calls are off. The connection is opened by the first request, so that request's time
includes it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from typing import TYPE_CHECKING, Any

import orjson

from adapters.chat_audio.sdk import SdkTransport, http_client, not_served, retry_after_s, tls
from adapters.foreign_json import JsonObject, masked
from adapters.gemini_file.faults import SDK_MISSING, SDK_MISSING_CODE
from adapters.gemini_file.settings import KEY_HEADER, GeminiEndpoint
from adapters.target_settings import secret_values
from transports.transport import Endpoint, TransportError

if TYPE_CHECKING:
    import httpx2
    from google.genai import Client
    from google.genai.types import GenerateContentConfig

_EXPLANATION_LIMIT = 16_000


class GeminiTransport(SdkTransport):
    """Requests to one model for one attempt. Meets `transports.transport.Transport`."""

    def make_client(self, endpoint: Endpoint) -> Client:
        """The SDK's client; called in a thread. Raises TransportError without the extra `google`."""
        if not _installed():
            raise TransportError(SDK_MISSING, code=SDK_MISSING_CODE)
        self._http = http_client(endpoint)
        return _make_client(endpoint, self._http)

    async def close_client(self, client: Any) -> None:
        """Release its connections; the SDK closes none that it was given."""
        await client.aio.aclose()
        client.close()
        await self._http.aclose()

    async def post(self, client: Any, payload: bytes) -> None:
        """One request; its response text becomes a frame. Raises TransportError."""
        import httpx2
        import pydantic
        from google.genai import errors

        endpoint = self.endpoint
        assert isinstance(endpoint, GeminiEndpoint), "made by this dialect's client half"
        body = orjson.loads(payload)
        failure: TransportError
        try:
            response = await client.aio.models.generate_content(
                model=endpoint.model, contents=_contents(body), config=_config(body)
            )
        except pydantic.ValidationError as error:
            failure = TransportError(f"the SDK refuses the conversation: {error.title}", code="sdk_refused")
        except errors.APIError as error:
            failure = _refused(error, endpoint)
        except httpx2.HTTPError as error:
            failure = not_served(error, endpoint)
        else:
            told = response.sdk_http_response
            text = told.body if told is not None and told.body is not None else ""
            self.on_frame(text.encode())
            return
        raise failure


def preload() -> None:
    """Do now what the first request would spend its time on: the SDK builds its types when they are first used."""
    if not _installed():
        return  # said by the first session
    # In a thread, since an event loop may be running in this one.
    rehearsal = threading.Thread(target=lambda: asyncio.run(_rehearse()))
    rehearsal.start()
    rehearsal.join()


async def _rehearse() -> None:
    """One request that leaves the process by no socket."""
    import httpx2

    schema = {"type": "OBJECT", "properties": {"a": {"type": "ARRAY", "items": {"type": "STRING"}}}}
    body: JsonObject = {
        "contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}]}],
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [{"functionDeclarations": [{"name": "t", "description": "d", "parameters": schema}]}],
        "generationConfig": {"temperature": 0, "thinkingConfig": {"thinkingLevel": "LOW"}},
    }
    answering = httpx2.MockTransport(lambda request: httpx2.Response(200, json={}))
    async with httpx2.AsyncClient(transport=answering) as http:
        client = _make_client(GeminiEndpoint("http://127.0.0.1", model="m", api_version="v1beta"), http)
        await client.aio.models.generate_content(model="m", contents=_contents(body), config=_config(body))
        await client.aio.aclose()
        client.close()


def _installed() -> bool:
    try:
        return importlib.util.find_spec("google.genai") is not None
    except ModuleNotFoundError:
        return False


def _make_client(endpoint: Endpoint, http: httpx2.AsyncClient) -> Client:
    import httpx2
    from google import genai
    from google.genai import types

    assert isinstance(endpoint, GeminiEndpoint), "made by this dialect's client half"
    options = types.HttpOptions(
        base_url=endpoint.url,
        api_version=endpoint.api_version,
        headers={**endpoint.headers, "Accept-Encoding": "identity"},
        httpx_async_client=http,
        # Neither is used, and without them the SDK reads all certificates twice more, 18 ms each.
        httpx_client=httpx2.Client(verify=tls(), trust_env=False),
        async_client_args={"ssl": tls()},
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    return genai.Client(api_key=endpoint.headers.get(KEY_HEADER, "none"), vertexai=False, http_options=options)


def _contents(body: JsonObject) -> list[Any]:
    from google.genai import types

    # From JSON, since signatures are bytes there.
    return [types.Content.model_validate_json(orjson.dumps(content)) for content in body["contents"]]


def _config(body: JsonObject) -> GenerateContentConfig:
    from google.genai import types

    told = {key: body[key] for key in ("systemInstruction", "tools", "toolConfig") if key in body}
    return types.GenerateContentConfig.model_validate(
        {
            **told,
            **body.get("generationConfig", {}),
            "automaticFunctionCalling": {"disable": True},
            "shouldReturnHttpResponse": True,
        }
    )


def _refused(error: Any, endpoint: Endpoint) -> TransportError:
    """A status other than 200, with Google's error object."""
    details = error.details if isinstance(error.details, dict) else {"error": {"message": str(error.details)}}
    text = orjson.dumps(details).decode()
    if len(text) > _EXPLANATION_LIMIT:
        text = orjson.dumps(
            {"error": {"message": str(error.message)[:1000], "status": str(error.status)[:100]}}
        ).decode()
    headers = getattr(error.response, "headers", {}) or {}
    return TransportError(
        f"{endpoint.label} answered with HTTP {error.code}",
        code=f"http_{error.code}",
        status=error.code,
        body=masked(text, secret_values(endpoint.headers)),
        retry_after_s=retry_after_s(headers.get("retry-after", "")),
    )
