"""Template socket: an agent with any JSON protocol over a WebSocket, described by a template file alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.dialect import ClientDialect, SettingsError, TargetSettings
from adapters.server import ServerDialect
from adapters.template_socket.client import TemplateClient
from adapters.template_socket.emulated.server import TemplateServer
from adapters.template_socket.template import TemplateError, read_template


class TemplateDialect:
    """`DialectInfo` of templates."""

    name = "template_socket"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = None

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session; `settings.model` is for the record.

        Raises:
            SettingsError: unknown or invalid settings, a template with faults, no address.
        """
        return TemplateClient(settings)

    def server(self) -> ServerDialect:
        """Emulators of the shipped templates' agents, each at its own path."""
        return TemplateServer()

    def declared(self, settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
        """The template's content, so that a record holds it and a changed template makes new cells.

        Raises:
            SettingsError: it cannot be read.
        """
        name = settings.get("template")
        if not isinstance(name, str):
            return {}
        try:
            return read_template(name, folder)
        except TemplateError as error:
            raise SettingsError(str(error)) from None

    def secret_names(self, settings: Mapping[str, Any], folder: Path) -> list[str]:
        """Environment names under the template's `secrets:`; none where it cannot be read."""
        try:
            given = settings.get("declared") or self.declared(settings, folder)
        except SettingsError:
            return []
        names = given.get("secrets") if isinstance(given, Mapping) else None
        return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


DIALECT = TemplateDialect()
