"""Keyvals and attributes, on datatypes, which need no communication."""

from __future__ import annotations

import pytest

from pysmpi.mpi.base import attributes
from pysmpi.mpi.base.constants import ERR_KEYVAL, ERR_OTHER, KEYVAL_INVALID, TAG_UB
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.datatypes.datatypes import DATATYPE_NULL, PREDEFINED, Datatype

pytestmark = pytest.mark.usefixtures("own_rank")

INT = PREDEFINED["INT"]


def test_set_get_delete() -> None:
    keyval = Datatype.Create_keyval()
    value = [1, 2, 3]
    assert INT.Get_attr(keyval) is None
    INT.Set_attr(keyval, value)
    assert INT.Get_attr(keyval) is value
    INT.Delete_attr(keyval)
    assert INT.Get_attr(keyval) is None
    INT.Delete_attr(keyval)
    assert Datatype.Free_keyval(keyval) == KEYVAL_INVALID


@pytest.mark.parametrize(("copy_fn", "copied"), [(None, False), (False, False), (True, True)])
def test_duplicates_have_the_attributes_that_are_copied(copy_fn, copied) -> None:
    keyval = Datatype.Create_keyval(copy_fn)
    INT.Set_attr(keyval, "value")
    assert INT.Dup().Get_attr(keyval) == ("value" if copied else None)


def test_copy_callbacks() -> None:
    seen = []

    def copy_fn(handle, keyval, value):
        assert handle == INT
        seen.append((handle, keyval, value))
        return value * 2 if value == "abc" else NotImplemented

    keyval = Datatype.Create_keyval(copy_fn)
    INT.Set_attr(keyval, "abc")
    assert INT.Dup().Get_attr(keyval) == "abcabc"
    INT.Set_attr(keyval, "xyz")
    assert INT.Dup().Get_attr(keyval) is None
    assert [entry[1:] for entry in seen] == [(keyval, "abc"), (keyval, "xyz")]
    # The handle that a callback got is of no use afterwards.
    assert seen[0][0] == DATATYPE_NULL


def test_delete_callbacks() -> None:
    gone = []
    keyval = Datatype.Create_keyval(True, lambda handle, keyval, value: gone.append(value))
    one = INT.Dup()
    one.Set_attr(keyval, 1)
    one.Set_attr(keyval, 2)
    assert gone == [1]
    other = one.Dup()
    one.Delete_attr(keyval)
    assert gone == [1, 2]
    Datatype.Free_keyval(keyval)
    other.Free()
    assert gone == [1, 2, 2]


def test_freeing_deletes_the_latest_first() -> None:
    gone = []
    one = INT.Dup()
    for number in range(3):
        keyval = Datatype.Create_keyval(None, lambda handle, keyval, value: gone.append(value))
        one.Set_attr(keyval, number)
    one.Free()
    assert gone == [2, 1, 0]
    assert not attributes.of_rank().attributes


def test_values_without_python() -> None:
    seen = []
    keyval = Datatype.Create_keyval(
        lambda handle, keyval, value: seen.append(value) or value, nopython=True
    )
    INT.Set_attr(keyval, -1)
    assert INT.Get_attr(keyval) == 2**64 - 1
    assert INT.Dup().Get_attr(keyval) == 2**64 - 1 and seen == [2**64 - 1]
    with pytest.raises(TypeError):
        INT.Set_attr(keyval, "abc")
    with pytest.raises(OverflowError):
        INT.Set_attr(keyval, 2**64)


def test_a_failing_copy_ends_the_duplication(capsys: pytest.CaptureFixture[str]) -> None:
    def copy_fn(handle, keyval, value):
        raise ValueError("oops")

    INT.Set_attr(Datatype.Create_keyval(copy_fn), "value")
    with pytest.raises(MPIException) as caught:
        INT.Dup()
    assert caught.value == ERR_OTHER
    assert "ValueError: oops" in capsys.readouterr().err


def test_a_failing_delete_deletes(capsys: pytest.CaptureFixture[str]) -> None:
    def delete_fn(handle, keyval, value):
        raise MPIException(ERR_KEYVAL)

    keyval = Datatype.Create_keyval(None, delete_fn)
    INT.Set_attr(keyval, "value")
    with pytest.raises(MPIException) as caught:
        INT.Delete_attr(keyval)
    assert caught.value == ERR_KEYVAL
    assert INT.Get_attr(keyval) is None
    one = INT.Dup()
    one.Set_attr(keyval, "value")
    one.Free()
    assert capsys.readouterr().err.count("Traceback") == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: INT.Get_attr(KEYVAL_INVALID),
        lambda: INT.Get_attr(TAG_UB),
        lambda: INT.Set_attr(5, "value"),
        lambda: INT.Delete_attr(5),
        lambda: Datatype.Free_keyval(KEYVAL_INVALID),
        lambda: Datatype.Free_keyval(TAG_UB),
    ],
)
def test_wrong_keys(call) -> None:
    with pytest.raises(MPIException) as caught:
        call()
    assert caught.value == ERR_KEYVAL


def test_the_registry_shows_the_keys_of_the_rank() -> None:
    keyval = Datatype.Create_keyval()
    assert keyval in attributes._keyval_registry["Datatype"]
    assert not attributes._keyval_registry["Comm"]


def test_a_freed_key_is_valid_while_an_object_has_its_attribute() -> None:
    deleted = []
    keyval = Datatype.Create_keyval(True, lambda *call: deleted.append(call[2]))
    INT.Set_attr(keyval, 1)
    assert Datatype.Free_keyval(keyval) == KEYVAL_INVALID
    assert keyval not in attributes._keyval_registry["Datatype"]
    copy = INT.Dup()
    INT.Set_attr(keyval, 2)
    assert (INT.Get_attr(keyval), copy.Get_attr(keyval)) == (2, 1)
    other = PREDEFINED["FLOAT"].Dup()
    assert other.Get_attr(keyval) is None
    assert Datatype.Free_keyval(keyval) == KEYVAL_INVALID
    INT.Delete_attr(keyval)
    copy.Free()
    assert deleted == [1, 2, 1]
    for call in (other.Get_attr, Datatype.Free_keyval):
        with pytest.raises(MPIException) as caught:
            call(keyval)
        assert caught.value == ERR_KEYVAL
    other.Free()
