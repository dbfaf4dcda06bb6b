"""Finding and starting programs."""

from __future__ import annotations

import io
import os
import py_compile
import subprocess
import sys
import zipfile

import pytest
from ranks_by_hand import current, run

from pysmpi.errors import UsageError
from pysmpi.isolation.loading.loader import (
    CommandProgram,
    FunctionProgram,
    ModuleProgram,
    ScriptProgram,
    StdinProgram,
)
from pysmpi.job.programs import find_program

SHOW = """
import json, sys
print(json.dumps([
    __name__, globals().get("__file__"), __package__, __spec__ and __spec__.name,
    type(__loader__).__name__ != "NoneType", sys.argv, sys.path[0],
    sys.modules["__main__"].__dict__ is globals(),
]))
"""


def python(arguments: list[str], cwd: str, stdin: str = "") -> str:
    """The output of the real interpreter for a program."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        input=stdin,
        text=True,
        capture_output=True,
        check=True,
        timeout=100,
    )
    return done.stdout


def printed(capsys, program) -> list[str]:
    run(program, 2)
    return capsys.readouterr().out.splitlines()


def test_a_script_starts_as_python_starts_it(write, capsys, tmp_path):
    path = write("show.py", SHOW)
    expected = python([path, "a", "-b"], str(tmp_path)).strip()
    assert printed(capsys, ScriptProgram(path, ["a", "-b"])) == [expected] * 2


def test_a_relative_path_stays_relative_in_argv_only(write, capsys, tmp_path, monkeypatch):
    write("show.py", SHOW)
    monkeypatch.chdir(tmp_path)
    expected = python(["show.py"], str(tmp_path)).strip()
    assert printed(capsys, ScriptProgram("show.py")) == [expected] * 2


def test_a_directory_and_a_zip_file_run_their_main(write, capsys, tmp_path):
    write("folder/__main__.py", SHOW)
    archive = tmp_path / "program.zip"
    with zipfile.ZipFile(archive, "w") as stream:
        stream.writestr("__main__.py", SHOW)
    for path in (tmp_path / "folder", archive):
        expected = python([str(path), "x"], str(tmp_path)).strip()
        assert printed(capsys, ScriptProgram(str(path), ["x"])) == [expected] * 2


def test_a_module_and_a_package_run_with_m(write, capsys, tmp_path, monkeypatch):
    write("alone.py", SHOW)
    write("pack/__init__.py", "")
    write("pack/__main__.py", SHOW)
    write("pack/part.py", SHOW)
    monkeypatch.chdir(tmp_path)
    for name in ("alone", "pack", "pack.part"):
        expected = python(["-m", name, "x"], str(tmp_path)).strip()
        assert printed(capsys, ModuleProgram(name, ["x"])) == [expected] * 2


def test_text_and_standard_input_are_programs(capsys, tmp_path):
    expected = python(["-c", SHOW, "x"], str(tmp_path)).strip()
    assert printed(capsys, CommandProgram(SHOW, ["x"])) == [expected] * 2
    expected = python(["-", "x"], str(tmp_path), SHOW).strip()
    assert printed(capsys, StdinProgram(["x"], io.StringIO(SHOW))) == [expected] * 2


def test_byte_code_is_a_program(write, capsys):
    path = write("show.py", "print(__name__)")
    compiled = py_compile.compile(path, cfile=path + "c")
    assert printed(capsys, ScriptProgram(compiled)) == ["__main__", "__main__"]


def test_a_function_is_called_by_each_rank():
    def main(base, *, step):
        return base + step * current().pid

    members = run(FunctionProgram(main, (10,), {"step": 2}), 3)
    assert [member.result for member in members] == [10, 12, 14]


def test_code_is_shared_and_globals_are_not(write):
    path = write("program.py", "def f(): pass\nimport sys\nsys.exit(f)")
    members = run(ScriptProgram(path), 2, check=False)
    first, second = (member.error.code for member in members)
    assert first.__code__ is second.__code__
    assert first.__globals__ is not second.__globals__


def test_every_rank_has_its_own_argv_and_path(write, capsys):
    path = write(
        "program.py",
        """
        import sys
        from mpi4py import MPI
        sys.argv.append(MPI.rank())
        sys.path.insert(0, f"/rank{MPI.rank()}")
        MPI.give_way()
        print(sys.argv[1:], sys.path[0], sys.path.count(sys.path[1]))
        """,
    )
    argv, path_before = list(sys.argv), list(sys.path)
    run(ScriptProgram(path, ["a"]), 2)
    assert capsys.readouterr().out == "['a', 0] /rank0 1\n['a', 1] /rank1 1\n"
    assert (sys.argv, sys.path) == (argv, path_before)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"target": "no/such.py"}, "no/such.py: expected a Python program, got no such file"),
        ({"target": "no_such_module", "module": True}, "-m no_such_module: no module"),
        ({"target": ".relative", "module": True}, "-m .relative: expected the absolute name"),
    ],
)
def test_a_program_that_does_not_exist_is_named(arguments, message):
    with pytest.raises(UsageError, match=message):
        find_program(**arguments).prepare()


def test_a_package_without_main_is_named(write, tmp_path, monkeypatch):
    write("hollow/__init__.py", "")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="-m hollow: .*cannot be directly executed"):
        run(ModuleProgram("hollow"), 1)


def test_a_folder_without_main_is_named(tmp_path):
    with pytest.raises(UsageError, match="expected a __main__ module in it"):
        ScriptProgram(str(tmp_path)).prepare()


def test_binary_data_is_no_program(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"\x00\x01\x02")
    with pytest.raises((UsageError, SyntaxError)):
        ScriptProgram(str(path)).prepare()


def test_syntax_errors_are_found_before_any_rank_starts(write):
    with pytest.raises(SyntaxError):
        ScriptProgram(write("wrong.py", "x = (")).prepare()


def test_sources_of_text_programs_show_in_tracebacks(capsys):
    program = CommandProgram(
        "import traceback\ntry:\n  1/0  # here\nexcept Exception: traceback.print_exc()"
    )
    run(program, 1)
    assert "1/0  # here" in capsys.readouterr().err


def test_the_main_module_of_the_caller_comes_back():
    before = sys.modules["__main__"]
    run(CommandProgram("import os; os.environ['PYSMPI_TEST_ONLY'] = '1'"), 2)
    assert sys.modules["__main__"] is before
    assert "PYSMPI_TEST_ONLY" not in os.environ
