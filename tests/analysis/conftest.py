import contextlib
import io
from pathlib import Path

import pytest

from pysmpi.isolation.loading.loader import FunctionProgram, find_program
from pysmpi.job.job import Job
from pysmpi.job.options import Options, check
from pysmpi.trace.activity import activity_of
from pysmpi.trace.model import Recording
from pysmpi.trace.recorder import Recorder, attached, recorder_for

APPS = Path(__file__).parents[2] / "apps"


@pytest.fixture(scope="session")
def record():
    """Run a program and return its activity; `listener` hears of calls first."""

    def run(program, nprocs, *args, listener=None, path=None, **options):
        if callable(program):
            found = FunctionProgram(program, args)
        else:
            found = find_program(str(APPS / program), [str(arg) for arg in args])
        job = Job(found, check(Options(nprocs=nprocs, **options)))
        if listener is not None:
            job.on_start = lambda simulation: simulation.universe.listen(listener)
        kept = Recording()
        recorder = Recorder(kept) if path is None else recorder_for(str(path))
        with contextlib.redirect_stdout(io.StringIO()), attached(recorder, job):
            result = job.run()
            recorder.finish()
        assert result.exit_status == 0, result.error
        if path is not None:
            return result
        found = activity_of(kept)
        found.result = result
        return found

    return run
