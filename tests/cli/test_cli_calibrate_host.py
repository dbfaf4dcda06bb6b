"""`pysmpi calibrate host`, and the messages of runs about the speed of this computer."""

from __future__ import annotations

import json

HELLO = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)\n"


def test_calibrate_host_renews_what_is_kept(pysmpi, write, tmp_path):
    kept = tmp_path / "pysmpi" / "host_speed.json"
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    done = pysmpi("calibrate", "host", "--json", **variables)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["slowest"] <= found["usual"] <= found["speed"]
    assert found["kept_in"] == str(kept)
    (name,) = json.loads(kept.read_text())
    kept.write_text(json.dumps({name: 1.0}))
    done = pysmpi("calibrate", "host", **variables)
    assert done.returncode == 0, done.stderr
    assert "Gflop/s a core" in done.stdout
    speeds = json.loads(kept.read_text())
    assert list(speeds) == [name]
    assert speeds[name] > 1e6


def test_a_run_that_needs_no_speed_measures_none(pysmpi, write, tmp_path):
    write("hello.py", HELLO)
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    done = pysmpi("run", "hello.py", **variables)
    assert done.returncode == 0, done.stderr
    assert "compute native x 1 (cores as fast as this computer's)" in done.stderr
    done = pysmpi("run", "--platform", "graphene", "--compute", "none", "hello.py", **variables)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "pysmpi").glob("host_speed*"))


def test_the_summary_and_the_report_say_the_speed(pysmpi, write, tmp_path):
    write("hello.py", HELLO)
    words = ("--platform", "graphene", "--host-speed", "7.084Gf", "--report", "r.json")
    done = pysmpi("run", *words, "hello.py")
    assert "compute native x 2 (this computer: 7.08 Gflop/s a core, simulated: 3.54)" in done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["host_speed"] == 7.084e9
    assert report["compute_factor"] == 2.0
    assert report["preset"] == "smpi"
    assert report["schema"] == 2
