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
