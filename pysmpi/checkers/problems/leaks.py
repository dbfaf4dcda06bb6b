"""Problems of objects: never freed, or used after their end."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class Leak(Diagnostic):
    """A program made an MPI object and did not free it before `MPI.Finalize`.

    The report counts the objects by the line that made them: communicators, datatypes, groups,
    reduction operators, windows, files and info objects. Predefined objects need no free.

    ## Why it is bad

    An MPI library keeps the object until the end of the job. In a loop the memory grows, and most
    libraries have only a few thousand communicators. A window or file that is still open at the end
    is an error: its data may be lost.

    ## Example

    ```python
    row = MPI.DOUBLE.Create_vector(8, 1, 16).Commit()
    comm.Send([matrix, 1, row], dest=1)
    # no row.Free()
    ```

    ## What to do

    Call `Free` (`Close` for a file, `Disconnect` for an intercommunicator of spawned processes)
    after the last use. A datatype may be freed while messages that use it are under way.

    ## References

    MPI 4.1, sections 2.5.1 (opaque objects) and 11.2.2 (finalization).
    """

    code = "PSM119"
    title = "object never freed"


@register
class Unfinalized(Diagnostic):
    """A rank came to the end of its program with MPI initialized, and without `MPI.Finalize`.

    mpi4py calls `Finalize` at the exit of a program. It does not if `mpi4py.rc.finalize` is False,
    or if `mpi4py.rc.initialize` is False and `mpi4py.rc.finalize` is not set. Programs in C and
    Fortran always call it themselves.

    ## Why it is bad

    Launchers take the end of a process without `MPI_Finalize` for a crash, and end the other
    processes. Data of messages and files that is still under way may be lost.

    ## Example

    ```python
    import mpi4py

    mpi4py.rc.initialize = False
    from mpi4py import MPI

    MPI.Init()
    MPI.COMM_WORLD.Barrier()
    # no MPI.Finalize()
    ```

    ## What to do

    Call `MPI.Finalize()` in every rank as the last call of MPI, also on the way out of a function
    that returns early.

    ## References

    MPI 4.1, section 11.2.2 (finalization).
    """

    code = "PSM132"
    title = "MPI never finalized"


@register
class FreedHandle(Diagnostic):
    """A call used a handle of an object that the program had freed, or a null handle.

    The report names the call, and the line that freed the object or that returned the null handle.

    ## Why it is bad

    In C the handle may point to another object by then, or to freed memory.

    ## Example

    ```python
    half = comm.Split(comm.rank % 2)
    half.Free()
    half.Barrier()
    ```

    ## What to do

    Free an object once, after its last use. `Split` with the color `MPI.UNDEFINED`, and `Create`
    with a group without the calling process, return `MPI.COMM_NULL`: test for it before a call.

    ## References

    MPI 4.1, section 2.5.1 (opaque objects).
    """

    code = "PSM120"
    title = "use of a freed or null handle"
