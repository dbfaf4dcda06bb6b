"""Info objects."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysmpi.mpi.base import info as chapter
from pysmpi.mpi.base.constants import (
    ERR_ARG,
    ERR_INFO,
    ERR_INFO_KEY,
    ERR_INFO_NOKEY,
    ERR_INFO_VALUE,
    MAX_INFO_KEY,
    MAX_INFO_VAL,
)
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.info import INFO_ENV, INFO_NULL, Info

KEYS = st.text("abcdefgh", min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["set", "delete", "pop"]), KEYS, st.text("xyz"))))
def test_like_a_dict(steps: list[tuple[str, str, str]]) -> None:
    info, model = Info.Create(), {}
    for step, key, value in steps:
        if step == "set":
            info[key] = model[key] = value
        elif step == "pop":
            assert info.pop(key, "none") == model.pop(key, "none")
        elif key in model:
            del info[key], model[key]
        else:
            with pytest.raises(KeyError):
                del info[key]
        assert len(info) == info.Get_nkeys() == len(model)
        assert (key in info) == (key in model)
        assert info.get(key) == info.Get(key) == model.get(key)
    assert info.items() == list(model.items())
    assert info.keys() == list(info) == list(model) and info.values() == list(model.values())
    assert [info.Get_nthkey(n) for n in range(len(model))] == list(model)
    if model:
        assert info.popitem() == model.popitem()
    info.clear()
    assert len(info) == 0
    with pytest.raises(KeyError):
        info.popitem()


def test_creation() -> None:
    pairs = {"key1": "value1", "key2": "value2"}
    for items in (pairs, list(pairs.items()), Info.Create(pairs)):
        assert dict(Info.Create(items).items()) == pairs
    for wrong in (3, ["abc"]):
        with pytest.raises((TypeError, ValueError)):
            Info.Create(wrong)


def test_update() -> None:
    info = Info.Create({"a": "1"})
    info.update([("a", "2")], b="3")
    info.update({"c": "4"})
    assert info.items() == [("a", "2"), ("b", "3"), ("c", "4")]


@pytest.mark.usefixtures("as_mpi4py")
def test_copies_are_independent() -> None:
    info = Info.Create({"a": "1"})
    for other in (info.Dup(), info.copy(), pickle.loads(pickle.dumps(info))):
        other["a"] = "2"
        assert info["a"] == "1" and info != other


def test_bytes_are_text() -> None:
    info = Info.Create()
    info.Set(b"a", "é".encode())
    assert info["a"] == "é"


def test_a_null_info_is_an_empty_mapping() -> None:
    assert len(INFO_NULL) == 0 and "a" not in INFO_NULL and INFO_NULL.get("a", "b") == "b"
    assert INFO_NULL.keys() == INFO_NULL.values() == INFO_NULL.items() == list(INFO_NULL) == []
    assert INFO_NULL.pop("a", None) is None and INFO_NULL.copy() == INFO_NULL
    INFO_NULL.clear()
    for call in (
        lambda: INFO_NULL["a"],
        lambda: INFO_NULL.__setitem__("a", "b"),
        lambda: INFO_NULL.__delitem__("a"),
        lambda: INFO_NULL.update([]),
        lambda: INFO_NULL.pop("a"),
        lambda: INFO_NULL.popitem(),
    ):
        with pytest.raises(KeyError):
            call()


@pytest.mark.usefixtures("own_rank")
def test_the_environment_is_the_ranks_own() -> None:
    chapter.environment().update(command="prog", maxprocs="4")
    assert INFO_ENV.Get("maxprocs") == "4" and INFO_ENV.Get("soft") is None
    made = Info.Create_env()
    assert made != INFO_ENV and made.items() == INFO_ENV.items()
    made.Set("maxprocs", "5")
    assert INFO_ENV.Get("maxprocs") == "4"
    assert Info.Create_env(["a", "b", "c"]).items() == [
        ("command", "a"),
        ("maxprocs", "4"),
        ("argv", "b c"),
    ]


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (ERR_INFO, lambda: INFO_NULL.Get("a")),
        (ERR_INFO, lambda: INFO_NULL.Get_nkeys()),
        (ERR_INFO, lambda: INFO_NULL.Dup()),
        (ERR_INFO, lambda: INFO_NULL.Free()),
        (ERR_INFO, lambda: INFO_ENV.Set("a", "b")),
        (ERR_INFO, lambda: INFO_ENV.Free()),
        (ERR_INFO_KEY, lambda: Info.Create().Set(" ", "b")),
        (ERR_INFO_KEY, lambda: Info.Create().Get("a" * (MAX_INFO_KEY + 1))),
        (ERR_INFO_VALUE, lambda: Info.Create().Set("a", "b" * (MAX_INFO_VAL + 1))),
        (ERR_INFO_NOKEY, lambda: Info.Create().Delete("a")),
        (ERR_ARG, lambda: Info.Create().Get_nthkey(0)),
        (ERR_ARG, lambda: Info.Create().Get_nthkey(-1)),
    ],
)
def test_errors(code, call) -> None:
    with pytest.raises(MPIException) as caught:
        call()
    assert caught.value.Get_error_class() == code
    assert caught.value.detail


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (TypeError, lambda: Info.Create().Set(None, "b")),
        (TypeError, lambda: Info.Create().Set("a", 1)),
        (TypeError, lambda: Info.Create().Get(3)),
        (TypeError, lambda: 3 in Info.Create()),
        (TypeError, lambda: Info.Create().Get_nthkey("a")),
        (ValueError, lambda: Info.Create().Set("a\0b", "c")),
        (ValueError, lambda: Info.Create().pop("a", "1", "2")),
        (TypeError, lambda: Info.Create_env(3)),
    ],
)
def test_wrong_arguments(kind, call) -> None:
    with pytest.raises(kind):
        call()
