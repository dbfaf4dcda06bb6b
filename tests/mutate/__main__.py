"""Break pysmpi in many places, one at a time, and see whether its tests notice.

`python -m tests.mutate` breaks 100 places over all packages in a copy of the project: a comparison
is turned round, a number is one larger, a branch is negated, two arguments are exchanged, a
statement is left out, and so on. The tests of the package of the place run until one fails. A
place that no test notices is printed as survived. The exit status is 1 if more than 5 in 100
survive.

Neither mutmut nor cosmic-ray chooses by seed or knows which tests belong to a package; mutmut
also wraps all functions, and pysmpi looks into the code of its own.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from tests.mutate.rooms import Place, choose, rooms
from tests.mutate.trials import Copy, Verdict

ROOT = Path(__file__).parents[2]
UNNOTICED = ("survived", "unfinished")


def described(place: Place) -> str:
    """Its place and its change, on one line."""
    mutation = place.mutation
    before, after = (" ".join(text.split())[:60] for text in (mutation.before, mutation.after))
    return f"{place}: {mutation.kind}: {before} -> {after}"


def main(words: list[str] | None = None) -> int:
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice (0)")
    parser.add_argument("--count", type=int, default=100, help="number of places (100)")
    parser.add_argument("--room", action="append", choices=rooms(ROOT), help="only this package")
    parser.add_argument("--jobs", type=int, default=1, help="places at a time (1)")
    parser.add_argument(
        "--seconds", type=float, default=120, help="of the processor for a place (120)"
    )
    parser.add_argument("--number", type=int, action="append", help="only this one of the places")
    parser.add_argument("--list", action="store_true", help="list the places, and break nothing")
    options = parser.parse_args(words)
    places = dict(enumerate(choose(ROOT, options.seed, options.count, options.room), start=1))
    if options.number:
        places = {number: places[number] for number in options.number}
    if options.list:
        for number, place in places.items():
            print(f"{number:4}  {described(place)}")
        return 0
    results: Counter[str] = Counter()
    by_room: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="pysmpi-mutate-") as folder:
        all_copies = [Copy(ROOT, Path(folder) / str(job)) for job in range(options.jobs)]
        copies: SimpleQueue[Copy] = SimpleQueue()
        for copy in all_copies:
            copies.put(copy)

        def tried(place: Place) -> Verdict:
            copy = copies.get()
            try:
                return copy.try_place(place, options.seconds)
            finally:
                copies.put(copy)

        threads = ThreadPoolExecutor(options.jobs)
        try:
            for number, verdict in zip(places, threads.map(tried, places.values())):
                results[verdict.result] += 1
                by_room.setdefault(verdict.place.room, Counter())[verdict.result] += 1
                print(
                    f"{number:4}  {verdict.result:10} {verdict.seconds:5.0f} s  "
                    f"{described(verdict.place)}  {verdict.test}".rstrip(),
                    flush=True,
                )
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for copy in all_copies:
                copy.stop()
            threads.shutdown()
    for room, counts in sorted(by_room.items()):
        unnoticed = sum(counts[result] for result in UNNOTICED)
        print(f"{room:16} {counts.total() - unnoticed:3} of {counts.total():3}")
    unnoticed = sum(results[result] for result in UNNOTICED)
    print(
        f"seed {options.seed}: {results.total() - unnoticed} of {results.total()} places noticed "
        f"({', '.join(f'{number} {result}' for result, number in results.items())})"
    )
    return 1 if 20 * unnoticed > results.total() else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
