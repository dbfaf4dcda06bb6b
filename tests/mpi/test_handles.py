"""The common behaviour of all handles."""

from __future__ import annotations

import copy
import ctypes
import gc
import operator
import pickle
import weakref

import pytest

from pysmpi.mpi.base import handles
from pysmpi.mpi.base.constants import ERR_GROUP, ERR_INFO
from pysmpi.mpi.base.errhandlers import (
    ERRHANDLER_NULL,
    ERRORS_ABORT,
    ERRORS_ARE_FATAL,
    ERRORS_RETURN,
    Errhandler,
)
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.info import INFO_ENV, INFO_NULL, Info
from pysmpi.mpi.datatypes.status import Status
from pysmpi.mpi.groups.groups import GROUP_EMPTY, GROUP_NULL, Group

NULLS = [GROUP_NULL, INFO_NULL, ERRHANDLER_NULL]
CONSTANTS = [GROUP_EMPTY, INFO_ENV, ERRORS_RETURN, ERRORS_ABORT, ERRORS_ARE_FATAL]


@pytest.mark.parametrize("one", NULLS + CONSTANTS)
def test_equality_is_that_of_what_is_pointed_to(one) -> None:
    for other in NULLS + CONSTANTS:
        assert (one == other) == (one is other)
        assert (one != other) == (one is not other)
    assert type(one)(one) == one
    for other in (None, 1, "abc", [1], object()):
        assert one != other


def test_truth() -> None:
    assert not any(NULLS)
    assert all(CONSTANTS)
    assert not Group() and Group() == GROUP_NULL


@pytest.mark.parametrize("one", NULLS + CONSTANTS)
def test_neither_hash_nor_order(one) -> None:
    with pytest.raises(TypeError):
        hash(one)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises(TypeError):
            compare(one, one)


@pytest.mark.parametrize("one", NULLS + CONSTANTS)
def test_constructors_refuse_other_families(one) -> None:
    for other in [*NULLS, 1, "abc"]:
        if not isinstance(other, type(one)):
            with pytest.raises(TypeError, match="incorrect type"):
                type(one)(other)
    with pytest.raises(TypeError):
        type(one)(one, one)
    with pytest.raises(TypeError):
        type(one)(nonsense=one)


@pytest.mark.parametrize("one", NULLS + CONSTANTS)
def test_integers(one) -> None:
    cls = type(one)
    assert cls.fromhandle(one.handle) == one
    assert cls.fromint(one.toint()) == one
    assert cls.f2py(one.py2f()) == one
    assert handles._handleof(one) == one.handle >= 0
    for value in (None, one.handle):
        with pytest.raises(AttributeError):
            one.handle = value


def test_integers_of_created_objects() -> None:
    one, other = Info.Create({"a": "1"}), Info.Create()
    assert one.handle != other.handle
    assert Info.fromhandle(one.handle) == one
    number = one.handle
    one.Free()
    with pytest.raises(MPIException) as caught:
        Info.fromhandle(number)
    assert caught.value.Get_error_class() == ERR_INFO


def test_integers_keep_an_object_alive() -> None:
    number = Info.Create({"a": "1"}).handle
    gc.collect()
    assert Info.fromhandle(number).items() == [("a", "1")]


def test_an_unknown_integer_is_an_error() -> None:
    with pytest.raises(MPIException) as caught:
        Group.fromhandle(12345)
    assert caught.value.Get_error_class() == ERR_GROUP
    with pytest.raises(TypeError):
        Group.fromhandle("abc")


@pytest.mark.usefixtures("as_mpi4py")
@pytest.mark.parametrize("one", NULLS + CONSTANTS)
def test_constants_are_pickled_by_name(one) -> None:
    copiers = [copy.copy, copy.deepcopy]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copiers.append(lambda obj, p=protocol: pickle.loads(pickle.dumps(obj, p)))
    for copier in copiers:
        assert copier(one) is one
        again = copier(type(one)(one))
        assert again == one and again is not one and type(again) is type(one)


def test_the_address_is_that_of_a_cell_which_c_may_write() -> None:
    cell_of_empty = ctypes.c_uint32.from_address(handles._addressof(GROUP_EMPTY))
    assert cell_of_empty.value == GROUP_EMPTY.handle
    group = Group()
    cell = ctypes.c_uint32.from_address(handles._addressof(group))
    cell.value = cell_of_empty.value
    assert group == GROUP_EMPTY and group.Get_size() == 0
    group.Free()
    assert cell.value == GROUP_NULL.handle and not group


def test_cells_go_with_their_handles() -> None:
    gc.collect()  # handles of other tests
    before = len(handles._cells)
    group = Group()
    handles._addressof(group)
    assert len(handles._cells) == before + 1
    del group
    gc.collect()
    assert len(handles._cells) == before


def test_sizes_and_wrong_types() -> None:
    assert handles._sizeof(Group) == handles._sizeof(GROUP_NULL) == 4
    assert handles._sizeof(Status) == handles._sizeof(Status()) == 20
    for function in (handles._sizeof, handles._addressof, handles._handleof):
        with pytest.raises(TypeError):
            function(None)


def test_weak_references() -> None:
    for one in NULLS + CONSTANTS:
        assert weakref.ref(one)() is one


def test_free_is_safe() -> None:
    for one in NULLS + CONSTANTS:
        for _ in range(2):
            one.free()
            assert bool(one) == (one in CONSTANTS)
    info = Info.Create()
    for _ in range(2):
        info.free()
        assert not info
    for constant in (GROUP_EMPTY, INFO_ENV):
        clone = type(constant)(constant)
        clone.free()
        assert not clone and constant


def test_no_new_attributes() -> None:
    with pytest.raises(AttributeError):
        GROUP_EMPTY.color = "red"


class MyInfo(Info):
    """A program's own class of info objects."""

    def __new__(cls, info: Info | None = None) -> MyInfo:
        return Info.__new__(cls, info)


@pytest.mark.usefixtures("as_mpi4py")
def test_subclasses_of_programs() -> None:
    info = MyInfo(Info.Create({"a": "1"}))
    assert isinstance(info, MyInfo) and info["a"] == "1"
    for made in (MyInfo.Create(), info.Dup(), info.copy(), MyInfo.Create_env()):
        assert type(made) is MyInfo
    again = pickle.loads(pickle.dumps(info))
    assert type(again) is MyInfo and again.items() == info.items() and again != info


def test_errhandlers_compare_within_their_family_only() -> None:
    assert Errhandler() == ERRHANDLER_NULL
    assert Errhandler() != Group()
