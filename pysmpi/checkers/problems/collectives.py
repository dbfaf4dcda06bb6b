"""Problems of collective calls: calls and arguments that differ."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class CallsDiffer(Diagnostic):
    """The ranks of a communicator did not make the same collective calls in the same order.

    The report names the first call that differs, with the line of each rank: another operation, the
    blocking form against the non-blocking one, or no call at all.

    ## Why it is bad

    Collective calls match by their order on the communicator alone. With other operations, ranks
    wait for ever, or take the messages of another call as their data. Some of these programs end,
    because a broadcast does not wait for its receivers, and fail with another library, size or
    number of ranks.

    ## Example

    ```python
    if comm.rank == 0:
        comm.Barrier()
    total = comm.allreduce(value)
    ```

    ## What to do

    Make the same collective calls in the same order in every rank of the communicator. Look for a
    branch on the rank around the call, or for a rank that left a loop early. A blocking call does
    not match the non-blocking call of the same operation, and `bcast` does not match `Bcast`.

    ## References

    MPI 4.1, sections 6.12 (non-blocking collective operations) and 6.14 (correctness).
    """

    code = "PSM111"
    title = "collective calls differ"


@register
class ArgumentsDiffer(Diagnostic):
    """The ranks made the same collective call with arguments that do not fit together.

    The root, the reduction operator, the count and the datatype must agree. Unlike in messages
    between two ranks, the buffer of a receiver must not be larger than the data.

    Ranks with other roots may all end: a root does not wait for the receivers of a small message.
    Without `--check` the summary then has a warning: data that a rank never received.

    ## Why it is bad

    Libraries do not compare these arguments. With other roots, ranks wait for ever or get no data;
    with other operators, each rank may get another result.

    ## Example

    ```python
    comm.bcast(data, root=comm.rank)
    ```

    ## What to do

    Give the argument that the report names the same value in every rank.

    ## References

    MPI 4.1, chapter 6: the section of the call, and section 6.14 (correctness).
    """

    code = "PSM112"
    title = "arguments of a collective call differ"
