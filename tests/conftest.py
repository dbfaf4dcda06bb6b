"""What all tests share: the same drawn examples in every run, unless others are asked for."""

import os
import signal

import pytest
from hypothesis import settings

# A test that fails once in a thousand draws belongs to who looks for it, not to who changed
# something else. PYSMPI_HYPOTHESIS=random draws new examples.
settings.register_profile("same", derandomize=True)
settings.register_profile("random")
settings.load_profile(os.environ.get("PYSMPI_HYPOTHESIS", "same"))

# A shell without job control lets background commands ignore some of these, and nohup the last;
# programs inherit that.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(
            number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        )

_missing: set[str] = set()  # why acceptance suites were skipped


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if " is not available: " in reason:
            _missing.add(reason)


def pytest_unconfigure() -> None:
    # After everything else, so that nobody takes such a run for a whole one.
    for reason in sorted(_missing):
        print(f"NOT ACCEPTED: {reason}")
