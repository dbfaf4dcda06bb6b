"""Output files of a run: checked before the run, and complete or absent after it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from types import TracebackType

from pysmpi.errors import UsageError
from pysmpi.own_process import interruption

# Errors of writes, which do not name the file.
_FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}


def _refused(option: str, name: str, error: OSError) -> UsageError:
    reason = (error.strerror or str(error)).lower()
    return UsageError(f"{option} {name}: cannot be written: {reason}")


@contextlib.contextmanager
def writing_to(option: str, name: str | os.PathLike[str]) -> Iterator[None]:
    """The context in which a file is opened and written; an OSError is a UsageError that names it.

    For files that are not renamed at the end.
    """
    try:
        yield
    except OSError as error:
        raise _refused(option, os.fspath(name), error) from None


class OutputFile:
    """A file that is written under a temporary name and renamed at the end.

    A context manager: `path` is the temporary name; `keep` renames the file to its final name.
    Without `keep` the file is deleted. Devices such as `/dev/stdout` are written directly, and so
    is every file if `direct`, which is then kept.
    """

    def __init__(self, option: str, name: str, direct: bool = False) -> None:
        self.option = option
        self.name = name
        self._kept = False
        try:
            special = os.path.exists(name) and not stat.S_ISREG(os.stat(name).st_mode)
            if special and os.path.isdir(name):
                raise IsADirectoryError(0, "it is a directory")
            if special:
                self.path = name
                return
            if os.path.exists(name) and not os.access(name, os.W_OK):
                raise PermissionError(0, "permission denied")
            if direct:
                open(name, "wb").close()
                self.path = name
                return
            import tempfile

            # The suffix selects compressed formats, so the temporary name keeps it.
            directory, base = os.path.split(os.path.abspath(name))
            handle, self.path = tempfile.mkstemp(f".{base}", ".pysmpi-", directory)
            interruption.remove_at_end(self.path)
            os.close(handle)
        except OSError as error:
            raise self._refused(error) from None
        except ValueError:
            raise UsageError(f"{option} {name!r}: expected the name of a file") from None

    def _refused(self, error: OSError) -> UsageError:
        return _refused(self.option, self.name, error)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """The context in which the file is written; a full disk is a UsageError that names it."""
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL or error.filename not in (None, self.path):
                raise
            raise self._refused(error) from None

    def __enter__(self) -> OutputFile:
        return self

    def keep(self) -> None:
        """The file is complete: give it its name."""
        if self.path != self.name:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(self.path, 0o666 & ~mask)
            os.replace(self.path, self.name)
            interruption.keep(self.path)
        self._kept = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._kept and self.path != self.name:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            interruption.keep(self.path)
