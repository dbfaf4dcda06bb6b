"""The problems of programs that pysmpi reports, each with a code that stays.

A problem is a class: `code`, `title`, and a docstring in sections - what it is, why it is bad, an
example, what to do. `pysmpi explain CODE` prints it; `docs/diagnostics.md` is made of them.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches

from pysmpi.errors import UsageError


class Diagnostic:
    """A kind of problem."""

    code = ""
    title = ""

    @classmethod
    def text(cls) -> str:
        """The explanation, in Markdown."""
        return inspect.cleandoc(cls.__doc__ or "")


class Deadlock(Diagnostic):
    """Ranks wait, and nothing that could still happen will let any of them go on.

    The report shows at which line of the program each rank waits, ranks at the same line
    together, and marks the odd one out. It names messages that almost fit what a rank waits for,
    collective calls that differ between ranks, and a circle of ranks each of which waits for the
    next.

    ## Why it is bad

    A real MPI library hangs: it goes on using the machine until the job's time is over, and says
    nothing. Some such programs get through on one machine and hang on the next: whether a
    standard-mode send waits for its receive is up to the library and to the size of the message.

    ## Example

    ```python
    if comm.rank == 0:
        comm.send(data, dest=1, tag=8)
    else:
        comm.recv(source=0, tag=7)  # no message with this tag ever comes
    ```

    ## What to do

    - Compare source, destination, tag and communicator of the two sides that the report names.
    - Let every rank of a communicator make the same collective calls in the same order; look
      for a branch on the rank around the call, or one rank that left a loop early.
    - Where ranks send to each other before they receive, use `Sendrecv`, or `Irecv` before
      `Send`, instead of relying on buffers.
    - Run with `--on-deadlock raise` to have each waiting rank raise an error at the place where
      it waits, which a debugger or a test can catch.

    ## References

    MPI 4.1, sections 3.5 (semantics of point-to-point communication) and 6.14 (correctness of
    collective calls).
    """

    code = "PSM101"
    title = "deadlock"


class RankFailed(Diagnostic):
    """An exception came up in a rank and nobody caught it.

    The report is Python's traceback, without the frames of pysmpi, and begins with the ranks in
    which it happened. Ranks that failed at the same lines are shown once.

    ## Why it is bad

    Under a real launcher only this rank ends. The others wait for it, often until the job's time
    is over, and the traceback is somewhere in the mixed output of all ranks. (`python -m mpi4py`
    ends the job as pysmpi does.)

    ## Example

    ```python
    settings = {"steps": 100}
    settings["size"]  # KeyError in every rank
    ```

    ## What to do

    Correct the line at the end of the traceback. If ranks may fail on their own, catch the
    exception, and tell the others: for example by an `allreduce` of a flag, or `comm.Abort`.
    """

    code = "PSM102"
    title = "exception in a rank"


class Aborted(Diagnostic):
    """A rank called `MPI_Abort`, or `os._exit` before `MPI_Finalize`, which ends the job.

    The exit status is the error code that the rank gave `MPI_Abort` (its low eight bits; 1 if they
    are 0), or the status that it gave `os._exit`.

    ## Why it is bad

    It is the program's own decision. The other ranks are stopped wherever they are: what they
    had not written is lost.

    ## Example

    ```python
    if not os.path.exists("input.dat"):
        MPI.COMM_WORLD.Abort(2)
    ```

    ## What to do

    Find out why the program gave up: look at the line that the report names, and at what the
    program printed before.

    ## References

    MPI 4.1, section 9.8.
    """

    code = "PSM103"
    title = "job aborted"


class Truncated(Diagnostic):
    """A message was longer than the buffer of its receive.

    ## Why it is bad

    It is an error by MPI's rules. What real libraries do differs: they raise the error, cut the
    message, or write beyond the buffer.

    ## Example

    ```python
    if comm.rank == 0:
        comm.Send(numpy.zeros(100), dest=1)
    else:
        comm.Recv(numpy.zeros(10), source=0)
    ```

    ## What to do

    Make the buffer as large as the largest message that may match, or ask first: `Probe`, then
    `status.Get_count(datatype)`. Where several messages may match, tell them apart by their tags.
    A lower-case `irecv` takes messages of up to 32 KiB unless it is given a buffer.

    ## References

    MPI 4.1, section 3.2.4.
    """

    code = "PSM104"
    title = "message truncated"


class MPIError(Diagnostic):
    """An MPI call was refused: it broke a rule of MPI, and the program did not catch the error.

    The last line of the report says which rule and what was found; the lines before it, where.

    ## Why it is bad

    With mpi4py such an error is an `MPI.Exception` in one rank; under a real launcher the others
    then wait for it, often for ever. A C library may not even check and do something else.

    ## Example

    ```python
    comm.Send(data, dest=comm.size)  # ranks end at comm.size - 1
    ```

    ## What to do

    Correct the argument that the message names. To handle such errors in the program, catch
    `MPI.Exception` and look at `Get_error_class()`.

    ## References

    MPI 4.1, section 9.4 (error codes and classes).
    """

    code = "PSM105"
    title = "MPI error"


class Livelock(Diagnostic):
    """Ranks test again and again for something that nothing will bring about any more.

    All ranks that still run either wait, or call `Test`, `Iprobe` and the like without end; no
    message is under way and nobody computes. The report shows at which line each rank tests or
    waits. It comes after a million such tests in a row (`--cfg smpi/most-polls:N`; 0 for never).

    ## Why it is bad

    A real MPI library goes on testing: the job uses all its cores until its time is over.

    ## Example

    ```python
    while not comm.Iprobe(source=1, tag=8):  # rank 1 sends with tag 7, or has ended
        pass
    ```

    ## What to do

    - Compare source, tag and communicator of the test with what the other rank sends.
    - If a rank may end early, or fail, let it say so by a message.
    - Give a loop of tests a limit, by the number of tests or by `MPI.Wtime()`.

    ## References

    MPI 4.1, sections 3.7.3 and 3.8.1.
    """

    code = "PSM106"
    title = "livelock"


DIAGNOSTICS: dict[str, type[Diagnostic]] = {
    kind.code: kind for kind in (Deadlock, RankFailed, Aborted, Truncated, MPIError, Livelock)
}


def find(code: str) -> type[Diagnostic]:
    """The problem with a code, whatever its case; UsageError names the codes."""
    found = DIAGNOSTICS.get(code.strip().upper())
    if found is None:
        close = get_close_matches(code.upper(), DIAGNOSTICS, 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise UsageError(
            f"found no diagnostic {code!r}, expected one of {', '.join(DIAGNOSTICS)}{hint}"
        )
    return found


def explanation(kind: type[Diagnostic], level: int = 1) -> str:
    """The page of a problem in Markdown, its title a heading of `level`."""
    marks = "#" * level
    body = kind.text().replace("\n## ", f"\n{marks}# ")
    return f"{marks} {kind.code} {kind.title}\n\n{body}\n"


def page() -> str:
    """The text of `docs/diagnostics.md`."""
    parts = [
        "# Diagnostics\n",
        "Every problem that pysmpi finds in a program has a code that does not change from "
        "version\nto version. `pysmpi explain CODE` prints its section of this page.\n",
        "| code | problem |\n| --- | --- |\n"
        + "".join(
            f"| [{kind.code}](#{kind.code.lower()}-{kind.title.replace(' ', '-').lower()}) "
            f"| {kind.title} |\n"
            for kind in DIAGNOSTICS.values()
        ),
    ]
    parts += [explanation(kind, 2) for kind in DIAGNOSTICS.values()]
    return "\n".join(parts)
