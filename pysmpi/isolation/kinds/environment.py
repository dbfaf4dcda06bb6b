"""The operating system's view of a rank: its variables, process number, host, directory."""

from __future__ import annotations

import builtins
import io
import os
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.kinds.descriptors import STANDARD
from pysmpi.isolation.kinds.rank_environment import FIRST_PID, RankEnvironment, here
from pysmpi.isolation.simulator import simulates
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches

_getpid = os.getpid  # value of the operating system

# Variables of all processes that ranks start, beside those of the rank.
for_children: dict[bytes, bytes] = {}


def launcher_variables(rank_environment: RankEnvironment) -> dict[str, str]:
    """The variables of launchers for the place of a process: Open MPI's, MPICH's and PMIx's."""
    rank, size = str(rank_environment.rank), str(rank_environment.invocation.size)
    local_rank, local_size = str(rank_environment.local_rank), str(rank_environment.local_size)
    return {
        "OMPI_COMM_WORLD_RANK": rank,
        "OMPI_COMM_WORLD_SIZE": size,
        "OMPI_COMM_WORLD_LOCAL_RANK": local_rank,
        "OMPI_COMM_WORLD_LOCAL_SIZE": local_size,
        "OMPI_COMM_WORLD_NODE_RANK": local_rank,
        "OMPI_UNIVERSE_SIZE": size,
        "PMI_RANK": rank,
        "PMI_SIZE": size,
        "PMIX_RANK": rank,
        "MPI_LOCALRANKID": local_rank,
        "MPI_LOCALNRANKS": local_size,
    }


# The functions that give the variables of launchers for a rank.
_launchers: list[Callable[[RankEnvironment], dict[str, str]]] = [launcher_variables]
_LAUNCHER = {os.fsencode(name) for name in launcher_variables(RankEnvironment())}


def add_launcher(patches: Patches, variables: Callable[[RankEnvironment], dict[str, str]]) -> None:
    """Set the variables of another launcher in all ranks, until the patches are undone.

    Variables that a rank or the caller of the run has set stay as they are.
    """
    rank = ranks.current()
    common = {**vars(os.environ)["_data"].common}
    absent = {os.fsencode(name) for name in variables(RankEnvironment())} - common.keys()

    def missing(environment: RankEnvironment) -> dict[str, str]:
        return {k: v for k, v in variables(environment).items() if os.fsencode(k) in absent}

    _launchers.append(missing)
    _LAUNCHER.update(absent)
    for other in rank.universe.ranks:
        environment = other.program
        if environment is not None and environment.environ is not None:
            for name, value in missing(environment).items():
                environment.environ.setdefault(os.fsencode(name), os.fsencode(value))

    def undo() -> None:
        _launchers.remove(missing)
        _LAUNCHER.difference_update(absent)

    patches.call_back(undo)


class _Variables(dict[Any, Any]):
    """The mapping behind `os.environ` during a run: a copy of the variables for each rank.

    `os.environ` also passes changes of a rank to the real environment for C libraries
    (`OMP_NUM_THREADS`); the end of the run restores it. As a dictionary this object is empty: every
    access goes to the copy of the rank.
    """

    def __init__(self, common: dict[Any, Any]) -> None:
        super().__init__()
        self.common = common
        self.touched: set[bytes] = set()

    def own(self) -> dict[Any, Any]:
        """The variables of the rank that is running."""
        rank_environment = here()
        if rank_environment is None:
            return self.common
        own = rank_environment.environ
        if own is None:
            own = rank_environment.environ = dict(self.common)
            special: dict[str, str] = {}
            for launcher in _launchers:
                special.update(launcher(rank_environment))
            special.update(rank_environment.invocation.variables or {})
            for name, value in special.items():
                own[os.fsencode(name)] = os.fsencode(value)
        return own

    def __getitem__(self, key: object) -> Any:
        rank_environment = here()
        if rank_environment is not None:
            own = rank_environment.environ
            if own is not None:
                return own[key]
            if key in _LAUNCHER or rank_environment.invocation.variables:
                return self.own()[key]
        # The same for all ranks so far: reading it does not take a copy.
        return self.common[key]

    def __setitem__(self, key: bytes, value: object) -> None:
        self.own()[key] = value
        self.touched.add(key)

    def __delitem__(self, key: bytes) -> None:
        del self.own()[key]
        self.touched.add(key)

    def __contains__(self, key: object) -> bool:
        return key in self.own()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.own())

    def __len__(self) -> int:
        return len(self.own())

    def get(self, key: object, default: object = None) -> Any:
        return self.own().get(key, default)

    def copy(self) -> dict[Any, Any]:
        return self.own().copy()

    def keys(self) -> Any:
        return self.own().keys()

    def values(self) -> Any:
        return self.own().values()

    def items(self) -> Any:
        return self.own().items()

    def __eq__(self, other: object) -> bool:
        return self.own() == other

    def __repr__(self) -> str:
        return repr(self.own())

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        # Copies and pickles of `os.environ` hold a dictionary, as elsewhere.
        return dict, (self.own().copy(),)


def variables_here() -> dict[bytes, bytes]:
    """The variables of the process that runs, on POSIX systems."""
    data: dict[bytes, bytes] = vars(os.environ)["_data"]
    return data.own() if isinstance(data, _Variables) else data


def _patch_environ(patches: Patches) -> None:
    if os.name != "posix":
        return
    common: dict[Any, Any] = vars(os.environ)["_data"]
    variables = _Variables(common)
    environs: list[Any] = [os.environ]
    if hasattr(os, "environb"):
        environs.append(os.environb)
    for environ in environs:
        environ._data = variables

    def restore() -> None:
        for environ in environs:
            environ._data = common
        for key in variables.touched:
            if key in common:
                os.putenv(key, common[key])
            else:
                os.unsetenv(key)

    patches.call_back(restore)
    real = os.system

    def system(command: Any) -> int:
        """Execute the command in a subshell."""
        if here() is None:
            return real(command)
        # The C library uses the environment of the process, not that of the rank.
        child = os.posix_spawn("/bin/sh", ["sh", "-c", os.fsdecode(command)], dict(os.environ))
        return os.waitpid(child, 0)[1]

    patches.set(os, "system", like(real, system))


def _of_children(rank_environment: RankEnvironment, exchange: Exchange) -> dict[bytes, bytes]:
    """The variables of a process that a rank starts, if its program passes none."""
    variables = dict(vars(os.environ)["_data"].items())
    variables.update(rank_environment.state.own.get("variables", {}))  # by `os.putenv`
    variables.update(for_children)
    of_c = exchange.process_states.get("variables of C")
    if of_c is not None:
        variables.update(of_c.changed())
    return {name: value for name, value in variables.items() if value is not None}


def patch_children(patches: Patches, module: Any, exchange: Exchange) -> None:
    """Give children of `subprocess` the variables of their rank if the program passes none."""
    real = module.fork_exec
    environment = 5  # position of the list of variables

    def fork_exec(*args: object) -> object:
        rank_environment = here()
        if rank_environment is None or args[environment] is not None:
            return real(*args)
        variables = _of_children(rank_environment, exchange)
        own = [name + b"=" + value for name, value in variables.items()]
        return real(*args[:environment], own, *args[environment + 1 :])

    new = like(real, fork_exec)
    patches.set(module, "fork_exec", new)
    subprocess = sys.modules.get("subprocess")
    for name in ("_fork_exec",):
        if subprocess is not None and hasattr(subprocess, name):
            patches.set(subprocess, name, new)


def _patch_spawning(patches: Patches, exchange: Exchange) -> None:
    """Give children their variables also if the program passes None for them (Python 3.13)."""

    def filling(real: Any) -> Any:
        def spawn(path: object, argv: object, env: object, /, **options: object) -> object:
            rank_environment = here()
            if env is None and rank_environment is not None:
                env = _of_children(rank_environment, exchange)
            return real(path, argv, env, **options)

        return like(real, spawn)

    if sys.version_info >= (3, 13):
        for name in ("posix_spawn", "posix_spawnp"):
            if hasattr(os, name):
                patches.set(os, name, filling(getattr(os, name)))


def _patch_pid(patches: Patches) -> None:
    real_getpid, real_getppid = os.getpid, os.getppid
    simulator = real_getpid()

    def getpid() -> int:
        rank_environment = here()
        if rank_environment is None or not simulates():
            return real_getpid()
        return FIRST_PID + rank_environment.number

    def getppid() -> int:
        if here() is None or not simulates():
            return real_getppid()
        return simulator

    patches.set(os, "getpid", like(real_getpid, getpid))
    patches.set(os, "getppid", like(real_getppid, getppid))

    def of_process(real: Any) -> object:
        """A function with a process number as first argument."""

        def call(pid: Any, *args: Any) -> Any:
            rank_environment = here()
            if rank_environment is not None and pid == FIRST_PID + rank_environment.number:
                pid = 0 if simulates() else pid
            return real(pid, *args)

        return like(real, call)

    for name in ("getpgid", "getsid", "sched_getaffinity", "sched_setaffinity", "setpgid"):
        if hasattr(os, name):
            patches.set(os, name, of_process(getattr(os, name)))


def _patch_proc(patches: Patches) -> None:
    """Let a rank find itself in `/proc` under its number; it is the simulator there.

    Files that it opens over a standard descriptor, as `open(0)`, leave that open when they close.
    """
    fspath = os.fspath

    def of_path(real: Any) -> Any:
        """A function with a path as first argument."""

        def call(*given: Any, **kwargs: Any) -> Any:
            if not given:
                return real(**kwargs)
            path = given[0]
            if path.__class__ is str and not path.startswith("/proc/"):
                return real(*given, **kwargs)
            args = given[1:]
            name = fspath(path) if hasattr(path, "__fspath__") else path
            if name.__class__ is str and name.startswith("/proc/"):
                rank_environment = here()
                if rank_environment is not None:
                    mine = str(FIRST_PID + rank_environment.number)
                    root, proc, pid, *rest = name.split("/")
                    if pid == mine:
                        path = "/".join((root, proc, "self", *rest))
            elif real is opens and path.__class__ is int and path in STANDARD and len(args) < 6:
                # The file would close the descriptor of all ranks.
                if kwargs.get("closefd", True) and here() is not None:
                    kwargs = {**kwargs, "closefd": False}
            return real(path, *args, **kwargs)

        return like(real, call)

    opens = builtins.open
    replaced = of_path(opens)
    patches.set(io, "open", replaced)
    patches.set(builtins, "open", replaced)
    for name in ("open", "listdir", "readlink", "stat", "lstat", "access", "scandir"):
        if hasattr(os, name):
            patches.set(os, name, of_path(getattr(os, name)))


def _patch_host(patches: Patches) -> None:
    if not hasattr(os, "uname"):
        return
    real_uname = os.uname

    def uname() -> object:
        real = real_uname()
        rank_environment = here()
        if rank_environment is None:
            return real
        return os.uname_result((real[0], rank_environment.host, *real[2:]))

    patches.set(os, "uname", like(real_uname, uname))


def patch_platform(patches: Patches, module: ModuleType) -> None:
    """Give module `platform` the host name of the rank."""
    real_node, real_uname = module.node, module.uname

    def node() -> str:
        rank_environment = here()
        return real_node() if rank_environment is None else rank_environment.host

    def uname() -> object:
        real = real_uname()
        rank_environment = here()
        if rank_environment is None:
            return real
        # The last field is computed at its first use, and is not a part of the constructor.
        host = rank_environment.host
        return type(real)(real.system, host, real.release, real.version, real.machine)

    patches.set(module, "node", like(real_node, node))
    patches.set(module, "uname", like(real_uname, uname))


def install(patches: Patches, exchange: Exchange) -> None:
    """Give every rank its own environment until the patches are undone."""
    _patch_environ(patches)
    _patch_spawning(patches, exchange)
    _patch_pid(patches)
    if sys.platform == "linux":
        _patch_proc(patches)
    _patch_host(patches)
