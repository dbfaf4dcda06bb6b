import contextlib
import io
from pathlib import Path

import pytest

from pysmpi.runtime.job import Job
from pysmpi.runtime.loader import FunctionProgram, find_program
from pysmpi.runtime.options import Options, check
from pysmpi.trace.activity import observing

APPS = Path(__file__).parents[2] / "apps"


@pytest.fixture
def record():
    """Run a program and return its record; `listener` hears of calls first."""

    def run(program, nprocs, *args, listener=None, **options):
        if callable(program):
            found = FunctionProgram(program, args)
        else:
            found = find_program(str(APPS / program), [str(arg) for arg in args])
        job = Job(found, check(Options(nprocs=nprocs, **options)))
        if listener is not None:
            job.on_start = lambda simulation: simulation.universe.listen(listener)
        with contextlib.redirect_stdout(io.StringIO()), observing(job) as recorder:
            result = job.run()
        assert result.exit_status == 0, result.error
        return recorder.finish(result)

    return run
