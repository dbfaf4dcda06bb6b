"""The labels that count: those of the suites, set right where MPI 4.1 contradicts them."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.mbi.__main__ import CLASSES
from tests.mbi.source import Code

#: Programs with a label of an error that are right, and the paragraph of MPI 4.1.
RIGHT = {
    "(conflo/)?pt2pt/MissingCall-MPIWait": "3.7.3: an active request may be freed",
    "usertypes/ArgMismatch-MPIRecv-Type-[236]": "3.2.4: a receive may be longer than the message",
    "usertypes/ArgError-MPITypeCreateStruct-Count-[123]": "5.1.2: a part of a record is a datatype",
    "conflo/usertypes/ArgError-MPITypeCreateStruct-Count-1": "5.1.2: as above",
    "(conflo/)?rma/ArgError-MPIWinCreate-overlap": "12.2.1: windows may overlap",
    "rma/ArgError-MPIWinFence-assert": "12.5.1: no assertion but 0 is given",
    "data_race/data_race_i?bcast": "3.4: the other thread writes to elements that are not sent",
    "threading/missing_threading_level_check": "11.2.1: the level is the one that is asked for",
    "[^/]*/ReqLifecycle_MissingWait_(Isend|Send_init)_.*": "3.9: an active send may be freed",
}
#: Programs without a label of an error that are wrong, the paragraph, and the code that is right.
WRONG = {
    "(Correct|LocalConcurrency)-fence-.*(rput|rget|raccumulate)|010-MPI-sync-request-local-no": (
        "12.3.5: operations with a request need a passive epoch",
        "PSM123",
    ),
    "040-MPI-conflict-put-put-same-array-remote-no": ("12.5: an access needs an epoch", "PSM123"),
    "015-MPI-coll-get-broadcast-remote-no": ("12.7: the broadcast writes what Get reads", "PSM124"),
    "(012-MPI-sync-pscw-local|034-MPI-sync-pscw-remote)-no": ("7.3.3: a group is freed", "PSM119"),
    "(008-MPI-dynamic-win-in-array|022-MPI-static-win-in-array|026-MPI-static-mult-win)-local-no": (
        "12.2.5, 11.2.2: windows are freed before Finalize",
        "PSM119",
    ),
    "dtype_send|inactivereq|sendrecv3": (
        "3.7.2: a receive writes to the buffer of an operation that is not complete",
        "PSM116",
    ),
    "LocalConcurrency_(lloutwindow_|)Win_lock_.*_ok": (
        "12.7: rank 1 writes to its window while rank 0 may access it",
        "PSM124",
    ),
    "P2PCallMatching_.*_ok": (
        "3.5: two sends wait for each other, unless MPI buffers them",
        "PSM101 PSM122",
    ),
    "MessageRace_(Gather|Scatter)_.*_ok": (
        "6.5, 6.6: the root's array has room for one of the ranks",
        "PSM103 PSM105",
    ),
    "rma/nb_test": ("12.5.3: Lock may wait for the holder, which waits in Barrier", "PSM101"),
    "io/async_any": ("3.7.2: pending reads of a file have one buffer", "PSM116"),
    "rma/(mixedsync|atomic_get)": (
        "12.5.1: Lock, Put, Unlock between two fences, of which the first opens an epoch",
        "PSM123",
    ),
    "comm/inactive_reqs": (
        "3.9, 11.2.2: persistent requests are never started, and not freed",
        "PSM118",
    ),
    "part/nonblocking_pready": ("3.2.2: the null handle is no datatype", "PSM105"),
    "coll/nonblocking": (
        "6.9: displacements of Alltoallw are bytes; parts of the receive buffer overlap",
        "PSM116",
    ),
    "correct/data_race_isend$": ("3.7.2: a thread writes to what another one sends", "PSM115"),
    "correct/data_race_isend_3": ("3.7.2: a thread writes to the buffer of its Irecv", "PSM115"),
    "correct/two_collectives_4": ("6.14: calls of threads that have no order", "PSM125"),
    "correct/two_collectives_5": ("6.14: each thread of rank 0 broadcasts twice", "PSM111"),
    "correct/two_collectives_7": ("3.3.1: an array of int is described as MPI_FLOAT", "PSM113"),
}
#: Programs that are left out: Python or mpi4py cannot express the error, or MPI leaves it open.
LEFT = {
    "private_(after_send|bcast|ibcast|isend|send)": "variables of Python have a value and live on",
    "nondeterministic_deadlock": "a task of OpenMP may wait for its thread; threads do not",
    "deadlock_task_send_recv": "as above",
    "ArgError-MPITest-Status": "a status of NULL is None in mpi4py, which ignores it",
    "ArgError-MPIWinCreate-(size|invalidBuffer-2)": "memory has a length, and lives on",
    "MisplacedCall-MPIWinFree-bufferFree": "memory lives as long as its use",
    "ArgError-MPISend-Tag-2": "9.1.2: MPI_TAG_UB is a key; whether its value may be a tag is open",
    "ArgError-MPI(I|)Recv-Tag": "the number -1 is ANY_TAG in MPICH and here",
    "ArgError-MPI(Get|Put)-rank": "the number -1 is PROC_NULL in MPICH and here",
    ".*-impossible-local-yes": "the statements at fault are not executed",
}
_RACE = "PSM115 PSM116 PSM121 PSM124"


class Judged(NamedTuple):
    """A kind of error (empty for correct), the codes that are right for it, why it is left out."""

    kind: str
    expected: str
    left: str


def judged(code: Code) -> Judged:
    """The label that counts for a test."""
    name = code.path.stem
    for pattern, reason in LEFT.items():
        if code.error and re.fullmatch(pattern, name):
            return Judged(code.error, "", reason)
    if name.startswith("InputHazard") and code.arguments == ("1",):
        return Judged(code.error, "", "the statements at fault are not executed with this argument")
    place = "conflo/" * ("conflo" in code.path.parts) + f"{code.path.parent.name}/{name}"
    for pattern in RIGHT:
        if code.error and re.fullmatch(pattern, place):
            return Judged("", "", "")
    for pattern, (_, right) in WRONG.items():
        if re.match(pattern, name) or re.match(pattern, place):
            return Judged("wrong by MPI 4.1", right, "")
    race = _RACE if code.error.endswith(" race") else ""
    return Judged(code.error, CLASSES.get(code.error, race), "")
