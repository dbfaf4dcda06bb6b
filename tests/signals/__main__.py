"""`python -m tests.signals --count N --seed S`: signals at random moments of commands.

Prints each end that is not right, and a table of the statuses by command and signal.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.signals.moments import COMMANDS, environment, prepare, signalled

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def main() -> int:
    """Send the signals; the exit status is 1 if one end is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.signals")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", help="only this one; repeatable")
    given = parser.parse_args()
    # A shell lets the commands behind `&` ignore SIGINT, nohup SIGHUP, and so would ours.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    random = Random(given.seed)
    commands = [one for one in COMMANDS if not given.command or one.name in given.command]
    wrong = 0
    seen: Counter[tuple[str, str, object]] = Counter()
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        prepare(directory)
        usual = {}
        for command in commands:
            begun = time.monotonic()
            subprocess.run(
                command.arguments, cwd=directory, capture_output=True, env=environment(),
            )  # fmt: skip
            usual[command.name] = time.monotonic() - begun
            print(f"{command.name}: {usual[command.name]:.2f} s without a signal", flush=True)
            _remove_results(directory)
        for number in range(given.count):
            command = commands[number % len(commands)]
            outcome = signalled(
                command, random.choice(SIGNALS), random.uniform(0.0, usual[command.name]),
                random.random() < 0.5, directory,
            )  # fmt: skip
            name = signal.Signals(outcome.number).name
            seen[command.name, name, outcome.status] += 1
            if outcome.wrong:
                wrong += 1
                print(f"{number}: {outcome}", flush=True)
            _remove_results(directory)
            if number % 20 == 19:
                print(f"{number + 1} signals, {wrong} ends are not right", flush=True)
    for (command_name, name, status), count in sorted(seen.items(), key=str):
        print(f"{command_name:8} {name:8} status {status}: {count}")
    print(f"{given.count} signals, {wrong} ends are not right")
    return int(wrong > 0)


def _remove_results(directory: Path) -> None:
    """Let each command begin anew."""
    for pattern in ("study.results/*", ".pysmpi/*"):
        for path in directory.glob(pattern):
            path.unlink()


sys.exit(main())
