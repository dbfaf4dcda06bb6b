"""HPL with a panel that is not updated: its residual is too large."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "apps"))

import hpl  # noqa: E402

solve = hpl.System.solve


def spoiled(system):
    """The solution with one wrong element."""
    solution = solve(system)
    solution[3] *= 1.0 + 1e-9
    return solution


hpl.System.solve = spoiled
sys.exit(hpl.main())
