"""Child processes of ranks: `os.waitpid` and related functions, which `subprocess` uses.

A child runs in real time. While a rank waits for a child, other ranks continue, and the rank's
clock follows real time. `os.wait()` waits for the rank's own children only. Children end with the
job, and so do their children.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic, thread_time
from types import ModuleType
from typing import Any

from pysmpi.isolation.kinds.environment import for_children
from pysmpi.isolation.kinds.forks import fork
from pysmpi.isolation.kinds.rank_output import separate
from pysmpi.isolation.simulator import process, simulates
from pysmpi.mpi.base import ranks
from pysmpi.own_process.descendants import MARK, WatchedJob
from pysmpi.patching.patches import Patches
from pysmpi.patching.replacing import Replacements
from pysmpi.waiting.outside.descriptors import changing
from pysmpi.waiting.outside.peers import PeerSide
from pysmpi.waiting.outside.reactor import READ, Reactor, reactor

_close = os.close
_waitpid = getattr(os, "waitpid", None)
_waitid = getattr(os, "waitid", None)
_pidfd_open = getattr(os, "pidfd_open", None)
_posix_spawn = getattr(os, "posix_spawn", None)
_listdir, _open = os.listdir, open

# The position of the variables among the arguments.
_POSITIONS = {"posix_spawn": 2, "posix_spawnp": 2, "fork_exec": 5, "_fork_exec": 5}


class Children:
    """The rank of each child."""

    def __init__(self) -> None:
        self.owners: dict[int, int] = {}  # process -> pid of the rank
        # Processes such as a resource tracker of multiprocessing, which belong to no rank.
        self.before = _all_children()
        self.started = WatchedJob()
        for_children[MARK.encode()] = self.started.mark.encode()

    def born(self, found: Reactor, pid: int) -> None:
        """The rank that is running has started a process."""
        self.owners[pid] = ranks.current().pid
        self.started.add(pid)
        found.generation += 1

    def gone(self, found: Reactor, pid: int) -> None:
        """A process has been waited for."""
        self.owners.pop(pid, None)
        found.generation += 1

    def mine(self) -> list[int]:
        """The children of the rank that is running."""
        own = ranks.current().pid
        return [pid for pid, owner in self.owners.items() if owner == own]

    def end(self, well: bool) -> None:
        """The job has ended: end the processes that ranks have started, and those that they have.

        After a job that has ended well, processes with a session of their own and without the
        job's standard streams go on.
        """
        if self.started.roots and self.started.owner == process():
            self.started.end(spare_detached=well)
            self.started.roots.clear()
            for_children.clear()

    # Starting

    def starter(self, real: Callable[..., Any]) -> Callable[..., object]:
        """A function that starts a process and returns its number, or a pair with it."""
        forks = real.__name__ in ("fork", "forkpty")

        def start(*args: object, **kwargs: object) -> Any:
            current = reactor()
            if current is None:
                answer = real(*args, **kwargs)
                if forks and not simulates():
                    self._fork_of_a_fork(answer)
                return answer
            changing(current)
            separate()
            self.started.prepare()
            begin, computed = monotonic(), thread_time()
            if forks:
                answer = fork(real, *args, **kwargs)
                if answer in (0, (0, -1)):
                    self.started.add(os.getpid())  # the parent may be killed before it does this
                    return answer
            else:
                threading.current_thread()  # a child with a preexec_fn looks up the rank's thread
                answer = real(*self.marked(real, args, kwargs), **kwargs)
            pid = answer[0] if isinstance(answer, tuple) else answer
            if isinstance(pid, int) and pid:
                # The time of the operating system is not on the clock of this thread.
                waited = monotonic() - begin - (thread_time() - computed)
                self.born(current, pid)
                ranks.current().sleep(max(0.0, waited))
            return answer

        return start

    def _fork_of_a_fork(self, answer: Any) -> None:
        """A child of a rank has forked."""
        pid = answer[0] if isinstance(answer, tuple) else answer
        if pid and self.started.owner == process():
            self.started.add(pid)

    def marked(
        self, real: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments of a function that starts a program, with the job's mark."""
        variables = _POSITIONS.get(real.__name__, len(args))
        if variables >= len(args) or args[variables] is None:
            return args
        own = args[variables]
        if isinstance(own, Mapping):
            own = {**own, MARK: self.started.mark}
        else:
            ours = f"{MARK}={self.started.mark}".encode()
            own = [*(one for one in own if one != ours), ours]
        return *args[:variables], own, *args[variables + 1 :]

    def system(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def system(command: object) -> int:
            current = reactor()
            if current is None:
                return real(command)  # type: ignore[no-any-return]
            separate()
            self.started.prepare()
            pid = _shell(command, {MARK: self.started.mark})
            self.born(current, pid)
            return int(os.waitpid(pid, 0)[1])

        return system

    # Waiting

    def waiter(self, real: Callable[..., Any], pid_given: bool) -> Callable[..., Any]:
        """`waitpid` and `wait4`, or, if no process is given, `wait` and `wait3`."""

        def wait(*args: Any, **kwargs: Any) -> Any:
            current = reactor()
            if current is None:
                return real(*args, **kwargs)
            if pid_given:
                pid, options = _waitpid_arguments(*args, **kwargs)
                call = real
            else:
                pid, options = -1, _wait_options(*args, **kwargs)
                call = os_waits[real.__name__]
            candidates = self.candidates(pid)

            def look() -> Any:
                for candidate in list(candidates):
                    try:
                        answer = call(candidate, options | os.WNOHANG)
                    except ChildProcessError:
                        self.gone(current, candidate)
                        candidates.remove(candidate)
                        if not candidates:
                            raise
                        continue
                    if answer[0]:
                        return answer
                return None

            answer = self._await(current, candidates, look, options)
            if answer is None:
                return (0, 0) if call is _waitpid else (0, 0, _no_usage())
            if not (os.WIFSTOPPED(answer[1]) or os.WIFCONTINUED(answer[1])):
                self.gone(current, answer[0])
            return answer

        return wait

    def waitid(self, real: Callable[..., object]) -> Callable[..., Any]:
        def waitid(idtype: int, id: int, options: int, /) -> Any:
            current = reactor()
            if current is None:
                return real(idtype, id, options)
            candidates = self.candidates(-1) if idtype == os.P_ALL else [id]

            def look() -> Any:
                for candidate in candidates:
                    kind = os.P_PID if idtype == os.P_ALL and candidate > 0 else idtype
                    answer = real(kind, max(candidate, 0), options | os.WNOHANG)
                    if answer is not None:
                        return answer
                return None

            pids = candidates if idtype in (os.P_ALL, os.P_PID) else []
            answer = self._await(current, pids, look, options)
            ended = answer is not None and answer.si_code in (
                os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED
            )  # fmt: skip
            if ended and not options & os.WNOWAIT:
                self.gone(current, answer.si_pid)
            return answer

        return waitid

    def candidates(self, pid: int) -> list[int]:
        """The processes that are meant by the first argument of `waitpid`."""
        if pid != -1:
            return [pid]
        mine = self.mine()
        if mine:
            return mine
        before, now = self.before, _all_children()
        if before is None or now is None:
            others, has_others = [-1], not self.owners
        else:
            # A library may have started them without Python.
            others = sorted(now - before - self.owners.keys() - self.started.spared)
            has_others = bool(others)
        if not has_others:
            raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
        return others

    def _await(
        self, found: Reactor, pids: list[int], look: Callable[[], object], options: int
    ) -> Any:
        """The first result of `look`; None if the options forbid waiting."""
        answer = look()
        if answer is None and options & os.WNOHANG:
            handles = _handles(pids)
            try:
                found.missed(handles, PeerSide.OUTSIDE)
            finally:
                for fd in handles:
                    _close(fd)
            return look()
        while answer is None:
            # Handles signal the end of a process, not its stops.
            stops = os.WUNTRACED | os.WCONTINUED
            handles = [] if options & stops else _handles(pids)
            try:
                found.wait(
                    [(fd, READ) for fd in handles],
                    look=None if handles else _changed(pids),
                    side=PeerSide.OUTSIDE,
                )
            finally:
                for fd in handles:
                    _close(fd)
            answer = look()
        return answer


def _all_children() -> set[int] | None:
    """The children of this process; None if the system does not list them."""
    result: set[int] = set()
    try:
        for task in _listdir("/proc/self/task"):
            try:
                with _open(f"/proc/self/task/{task}/children", "rb") as file:
                    result.update(map(int, file.read().split()))
            except ProcessLookupError:
                continue  # The thread has ended.
    except OSError:
        return None
    return result


def _handles(pids: list[int]) -> list[int]:
    """Descriptors that become readable when a process ends; None if one has no descriptor."""
    result: list[int] = []
    if _pidfd_open is None:
        return result
    try:
        for pid in pids:
            result.append(_pidfd_open(pid))
    except (OSError, OverflowError):
        for fd in result:
            _close(fd)
        return []
    return result


def _changed(pids: list[int]) -> Callable[[], bool]:
    """Whether there may be news of some processes."""
    events = os.WEXITED | os.WSTOPPED | os.WCONTINUED | os.WNOWAIT | os.WNOHANG

    def look() -> bool:
        if _waitid is None:
            return True
        for pid in pids:
            kind = os.P_PID if pid > 0 else os.P_ALL
            try:
                if _waitid(kind, max(pid, 0), events) is not None:
                    return True
            except OSError:
                return True
        return False

    return look


def _waitpid_arguments(pid: int, options: int, /) -> tuple[int, int]:
    return pid, options


def _wait_options(options: int = 0) -> int:
    return options


os_waits: dict[str, Any] = {"wait": _waitpid, "wait3": getattr(os, "wait4", None)}


def _no_usage() -> Any:
    """The empty resources of `wait3` and `wait4` if there is no process."""
    import resource

    return resource.struct_rusage((0,) * 16)


def _shell(command: object, more: dict[str, str]) -> int:
    """Start a shell as `system(3)` does, with some more variables."""
    assert _posix_spawn is not None
    sys.audit("os.system", command)
    return _posix_spawn(  # type: ignore[no-any-return]
        "/bin/sh",
        ["sh", "-c", command],
        {**os.environ, **more},
        setsigdef=[signal.SIGINT, signal.SIGQUIT],
    )


def patch_subprocess(children: Children, module: ModuleType, replacements: Replacements) -> None:
    """Register the children of `subprocess`, and use our `waitpid` in its waits."""
    replacements.function(module, "_fork_exec", children.starter)
    replacements.inside(module)


def install(patches: Patches, replacements: Replacements, children: Children) -> Children:
    """Let other ranks continue during waits for children, until the patches are undone."""
    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp"):
        replacements.function(os, name, children.starter)
    for name, pid_given in {"wait": False, "wait3": False, "waitpid": True, "wait4": True}.items():
        replacements.function(os, name, partial(children.waiter, pid_given=pid_given))
    replacements.function(os, "waitid", children.waitid)
    if os.name == "posix" and _posix_spawn is not None:
        replacements.function(os, "system", children.system)
    if "_posixsubprocess" in sys.modules:
        replacements.function(sys.modules["_posixsubprocess"], "fork_exec", children.starter)
    return children
