"""The command line, as `pysmpi` and as `python -m pysmpi`."""

from __future__ import annotations

import gc
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from pysmpi.errors import missing_requirement
from pysmpi.leaving import QuickEnd


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    # An import may turn an exception into another one, or suppress it.
    try:
        os.write(2, b"pysmpi: error: interrupted\n")
    except OSError:
        pass
    os._exit(128 + number)


def main() -> NoReturn:
    """Run the command line; Ctrl-C while it is being imported ends it in one line, too."""
    before = signal.getsignal(signal.SIGINT)
    followed = before is signal.default_int_handler
    if followed:
        signal.signal(signal.SIGINT, _leave)
    end = QuickEnd()
    # Imports make many objects and few cycles; the search for cycles would take a sixth of a start.
    gc.set_threshold(400_000, *gc.get_threshold()[1:])
    try:
        from pysmpi.cli.main import main as run
    except ModuleNotFoundError as error:
        if not missing_requirement(error):
            raise
        print(f"pysmpi: error: {missing_requirement(error)}", file=sys.stderr)
        sys.exit(2)

    if followed:
        signal.signal(signal.SIGINT, before)
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
