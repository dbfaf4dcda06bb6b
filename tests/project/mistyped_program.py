"""A program of a user with an error of a type in each marked line."""

from __future__ import annotations

import pysmpi


@pysmpi.sample(iters=3)
def double(value: float) -> float:
    return 2 * value


def program() -> None: ...


double("2")  # error
text: str = double(2.0)  # error
result = pysmpi.run(program, nprocs="4")  # error
pysmpi.run(program, on_deadlock="ignore")  # error
pysmpi.run(program, unknown=1)  # error
pysmpi.Options(seed=None)  # error
minutes: str = result.seconds  # error
result.ranks[0]["end"]  # error
pysmpi.sample(iters="3")  # error
pysmpi.no_such_function()  # error
