"""`os.execv` and its relatives in a rank: the rank becomes another program.

The program runs as a child with the rank's variables, directory and descriptors. The rank waits for
it, and ends with its status. Its own program cannot be started again in this way: the new process
would be no rank.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.kinds.rank_environment import here
from pysmpi.isolation.kinds.sent_signals import end_rank
from pysmpi.isolation.simulator import simulates
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.frames import current_site

_LAUNCHERS = frozenset(("mpiexec", "mpirun", "srun", "smpirun", "pysmpi"))


class StartsItselfAgain(UsageError, OSError):
    """A rank replaces itself by its own program."""


def _refuse_itself(path: Any, args: Any) -> None:
    """Raise an error if the new process would be meant to be a rank."""
    given = [os.fsdecode(argument) for argument in args]
    script = sys.argv[0] if sys.argv else ""
    again = bool(script) and any(
        argument == script or os.path.abspath(argument) == os.path.abspath(script)
        for argument in given[1:]
    )
    if not again and os.path.basename(os.fsdecode(path)) not in _LAUNCHERS:
        return
    site = current_site()
    at = f" at {site}" if site is not None else ""
    raise StartsItselfAgain(
        f"rank {ranks.current().index} replaces itself by {' '.join(given)}{at}: the new process "
        "would be no rank; set variables with -x NAME=VALUE and start the program once"
    )


def _become(path: Any, args: Any, env: Any, name: str) -> None:
    if not isinstance(args, tuple | list):
        raise TypeError(f"{name}() arg 2 must be a tuple or list")
    if not args:
        raise ValueError(f"{name}() arg 2 must not be empty")
    if not args[0]:
        raise ValueError(f"{name}() arg 2 first element cannot be empty")
    _refuse_itself(path, args)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    child = os.posix_spawn(path, args, env)
    status = os.waitpid(child, 0)[1]
    shown = os.fsdecode(args[0])
    code = os.waitstatus_to_exitcode(status)
    how = f"became {shown} (os.{name}), which ended with status {code},"
    if code < 0:
        how = f"became {shown} (os.{name}), which was killed by signal {-code},"
        code = 128 - code
    end_rank(ranks.current(), code, how)
    os._exit(code)


def install(patches: Patches) -> None:
    """Let ranks become other programs until the patches are undone."""
    if not hasattr(os, "posix_spawn"):
        return
    real_execv, real_execve = os.execv, os.execve

    def execv(path: Any, argv: Any, /) -> None:
        if here() is None or not simulates():
            real_execv(path, argv)
        try:
            _become(path, argv, dict(os.environ), "execv")
        except StartsItselfAgain:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror) from None

    def execve(path: Any, argv: Any, env: Any) -> None:
        if here() is None or not simulates():
            real_execve(path, argv, env)
        _become(path, argv, dict(env), "execve")

    new: dict[str, tuple[Any, Callable[..., None]]] = {
        "execv": (real_execv, execv),
        "execve": (real_execve, execve),
    }
    for name, (real, function) in new.items():
        replaced = like(real, function)
        patches.set(os, name, replaced)
