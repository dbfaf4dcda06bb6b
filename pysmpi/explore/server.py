"""Executes the requests of one worker thread: a prepared job for each program, and its forks.

Requests and answers are objects on a connection.
A request is a job, a decider, and the longest time (s) of its execution; the answer is a `Trial`,
or the text of an error of the job and its exit status.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from pysmpi.cluster.workers import begin_serving
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.explore.executions import Executions
from pysmpi.explore.executor import Executor
from pysmpi.own_process.descendants import end_with_parent

# A rank has its own.
_fork, _leave, _waitpid = os.fork, os._exit, os.waitpid


class PreparedJob:
    """A process that has prepared a job, and executes it again and again."""

    def __init__(self, job: bytes, timeout: float, others: Connection) -> None:
        self.job = job
        self.connection, its = Pipe()
        parent = os.getpid()
        self.pid = _fork()
        if not self.pid:
            end_with_parent(parent)
            os.setpgid(0, 0)
            others.close()
            self.connection.close()
            try:
                _serve_job(job, timeout, its)
            finally:
                _leave(0)
        with contextlib.suppress(OSError):  # the child may be faster
            os.setpgid(self.pid, self.pid)
        its.close()

    def close(self) -> None:
        """End the process and its executions."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.connection.close()
        _waitpid(self.pid, 0)


def _serve_job(job: bytes, timeout: float, connection: Connection) -> None:
    """Prepare a job, and execute it under each decider that arrives."""
    try:
        directory, make, ranks, arguments = pickle.loads(job)
        try:
            os.chdir(directory)
        except OSError as error:
            raise UsageError(f"directory {directory}: {error.strerror}") from None

        def work(executor: Executions) -> None:
            while True:
                try:
                    decider = pickle.loads(connection.recv_bytes())
                except EOFError:
                    return
                executor.submit(decider, None)
                connection.send(executor.next()[1])

        Executor(lambda: make(ranks, arguments), 1, timeout).serve(work)
    except PysmpiError as error:
        connection.send((str(error), error.exit_status))
    except Exception as error:
        connection.send(("".join(traceback.format_exception_only(error)).strip(), 70))


def serve(connection: Connection) -> None:
    """Answer requests until the other side is gone."""
    prepared: PreparedJob | None = None
    try:
        while True:
            try:
                job, decider, timeout = connection.recv()
            except EOFError:
                return
            if prepared is None or prepared.job != job:
                if prepared is not None:
                    prepared.close()
                prepared = PreparedJob(job, timeout, connection)
            answer: object = None
            try:
                prepared.connection.send_bytes(decider)
                if connection in wait([connection, prepared.connection]):
                    return  # a request comes only after an answer: this is the end
                answer = prepared.connection.recv()
            except (EOFError, OSError):
                # An error of the job may have arrived before the decider was sent.
                with contextlib.suppress(EOFError, OSError):
                    answer = prepared.connection.recv()
            if answer is None:
                answer = "the prepared program ended", 70
            if isinstance(answer, tuple):
                prepared.close()
                prepared = None
            connection.send(answer)
    finally:
        if prepared is not None:
            prepared.close()


def main() -> None:
    """Serve the connection that the command line names."""
    serve(begin_serving())


if __name__ == "__main__":
    main()
