"""The seed of the draws of differential tests, another one each day to cover more cases over time.

PYSMPI_DRAW=NUMBER repeats the draws of another day; a test that fails prints its number.
"""

from __future__ import annotations

import os
from datetime import date

SEED = int(os.environ.get("PYSMPI_DRAW") or date.today().toordinal())


def say() -> None:
    """Print the seed: pytest shows it with the failure of a test."""
    print(f"drawn with PYSMPI_DRAW={SEED}")
