"""Problems of messages: datatypes, sizes, objects against buffers, missing receives."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class TypesDiffer(Diagnostic):
    """A message was sent with one datatype and received with another.

    The report has the lines of both sides and the basic types of each. Types with the same
    representation are equal, such as `MPI.LONG` and `MPI.INT64_T`, and so are all types of one
    byte.

    Also a call whose datatype does not describe its array: `[array, MPI.FLOAT]` for an array of
    integers, a structured array whose fields are elsewhere, or a receive of more elements than its
    array has. Bytes may be described as anything, and complex numbers as pairs of real ones.

    ## Why it is bad

    MPI does not convert numbers: the receiver gets the bytes of another type, so its numbers are
    wrong. No library reports it. Where the sizes of the types differ, the count is wrong, too.

    ## Example

    ```python
    if comm.rank == 0:
        comm.Send(numpy.ones(4, "f8"), dest=1)
    else:
        comm.Recv(numpy.empty(4, "i8"), source=0)
    ```

    ## What to do

    Give both buffers the same `dtype`, or the same MPI datatype. To send plain bytes, use
    `MPI.BYTE` on both sides.

    ## References

    MPI 4.1, section 3.3.1 (type matching rules).
    """

    code = "PSM113"
    title = "datatypes differ"


@register
class Unreceived(Diagnostic):
    """A message was sent, and the program ended without receiving it.

    ## Why it is bad

    The receiver misses data, or the sender sends too much. The program ends only because the
    library buffered the message: with a larger message, or another library, the sender waits for
    ever. In a long program the buffers grow.

    ## Example

    ```python
    if comm.rank == 0:
        comm.send("done", dest=1, tag=2)  # rank 1 never receives tag 2
    ```

    ## What to do

    Receive the message, or do not send it. Look for loops whose counts differ between the ranks,
    and for tags that differ.

    ## References

    MPI 4.1, sections 3.5 (semantics of point-to-point communication) and 11.2.2: every message must
    be received before `MPI_Finalize`.
    """

    code = "PSM114"
    title = "message never received"


@register
class ObjectAndBuffer(Diagnostic):
    """A message of a lower-case call met a call with a buffer, or the other way round.

    Lower-case calls of mpi4py (`send`, `recv`, `isend`, ...) send pickled Python objects.
    Upper-case calls (`Send`, `Recv`, ...) send the bytes of a buffer.

    ## Why it is bad

    The receiver gets the bytes of a pickle in its array, or tries to unpickle the bytes of an
    array.

    ## Example

    ```python
    if comm.rank == 0:
        comm.send(numpy.ones(4), dest=1)
    else:
        comm.Recv(data, source=0)
    ```

    ## What to do

    Use `send` with `recv`, and `Send` with `Recv`; the same holds for `bcast` and `Bcast` and the
    other collective calls.

    ## References

    The tutorial of mpi4py; MPI 4.1, section 3.3.1 (type matching rules).
    """

    code = "PSM126"
    title = "object met buffer"


@register
class NotContiguous(Diagnostic):
    """A call got an array whose elements are not next to each other in memory.

    ## Why it is bad

    mpi4py refuses such a buffer with an exception: a column of a matrix and `array[::2]` are not
    contiguous.

    ## Example

    ```python
    comm.Send(matrix[:, 0], dest=1)
    ```

    ## What to do

    Send a copy (`numpy.ascontiguousarray(matrix[:, 0])`), or describe the elements by a datatype:
    `column = MPI.DOUBLE.Create_vector(rows, 1, columns).Commit()`. To receive, use a contiguous
    buffer and copy it into the array.

    ## References

    MPI 4.1, section 5.1 (derived datatypes); the tutorial of mpi4py.
    """

    code = "PSM127"
    title = "buffer not contiguous"
