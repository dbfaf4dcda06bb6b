"""What the operating system tells a rank: its variables, process number, host, directory."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from pysmpi.mpi import rank as ranks
from pysmpi.runtime.patches import Patches
from pysmpi.runtime.surroundings import Surroundings, here
from pysmpi.runtime.switches import Switches

# Beyond what an operating system gives (Linux: 4194304), so that no real process is meant.
FIRST_PID = 5_000_000


def launcher_variables(surroundings: Surroundings) -> dict[str, str]:
    """The variables by which launchers tell a process its place: Open MPI's, MPICH's and PMIx's."""
    rank, size = str(surroundings.rank), str(surroundings.size)
    local_rank, local_size = str(surroundings.local_rank), str(surroundings.local_size)
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


_LAUNCHER = frozenset(os.fsencode(name) for name in launcher_variables(Surroundings()))


class RankEnviron(os._Environ):  # type: ignore[type-arg]
    """The class of `os.environ` during a run: each rank has a copy of the variables.

    What a rank sets is also passed on to the real environment, where C libraries look
    (`OMP_NUM_THREADS`); the end of the run takes it back.
    """

    touched: set[Any] = set()

    @property
    def _data(self) -> dict[Any, Any]:
        common: dict[Any, Any] = self.__dict__["_data"]
        surroundings = here()
        if surroundings is None:
            return common
        own = surroundings.environ
        if own is None:
            own = surroundings.environ = dict(common)
            special = launcher_variables(surroundings)
            special.update(surroundings.variables or {})
            for name, value in special.items():
                own[os.fsencode(name)] = os.fsencode(value)
        return own

    def __getitem__(self, key: Any) -> Any:
        surroundings = here()
        if surroundings is not None and surroundings.environ is None:
            encoded = self.encodekey(key)
            if encoded not in _LAUNCHER and not surroundings.variables:
                # The same for all ranks so far: reading it does not take a copy.
                try:
                    return self.decodevalue(self.__dict__["_data"][encoded])
                except KeyError:
                    raise KeyError(key) from None
        return super().__getitem__(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.touched.add(self.encodekey(key))

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self.touched.add(self.encodekey(key))


def _patch_environ(patches: Patches) -> None:
    if os.name != "posix":
        return
    environs: list[Any] = [os.environ]
    if hasattr(os, "environb"):
        environs.append(os.environb)
    RankEnviron.touched = set()
    for environ in environs:
        environ.__class__ = RankEnviron

    def restore() -> None:
        for environ in environs:
            environ.__class__ = os._Environ
        common: dict[Any, Any] = vars(os.environ)["_data"]
        for key in RankEnviron.touched:
            if key in common:
                os.putenv(key, common[key])
            else:
                os.unsetenv(key)

    patches.call_back(restore)


def _patch_pid(patches: Patches) -> None:
    real_getpid, real_getppid, real_kill = os.getpid, os.getppid, os.kill
    simulator = real_getpid()

    def getpid() -> int:
        surroundings = here()
        if surroundings is None or real_getpid() != simulator:
            return real_getpid()
        return FIRST_PID + surroundings.number

    def getppid() -> int:
        if here() is None or real_getpid() != simulator:
            return real_getppid()
        return simulator

    def kill(pid: int, signal: int) -> None:
        surroundings = here()
        if surroundings is not None and pid == FIRST_PID + surroundings.number:
            pid = simulator
        real_kill(pid, signal)

    getpid.__doc__, getppid.__doc__, kill.__doc__ = (
        real_getpid.__doc__,
        real_getppid.__doc__,
        real_kill.__doc__,
    )
    patches.set(os, "getpid", getpid)
    patches.set(os, "getppid", getppid)
    patches.set(os, "kill", kill)


def _patch_host(patches: Patches) -> None:
    if not hasattr(os, "uname"):
        return
    real_uname = os.uname

    def uname() -> Any:
        real = real_uname()
        surroundings = here()
        if surroundings is None:
            return real
        return os.uname_result((real[0], surroundings.host, *real[2:]))

    patches.set(os, "uname", uname)


def patch_platform(patches: Patches, module: ModuleType) -> None:
    """Give module `platform` the host name of the rank."""
    real_node, real_uname = module.node, module.uname

    def node() -> str:
        surroundings = here()
        return real_node() if surroundings is None else surroundings.host

    def uname() -> Any:
        real = real_uname()
        surroundings = here()
        if surroundings is None:
            return real
        # The last field is computed when it is asked for, and not a part of the constructor.
        return type(real)(real.system, surroundings.host, real.release, real.version, real.machine)

    patches.set(module, "node", node)
    patches.set(module, "uname", uname)


def _patch_directory(patches: Patches, switches: Switches) -> None:
    """Let `os.chdir` change the directory of one rank.

    The operating system knows one directory of the process; once a rank has changed it, that of
    each rank is restored when the rank goes on.
    """
    real_chdir = os.chdir
    common = ""  # of ranks that have not changed it
    actual = ""

    def follow(rank: Any) -> None:
        nonlocal actual
        wanted = rank.program.directory or common
        if wanted != actual:
            real_chdir(wanted)
            actual = wanted

    def chdir(path: Any) -> None:
        nonlocal common, actual
        rank = ranks.current()
        if rank.program is None:
            real_chdir(path)
            return
        if not common:
            common = os.getcwd()
            patches.call_back(lambda: real_chdir(common))
        real_chdir(path)
        actual = rank.program.directory = os.getcwd()
        switches.watch(rank, follow)

    def fchdir(fd: int) -> None:
        if ranks.current().program is None:
            real_fchdir(fd)
        else:
            chdir(fd)

    chdir.__doc__ = real_chdir.__doc__
    patches.set(os, "chdir", chdir)
    if hasattr(os, "fchdir"):
        real_fchdir = os.fchdir
        fchdir.__doc__ = real_fchdir.__doc__
        patches.set(os, "fchdir", fchdir)


def install(patches: Patches, switches: Switches) -> None:
    """Give every rank an environment of its own until the patches are undone."""
    _patch_environ(patches)
    _patch_pid(patches)
    _patch_host(patches)
    _patch_directory(patches, switches)
