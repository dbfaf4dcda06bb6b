"""The problems that the checker of files reports."""

from __future__ import annotations

from pysmpi.diagnostics import Diagnostic, register


@register
class FileConflict(Diagnostic):
    """Two accesses reach the same bytes of a file, one of them writes, and no rule orders them.

    Accesses through a file that ranks opened together are right in atomic mode. Otherwise, and
    always between two calls of `Open`, the first rank calls `Sync` or `Close` after its access, the
    second rank calls `Sync` or `Open` before its own, and a message or a barrier between these two
    calls orders them. Two pending accesses of one rank, such as two of `Iwrite_at`, have no order
    either. A read that ends before the write begins is not reported.

    The bytes are compared exactly, so views whose pieces alternate do not overlap. `Set_size` and
    `Preallocate`, and uses of the file outside MPI, are not compared.

    ## Why it is bad

    A library may keep written data in a cache of the process until `Sync` or `Close`. The file then
    has bytes of either rank, or of both, and a reader may see the data from before the write, even
    after a barrier.

    ## Example

    ```python
    file = MPI.File.Open(comm, "out", MPI.MODE_CREATE | MPI.MODE_RDWR)
    if comm.rank == 0:
        file.Write_at(0, data)
    comm.Barrier()
    if comm.rank == 1:
        file.Read_at(0, data)
    file.Close()
    ```

    ## What to do

    Access different bytes, or order the accesses: all ranks call `file.Sync()`, `comm.Barrier()`
    and `file.Sync()` between the two, or close the file and open it again. `Set_atomicity(True)`
    helps if all ranks use the file of one call of `Open`.

    The check compares at most 1,000,000 pairs of accesses to a file. It does not see `Set_size`,
    `Preallocate`, and uses of the file without MPI.

    ## References

    MPI 4.1, section 14.6.1 (file consistency).
    """

    code = "PSM131"
    title = "accesses to a file conflict"
