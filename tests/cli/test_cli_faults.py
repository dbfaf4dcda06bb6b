"""Full disks, closed streams, and files that would exhaust the memory of a reader."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PYSMPI = [sys.executable, "-m", "pysmpi"]

needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")


def shell(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("pysmpi", " ".join(PYSMPI))],
        capture_output=True, text=True, timeout=100, cwd=cwd,
    )  # fmt: skip


@needs_full
def test_a_report_on_a_full_disk_keeps_the_summary(tmp_path):
    done = shell("pysmpi run --report /dev/full -c 'print(1)'", tmp_path)
    assert done.returncode == 2
    assert done.stdout == "1\n"
    assert "--report /dev/full: cannot be written: No space left on device" in done.stderr
    assert "pysmpi: 0 messages" in done.stderr
    assert "Traceback" not in done.stderr


@needs_full
@pytest.mark.parametrize(
    "command",
    ["run -q --record-compute /dev/full -c 'print(1)'", "platform show cluster > /dev/full"],
)
def test_a_full_disk_is_one_line(command, tmp_path):
    done = shell("pysmpi " + command, tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


@needs_full
@pytest.mark.parametrize("option", ["--trace", "--trace-format jsonl --trace", "--view"])
def test_a_timeline_on_a_full_disk_names_its_file(option, tmp_path):
    (tmp_path / "x.json").symlink_to("/dev/full")
    done = shell(f"pysmpi run -q {option} x.json -c 'print(1)'", tmp_path)
    assert (done.returncode, done.stdout) == (2, "1\n")
    what = f"{option.split()[-1]} x.json: cannot be written: no space left on device"
    assert done.stderr == f"pysmpi: error: {what}\n"


@pytest.mark.parametrize("close", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_change_nothing_else(close, tmp_path):
    done = shell(f"pysmpi run --trace t.json -c 'print(1)' {close}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("" if ">&- " in close + " " and not close.startswith("2") else "1\n")
    assert "Traceback" not in done.stderr
    assert (tmp_path / "t.json").read_text().startswith(("{", "["))


def test_a_program_may_close_its_output(tmp_path):
    done = shell("pysmpi run -q -c 'import sys; sys.stdout.close()'", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def bomb(value: str) -> str:
    lines = ["a: &a0 {k: v}"]
    for level in range(14):
        lines.append(f"x{level}: &a{level + 1} " + value.replace("*", f"*a{level}"))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text, message",
    [
        ("[" * 40_000, "nested too deeply"),
        ("a: " + "{b: " * 40_000, "nested too deeply"),
        ("a:\n  " + "- " * 40_000 + "x\n", "nested too deeply"),
        (bomb("[" + ", ".join(["*"] * 9) + "]"), "expected at most 20,000,000 values"),
        (bomb("{<<: [" + ", ".join(["*"] * 9) + "]}"), "expected at most 20,000,000 values"),
    ],
)
def test_texts_that_would_exhaust_a_reader_are_refused(text, message, tmp_path):
    (tmp_path / "machine.yaml").write_text(text)
    done = shell("pysmpi run --platform machine.yaml -c pass", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("pysmpi: error: machine.yaml:") and message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_name_that_is_too_long(tmp_path):
    done = shell(f"pysmpi run --platform {'n' * 300} -c pass", tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "platform: expected a file or one of" in done.stderr
