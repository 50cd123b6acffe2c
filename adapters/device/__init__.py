"""A pair of sound devices or virtual cables: softphones, hardware, anything that speaks and listens."""

from __future__ import annotations

from adapters.device.client import DeviceClient
from adapters.dialect import ClientDialect, SettingsError, TargetSettings
from adapters.server import ServerDialect
from captures.clock import Clock
from transports.transport import Transport


class DeviceDialect:
    """`DialectInfo` of sound devices."""

    name = "device"
    wire_version = 1
    parser_version = 1
    default_key_env: str | None = None
    sees_tools_elsewhere = True
    uses_devices = True

    def client(self, settings: TargetSettings) -> ClientDialect:
        """A client half for one session; `settings.model` is for the record.

        Raises:
            SettingsError: unknown or invalid settings, or an address: devices have none.
        """
        if settings.base_url:
            raise SettingsError("base_url: devices have no address; use settings.output and settings.input")
        return DeviceClient(settings)

    def server(self) -> ServerDialect:
        """Raises SettingsError: whoever listens at the devices is the agent itself."""
        raise SettingsError("device: has no emulator; examples/device_agent.py is an agent at two virtual cables")

    def transport(self, clock: Clock) -> Transport:
        """The devices, for one attempt."""
        from transports.device import DeviceTransport

        return DeviceTransport(clock)


DIALECT = DeviceDialect()
