"""Problems of wildcard receives."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class MessageRace(Diagnostic):
    """A receive from any source could have taken another message, with another outcome.

    The report names the receive, the message that it took in this run, and the one that it could
    have taken: no synchronization lets one of them arrive first. It is an error if the other order
    leaves a later receive without a message, or if two different receives would exchange data. A
    loop that treats all messages alike is not reported. A trial shows whether the result differs:
    the program runs again with the other message, in a child process and with the time turned off.
    An exchange of data between two receives is reported only if the output, the return values or
    the end of the program then differ.

    ## Why it is bad

    The program works as long as the messages arrive in the usual order, and then hangs, or computes
    something else, once in many runs.

    ## Example

    ```python
    if comm.rank == 0:
        first = comm.recv(source=MPI.ANY_SOURCE)
        second = comm.recv(source=1)  # waits for ever if the first took rank 1's message
    else:
        comm.send(comm.rank, dest=0)
    ```

    ## What to do

    Name the source of each receive, or give messages of different purpose different tags. If the
    order does not matter, take the source from the `Status` of the receive.

    ## References

    MPI 4.1, sections 3.2.4 (wildcards) and 3.5 (order of messages).
    """

    code = "PSM121"
    title = "message race"
