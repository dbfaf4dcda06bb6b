"""Files that are no files, endless, huge, or not text: each reader refuses them in one line."""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.io import reading

GIGABYTE = 1 << 30
DIGITS = "7" * 5000

# How each reader is asked to read a file; the name of the file ends as the reader wants it.
READERS = {
    "platform.yaml": ("platform", "check", "platform.yaml"),
    "platform.xml": ("platform", "show", "platform.xml"),
    "hosts": ("run", "--hostfile", "hosts", "ok.py"),
    "program.py": ("run", "program.py"),
    "recording.jsonl": ("view", "recording.jsonl", "--text"),
    "converted.jsonl": ("trace", "convert", "converted.jsonl", "out.csv"),
    "replayed.jsonl": ("replay", "replayed.jsonl"),
    "independent.ti": ("replay", "independent.ti"),
    "table.parquet": ("trace", "convert", "table.parquet", "out.csv"),
    "study.yaml": ("sweep", "study.yaml", "--list"),
    "compute.rec": ("run", "--compute", "./compute.rec", "ok.py"),
    "selection.txt": ("run", "--selector", "./selection.txt", "ok.py"),
    "protocol.yaml": ("coherence", "protocols", "protocol.yaml"),
    "latencies.yaml": ("coherence", "latencies", "latencies.yaml"),
    "primitive.py": ("coherence", "study", "./primitive.py"),
    "profile.txt": ("platform", "check", "states.xml"),
    ".pysmpi/failures.json": ("explore", "ok.py"),
    "study.results/journal.jsonl": ("sweep", "good.yaml", "-o", "study.results"),
}


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _null(path: Path) -> None:
    path.symlink_to("/dev/null")


def _waiting(path: Path) -> None:
    path.symlink_to("/proc/kmsg")


def _memory(path: Path) -> None:
    path.symlink_to("/proc/self/mem")


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(before)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _sparse(path: Path) -> None:
    with open(path, "wb") as stream:
        stream.truncate(10 * GIGABYTE)


def _bomb(path: Path) -> None:
    # Each of the members is a megabyte of zeros, of which a thousandth is stored.
    path.write_bytes(gzip.compress(bytes(1 << 20)) * 80)


def _begun(path: Path) -> None:
    head = json.dumps({"format": "pysmpi recording", "version": 3}).encode() + b"\n"
    with open(path, "wb") as stream:
        stream.write(head)
        stream.truncate(10 * GIGABYTE)


def content(data: bytes):
    return lambda path: path.write_bytes(data)


SPECIAL = {
    "/dev/zero": _zero,
    "/dev/null": _null,
    "/proc/kmsg": _waiting,
    "/proc/self/mem": _memory,
    "a FIFO": _fifo,
    "a directory": _folder,
    "a socket": _socket,
    "a loop": _loop,
    "a dangling link": _dangling,
    "10 GB": _sparse,
    "10 GB with a begin": _begun,
    "a bomb": _bomb,
    "empty": content(b""),
    "no UTF-8": content(b"caf\xe9: \xff\xfe\n" * 9),
    "zeros": content(bytes(500)),
    "UTF-16": content("name: x\nhosts: [{name: a}]\n".encode("utf-16")),
    "a mark": content(b"\xef\xbb\xbf\n"),
    "ends of lines": content(b"a\r\nb\rc\n\r\n"),
    "deep JSON": content(b"[" * 100_000),
    "deep JSON in a line": content(b'{"sweep": 1}\n' + b'{"key":' * 50_000 + b"\n"),
    "deep YAML": content(b"a: " + b"{a: " * 100_000),
    "deep XML": content(b"<platform>" + b"<zone>" * 100_000),
    "digits": content(f"{DIGITS} {DIGITS}\n".encode()),
    "digits in JSON": content(f'{{"version": {DIGITS}, "format": "pysmpi recording"}}\n'.encode()),
    "digits in YAML": content(f"name: x\nhosts: [{{name: a, cores: {DIGITS}}}]\n".encode()),
    "digits of a host": content(f"cluster-n0:{DIGITS}\n".encode()),
    "digits of a table": content(f"bcast\n  P == {DIGITS} star\n  else star\n".encode()),
    "an archive": content(b"PK\5\6" + bytes(18)),
    "a library": content(b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<H", 3) + bytes(64)),
}

STATES = """<platform version="4.1"><zone id="w" routing="Full">
<host id="h" speed="1Gf" state_file="profile.txt"/></zone></platform>
"""


@pytest.fixture(autouse=True)
def files(write, monkeypatch):
    write("ok.py", "pass\n")
    write("states.xml", STATES)
    write("good.yaml", "program: ok.py\n")
    monkeypatch.setattr(reading, "PATIENCE", 0.01)
    monkeypatch.setattr(reading, "LARGEST", 1 << 22)


@pytest.mark.parametrize("kind", SPECIAL)
def test_one_line_or_success(kind, status, tmp_path: Path):
    """No reader waits, fills the memory or fails with a traceback."""
    for name, words in READERS.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        SPECIAL[kind](path)
        code, out, err = status(*words)
        refused = err.startswith("pysmpi: error: ") and err.count("\n") == 1
        program = name.endswith(".py")  # its own errors have several lines
        assert (code == 2 and refused and out == "") or code == 0 or (program and code == 1), (
            words, code, out[-300:], err[-2000:]
        )  # fmt: skip
        assert "internal error" not in err
        if kind in ("/dev/zero", "a FIFO", "a directory", "a socket", "a loop", "10 GB"):
            assert code == 2, (words, out, err)


def test_a_pipe_with_a_writer_is_read(status, tmp_path: Path, monkeypatch):
    """The other end may be opened later, as by a shell that starts two commands."""
    import threading

    monkeypatch.setattr(reading, "PATIENCE", 60.0)
    path = tmp_path / "program.py"
    os.mkfifo(path)
    writer = threading.Timer(0.05, path.write_text, ["print('from a pipe')\n"])
    writer.start()
    code, out, err = status("run", "program.py")
    writer.join()
    assert code == 0, err
    assert "from a pipe" in out


def test_text_of_other_systems(status, tmp_path: Path):
    text = "\ufeffcluster-n0:2 \r\n# two hosts\r\ncluster-n1\r\n"
    (tmp_path / "hosts").write_bytes(text.encode())
    code, _, err = status("run", "-n", "3", "--hostfile", "hosts", "ok.py")
    assert code == 0 and "3 ranks on 2 hosts" in err


@pytest.mark.parametrize(
    "data, message",
    [
        (b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + bytes(90), "a compiled program (ELF)"),
        (b"\x7fELF\2\1\1" + bytes(9) + b"\3\0" + bytes(90), "a shared library (ELF)"),
        (
            b"\x7fELF\2\1\1" + bytes(9) + b"\3\0" + bytes(90) + b"\0libsimgrid.so.3.32\0",
            "a compiled program of SMPI; compile its source with pysmpi cc, cxx or fc",
        ),
        (b"MZ\x90\0" + bytes(60), "a program of Windows"),
        (b"\xcf\xfa\xed\xfe" + bytes(60), "a compiled program of macOS"),
        (b"\x6f\x0d\r\n" + bytes(60), "byte code of another version"),
        (b"\x1f\x8b\x08\0" + bytes(60), "a compressed file"),
        (b"PK\3\4" + bytes(60), "a damaged zip file"),
        (b"\xff\xfep\0", "a text in UTF-16"),
        (b"x = 1\0", "other data"),
        (b"#!/bin/sh\nif true; then\n", "a script of /bin/sh"),
    ],
)
def test_programs_of_other_kinds_are_named(status, tmp_path: Path, data, message):
    (tmp_path / "prog").write_bytes(data)
    code, _, err = status("run", "./prog")
    assert code == 2
    assert "./prog: expected a Python program, got " in err and message in err


def test_errors_of_the_system_are_told_and_only_a_missing_file_has_a_hint(tmp_path: Path) -> None:
    (tmp_path / "machine.yaml").write_text("one")
    for read in (reading.read_bytes, reading.open_lines, reading.read_text):
        for name, told in {
            "machine.yml": "No such file or directory; did you mean {}/machine.yaml?",
            "another": "No such file or directory",
            "machine.yaml/inner": "Not a directory",
            "m" * 300: "File name too long",
        }.items():
            with pytest.raises(UsageError) as raised:
                read(tmp_path / name)
            assert str(raised.value).endswith(told.format(tmp_path)), raised.value
            assert str(raised.value).startswith(str(tmp_path / name))
        with pytest.raises(UsageError, match=r"'a\\x00b': expected the name of a file"):
            read("a\0b")


def test_the_largest_file_and_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST", 10)
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    os.mkfifo(pipe)
    for size in (0, 1, 10, 11):
        file.write_bytes(b"x" * size)
        inner = os.open(pipe, os.O_RDWR)
        os.write(inner, b"x" * size)
        outer = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.close(inner)
        for path in (file, pipe):  # the data stay in the pipe while it has an end
            if size <= 10 and (size or path is file):
                assert reading.read_bytes(path) == b"x" * size
            elif size:
                with pytest.raises(UsageError, match="expected at most .*, got more"):
                    reading.read_bytes(path)
        os.close(outer)
    with pytest.raises(UsageError, match="it is a pipe, expected a file"):
        reading.open_lines(pipe)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfa\r\nb\rc\n", "a\nb\nc\n"),
        ("\N{GREEK SMALL LETTER MU}".encode(), "\N{GREEK SMALL LETTER MU}"),
        (b"", ""),
    ],
)
def test_texts(data: bytes, text: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(data)
    assert reading.read_text(tmp_path / "text") == text
