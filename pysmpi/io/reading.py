"""Files that users give: opened, read within limits, and refused in one line.

All readers open files here. A directory, a socket, a pipe without a writer, an endless device and a
file that is far too large end with a UsageError, never with a wait or with the memory of the
computer.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from typing import IO, Any

from pysmpi.errors import UsageError
from pysmpi.text import did_you_mean

# Bytes of a file that is read as a whole: descriptions of machines, host files, programs, journals.
LARGEST = 256 << 20
# Bytes of a line of a file that is read line by line: traces.
LONGEST_LINE = 64 << 20
PATIENCE = 5.0  # seconds in which a process has to open the other end of a named pipe
_BLOCK = 1 << 20
_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def _size(nbytes: int) -> str:
    return f"{nbytes >> 20:,} MiB"


def _refused(name: str, reason: str) -> UsageError:
    return UsageError(f"{name}: cannot be read: {reason}")


def similar(path: str, suffixes: tuple[str, ...] = ("",)) -> str:
    """A hint to a file with a similar name in the same directory; empty if there is none."""
    folder, name = os.path.split(path)
    try:
        entries = [one for one in os.listdir(folder or ".") if one.endswith(suffixes)]
    except (OSError, ValueError):
        return ""
    return did_you_mean(name, entries, os.path.join(folder, "{}"))


def _open(name: str) -> tuple[int, int]:
    """A descriptor and the mode of a file; never waits."""
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise _refused(name, "it is a directory")
        if stat.S_ISSOCK(mode):
            raise _refused(name, "it is a socket")
        if stat.S_ISBLK(mode):
            raise _refused(name, "it is a device")
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        return handle, os.fstat(handle).st_mode
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise _refused(name, "it is a socket") from None
        hint = similar(name) if error.errno == errno.ENOENT else ""
        raise _refused(name, f"{error.strerror or error}{hint}") from None
    except UsageError:
        raise
    except ValueError:  # a null character, or one that file names cannot have
        raise UsageError(f"{name!r}: expected the name of a file") from None


def open_lines(path: str | os.PathLike[str]) -> IO[bytes]:
    """A file to read from its begin, maybe several times, such as a trace.

    Its lines are limited by `LONGEST_LINE`; readers check that. Raises UsageError for everything
    that is not a file on a disk.
    """
    name = os.fspath(path)
    handle, mode = _open(name)
    try:
        if not stat.S_ISREG(mode):
            what = "a pipe" if stat.S_ISFIFO(mode) else "a device"
            raise _refused(name, f"it is {what}, expected a file")
        os.pread(handle, 1, 0)  # fails for files of the kernel that have to be waited for
    except OSError as error:
        os.close(handle)
        raise _refused(name, error.strerror or str(error)) from None
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def too_long(name: str, line: int) -> UsageError:
    """The error for a line that is longer than any useful one."""
    return UsageError(f"{name}, line {line}: expected at most {_size(LONGEST_LINE)} in a line")


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The contents of a file or a pipe, at most `LARGEST` bytes.

    Raises UsageError, with the reason, for everything else.
    """
    name = os.fspath(path)
    handle, mode = _open(name)
    try:
        if stat.S_ISREG(mode) and os.fstat(handle).st_size > LARGEST:
            raise _too_large(name)
        return _whole(handle, name, mode)
    except OSError as error:
        raise _refused(name, error.strerror or str(error)) from None
    finally:
        os.close(handle)


def _too_large(name: str) -> UsageError:
    return _refused(name, f"expected at most {_size(LARGEST)}, got more")


def _whole(handle: int, name: str, mode: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    begun = not stat.S_ISFIFO(mode)
    while True:
        try:
            data = os.read(handle, _BLOCK)
        except BlockingIOError:
            if stat.S_ISREG(mode):
                raise
            begun = True  # the other end is open
            _wait(handle, None)
            continue
        if not data:
            if not begun and not size:
                # At the begin this is also the answer of a pipe that nobody has opened yet.
                begun = True
                if _wait(handle, PATIENCE):
                    continue
                raise _refused(name, f"no process has written into this pipe for {PATIENCE:g} s")
            return b"".join(pieces)
        size += len(data)
        if size > LARGEST:
            raise _too_large(name)
        pieces.append(data)


def _wait(handle: int, seconds: float | None) -> bool:
    """Wait until there is something to read, or the other end is closed."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1000.0))


def read_text(
    path: str | os.PathLike[str], expected: str = "a text file", encoding: str = "utf-8"
) -> str:
    """The text of a file, as UTF-8 with or without a mark at its begin, its lines ended by `\\n`.

    `expected` describes the file in messages. Raises UsageError as `read_bytes`, and for other
    encodings.
    """
    data = read_bytes(path)
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        found = _BOMS.get(data[:2], "other data")
        hint = f"; save it as {encoding.upper()}" if data[:2] in _BOMS else ""
        raise UsageError(f"{os.fspath(path)}: expected {expected}, got {found}{hint}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError for each text that is wrong, also one nested too
    deeply, and for numbers that are too long.
    """
    import json

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
