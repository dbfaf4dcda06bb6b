"""A bug of pysmpi is distinguished from errors on purpose, and from those of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated import simulate

from pysmpi.errors import PysmpiInternalError
from pysmpi.mpi import MPI
from pysmpi.mpi.collective import calls as collective
from pysmpi.mpi.point_to_point import calls as point_to_point


def wrong_key(*args: Any) -> Any:
    return {}[len(args)]


def wrong_attribute(*args: Any) -> Any:
    return args.missing  # type: ignore[attr-defined]


def wrong_call(*args: Any) -> Any:
    return point_to_point.unpickle()  # type: ignore[call-arg]


def planted(function: Callable[..., Any]) -> Any:
    """The same function, as if it stood in one of our files."""
    code = function.__code__.replace(co_filename=point_to_point.__file__)
    return type(function)(code, {"point_to_point": point_to_point}, function.__name__)


def caught(call: Callable[[Any], Any]) -> BaseException | None:
    """Return the exception of a call in a rank."""

    def main(rank: Any) -> BaseException | None:
        try:
            call(MPI.COMM_WORLD)
        except BaseException as error:
            return error
        return None

    return simulate(1, main)[0]  # type: ignore[no-any-return]


BUGS = {KeyError: wrong_key, AttributeError: wrong_attribute, TypeError: wrong_call}


@pytest.mark.parametrize("kind", BUGS)
@pytest.mark.parametrize("place", ["blocking_receive", "object_buffer"])
def test_a_bug_in_a_receive_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException], place: str
) -> None:
    monkeypatch.setattr(point_to_point, place, planted(BUGS[kind]))
    error = caught(lambda comm: comm.recv(source=0))
    assert isinstance(error, PysmpiInternalError)
    assert isinstance(error.__cause__, kind)
    assert str(error).startswith(f"a bug in pysmpi, please report it: {kind.__name__}: ")
    assert str(error).endswith("(in recv)")


@pytest.mark.parametrize("kind", BUGS)
def test_a_bug_in_a_collective_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    monkeypatch.setattr(collective, "run", planted(BUGS[kind]))
    error = caught(lambda comm: comm.Allreduce(np.zeros(2), np.zeros(2)))
    assert isinstance(error, PysmpiInternalError)
    assert isinstance(error.__cause__, kind)


def test_a_failed_assertion_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> None:
        assert not args, "what cannot be"

    monkeypatch.setattr(point_to_point, "blocking_send", planted(fails))
    assert isinstance(caught(lambda comm: comm.send(1, 0)), PysmpiInternalError)


class Unfit:
    """An object whose methods fail as those of a program may."""

    def __reduce__(self) -> Any:
        return {}["missing"]

    def __len__(self) -> int:
        return self.missing  # type: ignore[attr-defined, no-any-return]

    def __index__(self) -> int:
        raise AttributeError("no number")


def fails(*args: Any) -> Any:
    raise KeyError("missing")


class Described:
    """Memory that the CUDA array interface describes, with changes."""

    def __init__(self, without: str = "", **changes: Any) -> None:
        self.values = np.zeros(2)
        whole = {"data": (self.values.ctypes.data, False), "typestr": "<f8", "shape": (2,)}
        self.__cuda_array_interface__ = {
            name: value for name, value in (whole | changes).items() if name != without
        }


class NoDevice:
    """DLPack memory that does not name its device."""

    __dlpack_device__ = None

    def __dlpack__(self, **options: Any) -> Any:
        return None


def combine(comm: Any) -> None:
    """A method called with an object of another class."""
    MPI.Comm.Barrier(3)  # type: ignore[arg-type]


OF_THE_PROGRAM: dict[str, tuple[type[BaseException], Callable[[Any], Any]]] = {
    "no buffer": (TypeError, lambda comm: comm.Send(5, 0)),
    "no rank": (TypeError, lambda comm: comm.Send(np.zeros(1), "one")),
    "an argument too many": (TypeError, lambda comm: comm.Send(1, 2, 3, 4, 5)),
    "a rank that is not there": (MPI.Exception, lambda comm: comm.Send(np.zeros(1), 7)),
    "no datatype": (KeyError, lambda comm: comm.Send([np.zeros(1), "x!"], 0)),
    "what cannot be pickled": (Exception, lambda comm: comm.bcast(lambda: 0)),
    "a pickle that fails": (KeyError, lambda comm: comm.bcast(Unfit())),
    "a number that fails": (AttributeError, lambda comm: comm.Send(np.zeros(1), Unfit())),
    "memory without an address": (KeyError, lambda comm: comm.Send(Described("data"), 0)),
    "memory with half an address": (ValueError, lambda comm: comm.Send(Described(data=(1,)), 0)),
    "memory of no type": (ValueError, lambda comm: comm.Send(Described(typestr="<fX"), 0)),
    "memory with a shape of words": (TypeError, lambda comm: comm.Send(Described(shape="2"), 0)),
    "memory with too few strides": (BufferError, lambda comm: comm.Send(Described(strides=()), 0)),
    "memory with strides of words": (
        TypeError,
        lambda comm: comm.Send(Described(shape=("2",), strides=(8,)), 0),
    ),
    "memory on no device": (TypeError, lambda comm: MPI.Get_address(NoDevice())),
    "no requests": (TypeError, lambda comm: MPI.Request.Waitall(3)),
    "no size": (AttributeError, lambda comm: comm.Create_cart(Unfit())),
    "another class": (TypeError, combine),
    "a warning": (UserWarning, lambda comm: comm.irecv(bytearray(1)) and fails_as_warning()),
}


def fails_as_warning() -> None:
    raise UserWarning("of the program")


@pytest.mark.parametrize("case", OF_THE_PROGRAM)
def test_errors_of_the_program_are_its_own(case: str) -> None:
    kind, call = OF_THE_PROGRAM[case]
    error = caught(call)
    assert isinstance(error, kind) and not isinstance(error, PysmpiInternalError)


def test_a_method_of_another_class_says_so() -> None:
    assert str(caught(combine)) == (
        "descriptor 'Barrier' for 'mpi4py.MPI.Comm' objects doesn't apply to a 'int' object"
    )


def run(program: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pysmpi", "run", "-q", "-n", "1", str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.slow
def test_a_bug_has_an_exit_status_and_a_full_traceback(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "import pysmpi.mpi.point_to_point.calls as calls\n"
        "code = compile('def blocking_send(*args):\\n    return {}[1]', calls.__file__, 'exec')\n"
        "exec(code, vars(calls))\n"
        "MPI.COMM_WORLD.send(1, 0)\n"
    )
    done = run(program)
    assert done.returncode == 70, done.stderr
    assert done.stderr.startswith("pysmpi: internal error: rank 0\nTraceback")
    assert "point_to_point/calls.py" in done.stderr and "KeyError: 1" in done.stderr
    assert done.stderr.endswith("This is a bug in pysmpi, please report it with this output.\n")
    assert "PSM102" not in done.stderr


@pytest.mark.slow
def test_an_error_of_the_programs_objects_stays_one_in_a_future(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from mpi4py import MPI\n"
        "with ThreadPoolExecutor() as pool:\n"
        "    pool.submit(MPI.COMM_WORLD.issend, (lambda: lambda: 1)(), 0).result()\n"
    )
    done = run(program)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("PSM102") and "a bug in pysmpi" not in done.stderr
    assert "local object" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("assert pid is None", "AssertionError"),
        ("return unknown_name", "NameError"),
        ("return here().made_up", "AttributeError"),
        ("return None.made_up", "AttributeError"),
    ],
)
def test_a_bug_outside_of_mpi_calls_is_one_too(tmp_path: Path, text: str, error: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import pysmpi.isolation.kinds.environment as room\n"
        f"code = compile('def getpgid(pid):\\n    {text}', room.__file__, 'exec')\n"
        "exec(code, vars(room))\n"
        "room.getpgid(0)\n"
    )
    done = run(program)
    assert done.returncode == 70, done.stderr
    assert done.stderr.startswith("pysmpi: internal error: rank 0\nTraceback")
    assert error in done.stderr and "PSM102" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "import os; os.getpgid('x')",
        "import subprocess; subprocess.run(['true'], stdout=5.5)",
        "import os; os.environ['made up']",
        "import threading; threading.Thread(target=5).start().made_up",
        "import select; select.select([object()], [], [])",
        "import logging; logging.getLogger('a').made_up",
        "assert not 'the program itself'",
    ],
)
def test_wrong_arguments_of_replaced_functions_are_the_programs(tmp_path: Path, text: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(text + "\n")
    done = run(program)
    assert done.returncode == 1, done.stderr
    assert "PSM102" in done.stderr and "internal error" not in done.stderr


@pytest.mark.slow
def test_frames_of_pysmpi_are_shown_on_request(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Send(5, 0)\n")
    usual, full = run(program), run(program, PYSMPI_TRACEBACK="full")
    assert usual.returncode == full.returncode == 1
    assert "point_to_point/calls.py" not in usual.stderr
    assert "point_to_point/calls.py" in full.stderr
