"""What all tests share: the same drawn examples in every run, unless others are asked for."""

import os

from hypothesis import settings

# A test that fails once in a thousand draws belongs to who looks for it, not to who changed
# something else. PYSMPI_HYPOTHESIS=random draws new examples.
settings.register_profile("same", derandomize=True)
settings.register_profile("random")
settings.load_profile(os.environ.get("PYSMPI_HYPOTHESIS", "same"))
