"""Scripts whose outputs differ for a reason that a user would accept."""

_COUNTS = "counts that are NULL are an error of the class MPI_ERR_ARG, as in MPICH"
DIFFERENT: dict[str, str] = {
    "examples/smpi/gemm/gemm.tesh": (
        "the program has one buffer for both sides of MPI_Gather, which MPICH refuses too"
    ),
    "teshsuite/smpi/auto-shared/auto-shared.tesh": "malloc does not share memory between ranks",
    "teshsuite/smpi/coll-allgatherv/coll-allgatherv.tesh": _COUNTS,
    "teshsuite/smpi/coll-allreduce/coll-allreduce-automatic.tesh": (
        "SimGrid logs which algorithm its automatic selector has found to be the quickest"
    ),
    "teshsuite/smpi/coll-alltoallv/coll-alltoallv.tesh": _COUNTS,
    "teshsuite/smpi/coll-reduce-scatter/coll-reduce-scatter.tesh": _COUNTS,
    "teshsuite/smpi/coll-allreduce-with-leaks/coll-allreduce-with-leaks.tesh": (
        "a communicator that is never freed gives the exit status 3 where leaks are asked for"
    ),
    "teshsuite/smpi/macro-partial-shared/macro-partial-shared.tesh": (
        "each rank has partly shared memory for itself, which the program notices"
    ),
    "teshsuite/smpi/pt2pt-pingpong/broken_hostfiles.tesh": "the messages are pysmpi's own",
    "teshsuite/smpi/timers/timers.tesh": "a call of the operating system takes 1 us at least",
}
