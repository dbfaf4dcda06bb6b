"""The seed of what differential tests draw: another one each day, so that they see more over time.

PYSMPI_DRAW=NUMBER repeats the draws of another day; a test that fails prints its number.
"""

from __future__ import annotations

import os
from datetime import date

SEED = int(os.environ.get("PYSMPI_DRAW") or date.today().toordinal())


def say() -> None:
    """Print the seed: pytest shows it with the failure of a test."""
    print(f"drawn with PYSMPI_DRAW={SEED}")
