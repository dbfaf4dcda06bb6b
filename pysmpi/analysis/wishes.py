"""Whether a run is to be recorded for analysis; light, because every run asks."""

from __future__ import annotations

import os

from pysmpi.runtime.job import Job
from pysmpi.runtime.options import Options


def is_record(options: Options) -> bool:
    """Whether the trace of a run is a record."""
    if options.trace is None:
        return False
    if options.trace_format is not None:
        return options.trace_format == "npz"
    return os.fspath(options.trace).lower().endswith(".npz")


def wanted(job: Job) -> bool:
    """Whether the options of a job ask for its record."""
    options = job.options
    return options.explain or options.view is not None or is_record(options)
