"""Files that ranks share outside of MPI: one rank writes them, another one reads or writes them.

The order of ranks between decisions matters only for these. An execution finds them with an audit
hook of Python; it is a process of its own, so the hook needs no end.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pysmpi.mpi.base.ranks import current
from pysmpi.patching.lookalike import like

try:
    from pysmpi.explore import audit_events
except ImportError:  # pysmpi was installed without a C compiler
    audit_events = None  # type: ignore[assignment]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Events whose first argument, or two, are paths that change.
_CHANGES = {
    "os.remove": 1, "os.rename": 2, "os.rmdir": 1, "os.mkdir": 1, "os.truncate": 1,
    "os.link": 2, "os.symlink": 2, "os.utime": 1,
}  # fmt: skip
_LISTS = ("os.listdir", "os.scandir")
# Events of what an execution leaves outside of its process, besides files.
_OUTSIDE = frozenset((
    "os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.spawn",
    "os.system", "pty.spawn", "subprocess.Popen", "socket.bind", "socket.connect",
    "socket.sendto", "socket.sendmsg", "sqlite3.connect",
))  # fmt: skip
_WATCHED = ("open", *_CHANGES, *_LISTS, *sorted(_OUTSIDE))


class FileWatch:
    """The ranks that look at files, and those that change them, outside of MPI calls."""

    def __init__(self) -> None:
        self._readers: dict[str, set[int]] = {}
        self._writers: dict[str, set[int]] = {}
        # Directories: the ranks that looked at their entries, and the ranks that may have changed
        # these.
        self._listers: dict[str, set[int]] = {}
        self._entries: dict[str, set[int]] = {}
        self._on = True
        # Whether anything outside of the process may have changed, also in MPI calls.
        self.outside = False

    def begin(self) -> None:
        """Start to watch this process."""
        if audit_events is not None:
            audit_events.watch(self._hook, _WATCHED)
        else:
            sys.addaudithook(self._hook)
        real = os.stat

        def stat(*args: Any, **kwargs: Any) -> Any:
            # `os.path.exists` and its like; audit hooks are not called for them.
            if args and self._on:
                self._note(args[0], self._readers)
            return real(*args, **kwargs)

        os.stat = like(real, stat)

    @property
    def written(self) -> bool:
        """Whether a rank has changed a file."""
        return bool(self._writers)

    def shared(self) -> bool:
        """Whether a rank used what another one changed; ends the watch."""
        self._on = False
        return _meet(self._writers, self._readers, True) or _meet(
            self._entries, self._listers, False
        )

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event == "open":
            path, _, flags = args
            if flags & _WRITES:
                self._goes_outside()
            self._note(path, self._writers if flags & _WRITES else self._readers)
        elif event in _CHANGES:
            self._goes_outside()
            for path in args[: _CHANGES[event]]:
                self._note(path, self._writers)
        elif event in _LISTS:
            self._note(args[0], self._listers)
        elif event in _OUTSIDE:
            self._goes_outside()

    def _goes_outside(self) -> None:
        if current().program is not None:
            self.outside = True

    def _note(self, path: object, users: dict[str, set[int]]) -> None:
        rank = current()
        if rank.program is None or rank.in_call or not isinstance(path, (str, bytes, os.PathLike)):
            return  # outside of ranks, a call of MPI, or a descriptor
        self._on = False  # the calls below are not the program's
        try:
            name = os.path.abspath(os.fsdecode(path))
            self._add(users, name, rank.pid)
            if users is self._writers:
                self._add(self._entries, os.path.dirname(name), rank.pid)
        finally:
            self._on = True

    @staticmethod
    def _add(users: dict[str, set[int]], name: str, pid: int) -> None:
        users.setdefault(name, set()).add(pid)


def _meet(writers: dict[str, set[int]], readers: dict[str, set[int]], among: bool) -> bool:
    """Whether a rank read (or, if `among` is true, wrote) something that another rank wrote."""
    for path, pids in writers.items():
        users = readers.get(path, set())
        if len(pids | users) > 1 and (users or (among and len(pids) > 1)):
            return True
    return False
