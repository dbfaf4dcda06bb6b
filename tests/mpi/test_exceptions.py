"""MPI.Exception, error codes, and the passing of an error to its handler."""

from __future__ import annotations

import pickle

import pytest

from pysmpi.mpi.base import constants, errhandlers
from pysmpi.mpi.base.constants import ERR_LASTCODE, ERR_OTHER, ERR_RANK, ERR_UNKNOWN, SUCCESS
from pysmpi.mpi.base.errhandlers import ERRORS_ARE_FATAL, Errhandler
from pysmpi.mpi.base.exceptions import (
    Add_error_class,
    Add_error_code,
    Add_error_string,
    Exception,
    Get_error_class,
    Get_error_string,
    Remove_error_class,
    Remove_error_code,
    Remove_error_string,
    fail,
    user_errors,
)
from pysmpi.mpi.base.info import INFO_NULL, Info
from pysmpi.mpi.processes import environment

pytestmark = pytest.mark.usefixtures("own_rank")

CLASSES = sorted(
    value
    for name, value in vars(constants).items()
    if name.startswith("ERR_") and name != "ERR_LASTCODE"
)


@pytest.mark.parametrize("code", [SUCCESS, *CLASSES])
def test_an_exception_is_its_code(code: int) -> None:
    error = Exception(code)
    assert error == code and error.error_code == error.Get_error_code() == int(error) == code
    assert error.error_class == error.Get_error_class() == Get_error_class(code) == code
    assert error.error_string == error.Get_error_string() == str(error) != ""
    assert hash(error) == hash(code) and bool(error) == (code != SUCCESS)
    assert repr(error) == f"MPI.Exception({code})"
    assert Exception(SUCCESS) <= error <= ERR_LASTCODE and not error < code and not error > code
    assert error >= code and error != code + 1


def test_all_classes_differ() -> None:
    assert len(set(CLASSES)) == len(CLASSES)
    assert len({Get_error_string(code) for code in CLASSES}) == len(CLASSES)


def test_odd_codes() -> None:
    assert Exception(-1) == ERR_UNKNOWN
    assert Exception() == SUCCESS
    assert Exception(ERR_LASTCODE + 1) == ERR_LASTCODE + 1
    assert Get_error_class(12345) == ERR_UNKNOWN
    assert Exception(1.5) == 1  # as mpi4py, which truncates
    for wrong in ("abc", None):
        with pytest.raises(TypeError):
            Exception(wrong)
    with pytest.raises(OverflowError):
        Exception(2**40)
    with pytest.raises(TypeError):
        Exception(ierr=3)


def test_the_detail_is_in_the_message_only() -> None:
    with pytest.raises(Exception, match="Invalid rank: dest is 7") as caught:
        fail(ERR_RANK, "dest is 7")
    assert caught.value.Get_error_string() == "Invalid rank"
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.usefixtures("as_mpi4py")
def test_pickling_keeps_code_and_detail() -> None:
    from pysmpi.mpi import MPI

    error = MPI.Exception(ERR_RANK)
    error.detail = "dest is 7"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is MPI.Exception and again == ERR_RANK and again.detail == error.detail


def test_user_classes_codes_and_strings() -> None:
    errorclass = Add_error_class()
    assert errorclass > ERR_LASTCODE and user_errors().last == errorclass
    assert Get_error_string(errorclass) == ""
    Add_error_string(errorclass, "my class")
    assert Get_error_string(errorclass) == "my class"
    code = Add_error_code(errorclass)
    assert Get_error_class(code) == errorclass and Get_error_string(code) == ""
    assert Get_error_class(Add_error_code(ERR_OTHER)) == ERR_OTHER
    for call in (Remove_error_class, Remove_error_code):
        with pytest.raises(Exception):
            call(errorclass)
    Remove_error_code(code)
    Remove_error_string(errorclass)
    Remove_error_class(errorclass)
    for call in (Remove_error_class, Remove_error_string):
        with pytest.raises(Exception):
            call(errorclass)


def test_predefined_codes_stay() -> None:
    for call in (Remove_error_class, Remove_error_code, Remove_error_string):
        for code in (SUCCESS, ERR_OTHER):
            with pytest.raises(Exception):
                call(code)
    with pytest.raises(Exception):
        Add_error_code(Add_error_code(ERR_OTHER))
    with pytest.raises(TypeError):
        Add_error_string(Add_error_class(), None)


def test_errors_are_private_to_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    from pysmpi.mpi.base import ranks

    first = Add_error_class()
    monkeypatch.setattr(ranks.outside, "state", [])
    assert Get_error_class(first) == ERR_UNKNOWN
    assert Add_error_class() == first


def subject() -> Info:
    """A handle whose thing can be a key of tables, as communicators are."""
    info = Info()
    info._impl = frozenset([object()])
    return info


def test_a_user_handler_sees_the_error_before_it_is_raised() -> None:
    seen = []
    one = subject()
    handler = errhandlers.create(Info, lambda obj, code: seen.append((obj == one, code)))
    errhandlers.set(one, handler)
    with pytest.raises(Exception):
        fail(ERR_RANK, "dest is 7", one)
    errhandlers.call(one, SUCCESS)
    errhandlers.call(one, ERR_OTHER)
    assert seen == [(True, ERR_RANK), (True, SUCCESS), (True, ERR_OTHER)]


def test_the_handle_that_a_handler_gets_is_null_afterwards() -> None:
    kept = []
    one = subject()
    errhandlers.set(one, errhandlers.create(Info, lambda obj, code: kept.append(obj)))
    errhandlers.call(one, ERR_OTHER)
    assert kept[0] == INFO_NULL


def test_get_and_free() -> None:
    one = subject()
    for handle in [errhandlers.get(one) for _ in range(100)]:
        handle.Free()
        assert not handle
    handler = errhandlers.create(Info, print)
    errhandlers.set(one, handler)
    copy = errhandlers.get(one)
    assert copy == handler and copy is not handler
    handler.Free()
    copy.Free()
    assert errhandlers.get(one)
    with pytest.raises(ValueError):
        pickle.dumps(errhandlers.get(one))


def test_thirty_two_user_handlers_at_a_time() -> None:
    handlers = [errhandlers.create(Info, print) for _ in range(32)]
    with pytest.raises(RuntimeError, match="32"):
        errhandlers.create(Info, print)
    handlers.pop().Free()
    errhandlers.create(Info, print)


def test_wrong_handlers() -> None:
    one = subject()
    for wrong in (None, 3):
        with pytest.raises(TypeError):
            errhandlers.set(one, wrong)
    with pytest.raises(Exception) as caught:
        errhandlers.set(one, Errhandler())
    assert caught.value == constants.ERR_ERRHANDLER
    with pytest.raises(AttributeError):
        errhandlers.create(Info, 3)


def test_fatal_errors_end_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    one = subject()
    errhandlers.set(one, ERRORS_ARE_FATAL)
    with pytest.raises(SystemExit) as caught:
        fail(ERR_RANK, "dest is 7", one)
    assert caught.value.code == ERR_RANK
    assert "Invalid rank: dest is 7" in capsys.readouterr().err


def test_an_exception_in_a_user_handler_is_fatal(capsys: pytest.CaptureFixture[str]) -> None:
    def handler(obj: Info, code: int) -> None:
        raise KeyError("oops")

    one = subject()
    errhandlers.set(one, errhandlers.create(Info, handler))
    with pytest.raises(SystemExit):
        fail(ERR_RANK, "dest is 7", one)
    assert "KeyError: 'oops'" in capsys.readouterr().err


def test_rc_errors_is_the_handler_of_everything() -> None:
    class rc:
        errors = "fatal"

    environment.start(rc)
    assert errhandlers.get(subject()) == ERRORS_ARE_FATAL
