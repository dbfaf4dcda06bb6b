"""Problems of the threads of a rank."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class ThreadLevel(Diagnostic):
    """A thread made a call of MPI that the thread level of its rank does not allow.

    With `THREAD_FUNNELED` only the thread that initialized MPI may call it; with `THREAD_SINGLE`
    there is no other thread; with `THREAD_SERIALIZED` one thread at a time calls MPI. mpi4py asks
    for `THREAD_MULTIPLE` unless `mpi4py.rc` says otherwise.

    Also with `THREAD_MULTIPLE`: threads whose collective calls on one communicator have no order,
    a thread that receives the message which another one has found by `Probe` or `Iprobe`, a thread
    that frees or changes a handle which another one uses, and `Finalize` before the calls of other
    threads have ended. Locks, queues, events, and the start and end of threads are an order.

    ## Why it is bad

    A library without locks for threads corrupts its data. Collective calls of two threads match in
    another order in each rank. A message that is gone leaves its thread waiting, or with another
    message than it has made room for.

    ## Example

    ```python
    mpi4py.rc.thread_level = "funneled"
    from mpi4py import MPI

    threading.Thread(target=MPI.COMM_WORLD.Barrier).start()
    ```

    ## What to do

    Ask for `THREAD_MULTIPLE`, and test `MPI.Query_thread()`; or make all calls in the main thread.
    Give each thread a communicator of its own (`comm.Dup()`). Use `Mprobe` or `Improbe`, and
    receive by the `Message` that they return.

    ## References

    MPI 4.1, sections 11.6 (MPI and threads), 6.14 (correctness of collective calls) and 3.8.2
    (matching probe).
    """

    code = "PSM125"
    title = "call not allowed to this thread"
