"""The report of a run in a file (`--report`)."""

from __future__ import annotations

import os

from pysmpi.io.output import OutputFile
from pysmpi.ranks.instruments import Instrument, InstrumentedRun
from pysmpi.reports.exit_status import USAGE
from pysmpi.reports.result import Result, write_report


class ReportFile(Instrument):
    """Writes the figures of a run as JSON in file `name`; `-` is the standard output.

    Raises UsageError before the run if the file cannot be written. A report that cannot be
    completed is an error of the result.
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.name = os.fspath(name)
        self.file: OutputFile | None = None

    def prepare(self, run: InstrumentedRun) -> None:
        """Open the file."""
        if self.name != "-":
            self.file = OutputFile("--report", self.name)

    def finish(self, result: Result) -> None:
        """Write the report."""
        try:
            write_report(result.report(), "-" if self.file is None else self.file.path)
        except OSError as error:
            said = f"pysmpi: error: --report {self.name}: cannot be written: {error.strerror}"
            result.error = said if result.error is None else f"{result.error}\n{said}"
            result.exit_status = result.exit_status or USAGE
        else:
            if self.file is not None:
                self.file.keep()

    def close(self, error: BaseException | None) -> None:
        """Delete a report that is not complete."""
        if self.file is not None:
            self.file.__exit__(None, None, None)
