"""The problems of programs that pysmpi reports, each with a permanent code.

A problem is a class with a `code`, a `title` and a docstring. The sections of the docstring
describe the problem, why it is bad, an example and the remedy. `pysmpi explain CODE` prints the
docstring; `docs/reference/diagnostics/` has a page for each.
"""

from __future__ import annotations

import inspect

from pysmpi.errors import UsageError
from pysmpi.text import did_you_mean


class Diagnostic:
    """A kind of problem."""

    code = ""
    title = ""

    @classmethod
    def text(cls) -> str:
        """The explanation, in Markdown."""
        return inspect.cleandoc(cls.__doc__ or "")


class Deadlock(Diagnostic):
    """Ranks wait for each other, and none of them can ever continue.

    The report shows the line of the program at which each rank waits. It groups ranks at the same
    line and marks the odd one out. It names messages that almost match a waiting receive,
    collective calls that differ between ranks, calls that ended with an error which the program
    caught, and a cycle of ranks in which each waits for the next.

    Threads that only let time pass do not hide a deadlock: a monitor or a heartbeat that sleeps in
    a loop, timers, timeouts, progress bars. The report says that they beat. pysmpi looks at them
    after 50,000 sleeps and timeouts in a row, or `--cfg smpi/most-polls:N` if that is less, while
    no message is sent and no rank continues. It reports them if their variables no longer change.
    Threads beside the main thread whose variables do change, such as a counter, are reported after
    100,000 sleeps and 10^5 simulated seconds, or after N (a million) sleeps. The same holds for
    threads that wake each other, start others or compute between their sleeps. For daemon threads
    10^4 seconds are enough if every main thread waits in a call of MPI.

    ## Why it is bad

    A real MPI library hangs without a message and uses the machine until the time limit of the
    job. Some of these programs work on one machine and hang on another: the library and the size
    of the message determine whether a standard-mode send waits for its receive.

    ## Example

    ```python
    if comm.rank == 0:
        comm.send(data, dest=1, tag=8)
    else:
        comm.recv(source=0, tag=7)  # no message with this tag ever arrives
    ```

    ## What to do

    - Compare source, destination, tag and communicator of the two sides that the report names.
    - Make the same collective calls in the same order on every rank of a communicator. Look for
      a branch on the rank around the call, or for a rank that left a loop early.
    - If ranks send to each other before they receive, use `Sendrecv`, or `Irecv` before `Send`,
      instead of relying on buffers.
    - Run with `--on-deadlock raise` to raise an error in each waiting rank, at the line at which
      it waits. A debugger or a test can catch the error.

    ## References

    MPI 4.1, sections 3.5 (semantics of point-to-point communication) and 6.14 (correctness of
    collective calls).
    """

    code = "PSM101"
    title = "deadlock"


class RankFailed(Diagnostic):
    """A rank raised an exception that the program did not catch.

    The report begins with the ranks that failed. Python's traceback follows, without the frames
    of pysmpi. Ranks that failed at the same lines share one report.

    ## Why it is bad

    Under a real launcher only this rank ends. The others wait for it, often until the time limit
    of the job, and the traceback is hidden in the mixed output of all ranks. (`python -m mpi4py`
    ends the job as pysmpi does.)

    ## Example

    ```python
    settings = {"steps": 100}
    settings["size"]  # KeyError in every rank
    ```

    ## What to do

    Correct the line at the end of the traceback. If single ranks may fail, catch the exception
    and inform the other ranks: for example with an `allreduce` of a flag, or with `comm.Abort`.
    """

    code = "PSM102"
    title = "exception in a rank"


class Aborted(Diagnostic):
    """A rank called `MPI_Abort`, or `os._exit` before `MPI_Finalize`, which ends the job.

    The exit status is the error code that the rank passed to `MPI_Abort` (its low eight bits; 1
    if they are 0), or the status that it passed to `os._exit`. An error handler such as
    `ERRORS_ARE_FATAL` ends the job in the same way, with the code of the error.

    ## Why it is bad

    The program itself decided to end the job. The other ranks are stopped at their current line
    and lose data that they have not written.

    ## Example

    ```python
    if not os.path.exists("input.dat"):
        MPI.COMM_WORLD.Abort(2)
    ```

    ## What to do

    Find out why the program ended the job: look at the line in the report, and at the output of
    the program.

    ## References

    MPI 4.1, section 11.4.2 (aborting MPI processes).
    """

    code = "PSM103"
    title = "job aborted"


class Truncated(Diagnostic):
    """A message was longer than the buffer of its receive.

    ## Why it is bad

    MPI defines this as an error. Real libraries behave differently: they raise the error, cut
    the message, or write beyond the buffer.

    ## Example

    ```python
    if comm.rank == 0:
        comm.Send(numpy.zeros(100), dest=1)
    else:
        comm.Recv(numpy.zeros(10), source=0)
    ```

    ## What to do

    Make the buffer as large as the largest message that may match, or find out the size first
    with `Probe` and `status.Get_count(datatype)`. If several messages may match, use different
    tags. A lower-case `irecv` without a buffer receives messages of up to 32 KiB.

    ## References

    MPI 4.1, section 3.2.4.
    """

    code = "PSM104"
    title = "message truncated"


class MPIError(Diagnostic):
    """An MPI call broke a rule of MPI, and the program did not catch the error.

    The last line of the report names the rule and the value that broke it. The lines before it
    show the place in the program.

    ## Why it is bad

    With mpi4py such an error is an `MPI.Exception` in one rank. Under a real launcher the other
    ranks then wait for this rank, often for ever. A C library may not check the rule at all, and
    its behaviour is then undefined.

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
    """Ranks test repeatedly for an event that can never happen.

    All ranks that have not ended either wait, or call `Test`, `Iprobe` and similar functions
    without end. No message is in transit and no rank computes. The report shows the line at which
    each rank tests or waits. pysmpi reports a livelock after a million such tests in a row, with
    `--check` after 20,000 (`--cfg smpi/most-polls:N`; 0 turns this off).

    Loops with `time.sleep`, or with timeouts of events, queues and locks, are reported after
    50,000 turns, or N if that is less. The variables that they can see must not have changed in the
    latest of them, and they must not read a clock. If such a loop looks at a file, another process
    may end it: then simulated time passes no faster than real time, and a line on standard error
    says so.

    ## Why it is bad

    A real MPI library continues to test: the job uses all its cores until its time limit.

    ## Example

    ```python
    while not comm.Iprobe(source=1, tag=8):  # rank 1 sends with tag 7, or has ended
        pass
    ```

    ## What to do

    - Compare source, tag and communicator of the test with those of the other rank's messages.
    - If a rank may end early, or fail, let it send a message about this.
    - Limit a loop of tests by the number of tests or by `MPI.Wtime()`.

    ## References

    MPI 4.1, sections 3.7.3 and 3.8.1.
    """

    code = "PSM106"
    title = "livelock"


class OrderDependence(Diagnostic):
    """The program computes different results in different orders of events.

    `pysmpi explore` compares the output (its lines in any order) and the return values of all
    executions that end well. The report has a schedule for each result.

    ## Why it is bad

    MPI does not say which message a receive from any source takes, or which request `Waitany`
    reports. A result that depends on this differs from run to run and from machine to machine.

    ## Example

    ```python
    if comm.rank == 0:
        print([comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)])
    else:
        comm.send(comm.rank, dest=0)
    ```

    ## What to do

    - If the order matters, receive from the ranks one after the other, or sort the messages by
      `status.source`.
    - If it does not matter, for example in a log, compare only the rest of the output.
    - Repeat two of the runs with `pysmpi run --replay-schedule` to see where they differ.

    ## References

    MPI 4.1, section 3.5 (semantics of point-to-point communication).
    """

    code = "PSM107"
    title = "result depends on the order of events"


class PartFailed(Diagnostic):
    """A rank, a host or a link of the simulated machine has failed, because of `--fault`.

    The job ends, as a launcher ends a job when one of its processes dies. The report names the
    failed part and the date, and the lines at which the ranks were.

    ## Why it is bad

    A long job on a large machine meets failures. Results that are not in a file are lost.

    ## Example

    `pysmpi run -n 8 --fault rank=7@2.5s prog.py`

    ## What to do

    - Write checkpoints, and start again from the last one.
    - Compare the cost of checkpoints at different intervals: `--fault random:rate=0.001 --seed K`.
    """

    code = "PSM109"
    title = "part of the machine failed"


class WaitInC(Diagnostic):
    """A rank waits in C code for another rank, which cannot run meanwhile.

    All ranks run in one thread. In calls of Python that wait, such as `os.read`, `socket.accept`
    or `fcntl.flock`, pysmpi lets the other ranks continue. It does not see the waits of C code: of
    a function called with ctypes, or of a library that waits in its own code. Such a wait holds all
    ranks.

    The run ends if the rank waits for ten seconds, the process hardly uses a processor, and only
    the job itself could end the wait: it has the other end of the pipe or connection, the lock of
    the file, or all threads that could release a lock. If the rank waits for a connection or a
    message on this computer, the run ends after 30 seconds. Other waits, such as for a server or a
    child process, go on. After a minute, a message names the rank and its line.

    ## Why it is bad

    Under a launcher each rank is a process, and the other rank would end the wait. Here the job
    would hang for ever.

    ## Example

    ```python
    libc = ctypes.CDLL(None)
    ends = comm.bcast(os.pipe() if comm.rank == 0 else None)
    if comm.rank == 0:
        libc.read(ends[0], data, 1)  # os.read lets the other rank run
    else:
        os.write(ends[1], b"x")
    ```

    ## What to do

    - Let ranks communicate with MPI: `torch.distributed` with gloo, for example, has connections
      of its own between its processes, and mpi4py can replace its collective calls.
    - Wait with functions of Python: `os.read`, `socket`, `select`, `threading`, `fcntl`.
    - Call the function of C only if it does not have to wait: after an MPI message of the rank for
      which it waits, or after `select`.
    """

    code = "PSM128"
    title = "wait in C code"


DIAGNOSTICS: dict[str, type[Diagnostic]] = {
    kind.code: kind
    for kind in (
        Deadlock,
        RankFailed,
        Aborted,
        Truncated,
        MPIError,
        Livelock,
        OrderDependence,
        PartFailed,
        WaitInC,
    )
}


def register(kind: type[Diagnostic]) -> type[Diagnostic]:
    """Add a problem to those that `pysmpi explain` knows; ValueError if its code is taken."""
    known = DIAGNOSTICS.setdefault(kind.code, kind)
    if known is not kind:
        raise ValueError(f"diagnostic {kind.code} is registered twice")
    ordered = sorted(DIAGNOSTICS.items())
    DIAGNOSTICS.clear()
    DIAGNOSTICS.update(ordered)
    return kind


def find(code: str) -> type[Diagnostic]:
    """The problem with a code, in any case, or a title. A `UsageError` lists the codes."""
    found = DIAGNOSTICS.get(code.strip().upper()) or _titled(code)
    if found is None:
        hint = did_you_mean(code.upper(), DIAGNOSTICS)
        raise UsageError(
            f"no such diagnostic {code!r}, expected one of {', '.join(DIAGNOSTICS)}{hint}"
        )
    return found


def _titled(words: str) -> type[Diagnostic] | None:
    """The only problem whose title has some words, such as `deadlock`; None if there is none."""
    wanted = words.strip().lower()
    same = [kind for kind in DIAGNOSTICS.values() if kind.title.lower() == wanted]
    close = [kind for kind in DIAGNOSTICS.values() if wanted in kind.title.lower()]
    found = same or (close if len(wanted) > 3 else [])
    return found[0] if len(found) == 1 else None


def explanation(kind: type[Diagnostic]) -> str:
    """The page of a problem in Markdown."""
    return f"# {kind.code} {kind.title}\n\n{kind.text()}\n"
