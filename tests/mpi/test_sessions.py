"""Sessions."""

from __future__ import annotations

import pickle

import pytest

from pysmpi.mpi import MPI

pytestmark = pytest.mark.usefixtures("own_rank")


@pytest.fixture
def session():
    made = MPI.Session.Init()
    yield made
    made.free()


def test_life(session) -> None:
    assert session and MPI.Session(session) == session != MPI.Session.Init()
    session.Finalize()
    assert session == MPI.SESSION_NULL == MPI.Session()


def test_process_sets(session) -> None:
    names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
    assert names == ["mpi://WORLD", "mpi://SELF"]
    for name in [*names, "mpi://self", "MPI://world"]:
        group = session.Create_group(name)
        assert (group.size, group.rank) == (1, 0)
        assert MPI.Group.Create_from_session_pset(session, name).Compare(group) == MPI.IDENT
        assert session.Get_pset_info(name).items() == [("mpi_size", "1")]


def test_hints(session) -> None:
    assert session.Get_info()["thread_level"] == "MPI_THREAD_MULTIPLE"
    strict = MPI.Session.Init(MPI.Info.Create({"strict_finalize": "1", "color": "red"}))
    assert strict.Get_info()["strict_finalize"] == "1" and "color" not in strict.Get_info()


def test_error_handlers(session) -> None:
    seen = []
    handler = MPI.Session.Create_errhandler(lambda obj, code: seen.append((obj == session, code)))
    session.Set_errhandler(handler)
    with pytest.raises(MPI.Exception):
        session.Create_group("mpi://NOBODY")
    session.Call_errhandler(MPI.ERR_OTHER)
    assert seen == [(True, MPI.ERR_ARG), (True, MPI.ERR_OTHER)]
    assert MPI.Session.Init(errhandler=handler).Get_errhandler() == handler


def test_buffers(session) -> None:
    memory = bytearray(1000)
    session.Attach_buffer(memory)
    session.Flush_buffer()
    session.Iflush_buffer().Wait()
    assert session.Detach_buffer() is memory


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (MPI.ERR_SESSION, lambda session: MPI.SESSION_NULL.Get_info()),
        (MPI.ERR_SESSION, lambda session: MPI.SESSION_NULL.Finalize()),
        (MPI.ERR_SESSION, lambda session: MPI.SESSION_NULL.Create_group("mpi://SELF")),
        (MPI.ERR_ARG, lambda session: session.Get_nth_pset(-1)),
        (MPI.ERR_ARG, lambda session: session.Get_nth_pset(2)),
        (MPI.ERR_ARG, lambda session: session.Get_pset_info("nobody")),
    ],
)
def test_errors(session, code, call) -> None:
    with pytest.raises(MPI.Exception) as caught:
        call(session)
    assert caught.value.Get_error_class() == code


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (TypeError, lambda session: MPI.Session.Init(None)),
        (TypeError, lambda session: MPI.Session.Init(errhandler=3)),
        (TypeError, lambda session: session.Get_pset_info(3)),
        (TypeError, lambda session: MPI.Group.Create_from_session_pset(3, "mpi://SELF")),
        (ValueError, lambda session: pickle.dumps(session)),
    ],
)
def test_wrong_arguments(session, kind, call) -> None:
    with pytest.raises(kind):
        call(session)
