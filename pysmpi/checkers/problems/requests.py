"""Problems of requests: never completed, started or freed, and objects that are lost."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class Incomplete(Diagnostic):
    """A non-blocking operation was started, and no `Wait` or successful `Test` completed it.

    The report names the line that started the operation. The request may have been dropped, or the
    program ended before a `Wait`. `Free` of a collective or one-sided operation, and of an active
    persistent receive, is reported too. `Free` of other sends and receives is allowed.

    ## Why it is bad

    Until the completing call the program must not touch the buffer, and a receive buffer may still
    be empty. A library may move the data only inside of MPI calls, so a message whose request was
    dropped may never be sent.

    ## Example

    ```python
    comm.isend(data, dest=1)  # the request is dropped
    ```

    ## What to do

    Keep the request and call `Wait`, or `MPI.Request.Waitall` on a list of them, before the buffer
    is used again and before the end of the program.

    ## References

    MPI 4.1, sections 3.7.3 (communication completion), 3.9, 6.12 and 12.3.5 (`Free` of requests),
    and 11.2.2 (finalization).
    """

    code = "PSM117"
    title = "request never completed"


@register
class Unstarted(Diagnostic):
    """A persistent request was awaited without a start, or not freed, or partitions not ready.

    ## Why it is bad

    `Send_init`, `Recv_init` and the `*_init` forms of collective calls only prepare an operation.
    Without `Start` nothing is sent, and the partner waits. A persistent request stays alive after
    each `Wait`, until `Free`. A partitioned send ends only once `Pready` was called for each
    partition.

    A `Wait` or `Test` on an inactive request returns at once, which MPI allows. It is not reported
    if the request was started at any time before `Free`.

    ## Example

    ```python
    request = comm.Send_init(data, dest=1)
    request.Wait()  # returns at once: nothing was started
    request.Free()
    ```

    ## What to do

    Call `request.Start()` before each `Wait`, and `request.Free()` after the last one; for a
    partitioned send `Pready`, `Pready_range` or `Pready_list` in between.

    ## References

    MPI 4.1, sections 3.7.3 (inactive requests), 3.9 and 6.13 (persistent communication), 4.2
    (partitioned communication).
    """

    code = "PSM118"
    title = "persistent request misused"


@register
class ObjectLost(Diagnostic):
    """An upper-case call completed the request of a lower-case `irecv`, and the object is lost.

    `wait`, `waitall`, `test` and their like return the objects that have arrived. `Wait`, `Waitall`
    and `Test` return none, and afterwards the request is null: a `wait` on it returns None. Objects
    that are None are not reported.

    ## Why it is bad

    The message was received, and the program works on without its data.

    ## Example

    ```python
    if comm.rank == 0:
        requests = [comm.irecv(source=i) for i in range(1, comm.size)]
        MPI.Request.Waitall(requests)
        parts = [request.wait() for request in requests]  # each is None
    else:
        comm.send(comm.rank, dest=0)
    ```

    ## What to do

    Complete the request of a lower-case call by a lower-case call:
    `parts = MPI.Request.waitall(requests)`.

    ## References

    mpi4py, "Communication of generic Python objects"; MPI 4.1, section 3.7.3.
    """

    code = "PSM129"
    title = "object lost by an upper-case wait"
