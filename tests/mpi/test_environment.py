"""Initialisation, options and inquiry."""

from __future__ import annotations

import types
import warnings

import pytest

from pysmpi.mpi.base import errhandlers
from pysmpi.mpi.base.constants import (
    ERR_ARG,
    ERR_OTHER,
    MAX_PROCESSOR_NAME,
    THREAD_FUNNELED,
    THREAD_MULTIPLE,
    THREAD_SINGLE,
)
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.options import RcOptions
from pysmpi.mpi.processes import environment

pytestmark = pytest.mark.usefixtures("own_rank")


def rc(**values):
    return types.SimpleNamespace(**values)


def test_importing_initializes() -> None:
    assert environment.Is_initialized() is True and environment.Is_finalized() is False
    assert environment.Query_thread() == THREAD_MULTIPLE and environment.Is_thread_main() is True
    for again in (environment.Init, environment.Init_thread):
        with pytest.raises(MPIException) as caught:
            again()
        assert caught.value == ERR_OTHER


def test_initialization_may_be_left_to_the_program() -> None:
    environment.start(rc(initialize=False))
    assert not environment.Is_initialized()
    with pytest.raises((MPIException, SystemExit)):
        environment.Query_thread()
    assert environment.Init_thread(THREAD_FUNNELED) == THREAD_FUNNELED
    assert environment.Is_initialized() and environment.Query_thread() == THREAD_FUNNELED


def test_wrong_thread_level() -> None:
    environment.start(rc(initialize=False))
    errhandlers.of_rank().default = errhandlers.RETURN
    with pytest.raises(MPIException) as caught:
        environment.Init_thread(17)
    assert caught.value == ERR_ARG


def test_options() -> None:
    options = RcOptions(rc(threads=False, thread_level="funneled", errors="abort", irecv_bufsz=10))
    assert (options.threads, options.thread_level) == (False, THREAD_FUNNELED)
    assert (options.errors, options.irecv_bufsz) == ("abort", 10)
    assert RcOptions(rc(initialize=False)).finalize is False
    assert RcOptions(rc(initialize=False, finalize=True)).finalize is True
    environment.start(rc(threads=False))
    assert environment.Query_thread() == THREAD_SINGLE


def test_variables_come_before_rc_and_are_written_to_it() -> None:
    own = rc(threads=True, errors="exception", irecv_bufsz=1)
    variables = {
        "MPI4PY_RC_THREADS": "off",
        "MPI4PY_RC_ERRORS": "FATAL",
        "MPI4PY_RC_IRECV_BUFSZ": "77",
    }
    options = RcOptions(own, variables)
    assert (options.threads, options.irecv_bufsz) == (False, 77)
    assert options.errors == "fatal"
    assert (own.threads, own.errors, own.irecv_bufsz) == (False, "fatal", 77)


@pytest.mark.parametrize(
    "values",
    [
        {"initialize": "perhaps"},
        {"threads": 17},
        {"thread_level": "many"},
        {"finalize": "later"},
        {"errors": 3},
        {"irecv_bufsz": -1},
        {"irecv_bufsz": "big"},
    ],
)
def test_unexpected_options_are_warned_about(values) -> None:
    with pytest.warns(RuntimeWarning, match=next(iter(values))):
        odd = RcOptions(rc(**values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usual = RcOptions()
    assert all(getattr(odd, name) == getattr(usual, name) for name in RcOptions.__slots__)


def test_inquiry() -> None:
    assert environment.Get_version() >= (4, 0)
    assert environment.Get_library_version().startswith("pysmpi ")
    name, version = environment.get_vendor()
    assert name == "pysmpi" and len(version) == 3
    assert 0 < len(environment.Get_processor_name()) < MAX_PROCESSOR_NAME
    assert environment.Wtick() > 0.0
    times = [environment.Wtime() for _ in range(3)]
    assert times == sorted(times) and type(times[0]) is float
    assert environment.Get_hw_resource_info().keys()


def test_pcontrol() -> None:
    for level in (0, 1, 2):
        environment.Pcontrol(level)
    for level in (-1, 3):
        with pytest.raises(MPIException) as caught:
            environment.Pcontrol(level)
        assert caught.value == ERR_ARG
    with pytest.raises(TypeError):
        environment.Pcontrol("abc")


def test_abi() -> None:
    assert environment.Get_abi_info().items() == [
        ("mpi_aint_size", "8"),
        ("mpi_count_size", "8"),
        ("mpi_offset_size", "8"),
    ]
    fortran = environment.Get_abi_fortran_info()
    assert fortran["mpi_integer_size"] == "4" and fortran["mpi_integer8_supported"] == "true"
    assert fortran["mpi_real2_supported"] == "false"


def test_the_status_for_mpi4py_run() -> None:
    assert environment.of_rank().abort_status == 0
    environment._set_abort_status(5)
    assert environment.finish() == 5
    assert not environment.Is_finalized()
