"""Reports of errors in programs."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st
from ranks_by_hand import current, run

from pysmpi.errors import PysmpiError, PysmpiInternalError, UsageError
from pysmpi.isolation.loading.loader import CommandProgram, FunctionProgram, ScriptProgram
from pysmpi.isolation.program_errors import (
    error_site,
    format_error,
    format_errors,
    group_errors,
    name_ranks,
    strip,
)
from pysmpi.python.frames import call_site, current_site

PROGRAM = """
import json
from mpi4py import MPI
def outer():
    inner(MPI.rank())
def inner(rank):
    if rank == 2:
        raise KeyError("odd one")
    json.loads("{" + str(rank))
outer()
"""


def errors_of(program, size: int):
    members = run(program, size, check=False)
    return [(member.pid, member.error) for member in members if member.error is not None]


def test_tracebacks_have_the_rank_and_no_frame_of_ours(write):
    path = write("program.py", PROGRAM)
    text = format_errors(errors_of(ScriptProgram(path), 4))
    assert text.startswith("ranks 0-1,3: Traceback (most recent call last):\n")
    assert "\nrank 2: Traceback" in text
    assert f'File "{path}", line 10, in <module>\n    outer()' in text
    assert "json.decoder.JSONDecodeError" in text
    assert "KeyError: 'odd one'" in text
    assert os.sep + "pysmpi" + os.sep + "runtime" not in text


def test_messages_that_differ_do_not_keep_errors_apart(write):
    path = write("program.py", "from mpi4py import MPI\nraise ValueError(f'rank {MPI.rank()}')")
    (group,) = group_errors(errors_of(ScriptProgram(path), 3))
    assert group.ranks == [0, 1, 2]
    assert group.differ
    end = "ValueError: rank 0\n(the message is that of rank 0; those of others differ)\n"
    assert str(group).endswith(end)


def test_causes_are_shown_and_cleaned(write):
    path = write(
        "program.py",
        """
        try:
            import missing_module
        except ImportError as error:
            raise RuntimeError("no way") from error
        """,
    )
    ((_, error),) = errors_of(ScriptProgram(path), 1)
    text = format_error(error)
    assert "direct cause" in text
    assert "importlib" not in text and "private.py" not in text


def test_a_syntax_error_is_shown_as_python_shows_it(write):
    path = write("program.py", "x = (\n")
    try:
        ScriptProgram(path).prepare()
    except SyntaxError as error:
        text = format_error(error.with_traceback(error.__traceback__.tb_next))
    assert text.startswith(f'  File "{path}", line 1\n    x = (\n')
    assert text.endswith("SyntaxError: '(' was never closed\n")


def test_the_site_of_an_error_is_in_the_program(write):
    path = write("program.py", PROGRAM)
    (_, error), (_, other) = errors_of(ScriptProgram(path), 3)[1:]
    assert error_site(error)[:] == (path, 9, "inner")
    assert error_site(other)[:] == (path, 8, "inner")
    assert str(error_site(error)).endswith("program.py:9 in inner")


def test_the_site_of_a_call_is_in_the_program(write):
    path = write(
        "program.py",
        """
        import functools
        from mpi4py import MPI
        class Worker:
            def work(self, _):
                MPI.sites.append(MPI.look())
        functools.reduce(lambda a, b: Worker().work(b), [1, 2])
        """,
    )
    from ranks_by_hand import fake_mpi

    mpi = fake_mpi()
    mpi.look = current_site
    mpi.sites = sites = []
    run(ScriptProgram(path), 1, mpi)
    assert sites[0][:] == (path, 6, "Worker.work")
    assert call_site(None) is None


def test_stripped_tracebacks_can_be_raised():
    def main():
        raise KeyError(current().pid)

    ((_, error),) = errors_of(FunctionProgram(main), 1)
    trace = strip(error.__traceback__)
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert files == ["_live", "main"]


def test_programs_without_a_file_have_sites():
    ((_, error),) = errors_of(CommandProgram("\n\n1/0"), 1)
    assert error_site(error)[:] == ("<string>", 3, "<module>")


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranks_are_named_compactly(ranks):
    text = name_ranks(ranks)
    word, _, numbers = text.partition(" ")
    assert word == ("rank" if len(ranks) == 1 else "ranks")
    found = set()
    for part in numbers.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    assert found == ranks


def test_an_error_without_a_text_is_reported(write):
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    def main() -> None:
        raise Mute

    ((_, error),) = errors_of(FunctionProgram(main), 1)
    text = format_error(error)
    assert "raise Mute" in text
    assert text.splitlines()[-1].endswith("Mute: <exception str() failed>")


def test_errors_have_the_documented_statuses():
    assert PysmpiError.exit_status == 1
    assert UsageError.exit_status == 2
    assert PysmpiInternalError.exit_status == 70
    assert all(issubclass(kind, PysmpiError) for kind in (UsageError, PysmpiInternalError))
