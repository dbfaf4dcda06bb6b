"""Give random bad input to all readers and options: `python -m tests.fuzz 20000`.

Each case runs in a process that runs many; a failing one is printed with its number and the words
that repeat it. Wanted are a status that is not 70, no traceback of pysmpi, less than ten seconds of
processor time and less than one gigabyte. The exit status is 1 if a case fails.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from pathlib import Path

from tests.fuzz.execution import Fuzzer


def main() -> int:
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("cases", nargs="?", type=int, default=1000, help="number of cases (1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases (0)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (0)")
    parser.add_argument("--keep", metavar="DIR", help="keep the files of failing cases there")
    given = parser.parse_args()
    found = done = 0
    with Fuzzer(given.seed) as fuzzer, contextlib.suppress(KeyboardInterrupt):
        for number in range(given.first, given.first + given.cases):
            problem = fuzzer.run(number)
            done += 1
            if done % 500 == 0:
                print(f"{done:,} of {given.cases:,}", file=sys.stderr, flush=True)
            if problem is not None:
                found += 1
                print(f"case {number} (seed {given.seed}): {problem}", flush=True)
                if given.keep is not None:
                    shutil.copytree(
                        fuzzer.folder, Path(given.keep) / str(number), dirs_exist_ok=True
                    )
    print(
        f"{done} cases, {found} failed; at most {fuzzer.most_seconds:.1f} s of the processor and "
        f"{fuzzer.most_memory >> 20} MiB"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
