"""The options of a run are declared once: for the command line, `pysmpi.run` and `Options`."""

from __future__ import annotations

import inspect
import typing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest

import pysmpi
from pysmpi.cli.main import status_of
from pysmpi.cli.run import command
from pysmpi.cli.run_options import SPELLINGS, on_command_line, spellings
from pysmpi.job.options import DEFAULTS, FIELDS, check_value

# `check` of `pysmpi.run` also says whether a failure raises, as that of `subprocess.run`.
BESIDE = {"main", "args", "check", "options", "return"}
ONLY_ON_THE_LINE = {
    "help_cfg", "check_shadow", "check_tolerance", "quiet", "explain_speed", "breaks", "debug",
    "seeds",
}  # fmt: skip
IN_BOTH = [name for name in FIELDS if name not in BESIDE]


def rank() -> int:
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


def test_parameters_of_run_are_the_fields_of_options() -> None:
    parameters = inspect.signature(pysmpi.run).parameters
    assert [name for name in parameters if name not in BESIDE] == IN_BOTH
    for name in IN_BOTH:
        assert parameters[name].default == DEFAULTS[name], name
        assert type(parameters[name].default) is type(DEFAULTS[name]), name
    namespace = {"Platform": Any, "Result": Any}
    hints = typing.get_type_hints(pysmpi.run, localns=namespace)
    declared = typing.get_type_hints(pysmpi.Options, localns=namespace)
    assert {name: hints[name] for name in IN_BOTH} == {name: declared[name] for name in IN_BOTH}


def test_options_of_the_command_line_are_the_fields_of_options() -> None:
    params = {param.name: param for param in command.params if isinstance(param, click.Option)}
    assert list(params.keys() - ONLY_ON_THE_LINE - FIELDS.keys()) == []
    assert set(FIELDS) <= set(params)
    assert list(SPELLINGS) == list(FIELDS)
    for name, one in FIELDS.items():
        param = params[name]
        assert [*param.opts] == spellings(name)
        assert param.help == one.metadata["help"]
        assert param.multiple == isinstance(DEFAULTS[name], (tuple, dict))
        if not param.multiple:
            assert param.default == DEFAULTS[name]


# Wrong values, in Python and as words of the command line.
WRONG: list[tuple[str, Any, str]] = [
    ("nprocs", 0, "0"), ("nprocs", -1, "-1"), ("nprocs", 10**9, "1000000000"),
    ("nprocs", "four", "four"), ("seed", "one", "one"), ("map_by", "nod", "nod"),
    ("reduction_order", "ranks", "ranks"), ("on_deadlock", "go on", "go on"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "word"), WRONG)
def test_both_say_the_same(
    name: str, value: Any, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        pysmpi.run(rank, **{"compute": "none", name: value})
    message = str(caught.value).removeprefix(f"pysmpi.run: {name}")
    assert message.startswith(": expected ") and ", got " in message
    assert status_of(["run", on_command_line(name), word, "-c", "pass"]) == 2
    line = capsys.readouterr().err
    assert line == f"pysmpi: error: {on_command_line(name)}{message}\n"


def test_a_close_choice_is_named() -> None:
    with pytest.raises(pysmpi.UsageError, match="did you mean node?"):
        check_value("map_by", "nod")


def test_an_options_object_and_what_takes_precedence() -> None:
    options = pysmpi.Options(nprocs=3, platform="graphene", compute="none", seed=5)
    result = pysmpi.run(rank, options=options)
    assert (result.nprocs, result.platform, result.seed) == (3, "graphene", 5)
    result = pysmpi.run(rank, 2, options=options, seed=0)
    assert (result.nprocs, result.platform, result.seed) == (2, "graphene", 0)
    assert options == pysmpi.Options(nprocs=3, platform="graphene", compute="none", seed=5)
    result = pysmpi.run(rank, options=replace(options, map_by="node"))
    assert result.options == {
        "nprocs": 3, "platform": "graphene", "map_by": "node", "compute": "none", "seed": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pysmpi.run(rank, options={"seed": 1}), "options: expected pysmpi.Options("),
        (lambda: pysmpi.run(rank, platfrom="x"), "unknown option 'platfrom'; did you mean"),
        (lambda: pysmpi.run(), "missing a required argument: 'main'"),
        (lambda: pysmpi.run(rank, 1, 2), "too many positional arguments"),
        (lambda: pysmpi.run([(rank, 2)], 3), "nprocs: expected nothing, since"),
        (lambda: pysmpi.run(5), "expected a function, the path of a script, or a list of (program"),
        (lambda: pysmpi.run(None, 2), "expected a function, the path of a script, or a list of"),
        (lambda: pysmpi.run([(rank, "2")]), "expected at least 1 rank, got '2'"),
        (lambda: pysmpi.run([(rank, 1), (rank, 0)]), "expected at least 1 rank, got 0"),
        (lambda: pysmpi.run([(rank, True)]), "expected at least 1 rank, got True"),
        (lambda: pysmpi.run([rank]), "expected (program, ranks) or (program, ranks, args), got"),
        (lambda: pysmpi.run([(rank,)]), "expected (program, ranks) or (program, ranks, args), got"),
        (lambda: pysmpi.run([(rank, 1, [], 2)]), "expected (program, ranks) or"),
        (lambda: pysmpi.run([]), "expected at least one program, got an empty list"),
        (lambda: pysmpi.run([(rank, 1), (__file__, 1)]), "expected functions only or scripts"),
        (lambda: pysmpi.run(rank, options=pysmpi.Options(seed="x")), "seed: expected a whole"),
    ],
)
def test_wrong_calls(call: Any, message: str) -> None:
    with pytest.raises(pysmpi.UsageError) as caught:
        call()
    assert str(caught.value).startswith(f"pysmpi.run: {message}") or message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_functions_have_ranks_one_after_the_other() -> None:
    result = pysmpi.run([(rank, 1), (rank, 2), (rank, 1, ())], compute="none")
    assert result.returns == [0, 1, 2, 3]


def test_every_option_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text()
    for one in fields(pysmpi.Options):
        assert f"| `{one.name}` |" in page


def test_ranks_that_share_cores_are_a_remark(tmp_path):
    from pysmpi.cli.summary import summary

    path = tmp_path / "two.yaml"
    path.write_text(
        "name: two\nclusters:\n- {name: c, hosts: 'n[0-1]', cores: 4, "
        "network: {bandwidth: 10Gbps, latency: 1us}}\n"
    )
    options = {"platform": path, "compute": "none"}
    results = [pysmpi.run(lambda: None, ranks, **options) for ranks in (8, 9, 17)]
    assert [result.remarks for result in results] == [
        [],
        ["9 ranks on 8 cores: 2 ranks share their core with others, and compute in turns"],
        ["17 ranks on 8 cores: 17 ranks share their core with others, and compute in turns"],
    ]
    assert f"pysmpi: warning: {results[1].remarks[0]}" in summary(results[1])
