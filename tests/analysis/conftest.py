import contextlib
import io
from pathlib import Path

import pytest

from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options, check
from pysmpi.job.programs import find_program
from pysmpi.ranks.instruments import Instrument
from pysmpi.trace.activity import activity_of
from pysmpi.trace.model import Recording
from pysmpi.trace.recorder import Recorder, recorder_for

APPS = Path(__file__).parents[2] / "apps"


class Listening(Instrument):
    """Lets a listener hear of the calls of a run."""

    def __init__(self, listener):
        self.listener = listener

    def attach(self, run):
        if self.listener is not None:
            run.simulation.universe.listen(self.listener)


@pytest.fixture(scope="session")
def record():
    """Run a program and return its activity; `listener` hears of calls first."""

    def run(program, nprocs, *args, listener=None, path=None, **options):
        if callable(program):
            found = FunctionProgram(program, args)
        else:
            found = find_program(str(APPS / program), [str(arg) for arg in args])
        kept = Recording()
        recorder = Recorder(kept) if path is None else recorder_for(str(path))
        instruments = [Listening(listener), recorder]
        job = Job(found, check(Options(nprocs=nprocs, **options)), instruments=instruments)
        with contextlib.redirect_stdout(io.StringIO()):
            result = job.run()
        assert result.exit_status == 0, result.error
        if path is not None:
            return result
        found = activity_of(kept)
        found.result = result
        return found

    return run
