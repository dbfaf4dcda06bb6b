"""Signals that a rank sends to itself, to other ranks or to its process group; `os.abort`.

The operating system knows one process for all ranks. A signal without a handler, which would end
this process, ends the rank that it is meant for. A handler of another rank runs when that rank
sleeps or waits the next time.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.exits import EXIT_HARD
from pysmpi.isolation.kinds.rank_environment import FIRST_PID, RankEnvironment, here
from pysmpi.isolation.simulator import process, simulates
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.time import alarms

_raise, _getsignal = signal.raise_signal, signal.getsignal
# Signals that do not end a process without a handler.
_HARMLESS = frozenset(
    getattr(signal, name)
    for name in ("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH", "SIGSTOP", "SIGTSTP", "SIGTTIN",
                 "SIGTTOU")
    if hasattr(signal, name)
)  # fmt: skip
_UNCAUGHT = (signal.SIGKILL,) if hasattr(signal, "SIGKILL") else ()


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def end_rank(rank: ranks.Rank, status: int, how: str) -> None:
    """End a rank as a signal ends a process; does nothing if no simulation runs it."""
    universe = getattr(rank, "universe", None)
    exit_hard = None if universe is None else EXIT_HARD.peek(universe)
    if rank.program is not None and exit_hard is not None:
        exit_hard(rank, status, how)


def _send_to_itself(number: int, send: Callable[[], Any]) -> Any:
    """A signal of the running rank to itself."""
    if number not in signal.valid_signals():
        return send()
    handler = signal.getsignal(number) if number not in _UNCAUGHT else signal.SIG_DFL
    if number == signal.SIGINT and handler == signal.default_int_handler:
        signal.default_int_handler(number, None)
    if handler == signal.SIG_DFL and number not in _HARMLESS:
        end_rank(ranks.current(), 128 + number, f"was killed by {_name(number)}")
    return send()


def _handler_of(exchange: Exchange, target: RankEnvironment, number: int) -> object:
    """The handler of a rank that is not running."""
    handlers = exchange.process_states.get("signals")
    common = _getsignal(number)
    if handlers is not None:
        common = handlers.shared.get(number, common)
    handler = target.state.own.get("signals", {}).get(number, common)
    if str(getattr(handler, "__module__", "")).startswith("pysmpi."):
        return signal.SIG_DFL  # that of the simulator
    return handler


def _send_to_other(exchange: Exchange, target: ranks.Rank, number: int) -> None:
    sender = ranks.current()
    handler: Any = signal.SIG_DFL
    if number and number not in signal.valid_signals():
        raise OSError(22, os.strerror(22))
    if number and number not in _UNCAUGHT:
        handler = _handler_of(exchange, target.program, number)
    if number == 0 or handler == signal.SIG_IGN:
        return
    if callable(handler) and handler != signal.default_int_handler:
        alarms.send(target, number)
    elif number not in _HARMLESS:
        how = f"was killed by {_name(number)}, which rank {sender.index} sent"
        end_rank(target, 128 + number, how)


def _rank_of(pid: object) -> ranks.Rank | None:
    """The rank with a process number, if it runs."""
    universe: Any = getattr(ranks.current(), "universe", None)
    for rank in universe.ranks if universe is not None else ():
        program = rank.program
        if program is not None and pid == FIRST_PID + program.number:
            return None if getattr(rank.fiber, "dead", False) else rank
    return None


def install(patches: Patches, exchange: Exchange) -> None:
    """Let signals of ranks reach ranks until the patches are undone."""
    real_kill, real_killpg = os.kill, getattr(os, "killpg", None)
    real_raise, real_abort = signal.raise_signal, os.abort

    def kill(pid: int, signal: int, /) -> None:
        environment = here()
        if environment is None or not isinstance(pid, int):
            return real_kill(pid, signal)
        mine = FIRST_PID + environment.number
        group = pid < 0 and -pid in (mine, _group())
        if not simulates():
            return real_kill(process() if pid == mine else pid, signal)
        if pid in (0, mine) or group:
            _send_to_itself(int(signal), lambda: real_kill(process(), signal))
        elif pid >= FIRST_PID:
            target = _rank_of(pid)
            if target is None:
                raise ProcessLookupError(3, os.strerror(3))
            _send_to_other(exchange, target, int(signal))
        else:
            real_kill(pid, signal)
        return None

    def killpg(pgid: int, signal: int, /) -> None:
        assert real_killpg is not None
        environment = here()
        if environment is None or not simulates():
            real_killpg(pgid, signal)
        elif pgid in (0, FIRST_PID + environment.number, _group()):
            kill(0, signal)
        else:
            real_killpg(pgid, signal)

    def raise_signal(signalnum: int, /) -> None:
        if here() is None or not simulates():
            return real_raise(signalnum)
        _send_to_itself(int(signalnum), lambda: real_raise(signalnum))
        return None

    def abort() -> None:
        if here() is not None and simulates():
            end_rank(ranks.current(), 128 + signal.SIGABRT, "called os.abort()")
        real_abort()

    patches.set(os, "kill", like(real_kill, kill))
    if real_killpg is not None:
        patches.set(os, "killpg", like(real_killpg, killpg))
    patches.set(signal, "raise_signal", like(real_raise, raise_signal))
    patches.set(os, "abort", like(real_abort, abort))
    if hasattr(signal, "pthread_kill"):
        real_thread = signal.pthread_kill

        def pthread_kill(thread_id: int, signalnum: int, /) -> None:
            if here() is None or not simulates():
                return real_thread(thread_id, signalnum)
            if all(thread.ident != thread_id for thread in threading.enumerate()):
                raise ProcessLookupError(3, os.strerror(3))
            raise_signal(signalnum)
            return None

        patches.set(signal, "pthread_kill", like(real_thread, pthread_kill))


def _group() -> int:
    return os.getpgrp() if hasattr(os, "getpgrp") else -1
