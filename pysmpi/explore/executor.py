"""Executions of a program, many and fast: each is a child of one prepared process.

The job is prepared once, up to the moment at which its first rank would begin. Each execution is a
fork of the process in this state. So executions cannot affect each other, they start at once, they
run on several cores, and one that never ends can be killed.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import re
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence, Sized
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, Protocol, TypeVar

from pysmpi.checkers import CheckSession, listeners
from pysmpi.explore.files import FileWatch
from pysmpi.explore.untimed import Untimed
from pysmpi.isolation import simulator
from pysmpi.job.job import Job
from pysmpi.kernel.choices import Alternative, Control
from pysmpi.kernel.engine import Engine
from pysmpi.own_process import interruption
from pysmpi.own_process.descendants import end_with_parent
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.result import Result

# A rank has its own; installed before any run.
_fork, _leave, _kill, _waitpid, _getpid = os.fork, os._exit, os.kill, os.waitpid, os.getpid
_pipe, _close, _dup2, _poll = os.pipe, os.close, os.dup2, select.poll

_SLICE = 0.1  # (s) of a wait, after which it is checked whether a signal has arrived
OUTPUT = 1 << 20  # bytes of output that are kept
_LOADED = {"pysmpi", "numpy", "scipy", *sys.stdlib_module_names}

T = TypeVar("T")
JobMaker = Callable[[], Job]

# Makes a job with a number of ranks and arguments of the program.
JobFactory = Callable[[int, Sequence[str]], Job]


class Decider(Protocol):
    """Decides the choices of one execution."""

    def pick(self, kind: str, options: Sequence[Alternative]) -> int:
        """The index of an option."""
        ...

    def attach(self, control: Control) -> None:
        """Decide and watch a run."""

    def enter(self, simulation: Simulation, output: int, files: FileWatch) -> None:
        """The execution begins in this process; `output` is the descriptor of its output."""

    def summary(self) -> object:
        """The record of the decider, for the parent."""

    def schedule(self) -> object:
        """The schedule that repeats the execution."""


@dataclass
class Trial:
    """The outcome of one execution; `trace` is the record of its decider."""

    status: int = 0
    error: str | None = None
    output: bytes = b""
    returns: str = ""
    schedule: str = ""
    seconds: float = 0.0  # of wall time
    killed: bool = False
    trace: Any = None
    modules: Sequence[str] = ()  # that the execution has loaded for all ranks
    shares_files: bool = False  # whether ranks used files that others had changed

    @property
    def failed(self) -> bool:
        """Whether the program failed."""
        return self.status != 0

    @property
    def cause(self) -> str:
        """The cause of a failure, the same for failures of one kind."""
        if not self.failed:
            return ""
        if self.killed:
            return "no end"
        if self.error:
            lines = self.error.strip().splitlines()
            head = lines[0].partition(" at t=")[0].partition(":")[0]
            places = [i for i, line in enumerate(lines) if line.lstrip().startswith('File "')]
            if not places:
                # Of a deadlock, the lines at which ranks wait.
                waits = {
                    found[1]
                    for line in lines[1:]
                    if (found := re.match(r"  ranks? .*\s(\S+:\d+)\b", line))
                }
                return f"{head} at {', '.join(sorted(waits))}" if waits else head
            kinds = [
                line.partition(":")[0] for line in lines[places[-1] :] if not line.startswith(" ")
            ]
            return f"{head}: {(kinds or [''])[0]} in {lines[places[-1]].strip()}"
        return f"exit status {self.status}"

    @property
    def result(self) -> tuple[Any, ...]:
        """The result of the program: its lines of output in any order, and its return values."""
        return tuple(sorted(self.output.splitlines())), self.returns


class ExecutionsLost(Exception):
    """Executions have no outcome, for a reason outside of the program."""


class Executions(Protocol):
    """Executes a job under many deciders, some at the same time."""

    def serve(self, work: Callable[[Executions], T]) -> T:
        """Return `work(self)`, which calls the other methods."""
        ...

    def submit(self, decider: Decider, tag: object) -> None:
        """Begin an execution."""

    @property
    def busy(self) -> bool:
        """Whether the largest number of executions runs."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no execution runs."""
        ...

    def next(self) -> tuple[Any, Trial]:
        """Wait for the end of an execution; return its tag and its outcome."""
        ...

    def stop(self) -> list[object]:
        """Give up all executions; return their tags."""
        ...


class LimitedExecutions:
    """At most `jobs` executions at a time."""

    jobs: int
    _running: Sized

    @property
    def busy(self) -> bool:
        """Whether the largest number of executions runs."""
        return len(self._running) >= self.jobs

    @property
    def idle(self) -> bool:
        """Whether no execution runs."""
        return len(self._running) == 0


class _Served(BaseException):
    """All executions are done: the prepared job ends without a run."""


class _InChild(BaseException):
    """This process is a child: it leaves the work of its parent."""


class _Child:
    def __init__(
        self, pid: int, tag: object, end: int, output: IO[bytes], answer: IO[bytes]
    ) -> None:
        self.pid = pid
        self.tag = tag
        self.end = end  # of a pipe that the child closes at its end
        self.output = output
        self.answer = answer
        self.begun = time.monotonic()
        self.killed = False


class Executor(Untimed, LimitedExecutions):
    """Executes a job under many deciders, `jobs` at a time.

    An execution that takes longer than `timeout` seconds is killed.
    """

    _control: Control  # of the job, from its start on
    _simulation: Simulation

    def __init__(self, make: JobMaker, jobs: int = 1, timeout: float = 60.0) -> None:
        self.make = make
        self.jobs = jobs
        self.timeout = timeout
        self.done = 0
        self._running: dict[int, _Child] = {}
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
            self._session = CheckSession(checkers)
            job.instruments.append(self._session)
        job.instruments.append(self)
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
        assert self._decider is not None
        return self._decider.pick(kind, options)

    # In the parent.

    def submit(self, decider: Decider, tag: object) -> None:
        """Begin an execution, in a child that leaves `work` and runs the job."""
        interruption.check()
        output, answer = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        sys.stdout.flush()
        sys.stderr.flush()
        mine, its = _pipe()
        parent = _getpid()
        pid = _fork()
        if pid:
            _close(its)
            self._running[mine] = _Child(pid, tag, mine, output, answer)
            return
        end_with_parent(parent)
        interruption.disregard()
        _close(mine)
        simulator.begin()
        self._answer, self._output = answer, output
        self._decider = decider
        self._files.begin()
        self._begun = time.perf_counter()
        redirect(output.fileno())
        control = self._control
        decider.attach(control)
        decider.enter(self._simulation, output.fileno(), self._files)
        control.begin()
        raise _InChild

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
                return self._ended(self._running.pop(ready[0][0]))
            now = time.monotonic()
            for child in self._running.values():
                if now - child.begun > self.timeout and not child.killed:
                    child.killed = True
                    _kill(child.pid, signal.SIGKILL)

    def _ended(self, child: _Child) -> tuple[object, Trial]:
        _close(child.end)
        _, status = _waitpid(child.pid, 0)
        self.done += 1
        child.answer.seek(0)
        data = child.answer.read()
        execution: Trial
        if data:
            execution = pickle.loads(data)
            if self.done == 1:
                _load(execution.modules)
        else:
            execution = Trial(status=1, killed=child.killed)
            if child.killed:
                execution.error = (
                    f"no end: the execution was killed after {self.timeout:g} s of wall time"
                )
            else:
                number = os.waitstatus_to_exitcode(status)
                execution.error = f"the execution ended with status {number} and no result"
        child.output.seek(0)
        execution.output = child.output.read(OUTPUT)
        child.output.close()
        child.answer.close()
        return child.tag, execution

    def stop(self) -> list[object]:
        """Kill all executions; return their tags."""
        tags = [child.tag for child in self._running.values()]
        for child in self._running.values():
            _kill(child.pid, signal.SIGKILL)
            _close(child.end)
            _waitpid(child.pid, 0)
        self._running.clear()
        return tags

    # In the child.

    def _report(self, result: Result) -> None:
        sys.stdout.flush()
        execution = Trial(result.exit_status, result.error)
        execution.returns = repr(result.returns)
        self._send(execution)

    def _report_error(self, error: BaseException) -> None:
        execution = Trial(1, f"{type(error).__name__}: {error}")
        self._send(execution)

    def _send(self, execution: Trial) -> None:
        decider, answer = self._decider, self._answer
        assert answer is not None and decider is not None
        execution.seconds = time.perf_counter() - self._begun
        execution.trace = decider.summary()
        execution.schedule = str(decider.schedule())
        execution.shares_files = self._files.shared()
        execution.modules = [name for name in sys.modules if name not in self._modules]
        pickle.dump(execution, answer)
        answer.flush()
        _leave(0)


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
