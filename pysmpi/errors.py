"""Errors that pysmpi reports to its users."""

from pysmpi.text import cell, shortened
from pysmpi.version import HOME


class PysmpiError(Exception):
    """Base of all errors that pysmpi raises on purpose."""

    exit_status = 1

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows: the place of the call, and the message.

        IPython calls this; the frames of pysmpi itself would hide the message.
        """
        from traceback import extract_tb

        places = [
            f"  {cell(frame.filename) or frame.filename}:{frame.lineno}: {frame.line}"
            for frame in extract_tb(self.__traceback__)
            if not frame.filename.startswith((HOME, "pysmpi/"))
            and "/IPython/" not in frame.filename
        ]
        return [f"{type(self).__name__} at", *places, *str(self).splitlines()]


class PysmpiInternalError(PysmpiError):
    """A bug in pysmpi: an error that pysmpi did not raise on purpose, which is the cause."""

    exit_status = 70


class UsageError(PysmpiError, ValueError):
    """Wrong input of the user: an option, a file, a name.

    The message is one line: the place, the found value, the expected value.
    """

    exit_status = 2

    def __str__(self) -> str:
        return shortened(super().__str__())
