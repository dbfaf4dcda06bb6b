"""Problems of windows: epochs and accesses."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class EpochError(Diagnostic):
    """The calls that open and close the epochs of a window are in a wrong order.

    A `Put`, `Get` or `Accumulate` needs an epoch: between two fences, between `Start` and
    `Complete`, or between `Lock` and `Unlock`. Epochs of one process at a window do not overlap,
    and each is closed before the window is freed.

    ## Why it is bad

    Without an epoch, or before its end, the data may arrive at any time or never.

    ## Example

    ```python
    window.Fence()
    window.Put(data, 1)
    window.Free()  # no Fence closes the epoch: the data may not be there
    ```

    ## What to do

    Close each epoch by the call that belongs to it, before the next one begins: `Fence` by `Fence`,
    `Lock` by `Unlock`, `Start` by `Complete`, `Post` by `Wait`. Give the last fence before other
    kinds of epochs the assertion `MPI.MODE_NOSUCCEED`.

    ## References

    MPI 4.1, section 12.5 (synchronization calls).
    """

    code = "PSM123"
    title = "wrong epoch of a window"


@register
class AccessesConflict(Diagnostic):
    """Two accesses to the same memory of a window can happen in any order, and one of them writes.

    The report has the lines of both accesses and the bytes that they share. An access may be a
    `Put`, `Get` or `Accumulate`, another MPI call whose buffer lies in the window, or a line of the
    program that uses the memory of the window directly, also through `Shared_query`. Accumulate
    operations with the same operator do not conflict, nor `Compare_and_swap` with `MPI.REPLACE`,
    if their elements have one basic datatype and begin at the same places.

    Also a buffer that the program, or another MPI call, uses before a `Put` or `Get` that owns it
    is complete, and a `Put` or `Get` that uses the buffer of another operation.

    A rank that fetches a value by `Fetch_and_op`, `Compare_and_swap` or `Get_accumulate` knows what
    the ranks that wrote there did before, and so does a `while` loop that waits for a value in the
    memory of a window: locks and flags of the program count as synchronization.

    ## Why it is bad

    The result depends on the order, which MPI leaves open.

    ## Example

    ```python
    window.Fence()
    window.Put(data, 0)  # every rank writes to the same place of rank 0
    window.Fence()
    ```

    ## What to do

    Separate the accesses by synchronization (a fence, `Unlock` before `Lock`, `Flush` and a
    message; for stores to shared memory `Sync` and a barrier), use different places of the window,
    or use `Accumulate` with one operator.

    ## References

    MPI 4.1, sections 12.7 (semantics and correctness) and 12.3 (communication calls).
    """

    code = "PSM124"
    title = "conflicting accesses to a window"
