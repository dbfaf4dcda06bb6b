"""The expected results of mpi4py's suite: its files, and tests left out, skipped, or failing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FILES = """
address attributes buffer cco_buf cco_buf_inter cco_nb_buf cco_nb_vec cco_ngh_buf cco_ngh_obj
cco_obj cco_obj_inter cco_pr_buf cco_pr_ngh_buf cco_pr_vec cco_vec cco_vec_inter cffi comm
comm_inter comm_topo ctypes datatype doc dynproc environ errhandler errorcode exceptions file
grequest group handle info io mpiabi mpiapi mpimem msgspec msgzero objmodel op p2p_buf
p2p_buf_matched p2p_buf_part p2p_obj p2p_obj_matched pack package pickle request rma rma_nb
session spawn status subclass threads toplevel ulfm util_dtlib util_pkl5 util_pool util_sync win
""".split()

#: Tests that do not apply to an MPI that is no compiled library, each with its reason.
EXCLUDED = {
    "test_mpiapi": "reads the symbols of the compiled module MPI, and MPI.pxd beside it",
    "test_package.TestMPIABI.testGetFromLibMPI": "loads the compiled libmpi with dlopen",
    "test_package.TestMPIABI.testLibMPI": "asks the compiled libmpi with dlopen",
}

#: Reasons for which tests skip themselves; a real MPI skips them here, too.
SKIPS = {
    "cupy": "no GPU",
    "numba": "no GPU",
    "dill": "not installed",
    "cffi": "not installed",
    "mpi-world-size<2": "needs more ranks",
    "mpi-world-size>1": "needs a rank alone",
    "comm.size==1": "needs more ranks",
}

#: Tests that fail, each with its reason. A test in this list that passes is an error, too.
KNOWN_FAILURES: dict[str, str] = {}

#: CPU seconds of the files that take longest, a rank, to share them out among processes.
SECONDS = {
    "util_dtlib": 28.0,
    "rma_nb": 6.1,
    "rma": 6.1,
    "io": 5.5,
    "msgspec": 5.1,
    "cco_ngh_buf": 4.2,
    "pack": 3.2,
    "datatype": 2.8,
    "cco_pr_vec": 2.5,
    "p2p_buf_part": 2.2,
    "cco_nb_vec": 2.1,
    "cco_vec": 2.0,
    "cco_pr_ngh_buf": 2.0,
    "cco_buf": 1.7,
    "cco_pr_buf": 1.6,
    "p2p_buf": 1.6,
    "cco_nb_buf": 1.4,
    "address": 0.4,
    "util_pkl5": 0.4,
    "cco_buf_inter": 0.3,
    "cco_vec_inter": 0.3,
}
OTHERS = 0.03  # of each of the other files


#: Files whose tests need no other rank, or send to their own.
ALONE = ("address", "datatype", "msgspec", "pack", "util_dtlib")

#: Files that run in every case with all kinds of arrays, and on three ranks.
WHOLE = ("cco_buf", "p2p_buf")


@dataclass(frozen=True)
class Part:
    """Files that run together: on so many ranks, with arguments of main.py, and variables."""

    nprocs: int
    files: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


def short(files: Sequence[str]) -> list[Part]:
    """All files in about a quarter of the time that they need on 3 ranks.

    Files without messages run alone, with the short list of type codes that mpi4py has for runs
    that measure its coverage; long ones run on 2 ranks, with numpy's arrays only.
    """
    alone = tuple(name for name in files if name in ALONE)
    long = tuple(
        name for name in files if SECONDS.get(name, OTHERS) > 1 and name not in (*ALONE, *WHOLE)
    )
    rest = tuple(name for name in files if name not in (*alone, *long))
    return [
        Part(1, alone, variables=(("COVERAGE_RUN", "true"),)),
        Part(2, long, arguments=("--no-array",)),
        Part(3, rest),
    ]


def shared_out(files: Sequence[str], jobs: int) -> list[list[str]]:
    """The files in groups that take about equally long."""
    groups: list[list[str]] = [[] for _ in range(jobs)]
    loads = [0.0] * jobs
    for name in sorted(files, key=lambda name: -SECONDS.get(name, OTHERS)):
        lightest = loads.index(min(loads))
        groups[lightest].append(name)
        loads[lightest] += SECONDS.get(name, OTHERS)
    return [sorted(group) for group in groups if group]
