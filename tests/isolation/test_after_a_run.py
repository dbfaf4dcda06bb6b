"""A run that is over leaves nothing of its machine and its ranks in the process."""

from __future__ import annotations

import gc
import json
import logging
import mimetypes
import string
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import pysmpi
from pysmpi.collectives import registry
from pysmpi.mpi.base.ranks import Rank, Universe, World
from pysmpi.platform import load
from pysmpi.ranks import simulation


@pytest.fixture
def simulations(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """The simulations that have been made."""
    made: list[weakref.ref[Any]] = []

    class Followed(simulation.Simulation):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(weakref.ref(self))

    monkeypatch.setattr("pysmpi.job.job.Simulation", Followed)
    return made


def program() -> None:
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    MPI.Alloc_mem(1 << 20)
    comm.Allreduce(np.ones(10), np.empty(10))
    comm.bcast("text")
    MPI.Win.Allocate(1 << 20, comm=comm)
    comm.Dup().Barrier()


@pytest.mark.parametrize(
    "options",
    [
        {"selector": "mpich"},
        {"selector": "automatic"},
        {"coll": {"allreduce": "automatic"}, "reduction_order": "algorithm"},
    ],
)
def test_machine_and_engine_go(
    options: dict[str, Any], simulations: list[weakref.ref[Any]]
) -> None:
    platform = load("cluster")
    machine = weakref.ref(platform)
    result = pysmpi.run(program, 4, compute="none", platform=platform, **options)
    del platform
    gc.collect()
    assert result.exit_status == 0
    assert len(simulations) == 1
    assert simulations[0]() is None
    assert machine() is None


def test_so_they_do_after_a_failure(simulations: list[weakref.ref[Any]]) -> None:
    def fail() -> None:
        program()
        raise ValueError("wrong")

    platform = load("cluster")
    machine = weakref.ref(platform)
    pysmpi.run(fail, 4, compute="none", platform=platform, selector="automatic", check=False)
    del platform
    gc.collect()
    assert [simulations[0](), machine()] == [None, None]


def ends(end: str) -> None:
    """A rank that has not initialized MPI, or has finalized it, and waits; and one that ends."""
    import os
    import signal
    import sys
    import time

    import mpi4py

    mpi4py.rc.initialize = end == "finalized"
    from mpi4py import MPI

    if end == "finalized":
        MPI.Finalize()
    if end == "deadlock":
        MPI.Init()
        MPI.COMM_WORLD.recv()
    signal.setitimer(signal.ITIMER_REAL, 50.0)
    if os.environ["PMI_RANK"] == "0":
        time.sleep(20)
    elif end == "raise":
        raise ValueError("wrong")
    elif end == "sys.exit":
        sys.exit(3)
    elif end == "os._exit":
        os._exit(3)
    elif end in ("abort", "finalized"):
        os.abort()


ENDS = ["return", "raise", "sys.exit", "os._exit", "abort", "finalized", "deadlock", "fault"]


STOPPED = {"os._exit", "abort", "finalized"}  # the frames of such a rank stay as they are


def held(thing: object, wanted: set[type]) -> bool:
    """Whether a container of a module holds objects of some classes."""
    if isinstance(thing, dict | weakref.WeakKeyDictionary | weakref.WeakValueDictionary):
        things = [*thing.keys(), *thing.values()]
    else:
        things = list(thing) if isinstance(thing, list | set | weakref.WeakSet) else []
    return any(type(one) in wanted for one in things)


@pytest.mark.parametrize("end", ENDS)
def test_no_table_of_a_module_keeps_a_rank(end: str, simulations: list[weakref.ref[Any]]) -> None:
    faults = ["rank=1@1ms"] if end == "fault" else []
    pysmpi.run(ends, 2, args=(end,), compute="none", check=False, fault=faults)
    wanted = {Rank, World, Universe, simulation.Simulation}
    tables = [
        f"{name}.{key}"
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "pysmpi"
        for key, thing in list(vars(module).items())
        if held(thing, wanted)
    ]
    assert tables == []
    gc.collect()
    if end not in STOPPED:
        assert simulations[-1]() is None


def test_a_rank_goes_although_another_was_stopped_as_it_stood() -> None:
    """The first waits for a child, and its loggers have an object of its own."""
    handlers: list[weakref.ref[Any]] = []

    def end() -> None:
        import logging
        import os
        import subprocess

        if os.environ["PMI_RANK"] == "1":
            subprocess.run(["true"], capture_output=True, check=True)
            os._exit(0)
        logging.captureWarnings(True)
        handler = logging.StreamHandler()
        logging.getLogger("a").addHandler(handler)
        handlers.append(weakref.ref(handler))
        subprocess.run(["sleep", "0.1"], capture_output=True, check=True)

    before = len(logging._handlerList)  # type: ignore[attr-defined]
    pysmpi.run(end, 2, compute="none", check=False)
    gc.collect()
    assert [handler() for handler in handlers] == [None]
    assert len(logging._handlerList) <= before  # type: ignore[attr-defined]


def resident() -> int:
    """The memory of this process (bytes)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's /proc")
def test_the_standard_library_is_as_the_caller_left_it_before_each_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also what the caller has changed between two runs."""

    def change() -> None:
        string.digits = "changed"
        string.added = json.JSONDecoder.added = True  # type: ignore[attr-defined]
        json.JSONDecoder.own = "changed"  # type: ignore[attr-defined]
        mimetypes.types_map[".own"] = "changed"

    for value in ("one", "two", "two"):
        monkeypatch.setattr(string, "digits", value)
        monkeypatch.setattr(json.JSONDecoder, "own", value, raising=False)
        monkeypatch.setitem(mimetypes.types_map, ".own", value)
        pysmpi.run(change, nprocs=2)
        assert string.digits == json.JSONDecoder.own == value  # type: ignore[attr-defined]
        assert mimetypes.types_map[".own"] == value
        assert not hasattr(string, "added") and not hasattr(json.JSONDecoder, "added")


def test_memory_stays_flat() -> None:
    def allocate() -> None:
        from mpi4py import MPI

        MPI.memory.fromaddress(0, 0)
        block = MPI.Alloc_mem(1 << 20)
        block[:] = b"\1" * len(block)
        MPI.COMM_WORLD.Barrier()

    for _ in range(5):
        pysmpi.run(allocate, 4, compute="none")
    before = resident()
    for _ in range(30):
        pysmpi.run(allocate, 4, compute="none")
    assert resident() - before < 40 << 20  # they have allocated 120 MB in all


def test_the_selector_of_a_file_goes(tmp_path: Path) -> None:
    path = tmp_path / "choice.txt"
    path.write_text("bcast\n    else  binomial_tree\n")
    during = []

    def look() -> None:
        from mpi4py import MPI

        MPI.COMM_WORLD.bcast("text")
        during.extend(registry._of_files)

    result = pysmpi.run(look, 2, compute="none", selector=str(path))
    gc.collect()
    assert result.selector in during
    assert not registry.is_selector(result.selector)
    assert not any(str(path) in name for name in registry.SELECTORS.names())
