"""Tables of results for libraries of data frames."""

from __future__ import annotations

import sys

import numpy
import pytest

import pysmpi
from pysmpi.reports.tables import FigureTable


def ring():
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for _ in range(3):
        comm.sendrecv(bytes(1000), (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)


class Stream:
    """A table of which a library knows no more than its stream."""

    def __init__(self, table: FigureTable) -> None:
        self.__arrow_c_stream__ = table.__arrow_c_stream__


@pytest.fixture(scope="module")
def result():
    return pysmpi.run(ring, 4, platform="graphene", compute="none", explain=True)


def test_tables_have_the_figures_of_the_report(result) -> None:
    report = result.report()
    ranks = result.to_frame()
    assert list(ranks.rows()) == report["ranks"]
    assert ranks["rank"].dtype == numpy.int64 and ranks["end_seconds"].dtype == numpy.float64
    analysis = report["analysis"]
    assert list(result.to_frame("critical_path").rows()) == analysis["critical_path"]["places"]
    changes = result.to_frame("what_if")
    assert dict(zip(changes["what"], changes["seconds"])) == analysis["what_if"]
    calls = list(result.to_frame("calls").rows())
    assert calls and calls == [
        {name: value for name, value in site.items() if name != "late_seconds"}
        for site in analysis["sites"]
    ]


def test_the_findings_of_the_checkers_are_a_table() -> None:
    def lose():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 0:
            comm.send(1, dest=1)

    with pytest.raises(pysmpi.ProgramError) as error:
        pysmpi.run(lose, 2, compute="none", check="all")
    table = error.value.result.to_frame("findings")
    assert table["code"] == ["PSM114"] and table["title"] == ["message never received"]


@pytest.mark.parametrize(
    "library, read",
    [
        ("pyarrow", lambda library, table: library.table(table).to_pylist()),
        ("pandas", lambda library, table: library.DataFrame(table).to_dict("records")),
        ("polars", lambda library, table: library.DataFrame(table).to_dicts()),
        ("pyarrow", lambda library, table: library.table(Stream(table)).to_pylist()),
        ("polars", lambda library, table: library.from_dataframe(table).to_dicts()),
        (
            "pandas",
            lambda library, table: library.api.interchange.from_dataframe(table).to_dict("records"),
        ),
    ],
)
def test_libraries_read_each_table(result, library: str, read) -> None:
    module = pytest.importorskip(library, reason=f"needs {library}")
    for what in ("ranks", "calls", "critical_path", "what_if", "findings"):
        table = result.to_frame(what)
        assert read(module, table) == list(table.rows())


def test_a_stream_without_a_library_says_what_it_needs(result, monkeypatch) -> None:
    for library in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        result.to_frame().__arrow_c_stream__()


def test_a_notebook_shows_a_table(result) -> None:
    shown = result.to_frame("critical_path")._repr_html_()
    assert shown.startswith("<table>") and "sendrecv at" in shown
    many = FigureTable({"<": list(range(150))})
    assert repr(many) == "<Table: 150 rows of <>"
    text = many._repr_html_()
    assert "&lt;" in text and text.count("<tr>") == 101 and "and 50 more rows" in text


@pytest.mark.parametrize(
    "what, message",
    [("rank", "got 'rank'; did you mean ranks?"), ("calls", "expected a run with explain=True")],
)
def test_a_table_that_is_not_there(what: str, message: str) -> None:
    plain = pysmpi.run(ring, 2, compute="none")
    with pytest.raises(pysmpi.UsageError) as error:
        plain.to_frame(what)
    assert message in str(error.value)
