"""Problems of buffers: touched while an operation owns them, and overlaps."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class BufferTouched(Diagnostic):
    """The program used a buffer while a non-blocking operation owned it.

    From the call that starts an operation to the `Wait` or successful `Test` that completes it, the
    program must not write to a send buffer, and must neither read nor write a receive buffer. The
    report names the line that started the operation and the line that touched the buffer. If only
    the checksum of a send buffer shows the change, it names the call that completed the operation.
    A thread that touches the buffer of another thread's call without an order is reported, too.

    ## Why it is bad

    The library may read or write the buffer at any moment in between. The receiver gets old, new or
    mixed data, depending on the size of the message and on the network.

    ## Example

    ```python
    request = comm.Isend(data, dest=1)
    data[0] = 7
    request.Wait()
    ```

    ## What to do

    Move the use behind the `Wait`, or send a copy. The object of a lower-case `isend` may be
    changed at once, because mpi4py has pickled it.

    ## References

    MPI 4.1, sections 3.7.2 (communication initiation) and 6.12 (non-blocking collectives).
    """

    code = "PSM115"
    title = "buffer touched while in use"


@register
class BuffersOverlap(Diagnostic):
    """Two buffers of pending operations, or of calls of two threads, overlap, and one receives.

    Also the buffers of one call, such as the same array as send and receive buffer of `Allreduce`,
    and a buffer that a call writes to if its datatype, or its counts and displacements, name some
    bytes more than once. A lower-case call reads the arrays in the object that it pickles.

    ## Why it is bad

    The result depends on the order in which the library moves the bytes.

    ## Example

    ```python
    comm.Allreduce(data, data)
    ```

    ## What to do

    Use different buffers. For a collective call on one buffer pass `MPI.IN_PLACE` as the send
    buffer; for `Sendrecv` use `Sendrecv_replace`.

    ## References

    MPI 4.1, sections 3.2.7 (send-receive), 3.7.2 and 2.3 (aliasing of buffers).
    """

    code = "PSM116"
    title = "buffers overlap"
