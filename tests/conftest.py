"""What all tests share: the same drawn examples in every run, unless others are asked for."""

import os
import signal

from hypothesis import settings

# A test that fails once in a thousand draws belongs to who looks for it, not to who changed
# something else. PYSMPI_HYPOTHESIS=random draws new examples.
settings.register_profile("same", derandomize=True)
settings.register_profile("random")
settings.load_profile(os.environ.get("PYSMPI_HYPOTHESIS", "same"))

# A shell without job control lets background commands ignore these, and programs inherit that.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(
            number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
        )
