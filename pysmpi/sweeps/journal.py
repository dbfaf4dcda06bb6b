"""The journal of a sweep: a line for each case that has ended, kept on disk when it arrives."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.io.reading import parse_json, read_bytes

FORMAT = 1


class Journal:
    """The rows by the keys of their cases, in a directory of results.

    A context manager, which holds a lock: one sweep at a time writes there. A line that a kill cut
    off is removed. A directory of None keeps nothing.
    """

    def __init__(self, directory: str | None) -> None:
        self.directory = directory
        self.rows: dict[str, dict[str, Any]] = {}
        self._handle = -1
        self._path = "" if directory is None else os.path.join(directory, "journal.jsonl")

    def __enter__(self) -> Journal:
        if self.directory is None:
            return self
        path = self._path
        try:
            os.makedirs(self.directory, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(self._handle).st_mode):
            os.close(self._handle)
            raise UsageError(f"{path}: expected a file, got a device or a pipe")
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise UsageError(f"{path}: another sweep is writing there; let it end") from None
        try:
            self._read(path)
        except BaseException:
            os.close(self._handle)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _read(self, path: str) -> None:
        data = read_bytes(path)
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._handle, whole)
        lines = data[:whole].splitlines()
        if not lines:
            self._write({"sweep": FORMAT})
            return
        for number, line in enumerate(lines, 1):
            try:
                entry = parse_json(line)
                if number == 1:
                    valid = entry["sweep"] == FORMAT
                else:
                    self.rows[entry["key"]] = entry["row"]
                    valid = isinstance(entry["row"], dict)
            except (ValueError, KeyError, TypeError):
                valid = False
            if not valid:
                raise UsageError(
                    f"{path}:{number}: expected the journal of a sweep, got something else; remove "
                    "the file to start again"
                )

    def add(self, key: str, columns: dict[str, Any], row: dict[str, Any]) -> None:
        """Keep the row of a case."""
        self.rows[key] = row
        if self._handle >= 0:
            self._write({"key": key, "case": columns, "row": row})

    def _write(self, entry: Mapping[str, object]) -> None:
        data = json.dumps(entry, default=str).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._handle, data) :]
            os.fsync(self._handle)
        except OSError as error:
            raise UsageError(f"{self._path}: cannot be written: {error.strerror}") from None
