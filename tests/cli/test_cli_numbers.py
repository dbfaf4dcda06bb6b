"""Numbers of options: those that are none, and those that no computer can hold, in one line."""

from __future__ import annotations

import click
import pytest

from pysmpi.cli.main import COMMANDS, command
from pysmpi.cli.numbers import Seconds, WholeNumber
from pysmpi.text import integer, real, whole

DIGITS = "9" * 5000
NO_NUMBERS = ["nan", "inf", "-inf", "1e999", "0x10", "1_0", "٣", "½", "1,5", "", " ", "--5", "1e"]
NO_WHOLE_NUMBERS = [*NO_NUMBERS, "1.5", DIGITS, f"-{DIGITS}", f"0.{DIGITS}", "1e3"]

# Options of a run with a number in their value.
RUN = [
    ["-n", "{}"],
    ["--seed", "{}"],
    ["--schedule", "pct:{}"],
    ["--schedule", "delay:{}"],
    ["--replay-schedule", "o{}"],
    ["--replay-schedule", "1={}"],
    ["--fault", "rank={}@1s"],
    ["--break", "rank={}"],
    ["--break", "count={}"],
    ["--sample", "__main__:f:calls={}"],
    ["-ppn", "{}"],
    ["-N", "{}"],
    ["--map-by", "ppr:{}:node"],
    ["--host", "cluster-n0:{}"],
    ["--cfg", "smpi/most-polls:{}"],
]
RUN_REAL = [
    ["--check-tolerance", "{}", "--check-shadow"],
    ["--schedule", "noise:{}"],
    ["--fault", "rank=0@{}s"],
    ["--fault", "host=cluster-n0@1s:slow={}"],
    ["--fault", "random:rate={}"],
    ["--host-speed", "{}Gf"],
    ["--data", "{}KiB"],
    ["--fold", "{}KiB"],
    ["--timeout", "{}"],
]


def numbers():
    """All options of commands whose type is a number, with the words of their command."""
    pending = [([name], command.get_command(click.Context(command), name)) for name in COMMANDS]
    while pending:
        words, found = pending.pop()
        if isinstance(found, click.Group):
            context = click.Context(found)
            pending += [
                ([*words, name], found.get_command(context, name))
                for name in found.list_commands(context)
            ]
        for param in found.params:
            if isinstance(param, click.Option):
                # Types of click take other writings, and have no limit.
                other = (click.types.IntParamType, click.types.FloatParamType)
                assert not isinstance(param.type, other)
                if isinstance(param.type, (WholeNumber, Seconds)):
                    yield words, param


def test_options_of_commands(status, write):
    write("ok.py", "pass\n")
    found = list(numbers())
    assert len(found) > 20
    for words, param in found:
        for value in NO_WHOLE_NUMBERS if isinstance(param.type, WholeNumber) else NO_NUMBERS:
            code, out, err = status(*words, param.opts[0], value)
            assert (code, out) == (2, ""), (words, param.opts, value, err)
            assert err.startswith("pysmpi: error: ") and err.count("\n") == 1
            assert len(err) < 400


@pytest.mark.parametrize("words", [*RUN, *RUN_REAL], ids=" ".join)
def test_options_of_a_run(status, write, words):
    write("ok.py", "def f(): pass\n")
    for value in NO_WHOLE_NUMBERS if words in RUN else NO_NUMBERS:
        code, _, err = status("run", *(word.replace("{}", value) for word in words), "ok.py")
        assert code == 2, (words, value, err)
        assert err.startswith("pysmpi: error: ") and err.count("\n") == 1
        assert len(err) < 600


def test_depth_of_strategies(status, write):
    write("ok.py", "pass\n")
    for name in ("pct", "delay"):
        assert status("run", "--schedule", f"{name}:3", "ok.py")[0] == 0
        code, _, err = status("run", "--schedule", f"{name}:999999999999", "ok.py")
        assert code == 2 and f"{name}:D with a number from 1 to 10,000" in err


def test_numbers_of_texts():
    assert [whole("07"), whole("0"), whole("-1"), whole("٣"), whole("9" * 19)] == [
        7, 0, None, None, None,
    ]  # fmt: skip
    assert [integer("-12"), integer("+3"), integer("- 3"), integer(DIGITS)] == [-12, 3, None, None]
    assert [real("-.5"), real("1e-3"), real("1e999"), real("nan"), real("1_0")] == [
        -0.5, 1e-3, None, None, None,
    ]  # fmt: skip
