"""Places in the cells of a notebook."""

from __future__ import annotations

import linecache
import sys
from types import SimpleNamespace

import pytest

import pysmpi

SOURCE = """\
def wait(comm):
    comm.ssend(1, (comm.rank + 1) % comm.size)

def main(fails):
    from mpi4py import MPI
    if fails:
        1 / 0
    wait(MPI.COMM_WORLD)
"""


@pytest.fixture
def main(monkeypatch):
    """A function of the cell In[7], in a process with a shell of IPython."""
    file = "/tmp/ipykernel_1/123.py"

    def name_of(name: str) -> tuple[str, str] | None:
        return ("Cell", "In[7]") if name == file else None

    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name=name_of))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(
        linecache.cache, file, (len(SOURCE), None, SOURCE.splitlines(keepends=True), file)
    )
    names: dict[str, object] = {}
    exec(compile(SOURCE, file, "exec"), names)
    return names["main"]


def test_reports_name_the_cell_and_its_line(main) -> None:
    result = pysmpi.run(main, 2, args=[False], compute="none", check=False, explain=True)
    assert "In[7]:2 in wait" in result.error and "ipykernel" not in result.error
    assert set(result.to_frame("calls")["site"]) == {"ssend at In[7]:2"}


def test_tracebacks_name_the_cell_and_show_its_line(main) -> None:
    with pytest.raises(pysmpi.ProgramError) as error:
        pysmpi.run(main, 2, args=[True])
    assert 'File "In[7]", line 7, in main\n    1 / 0\n' in str(error.value)
    # IPython prints these lines in place of a traceback through pysmpi.
    lines = error.value._render_traceback_()
    assert lines[0] == "ProgramError at" and lines[2:] == str(error.value).splitlines()
    assert lines[1].endswith("pysmpi.run(main, 2, args=[True])")


class Shell:
    """The parts of a shell of IPython that the magic uses."""

    def __init__(self) -> None:
        self.compile = self
        self.displayhook = SimpleNamespace(prompt_count=3)
        self.magics: dict[str, object] = {}

    def register_magic_function(self, function, kind: str, name: str) -> None:
        assert kind == "cell"
        self.magics[name] = function

    def cache(self, source: str, number: int) -> str:
        lines = source.splitlines(keepends=True)
        linecache.cache["<cell 3>"] = len(source), None, lines, "<cell 3>"
        return "<cell 3>"

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", "In[3]") if name == "<cell 3>" else None


@pytest.fixture
def magic(monkeypatch):
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    pysmpi.load_ipython_extension(shell)
    yield shell.magics["pysmpi"]
    linecache.cache.pop("<cell 3>", None)


CELL = """\
import sys
from mpi4py import MPI

comm = MPI.COMM_WORLD
print(__name__, comm.rank, sys.argv[1:], MPI.Get_processor_name())
if "hang" in sys.argv:
    comm.recv()
"""


def test_a_cell_is_a_program_on_ranks(magic, capfd) -> None:
    line = (
        "-n 2 --platform graphene --map-by node --coll bcast=binomial_tree --compute none 7 'a b'"
    )
    result = magic(line, CELL)
    out, _ = capfd.readouterr()
    assert out == ("__main__ 0 ['7', 'a b'] graphene-0\n__main__ 1 ['7', 'a b'] graphene-1\n")
    assert (result.nprocs, result.exit_status, result.platform) == (2, 0, "graphene")
    assert magic("-q -n 1 --compute none", "pass") is None


def test_a_failing_cell_prints_its_report_and_has_a_result(magic, capfd) -> None:
    result = magic("-n 2 --check all --compute none hang", CELL)
    out, _ = capfd.readouterr()
    assert result.exit_status == 3 and "PSM101 deadlock" in out and "In[3]:8" in out


@pytest.mark.parametrize(
    "line, message",
    [
        ("-n x", "-n: expected a whole number"),
        ("-n 2 --platfrm graphene", "--platfrm"),
        ("-n 2 --pdb", "debug: expected in pysmpi run only"),
        ("-n 2 -l", "expected options of pysmpi.run"),
        ("-n 2 -m this", "expected options of pysmpi.run"),
        ("-n 2 'open", "No closing quotation"),
        ("-n 2 --platform nowhere", 'got "nowhere"'),
    ],
)
def test_wrong_first_lines(magic, line: str, message: str) -> None:
    with pytest.raises(pysmpi.UsageError) as error:
        magic(line, CELL)
    assert message in str(error.value) and "\n" not in str(error.value)
