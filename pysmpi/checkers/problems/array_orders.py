"""The problem of arrays whose elements lie in another order."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class OrdersDiffer(Diagnostic):
    """An array in Fortran order met an array of the same shape in C order.

    MPI moves the elements as they lie in memory. numpy stores the rows of a matrix one after
    another (C order), and its columns with `order="F"`, as the result of `asfortranarray`, and in
    the transpose `a.T`. mpi4py takes both. The report has the lines of both sides. Arrays of
    different shapes, such as `a.T` and an array of the shape of `a`, are not reported.

    ## Why it is bad

    The elements arrive at other indices: a square matrix is transposed, another one is shuffled.

    ## Example

    ```python
    if comm.rank == 0:
        comm.Send(numpy.asfortranarray(matrix), dest=1)
    else:
        comm.Recv(numpy.empty(matrix.shape), source=0)
    ```

    ## What to do

    Use the same order on both sides: `numpy.ascontiguousarray(matrix)` for the send, or
    `numpy.empty(shape, order="F")` for the receive. To transpose on purpose, send
    `matrix.T.copy()`.

    ## References

    MPI 4.1, section 3.2.2 (message data); numpy, "Internal memory layout of an ndarray".
    """

    code = "PSM130"
    title = "order of elements differs"
