"""Secure sockets of ranks."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import pysmpi

PROGRAM = """
import socket, ssl, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
file = %r
if comm.rank == 0:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = socket.create_server(("127.0.0.1", 0))
    comm.bcast(server.getsockname()[1])
    for _ in range(comm.size - 1):
        plain, _ = server.accept()
        with context.wrap_socket(plain, server_side=True) as secure:
            data = b""
            while len(data) < 300_000:
                data += secure.recv(65536)
            time.sleep(0.5)
            secure.sendall(data[:10])
else:
    context = ssl.create_default_context(cafile=file)
    plain = socket.create_connection(("127.0.0.1", comm.bcast(None)))
    with context.wrap_socket(plain, server_hostname="localhost") as secure:
        secure.sendall(bytes([comm.rank]) * 300_000)
        secure.settimeout(0.2)
        late = 0
        while True:
            try:
                data = secure.recv(65536)
                break
            except TimeoutError:
                late += 1
        assert late >= 1
        assert data == bytes([comm.rank]) * 10, data
        print(comm.rank, data[0])
"""


def test_ranks_talk_through_secure_sockets(write, tmp_path, capsys):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the command openssl, which makes the certificate, is not installed")
    certificate = tmp_path / "certificate.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", str(certificate), "-out", str(tmp_path / "second.pem"),
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True, timeout=100,
    )  # fmt: skip
    certificate.write_bytes(certificate.read_bytes() + (tmp_path / "second.pem").read_bytes())
    result = pysmpi.run(write("program.py", PROGRAM % str(certificate)), nprocs=3, compute="none")
    assert sorted(capsys.readouterr().out.split()) == ["1", "1", "2", "2"]
    assert 1.0 <= result.seconds < 1.2
