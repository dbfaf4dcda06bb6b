"""The child of a fork: a separate process without simulation.

It continues alone with the state of the rank (its modules, arguments, variables): real time, real
threads, real waits. When the program of the rank ends in it, the process ends.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from greenlet import getcurrent

from pysmpi.isolation.kinds.environment import for_children
from pysmpi.isolation.kinds.exits import HardExit
from pysmpi.isolation.kinds.rank_environment import RankEnvironment
from pysmpi.isolation.program_errors import strip
from pysmpi.mpi.base import ranks

# The attribute of a thread for its handle; Python 3.11 and 3.12 have none.
HANDLE = "_os_thread_handle" if sys.version_info >= (3, 14) else "_handle"

_exit, _getpid = os._exit, os.getpid
# A rank sees Python's handlers in place of pysmpi's; a child has to replace the real ones.
_signal, _getsignal = signal.signal, signal.getsignal
_mask = getattr(signal, "pthread_sigmask", None)
_ENDING = {
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
}


class _Forked(ranks.Rank):
    """A rank in a process that it has forked: it takes part in no simulation."""

    __slots__ = ()

    def enter(self) -> NoReturn:
        """Refuse a call that takes part in the simulation."""
        _refuse()

    def now(self) -> float:
        """The date of the fork."""
        return self.engine.now + self.process.debt

    def settle(self) -> None:
        """Do nothing: no time passes any more."""


class _NoTimer:
    """The timer of such a rank: the boundary of MPI calls stops it first."""

    def stop(self) -> NoReturn:
        """Refuse a call that takes part in the simulation."""
        _refuse()

    def start(self) -> None:
        """Nothing is measured."""


# Called with False before a fork, and with True after it in the parent: by those who have threads.
around: list[Callable[[bool], object]] = []


def fork(real: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Call `os.fork` or `os.forkpty` and make a plain process of the child.

    A signal that arrives before the child has replaced pysmpi's handlers would interrupt a
    simulation that the child does not have. Such signals wait until then.
    """
    threading.current_thread()  # makes the rank's thread known, which the child looks up
    for ask in around:
        ask(False)
    before = None if _mask is None else _mask(signal.SIG_BLOCK, _ENDING)
    parent = _getpid()
    try:
        answer = real(*args, **kwargs)
        if not (answer[0] if isinstance(answer, tuple) else answer):
            _become_plain()
        return answer
    finally:
        if _getpid() == parent:
            for ask in around:
                ask(True)
        if _mask is not None and before is not None:
            _mask(signal.SIG_SETMASK, before)


def _become_plain() -> None:
    """Make a process of the child that a rank has just forked."""
    rank = ranks.current()
    rank_environment = rank.program
    if rank_environment is None:
        return
    engine = rank.engine
    engine.before = engine.idle = None
    _use_default_handlers()
    fiber: Any = ranks.fiber_of(getcurrent())
    variables = os.environ.copy()
    rank.timer = _NoTimer()
    rank.program = None  # from here on every replaced function is the real one
    rank.process = fiber.process
    fiber.process.suspend = _refuse
    if type(rank) is ranks.Rank:
        rank.__class__ = _Forked
    _keep_variables(variables)
    _keep_exit_functions(rank_environment)
    _become_main_thread()


def _use_default_handlers() -> None:
    """Replace the handlers that end a simulation by those that Python starts with."""
    for number in _ENDING:
        owner = getattr(_getsignal(number), "__module__", "")
        if str(owner).startswith("pysmpi"):
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            _signal(number, usual)


def _refuse() -> NoReturn:
    rank = ranks.current()
    raise RuntimeError(
        f"process {_getpid()} was forked by rank {rank.index} and is no rank: MPI calls that take "
        "part in communication belong into the rank itself"
    )


def _keep_variables(own: dict[str, str]) -> None:
    """Let the child have the environment variables of its rank."""
    for name in set(os.environ) - set(own):
        del os.environ[name]
    for name, value in own.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    for name_of_ours, text in for_children.items():
        os.putenv(name_of_ours, text)  # for programs that the child starts; it sees none of ours


def _keep_exit_functions(rank_environment: RankEnvironment) -> None:
    """Let the child have the exit functions of its rank, and none of the simulation's process."""
    atexit._clear()
    for function, arguments, keywords in rank_environment.at_exit or ():
        atexit.register(function, *arguments, **keywords)


def _become_main_thread() -> None:
    """Make the thread of the rank the main thread of this process in `threading`."""
    state: Any = threading
    thread = state._main_thread  # it determined the surviving thread at the fork
    ident = threading.get_ident()
    thread._ident = ident
    if hasattr(state, "_make_thread_handle"):
        setattr(thread, HANDLE, state._make_thread_handle(ident))
    state._active.clear()
    state._active[ident] = thread
    state._after_fork()
    if hasattr(thread, "_set_tstate_lock"):
        thread._set_tstate_lock()


def _show(error: BaseException) -> None:
    """Show an exception as Python does, without frames of pysmpi."""
    trace = strip(error.__traceback__)
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def leave() -> NoReturn:
    """End this process as Python does after the end of a program, or after its exception."""
    error = sys.exc_info()[1]
    status = 0
    if isinstance(error, HardExit):
        _exit(int(error.code or 0))
    if isinstance(error, SystemExit):
        if isinstance(error.code, int) or error.code is None:
            status = error.code or 0
        else:
            print(error.code, file=sys.stderr)
            status = 1
    elif error is not None:
        _show(error)
        status = 1
    shutdown: Any = vars(threading)["_shutdown"]
    for step in (shutdown, atexit._run_exitfuncs):
        try:
            step()
        except BaseException as failure:
            _show(failure)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            status = status or 120
    _exit(status & 0xFF)
