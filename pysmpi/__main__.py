"""The command line, as `pysmpi` and as `python -m pysmpi`."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from pysmpi.own_process import interruption
from pysmpi.own_process.leaving import QuickEnd
from pysmpi.python.extras import missing_requirement


def _hash_seed(arguments: list[str]) -> str | None:
    """The hash seed that `--seed K` of pysmpi stands for; None without this option."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--seed":
            value = value if equals else "".join(arguments[number + 1 : number + 2])
            return str(int(value) % 2**32) if value.lstrip("-").isdecimal() else None
        if argument.endswith(".py"):
            return None  # the program, and its arguments
    return None


def _fix_hashes() -> None:
    """Start again with a hash seed if `--seed` is given: sets of texts then have one order.

    Python reads `PYTHONHASHSEED` at its start.
    """
    seed = _hash_seed(sys.argv[1:])
    if seed is None or "PYTHONHASHSEED" in os.environ or not sys.flags.hash_randomization:
        return
    if os.name != "posix" or not sys.executable or "debugpy" in sys.modules or sys.gettrace():
        return  # a debugger or a measurement of coverage would not follow
    variables = {**os.environ, "PYTHONHASHSEED": seed, "PYSMPI_SEEDED": "1"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], variables)


def main() -> NoReturn:
    """Run the command line; a signal while it is being imported ends it in one line, too."""
    _fix_hashes()
    interruption.handle()
    end = QuickEnd()
    # Imports make many objects and few cycles; the search for cycles would take a sixth of a start.
    gc.set_threshold(400_000)
    try:
        from pysmpi.cli.main import main as run
    except ModuleNotFoundError as error:
        if not missing_requirement(error):
            raise
        print(f"pysmpi: error: {missing_requirement(error)}", file=sys.stderr)
        sys.exit(2)

    try:
        run()
    except SystemExit as leave:
        if isinstance(leave.code, int):
            end.status = leave.code
        raise
    finally:
        end.prepare()


if __name__ == "__main__":
    main()
