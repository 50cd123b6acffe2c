"""Checks that every dialect makes of a target's settings; a failure is one line that names the key, never a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from adapters.dialect import SettingsError
from adapters.foreign_json import brief

Model = TypeVar("Model", bound=BaseModel)
HeaderText = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$")]
"""Name or value of an HTTP header: printable ASCII, so that no value can add a header of its own."""


class StrictSettings(BaseModel):
    """Base of a dialect's settings: unknown keys and other types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def read_settings(model: type[Model], given: Mapping[str, Any], where: str = "settings") -> Model:
    """`given` as `model`.

    Raises:
        SettingsError: names the first key that is unknown or wrong.
    """
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = brief(".".join([where, *(str(part) for part in first["loc"])]), 200)
        known = f" (known: {', '.join(model.model_fields)})" if first["type"] == "extra_forbidden" else ""
        raise SettingsError(f"{key}: {first['msg']}{known}") from None


def read_address(base_url: str, schemes: tuple[str, ...], example: str) -> tuple[SplitResult, str]:
    """An address in parts, and its label `scheme://host:port/path` without query and credentials.

    Raises:
        SettingsError: not an address of one of `schemes`, or one that holds a user name or password.
    """
    wrong = SettingsError(f"base_url: must look like {example}")
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in schemes or not host or not base_url.isascii() or any(char.isspace() for char in base_url):
        raise wrong
    if "@" in parts.netloc:
        raise SettingsError("base_url: no user name or password in the address; use settings.headers")
    shown = f"[{host}]" if ":" in host else host
    return parts, f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path}"


def secret_values(headers: Mapping[str, str], query: str = "") -> tuple[str, ...]:
    """What must never be shown of a request: header values, tokens after their scheme, values of the query.

    Longest first, so that masking one leaves no part of another; fewer than 4 characters are no secret.
    """
    values = [*headers.values(), *(value for _, value in parse_qsl(query))]
    tokens = [value.partition(" ")[2] for value in headers.values()]
    return tuple(sorted({value for value in [*values, *tokens] if len(value) >= 4}, key=len, reverse=True))


def bearer_headers(headers: Mapping[str, str], api_key: str | None) -> dict[str, str]:
    """`headers`, and `Authorization` for the key if there is one.

    Raises:
        SettingsError: a key that no header can carry; it is not shown.
    """
    if not api_key:
        return dict(headers)
    if not api_key.isascii() or not api_key.isprintable() or api_key != api_key.strip():
        raise SettingsError(
            "api_key_env: the key holds a space at an end, a line break or another unprintable character"
        )
    return {**headers, "Authorization": f"Bearer {api_key}"}
