"""Problems of buffering: deadlocks that only the buffering of messages prevents."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class PotentialDeadlock(Diagnostic):
    """The program ended only because MPI buffered a message or let a rank leave a collective call.

    After the run the calls are played again under the strictest rules that MPI allows: a standard
    send waits for its receive, and a collective call for all ranks. The report has the calls that
    then wait for each other.

    ## Why it is bad

    MPI does not promise to buffer. The program hangs with a larger message, another library or
    another network.

    ## Example

    ```python
    other = 1 - comm.rank
    comm.Send(data, dest=other)  # both ranks send first
    comm.Recv(data, source=other)
    ```

    ## What to do

    Use `Sendrecv`, `Irecv` before `Send`, or `Isend` with a `Wait` after the receive; `Bsend` with
    an attached buffer asks for buffering explicitly. Make collective calls and messages in an order
    in which each rank can wait.

    ## References

    MPI 4.1, sections 3.5 (resource limitations) and 6.14 (correctness of collective calls).
    """

    code = "PSM122"
    title = "potential deadlock"
