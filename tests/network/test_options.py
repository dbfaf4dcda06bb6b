"""Options: parsers validate them, and every option has a reader."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.platform.config import OPTIONS, Settings

PACKAGE = Path(pysmpi.__file__).parent


def test_every_option_is_read_somewhere():
    read = set()
    for path in PACKAGE.rglob("*.py"):
        if path != PACKAGE / "platform" / "config.py":
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                # Names that are composed, such as smpi/{name}, are read as a whole elsewhere.
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    read.add(node.value)
    # It stands for thresholds, which are read.
    assert [name for name in OPTIONS if name not in read] == ["smpi/buffering"]


# Their values are names, and refused by the registries of names, or by a compiled program.
NAMES = (
    "smpi/coll-selector", "memory/model", "network/model", "network/preset", "tracing/filename",
    "smpi/privatize-libs",
)  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in NAMES])
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "²", "9" * 5000 + "x"])
def test_what_is_no_number_is_no_number_anywhere(name, text):
    with pytest.raises(UsageError) as caught:
        pysmpi.run(lambda: None, 1, compute="none", cfg={name: text})
    assert name.removesuffix("-bw").removesuffix("-lat") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("smpi/wtime", "-1", "expected a number of seconds.*'-1'"),
        ("smpi/test", "inf", "expected a number of seconds"),
        ("network/weight-S", "nan", "expected a number from 0 to 1e100, got 'nan'"),
        ("network/TCP-gamma", "-1", "expected a number from 0 to 1e100"),
        ("smpi/async-small-thresh", "1.5", "expected bytes"),
        ("smpi/send-is-detached-thresh", "64 k", "expected bytes"),
        ("smpi/bw-factor", "²:0.9", "expected segments"),
        ("smpi/bw-factor", "0:0", "a factor of 0"),
        ("network/loopback-bw", "0", "expected a bandwidth above 0"),
        ("smpi/host-speed", "fast", "expected a speed above 0"),
        ("smpi/barrier-finalization", "maybe", "expected yes or no, got 'maybe'"),
        ("smpi/init", "-1us", "expected a number of seconds"),
    ],
)
def test_values_are_read_when_settings_are_made(name, text, message):
    with pytest.raises(UsageError, match=f"^{name}: .*{message}"):
        Settings({name: text})


def test_defaults_are_values():
    settings = Settings()
    for option in OPTIONS.values():
        if option.default:
            settings.value(option.name)


def test_quantities_may_have_units():
    settings = Settings({"smpi/wtime": "1us", "smpi/async-small-thresh": "64KiB"})
    assert settings.number("smpi/wtime") == pytest.approx(1e-6)
    assert settings.number("smpi/async-small-thresh") == 65536


def init_and_finalize():
    from mpi4py import MPI

    return MPI.Wtime()


def late():
    import time

    from mpi4py import MPI

    time.sleep(2.0 if MPI.COMM_WORLD.rank == 1 else 0.0)
    MPI.Finalize()
    return time.time()


def test_init_takes_the_time_that_is_asked_for():
    without = pysmpi.run(init_and_finalize, 2, compute="none").returns
    with_it = pysmpi.run(init_and_finalize, 2, compute="none", cfg={"smpi/init": "3s"}).returns
    assert [b - a for a, b in zip(without, with_it)] == pytest.approx([3.0, 3.0])


def test_finalize_is_a_barrier_where_that_is_asked_for():
    first, second = pysmpi.run(late, 2, compute="none").returns
    assert second - first > 1.9
    cfg = {"smpi/barrier-finalization": "yes"}
    first, second = pysmpi.run(late, 2, compute="none", cfg=cfg).returns
    assert abs(second - first) < 1e-3


def busy():
    from mpi4py import MPI

    for _ in range(50):
        MPI.COMM_WORLD.Barrier()
        sum(range(1000))
    return None


def test_short_compute_is_dropped_where_that_is_asked_for():
    def compute(**cfg):
        options = {name.replace("__", "/").replace("_", "-"): text for name, text in cfg.items()}
        return pysmpi.run(busy, 2, cfg=options).ranks[0]["compute_seconds"]

    assert compute() > 0.0
    # The compute after the last call is one block too.
    assert compute(smpi__cpu_threshold="10s") == 0.0
    assert compute(smpi__cpu_threshold="-1") == 0.0
