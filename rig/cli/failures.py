"""Which exceptions are the user's to mend, and how they read. Imported only once something has gone wrong."""

from __future__ import annotations

from adapters.template_socket.template import TemplateError
from captures.cassette import CassetteError
from captures.lock import FolderLockedError
from captures.run_folder import RunFolderError
from captures.scrub import Scrubber
from captures.writer import WriterError
from rig.agents.children import ChildError
from rig.agents.emulator import EmulatorError
from rig.audio.reader import InputError
from rig.bank.commitment import CommitmentError
from rig.bank.loader import BankError
from rig.bank.own_tools import BankImportError
from rig.bank.rendering.errors import RenderError
from rig.cassettes.script import UnservedError
from rig.checks.limits import LimitsError
from rig.cli.calibrate_command import CalibrationError
from rig.cli.secrets_seen import seen
from rig.cli.template_command import SessionFileError
from rig.cli.timing_command import TimingError
from rig.config import ConfigError
from rig.conformance.run import ConformanceError
from rig.devices.errors import DelayError
from rig.engine.identity_parts import StaleError
from rig.importing.records import RecordsError
from rig.replay.source import ReplayError
from rig.report.audit import AuditError
from rig.report.runs import ReportError
from rig.scoring.cells import BankMismatchError
from transports.transport import TransportError

_PLAIN = (
    AuditError,
    BankError,
    BankImportError,
    BankMismatchError,
    CalibrationError,
    CassetteError,
    ChildError,
    CommitmentError,
    ConfigError,
    ConformanceError,
    DelayError,
    EmulatorError,
    FolderLockedError,
    InputError,
    LimitsError,
    RecordsError,
    RenderError,
    ReplayError,
    ReportError,
    RunFolderError,
    SessionFileError,
    StaleError,
    TemplateError,
    TimingError,
    TransportError,
    UnservedError,
    WriterError,
)


def explained(error: BaseException) -> list[str] | None:
    """Lines for the user, scrubbed; None when this is a bug."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, BaseExceptionGroup):
        parts = [explained(part) for part in error.exceptions]
        if any(part is None for part in parts):
            return None
        return list(dict.fromkeys(line for part in parts if part for line in part))
    if not isinstance(error, _PLAIN):
        return None
    lines = Scrubber(seen()).scrub_text(str(error)).splitlines()
    # What a message repeats from a file must not be acted on by a terminal.
    return [printable(line) for line in lines]


def printable(line: str) -> str:
    """The line without what a terminal would act on."""
    return "".join(c if c.isprintable() else " " for c in line)
