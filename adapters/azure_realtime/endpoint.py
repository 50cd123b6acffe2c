"""What Azure changes of the handshake: the resource's own host, and the `api-key` header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import orjson

from adapters.dialect import SettingsError, TargetSettings
from adapters.openai_family.ga import GaSettings
from adapters.target_settings import bearer_headers


class AzureSettings(GaSettings):
    """`settings:` of a target on the GA endpoint."""

    reasoning_effort: Literal["minimal", "low", "medium", "high"] | None = None
    """Documented without `xhigh`."""
    auth: Literal["api-key", "bearer"] = "api-key"
    """`bearer`: the environment variable holds an Entra token."""


def resource_url(base_url: str | None, path: str) -> str:
    """The session's address on a resource; `base_url` may be the resource alone, a base path of it, or the whole.

    Raises:
        SettingsError: there is no address.
    """
    if not base_url:
        raise SettingsError("base_url: needed, e.g. https://<resource>.openai.azure.com")
    try:
        parts = urlsplit(base_url)
    except ValueError as error:
        raise SettingsError(f"base_url: {error}") from None
    given = parts.path.rstrip("/")
    whole = path if path.startswith(given) else parts.path
    return urlunsplit(parts._replace(path=whole))


def key_headers(headers: Mapping[str, str], key: str | None, auth: str) -> dict[str, str]:
    """`headers`, and the key as `api-key` or as a bearer token.

    Raises:
        SettingsError: a key that no header can carry; it is not shown.
    """
    bearer = bearer_headers(headers, key)
    if not key or auth == "bearer":
        return bearer
    return {**headers, "api-key": key}


def azure_headers(target: TargetSettings, settings: AzureSettings) -> dict[str, str]:
    """See `key_headers`."""
    return key_headers(settings.headers, target.api_key, settings.auth)


def error_body(code: str, message: str) -> bytes:
    """The body of a refused handshake."""
    return orjson.dumps({"error": {"code": code, "message": message}})
