"""Executions of a program, many and fast: each is a child of one prepared process.

The job is prepared once, up to the moment at which its first rank would begin. Each execution is a
copy of the process in this state. So executions cannot affect each other, they start at once, they
run on several cores, and one that never ends can be killed. The executions of a search are copies
of a process that has gone on to the first choice, if that is possible (`Snapshot`).
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from typing import IO, Any, cast

from pysmpi.checkers import CheckSession, exemptions, listeners
from pysmpi.explore.executions import (
    Decider,
    Executions,
    JobMaker,
    LimitedExecutions,
    T,
    Trial,
)  # fmt: skip
from pysmpi.explore.files import FileWatch
from pysmpi.explore.observer import Observer
from pysmpi.explore.snapshot import (
    Requests,
    SharedDigests,
    Snapshot,
    SnapshotServer,
    SnapshotWorker,
    possible,
)  # fmt: skip
from pysmpi.explore.untimed import Untimed
from pysmpi.explore.warming import warm
from pysmpi.isolation import simulator
from pysmpi.kernel.choices import ORDER, SEND, Alternative, Control
from pysmpi.kernel.engine import Engine
from pysmpi.own_process import copies, interruption
from pysmpi.own_process.copies import copy_process
from pysmpi.own_process.descendants import end_with_parent
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.result import Result

# A rank has its own; installed before any run.
_leave, _kill, _waitpid, _getpid = os._exit, os.kill, os.waitpid, os.getpid
_pipe, _close, _dup2, _poll = os.pipe, os.close, os.dup2, select.poll
_pread, _memfd = os.pread, getattr(os, "memfd_create", None)

_SLICE = 0.1  # (s) of a wait, after which it is checked whether a signal has arrived
OUTPUT = 1 << 20  # bytes of output that are kept
_LOADED = {"pysmpi", "numpy", "scipy", *sys.stdlib_module_names}


class _Served(BaseException):
    """All executions are done: the prepared job ends without a run."""


class _InChild(BaseException):
    """This process is a child: it leaves the work of its parent."""


class _Child:
    """An execution: a process with a file for its answer, or of a worker of the snapshot."""

    def __init__(
        self, tag: object, output: IO[bytes], pid: int = 0, answer: IO[bytes] | None = None,
        worker: SnapshotWorker | None = None,
    ) -> None:  # fmt: skip
        self.pid = pid
        self.tag = tag
        self.output = output
        self.answer = answer
        self.worker = worker
        self.begun = time.monotonic()
        self.killed = False


class Executor(Untimed, LimitedExecutions):
    """Executes a job under many deciders, `jobs` at a time.

    An execution that takes longer than `timeout` seconds is killed. Without `snapshots`, each one
    begins anew.
    """

    snapshots = True

    _control: Control  # of the job, from its start on
    _simulation: Simulation

    def __init__(self, make: JobMaker, jobs: int = 1, timeout: float = 60.0) -> None:
        self.make = make
        self.jobs = jobs
        self.timeout = timeout
        self.done = 0
        # By the descriptor of a pipe that an execution closes at its end, or of a worker's socket.
        self._running: dict[int, _Child] = {}
        self._snapshot: Snapshot | None = None
        self._rule: object = None  # of the latest execution that no snapshot could begin
        self._server: SnapshotServer | None = None  # in the process of a snapshot
        self._requests: Requests | None = None  # in a worker
        self._end = -1  # of an execution: the pipe that it closes
        self._decider: Decider | None = None
        self._answer: IO[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._session: CheckSession | None = None
        self._work: Callable[[], object] = lambda: None
        self._begun = 0.0
        self._modules: frozenset[str] = frozenset()
        self._files = FileWatch()

    def serve(self, work: Callable[[Executions], T]) -> T:
        """Prepare the job and return `work(self)`, which calls `submit` and `next`."""
        job = self.make()
        found: list[T] = []

        self._work = lambda: found.append(work(self))
        checkers = listeners(job.options.check)
        if checkers:
            exempt = exemptions(job.options.check)
            self._session = CheckSession(checkers, exemptions=exempt)
            job.instruments.append(self._session)
        job.instruments.append(self)
        copies.prepare()
        self.snapshots = self.snapshots and possible()
        warm(job.options)
        try:
            job.run()
        except _Served:
            return found[0]
        except BaseException as error:
            if self._answer is not None:
                self._report_error(error)
            raise
        raise AssertionError("a child has ended")

    # Events of the job.

    def control(self, engine: Engine) -> Control:
        """A control that asks the decider of each execution."""
        self._control = Control(engine, self._pick)
        return self._control

    def ranks_ready(self, simulation: Simulation) -> None:
        """Do the work; in a child, the job goes on."""
        self._simulation = simulation
        self._modules = frozenset(sys.modules)
        gc.freeze()
        try:
            self._work()
        except _InChild:
            return  # older objects stay frozen: a search among them would copy them
        except BaseException:
            gc.unfreeze()
            self.stop()
            raise
        gc.unfreeze()
        raise _Served

    def run_ended(self, result: Result) -> None:
        """Report the outcome to the parent, and end.

        The process is not restored: that would copy most of its memory.
        """
        if self._session is not None:
            self._session.finish(result)
        self._report(result)

    def _pick(self, kind: str, options: Sequence[Alternative]) -> int:
        if self._server is not None and len(options) > 1 and kind not in (ORDER, SEND):
            self._stand(self._server)
        decider = self._decider
        assert decider is not None
        picked = decider.pick(kind, options)
        if decider.given_up and not self._files.outside:
            self._send(Trial())  # nothing of its end counts
        return picked

    # In the parent.

    def submit(self, decider: Decider, tag: object) -> None:
        """Begin an execution, in a child that leaves `work` and runs the job."""
        interruption.check()
        snapshot = self._snapshot_for(decider)
        if snapshot is not None:
            worker = snapshot.begin(cast(Observer, decider))
            if worker is not None:
                self._running[worker.connection.fileno()] = _Child(
                    tag, worker.output, worker=worker
                )
                return
            self._drop_snapshot()
        self._begin(decider, tag)

    def _begin(self, decider: Decider, tag: object, server: socket.socket | None = None) -> int:
        """Begin an execution, or a snapshot that answers requests; the number of its process."""
        output, answer = _file(), _file()
        sys.stdout.flush()
        sys.stderr.flush()
        mine, its = _pipe()
        parent = _getpid()
        pid = copy_process()
        if pid:
            _close(its)
            if server is None:
                self._running[mine] = _Child(tag, output, pid, answer)
            else:
                _close(mine)
            return pid
        end_with_parent(parent)
        interruption.disregard()
        _close(mine)
        simulator.begin()
        if self._snapshot is not None:
            self._snapshot.connection.close()
        self._answer, self._output, self._end = answer, output, its
        self._decider = decider
        self._files.begin()
        self._begun = time.perf_counter()
        redirect(output.fileno())
        if server is not None:
            self._server = SnapshotServer(server)
        control = self._control
        decider.attach(control)
        decider.enter(self._simulation, output.fileno(), self._files)
        control.begin()
        raise _InChild

    def _snapshot_for(self, decider: Decider) -> Snapshot | None:
        """The snapshot from which an execution can begin; None if there is none."""
        if not self.snapshots or not isinstance(decider, Observer):
            return None
        if self._snapshot is not None and self._snapshot.fits(decider):
            return self._snapshot
        rule, before = decider.rule, self._rule
        self._rule = rule
        beginning = decider.beginning()
        if beginning is None or not self.idle:
            return None
        if not decider.searching and rule != before:
            return None  # a snapshot is worth it for several executions
        self._drop_snapshot()
        mine, its = socket.socketpair()
        child = self._begin(beginning, None, its)
        its.close()
        snapshot = self._snapshot = Snapshot(decider, child, mine, _file)
        if not snapshot.stands(self.timeout):
            self._drop_snapshot()
            self.snapshots = False
        return self._snapshot

    def _drop_snapshot(self) -> None:
        """End the process of the snapshot, and executions in it."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()

    def next(self) -> tuple[Any, Trial]:
        """Wait for the end of an execution; return its tag and its outcome."""
        while True:
            poll = _poll()
            for end in self._running:
                poll.register(end, select.POLLIN | select.POLLHUP)
            oldest = min(child.begun for child in self._running.values())
            left = oldest + self.timeout - time.monotonic()
            interruption.check()
            ready = poll.poll(max(1.0, min(left, _SLICE) * 1000.0))
            if ready:
                number = ready[0][0]
                return self._ended(number, self._running.pop(number))
            now = time.monotonic()
            for child in self._running.values():
                if now - child.begun > self.timeout and not child.killed:
                    child.killed = True
                    self._kill_child(child)

    @staticmethod
    def _kill_child(child: _Child) -> None:
        if child.worker is not None:
            child.worker.kill()
        else:
            _kill(child.pid, signal.SIGKILL)

    def _ended(self, number: int, child: _Child) -> tuple[object, Trial]:
        self.done += 1
        worker, answer = child.worker, child.answer
        if worker is not None:
            data = worker.answer()
            output = _pread(child.output.fileno(), OUTPUT, 0)
            status = worker.snapshot.end(worker, not data)
        else:
            assert answer is not None
            status = _waitpid(child.pid, 0)[1]
            _close(number)
            answer.seek(0)
            data = answer.read()
            answer.close()
            output = _pread(child.output.fileno(), OUTPUT, 0)
            child.output.close()
        execution: Trial
        if data:
            execution = pickle.loads(data)
            if self.done == 1:
                _load(execution.modules)
            if execution.outside:
                self.snapshots = False
        else:
            execution = Trial(status=1, killed=child.killed)
            if child.killed:
                execution.error = (
                    f"no end: the execution was killed after {self.timeout:g} s of wall time"
                )
            else:
                code = os.waitstatus_to_exitcode(status)
                execution.error = f"the execution ended with status {code} and no result"
        execution.output = output
        return child.tag, execution

    def stop(self) -> list[object]:
        """Kill all executions; return their tags."""
        tags = [child.tag for child in self._running.values()]
        for number, child in self._running.items():
            self._kill_child(child)
            if child.worker is not None:
                child.worker.close()
            else:
                _waitpid(child.pid, 0)
                _close(number)
        self._running.clear()
        self._drop_snapshot()
        return tags

    # In the child.

    def _stand(self, server: SnapshotServer) -> None:
        """The first choice: be the snapshot of executions. It returns in each of these."""
        output = self._output
        assert output is not None and isinstance(self._decider, Observer)
        sys.stdout.flush()
        sys.stderr.flush()
        if self._files.outside or not server.resources.same():
            _leave(0)
        self._decider.stand()
        written = _pread(output.fileno(), OUTPUT, 0)
        parent = _getpid()
        asked = server.serve()
        if asked is None:
            _leave(0)
        end_with_parent(parent)
        simulator.begin()
        self._server = None
        lasting, (connection, its, file) = asked
        _dup2(its, output.fileno(), False)
        known = SharedDigests(file)
        for descriptor in (its, file, self._end):
            _close(descriptor)
        redirect(output.fileno())
        requests = self._requests = Requests(lasting, connection, output.fileno(), written, known)
        part = requests.take()
        if part is None:
            _leave(0)
        self._begun = time.perf_counter()
        self._decider.continue_with(
            part.prefix, part.sleep, part.delayed, part.strategy, part.asking, requests.memory
        )

    def _report(self, result: Result) -> None:
        sys.stdout.flush()
        execution = Trial(result.exit_status, result.error)
        execution.returns = repr(result.returns)
        self._send(execution)

    def _report_error(self, error: BaseException) -> None:
        execution = Trial(1, f"{type(error).__name__}: {error}")
        self._send(execution)

    def _send(self, execution: Trial) -> None:
        decider, answer, requests = self._decider, self._answer, self._requests
        assert answer is not None and decider is not None
        execution.seconds = time.perf_counter() - self._begun
        execution.trace = decider.summary()
        execution.schedule = str(decider.schedule())
        execution.shares_files = self._files.shared()
        execution.outside = self._files.outside
        if self.done == 0:
            execution.modules = [name for name in sys.modules if name not in self._modules]
        if requests is not None:
            requests.answer(pickle.dumps(execution, 5), not execution.outside)
        else:
            pickle.dump(execution, answer)
            answer.flush()
            _close(self._end)  # this execution's memory is released beside the next one
        _leave(0)


def _file() -> IO[bytes]:
    """A file without a name, in memory if the system has such files."""
    if _memfd is not None:
        with suppress(OSError):
            return open(_memfd("pysmpi"), "w+b")
    return tempfile.TemporaryFile()


def _load(modules: Sequence[str]) -> None:
    """Load modules that executions need, so that each of them finds them.

    Only modules that start no threads and by which no rank can tell that another one has loaded
    them.
    """
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        for name in modules:
            if name.partition(".")[0] in _LOADED:
                with suppress(Exception):
                    import_module(name)
    gc.freeze()


def redirect(target: int) -> None:
    """Let the standard streams of the child end in a file."""
    numbers = {1, 2}
    for stream in (sys.stdout, sys.stderr):
        try:
            numbers.add(stream.fileno())
        except (AttributeError, OSError, ValueError):
            continue
    for number in numbers:
        _dup2(target, number)
