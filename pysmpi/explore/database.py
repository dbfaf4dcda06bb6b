"""The database of failures: files in a directory, `.pysmpi` by default.

`failures.json` holds the failing schedules of each program, which are tried first.
`explore-KEY.json` holds an exploration that was interrupted.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from pysmpi.errors import UsageError
from pysmpi.explore.systematic import SearchTree
from pysmpi.io.reading import parse_json, read_bytes
from pysmpi.own_process import interruption

HOME = ".pysmpi"
VERSION = 1
MOST = 20  # failures of one program


def _are_failures(found: object) -> bool:
    """Whether a value is a list of failures."""
    return isinstance(found, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("schedule"), str)
        and type(one.get("ranks")) is int
        and isinstance(one.get("events"), list)
        and all(isinstance(event, str) for event in one["events"])
        for one in found
    )


class Database:
    """The known failures of programs, in a directory."""

    def __init__(self, home: str = HOME) -> None:
        self.home = home

    @staticmethod
    def key(program: str, arguments: Sequence[str]) -> str:
        """The key of a program with its arguments."""
        return f"{crc32(chr(0).join([program, *arguments]).encode()):08x}"

    @property
    def _path(self) -> str:
        return os.path.join(self.home, "failures.json")

    def _read(self) -> dict[str, Any]:
        if not os.path.lexists(self._path):
            return {"version": VERSION, "failures": {}}
        text = read_bytes(self._path)
        try:
            data = parse_json(text)
            if data["version"] != VERSION or not all(map(_are_failures, data["failures"].values())):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UsageError(
                f"{self._path}: expected failures that pysmpi explore has written; remove the file"
            ) from None
        return data  # type: ignore[no-any-return]

    def failures(self, key: str) -> list[dict[str, Any]]:
        """The failures of a program, the latest first."""
        found: list[dict[str, Any]] = self._read()["failures"].get(key, [])
        return found

    def names(self, schedule: str) -> list[str] | None:
        """The names of the events of a schedule, if it is known."""
        for failures in self._read()["failures"].values():
            for failure in failures:
                if failure["schedule"] == schedule:
                    events: list[str] = failure["events"]
                    return events
        return None

    def add(self, key: str, failure: Mapping[str, object]) -> None:
        """Keep a failure."""
        data = self._read()
        old = data["failures"].get(key, [])
        same = ("schedule", "ranks")
        old = [one for one in old if any(one[name] != failure[name] for name in same)]
        data["failures"][key] = [failure, *old][:MOST]
        self._write(self._path, json.dumps(data, indent=1).encode())

    def forget(self, key: str, failure: Mapping[str, object]) -> None:
        """Remove a failure that does not occur any more."""
        data = self._read()
        data["failures"][key] = [one for one in data["failures"].get(key, []) if one != failure]
        self._write(self._path, json.dumps(data, indent=1).encode())

    def _write(self, path: str, data: bytes) -> None:
        try:
            os.makedirs(self.home, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.home)
            interruption.remove_at_end(name)
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(name, path)
            interruption.keep(name)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None

    def _state(self, key: str) -> str:
        return os.path.join(self.home, f"explore-{key}.json")

    def save_state(self, key: str, trees: Sequence[SearchTree]) -> None:
        """Keep the trees of an exploration that is not complete."""
        data = {"version": VERSION, "trees": [tree.dump() for tree in trees]}
        self._write(self._state(key), json.dumps(data).encode())

    def load_state(self, key: str) -> list[SearchTree]:
        """The trees of an exploration that was kept; none if there is no such exploration."""
        if not os.path.lexists(self._state(key)):
            return []
        text = read_bytes(self._state(key))
        try:
            data = parse_json(text)
            if data["version"] != VERSION:
                raise ValueError
            return [SearchTree.load(tree) for tree in data["trees"]]
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise UsageError(
                f"{self._state(key)}: expected an exploration that this version of pysmpi has "
                "written; remove the file"
            ) from None

    def drop_state(self, key: str) -> None:
        """The exploration is complete."""
        try:
            os.remove(self._state(key))
        except FileNotFoundError:
            pass
