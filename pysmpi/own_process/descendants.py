"""The processes that a job has started, and their end with it.

A process belongs to a job if the job has started it (a *root*), if it descends from such a process,
if it is in a session or process group that a root has made, or if its variables have the mark of
the job: so a process is found whose parents have ended. The table of processes is read from `/proc`
on Linux, and from `ps` on other systems, which do not show variables.

A job has a watcher: a small process that ends the others when the job's own process has been
killed. This file is its program, too, so it imports only modules of the interpreter's start.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

MARK = "PYSMPI_JOB"  # variable of the processes that a job starts
PATIENCE = 0.3  # seconds from SIGTERM to SIGKILL
LONGEST = 2.0  # seconds for processes to end after SIGKILL
_INTERVAL = 0.005
_LOOK = 0.5  # seconds between two looks at the job's process, where the system does not report it

# A rank has its own functions; these are the system's.
_kill, _getpid, _getppid, _waitpid = os.kill, os.getpid, os.getppid, getattr(os, "waitpid", None)
_listdir, _readlink, _open, _poll = os.listdir, getattr(os, "readlink", None), open, select.poll
_read, _write, _close, _pipe, _getsid = os.read, os.write, os.close, os.pipe, os.getsid
_sleep, _monotonic, _pidfd_open = time.sleep, time.monotonic, getattr(os, "pidfd_open", None)


class ProcessEntry(NamedTuple):
    """A line of the table of processes; `begun` tells processes with the same number apart."""

    parent: int
    group: int
    session: int
    begun: int
    zombie: bool


def table() -> dict[int, ProcessEntry]:
    """All processes by number."""
    try:
        names = [name for name in _listdir("/proc") if name.isdigit()]
    except OSError:
        return _listed()
    if not names:
        return _listed()
    result = {}
    for name in names:
        entry = entry_of(int(name))
        if entry is not None:
            result[int(name)] = entry
    return result


def entry_of(pid: int) -> ProcessEntry | None:
    """The line of one process in `/proc`; None if there is none."""
    try:
        with _open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        state = words[0]
        parent, group, session, begun = (int(words[i]) for i in (1, 2, 3, 19))
        return ProcessEntry(parent, group, session, begun, state in b"ZX")
    except (OSError, IndexError, ValueError):
        return None


def _listed() -> dict[int, ProcessEntry]:
    """The table on systems without `/proc`."""
    import subprocess

    try:
        lines = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,pgid=,sess=,stat="], capture_output=True, timeout=5.0
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    result = {}
    for line in lines:
        words = line.split()
        try:
            pid, parent, group, session = (int(word, 0) for word in words[:4])
        except ValueError:
            continue
        result[pid] = ProcessEntry(parent, group, session, 0, words[4:5] != [] and b"Z" in words[4])
    return result


class JobProcesses:
    """The processes of the job of a process; `mark` is the value of their variable.

    They have begun after `since`.
    """

    def __init__(self, owner: int, since: int, mark: str) -> None:
        self.owner = owner
        self.since = since
        self.mark = mark
        self.roots: dict[int, int] = {}  # number -> `ProcessEntry.begun`
        self.spared: set[int] = set()

    def add(self, pid: int) -> None:
        """The job has started a process."""
        entry = entry_of(pid)
        self.roots[pid] = 0 if entry is None else entry.begun

    def members(self) -> dict[int, ProcessEntry]:
        """The processes of the job that have not ended, without its own and the calling one."""
        every = table()
        pids: set[int] = set()

        def known(pid: int) -> bool:
            """Whether a number is still that of a root, and not of a later process."""
            begun = self.roots.get(pid)
            if begun is None:
                return False
            entry = every.get(pid)
            return entry is None or begun in (0, entry.begun)

        for pid, entry in every.items():
            if pid in self.roots and known(pid):
                pids.add(pid)
            elif entry.group != pid and known(entry.group):
                pids.add(pid)
            elif entry.session != pid and known(entry.session):
                pids.add(pid)
            elif entry.begun >= self.since and self._is_marked(pid):
                pids.add(pid)
        children: dict[int, list[int]] = {}
        for pid, entry in every.items():
            children.setdefault(entry.parent, []).append(pid)
        level = list(pids)
        while level:
            level = [child for pid in level for child in children.get(pid, ()) if child not in pids]
            pids.update(level)
        pids -= {*self.spared, self.owner, _getpid()}
        return {pid: every[pid] for pid in pids if not every[pid].zombie and not _cleans_up(pid)}

    def _is_marked(self, pid: int) -> bool:
        wanted = f"{MARK}={self.mark}".encode()
        try:
            with _open(f"/proc/{pid}/environ", "rb") as file:
                return wanted in file.read().split(b"\0")
        except OSError:
            return False

    def detached(self, pid: int, entry: ProcessEntry) -> bool:
        """Whether a process has a session of its own and no standard stream of the job."""
        try:
            if entry.session in (0, _getsid(self.owner)) or _readlink is None:
                return False
        except OSError:
            return False
        ours = set()
        for fd in (0, 1, 2):
            try:
                ours.add(_readlink(f"/proc/{self.owner}/fd/{fd}"))
            except OSError:
                continue
        ours.discard(os.devnull)
        try:
            fds = _listdir(f"/proc/{pid}/fd")
        except OSError:
            return False
        for name in fds:
            try:
                if _readlink(f"/proc/{pid}/fd/{name}") in ours:
                    return False
            except OSError:
                continue
        return True

    def end(self, gently: bool = True, spare_detached: bool = False) -> None:
        """End the processes: with SIGTERM first, if `gently`, then with SIGKILL."""
        kept: Callable[[int, ProcessEntry], bool] = (
            self.detached if spare_detached else lambda pid, entry: False
        )

        def left() -> list[int]:
            self._reap()
            return [pid for pid, entry in self.members().items() if not kept(pid, entry)]

        pids = left()
        if gently and pids:
            for pid in pids:
                _send(pid, signal.SIGTERM)
                _send(pid, getattr(signal, "SIGCONT", signal.SIGTERM))
            until = _monotonic() + PATIENCE
            while pids and _monotonic() < until:
                _sleep(_INTERVAL)
                pids = left()
        until = _monotonic() + LONGEST
        while pids and _monotonic() < until:
            for pid in pids:
                _send(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            _sleep(_INTERVAL)
            pids = left()

    def _reap(self) -> None:
        """Take the statuses of the children that have ended; nobody will ask for them."""
        if _waitpid is None:
            return
        for pid in list(self.roots):
            try:
                _waitpid(pid, os.WNOHANG)
            except OSError:
                continue


def _send(pid: int, number: int) -> None:
    try:
        _kill(pid, number)
    except OSError:
        pass


def _cleans_up(pid: int) -> bool:
    """Whether a process removes what others leave behind, and ends with the last of them."""
    try:
        with _open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False


class WatchedJob(JobProcesses):
    """The processes of a job whose own process tells a watcher of them."""

    def __init__(self) -> None:
        owner = _getpid()
        entry = entry_of(owner)
        super().__init__(owner, 0 if entry is None else entry.begun, os.urandom(8).hex())
        self._pipe = -1
        self._watcher: Any = None

    def prepare(self) -> None:
        """The job's process will start a process, which the watcher finds from its start on."""
        if self._watcher is None and _getpid() == self.owner:
            self._begin()

    def add(self, pid: int) -> None:
        """The job's process, or one that it has forked, has started a process."""
        self.prepare()
        super().add(pid)
        if self._pipe >= 0:
            try:
                _write(self._pipe, b"%d %d\n" % (pid, self.roots[pid]))
            except OSError:
                pass  # the watcher has been killed

    def _begin(self) -> None:
        """Start the watcher."""
        self._watcher = False
        if os.name != "posix":
            return
        executable = sys.executable or "python3"
        theirs, ours = _pipe()
        os.set_blocking(ours, False)
        os.set_inheritable(theirs, True)
        numbers = [theirs, self.owner, self.since]
        arguments = [executable, "-I", "-S", __file__, *map(str, numbers), self.mark]
        null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0)
        streams = [null, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        try:
            self._watcher = _spawn(
                executable, arguments, dict(os.environ), file_actions=streams, setsigdef=_ENDING
            )
        except OSError:
            _close(ours)
        else:
            self._pipe = ours
            self.spared.add(self._watcher)
        _close(theirs)

    def end(self, gently: bool = True, spare_detached: bool = False) -> None:
        """End the processes; the watcher does it, which knows also those that forks have forked."""
        watcher, self._watcher = self._watcher, None
        told = False
        if watcher:
            try:
                os.set_blocking(self._pipe, True)
                _write(self._pipe, b"end %d %d\n" % (gently, spare_detached))
                assert _waitpid is not None
                told = _waitpid(watcher, 0)[1] == 0
            except OSError:
                pass
        if self._pipe >= 0:
            _close(self._pipe)
            self._pipe = -1
        if told:
            self._reap()
        else:
            super().end(gently, spare_detached)


_spawn: Any = getattr(os, "posix_spawn", None)
_ENDING = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGPIPE")
    if hasattr(signal, name)
]


_prctl: Any = None  # the system's function, once it was found


def end_with_parent(parent: int) -> None:
    """Have the calling process, a child of `parent`, killed when that ends in whatever way.

    On Linux. The parent's main thread has to have started it.
    """
    global _prctl
    if sys.platform != "linux":
        return
    if _prctl is None:
        import ctypes

        _prctl = ctypes.CDLL(None).prctl
    _prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if _getppid() != parent:
        _kill(_getpid(), signal.SIGKILL)


# The watcher.


def _watch(told: int, owner: int, since: int, mark: str) -> None:
    """Read of processes until the job's process wants their end, or has ended; end them."""
    os.setsid()  # signals from a terminal are for the job
    os.closerange(3, told)
    os.closerange(told + 1, 1 << 16)
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    job = JobProcesses(owner, since, mark)
    poll = _poll()
    poll.register(told, select.POLLIN)
    watched = -1
    alive = True
    if _pidfd_open is not None:
        try:
            watched = _pidfd_open(owner)
            poll.register(watched, select.POLLIN)
        except OSError as error:
            alive = error.errno != errno.ESRCH
    text = b""
    while alive:
        ready = [fd for fd, _ in poll.poll(None if watched >= 0 else _LOOK * 1000)]
        alive = _getppid() == owner and watched not in ready
        if told in ready:
            text += (data := _read(told, 1 << 16))
            if not data:  # no process has the other end
                break
            text, wanted = _take(job, text)
            if wanted is not None:
                job.end(*wanted)
                return
    os.set_blocking(told, False)
    try:
        text += _read(told, 1 << 20)
    except OSError:
        pass
    _take(job, text)
    job.end(gently=False)


def _take(job: JobProcesses, text: bytes) -> tuple[bytes, tuple[bool, bool] | None]:
    """Note the processes of whole lines; return the rest, and the arguments of `end` if wanted."""
    *lines, rest = text.split(b"\n")
    for line in lines:
        words = line.split()
        if words[0] == b"end":
            return rest, (words[1] == b"1", words[2] == b"1")
        job.roots[int(words[0])] = int(words[1])
    return rest, None


if __name__ == "__main__":
    _watch(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
