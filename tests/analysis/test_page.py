"""The page of a run in a headless browser: no errors, timeline, arrows, zoom, keys, comparison."""

import json
import re
import time
from types import SimpleNamespace

import browser
import numpy as np
import pytest
from columns_of_pages import numbers, values

import pysmpi
from pysmpi.analysis.graph import EventGraph
from pysmpi.analysis.movement import picture_of
from pysmpi.analysis.page import MOST_LINES, assemble, page, page_data
from pysmpi.analysis.scene import TICKS, _picture, _ticks, column, intervals
from pysmpi.analysis.why import analyse
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options, check
from pysmpi.trace.activity import activity_of
from pysmpi.trace.model import Recording
from pysmpi.trace.recorder import Recorder

needs_browser = pytest.mark.skipif(
    browser.find() is None, reason="shows pages in Chromium, which is not installed"
)


def ring(steps, slow=2):
    import time

    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data, back = np.zeros(30_000), np.zeros(30_000)
    for _ in range(steps):
        time.sleep(0.002 if comm.rank == slow else 0.001)
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        comm.Sendrecv(data, right, recvbuf=back, source=left)
        comm.Allreduce(data[:100], back[:100])


ring.__globals__["np"] = np


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A page in a browser."""
    with browser.Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def run_of(record):
    def made(name, *args, **options):
        run = record(ring, 4, *args, compute="10us", platform="graphene", **options)
        return name, analyse(EventGraph(run))

    return made


PIXELS = """(() => {
  const canvas = document.querySelector("canvas.gantt"), found = {};
  const data = canvas.getContext("2d").getImageData(80, 24, canvas.width - 80, canvas.height - 30);
  for (let i = 0; i < data.data.length; i += 4) {
    const key = data.data.slice(i, i + 3).join(",");
    found[key] = (found[key] || 0) + 1;
  }
  return found;
})()"""
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
PATH_COLOUR = "214,34,90"
COMPUTE_COLOUR = "91,141,239"


def test_it_holds_all_that_it_needs(run_of):
    text = page([run_of("a </script> name", 2)])
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    assert "http" not in re.sub(r"https?://www\.w3\.org", "", text)
    assert "a &lt;/script> name" in text or "a &lt;/script&gt; name" in text
    assert text.count("</script>") == 2


@pytest.mark.parametrize("steps", [False, True])
def test_columns_keep_all_numbers_of_their_types(steps):
    for kind, most in (("u4", 2**32 - 1), ("i4", 2**31 - 1)):
        low = -(2**31) if kind == "i4" else 0
        wanted = np.array([0, 1, low, most, 7, 7, most, low, 255, 256, 65536], np.int64)
        assert numbers(column(wanted, kind, steps=steps)).tolist() == wanted.tolist()
    assert numbers(column(np.zeros(0), "u4", steps=steps)).tolist() == []
    assert numbers(column(np.array([0.5, -1e30]), "f4")).tolist() == [0.5, np.float32(-1e30)]


def test_the_columns_are_those_of_the_run_in_the_order_of_time(run_of):
    name, analysis = run_of("ring", 3)
    data, graph = page_data(name, analysis), analysis.graph
    found = values(data["messages"])
    rows = [tuple(found[key].tolist()) for key in ("source", "destination", "bytes")]
    assert sorted(zip(*rows)) == sorted(map(tuple, graph.record.messages[:, [1, 2, 4]].tolist()))
    for key, events in (("begin", graph.sends), ("end", graph.arrives)):
        times = sorted(graph.date[event] * TICKS / graph.seconds for event in events.values())
        assert np.allclose(sorted(found[key].tolist()), times, rtol=0, atol=1)
    assert np.all(np.diff(found["begin"].astype(float)) >= 0) and len(set(found["begin"])) > 9
    for key in ("calls", "waits", "path"):
        columns = values(data[key])
        assert np.all(columns["begin"] <= columns["end"]) and columns["end"].max() <= TICKS
    calls = values(data["calls"])
    order = np.lexsort((calls["begin"], calls["rank"]))
    assert np.array_equal(order, np.arange(len(order))) and set(calls["rank"]) == {0, 1, 2, 3}


def test_times_are_ticks_that_an_unsigned_number_holds():
    ticks = _ticks(np.array([0.0, 0.5, 2.0, 2.1, 9.0]), 2.0)
    assert ticks.tolist() == [0, TICKS / 4, TICKS, 1.05 * TICKS, 2**32 - 1]
    assert _ticks(np.array([0.0, 1.0]), 0.0).tolist() == [0, 0]


@needs_browser
def test_it_shows_the_timeline_without_errors(run_of, shown, tmp_path):
    (tmp_path / "a.html").write_text(page([run_of("ring", 5)]))
    shown.open(tmp_path / "a.html")
    pixels = shown.run(PIXELS)
    assert pixels.get(COMPUTE_COLOUR, 0) > 100
    assert pixels.get(PATH_COLOUR, 0) > 100
    shown.run("document.getElementById('show-path').click()")
    shown.run(FRAME)
    assert shown.run(PIXELS).get(PATH_COLOUR, 0) == 0
    text = shown.run("document.body.innerText")
    assert "Critical path" in text and "Sendrecv at" in text and "load balance" in text.lower()
    assert shown.errors == []


def barrier():
    from mpi4py import MPI

    MPI.COMM_WORLD.Barrier()


@needs_browser
def test_it_says_which_ranks_it_shows(record, run_of, shown, tmp_path):
    run = record(barrier, 256, compute="10us", platform="graphene")
    (tmp_path / "a.html").write_text(page([("many", analyse(EventGraph(run)))]))
    shown.open(tmp_path / "a.html")
    text = shown.run("document.body.innerText")
    found = re.search(r"Ranks 0 to (\d+) of 256: drag up or down, use the strip", text)
    assert found and int(found[1]) < 255
    top, order = "pysmpi.charts[0].top", "[...pysmpi.charts[0].order]"
    rows = int(found[1]) + 1
    # Every rank by the strip, with the keyboard and with the mouse.
    shown.run("document.querySelector('.strip').focus()")
    for key, wanted in (
        ("End", 256 - rows), ("ArrowUp", 255 - rows), ("Home", 0), ("ArrowDown", 1),
        ("PageDown", min(1 + rows, 256 - rows)), ("PageUp", 0),
    ):  # fmt: skip
        shown.press(key)
        assert shown.run(top) == wanted, key
    box = shown.run(
        "(() => { const b = document.querySelector('.strip').getBoundingClientRect();"
        " return [b.left + b.width / 2, b.bottom - 6] })()"
    )
    shown.move(*box, "mousePressed", button="left", clickCount=1)
    shown.move(*box, "mouseReleased", button="left", clickCount=1)
    assert shown.run(top) == 256 - rows
    shown.run(FRAME)
    assert (
        shown.run("+document.querySelector('.strip').getAttribute('aria-valuenow')") == 256 - rows
    )
    # By the keys of the timeline, and by numbers and names.
    shown.run("document.querySelector('.gantt').focus()")
    shown.press("End")
    assert shown.run("document.getElementById('selection').textContent").startswith("rank 255 ")
    shown.press("/")
    assert shown.run("document.activeElement.id") == "filter"
    hosts = shown.run("pysmpi.runs[0].hosts")
    for text, wanted in (
        ("7", [7]),
        ("3-5, 200", [3, 4, 5, 200]),
        ("0-255:100", [0, 100, 200]),
        ("250-", list(range(250, 256))),
        ("graphene-9 1", sorted({1} | {r for r in range(256) if "graphene-9" in hosts[r]})),
        ("9999", list(range(256))),
        ("", list(range(256))),
    ):
        shown.run(
            f"(() => {{ const f = document.getElementById('filter'); f.value = {text!r};"
            " f.dispatchEvent(new Event('input')) })()"
        )
        shown.run(FRAME)
        assert shown.run(order) == wanted, text
        assert ("No rank or host" in shown.run("document.body.innerText")) == (text == "9999")
    (tmp_path / "b.html").write_text(page([run_of("ring", 3)]))
    shown.open(tmp_path / "b.html")
    assert "drag up or down" not in shown.run("document.body.innerText")
    assert shown.errors == []


@needs_browser
def test_a_place_of_the_critical_path_shows_its_pieces_in_time(run_of, shown, tmp_path):
    name, analysis = run_of("ring", 5)
    (tmp_path / "a.html").write_text(page([(name, analysis)]))
    shown.open(tmp_path / "a.html")
    cause, place, _ = analysis.path.by_place()[0]
    pieces = [
        one for one in analysis.path.pieces
        if one.cause == cause and analysis.path.place(one) == place
    ]  # fmt: skip
    pieces.sort(key=lambda one: -one.seconds)
    assert len(pieces) > 1
    link = "[...document.querySelectorAll('.link')][0]"
    assert shown.run(f"{link}.textContent") == place
    for number in (1, 2):
        shown.run(f"{link}.click()")
        said = shown.run("document.getElementById('selection').textContent")
        assert f"piece {number} of {len(pieces)} on the critical path" in said
        begin, end = shown.run("pysmpi.charts[0].mark")
        assert end - begin == pytest.approx(pieces[number - 1].seconds, rel=1e-4)
        assert shown.run("pysmpi.view.from") < begin < end < shown.run("pysmpi.view.to")
        assert any(begin == pytest.approx(one.begin, abs=1e-7) for one in pieces)
    shown.run(f"{link}.focus()")
    shown.press("\r", 13)
    assert f"piece {2 % len(pieces) + 1} of" in shown.run(
        "document.getElementById('selection').textContent"
    )
    assert shown.errors == []


def test_places_have_their_source_lines_unless_the_file_is_newer(run_of, tmp_path):
    name, analysis = run_of("ring", 3)
    lines = page_data(name, analysis)["sources"]
    site = next(place for place in lines if place.startswith("Sendrecv at "))
    assert lines[site] == ["comm.Sendrecv(data, right, recvbuf=back, source=left)"]
    spans = [place for place in lines if place.startswith("from line ")]
    assert spans and all(2 <= len(lines[place]) <= MOST_LINES + 1 for place in spans)
    assert any("comm.Allreduce(data[:100], back[:100])" in lines[place] for place in spans)
    assert page_data(name, analysis, 0.0)["sources"] == {}
    assert page_data(name, analysis, time.time() + 60)["sources"] == lines


@needs_browser
def test_messages_are_arrows(run_of, shown, tmp_path):
    (tmp_path / "a.html").write_text(page([run_of("ring", 3)]))
    shown.open(tmp_path / "a.html")
    drawn = shown.run(PIXELS)
    shown.run("document.getElementById('show-messages').click()")
    shown.run(FRAME)
    assert shown.run(PIXELS) != drawn
    assert shown.run("pysmpi.runs[0].messages.begin.length") > 12


@needs_browser
def test_zoom_pan_keys_and_tooltips(run_of, shown, tmp_path):
    (tmp_path / "a.html").write_text(page([run_of("ring", 5)]))
    shown.open(tmp_path / "a.html")
    span = "pysmpi.view.to - pysmpi.view.from"
    whole = shown.run(span)
    shown.run("document.getElementById('zoom-in').click()")
    assert shown.run(span) == pytest.approx(0.6 * whole)
    box = shown.run(
        "(() => { const b = document.querySelector('.gantt').getBoundingClientRect();"
        " return [b.left, b.top, b.width, b.height] })()"
    )
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
    shown.move(x, y)
    assert shown.run("document.getElementById('tip').hidden") is False
    assert shown.run("document.getElementById('tip').textContent").startswith("rank ")
    before = shown.run("pysmpi.view.from")
    shown.move(x, y, "mousePressed", button="left", clickCount=1)
    shown.move(x - 100, y, button="left", buttons=1)
    shown.move(x - 100, y, "mouseReleased", button="left", clickCount=1)
    assert shown.run("pysmpi.view.from") > before
    shown.run("document.querySelector('.gantt').focus()")
    shown.press("Home", 36)
    assert shown.run(span) == pytest.approx(whole)
    shown.press("+")
    assert shown.run(span) == pytest.approx(0.6 * whole)
    shown.press("ArrowDown", 40)
    assert shown.run("document.getElementById('selection').textContent").startswith("rank 1 ")
    shown.press("]")
    assert " at " in shown.run("document.getElementById('selection').textContent")
    x0 = shown.run("pysmpi.view.from")
    shown.press("ArrowRight", 39)
    assert shown.run("pysmpi.view.from") > x0
    shown.move(x, y, "mouseWheel", deltaX=0, deltaY=300)
    assert shown.run(span) > 0.6 * whole
    assert shown.errors == []


@needs_browser
def test_the_theme_follows_the_system_and_the_switch(run_of, shown, tmp_path):
    (tmp_path / "a.html").write_text(page([run_of("ring", 2)]))
    theme = "document.documentElement.dataset.theme"
    for wanted in ("dark", "light"):
        shown.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": wanted}],
        )
        shown.open(tmp_path / "a.html")
        assert shown.run(theme) == wanted
    shown.run("document.getElementById('theme').click()")
    assert shown.run(theme) == "dark"
    assert shown.errors == []


@needs_browser
def test_it_compares_two_runs(run_of, shown, tmp_path):
    slow = run_of("slow", 4)
    fast = run_of("fast", 4, -1)
    (tmp_path / "a.html").write_text(page([slow, fast]))
    shown.open(tmp_path / "a.html")
    assert shown.run("document.querySelectorAll('.gantt').length") == 2
    text = shown.run("document.getElementById('compare').innerText")
    assert re.search(r"fast takes [\d.]+ ms, [\d.]+ % less than slow \([\d.]+ ms\)", text), text
    assert "Sendrecv at" in text
    assert re.search(r"machine\s+graphene\s+graphene\s", text) and "network model" in text
    facts = shown.run("document.getElementById('facts').innerText")
    assert re.findall(r"^(slow|fast): 4 ranks on 4 hosts of graphene, model", facts, re.M) == [
        "slow",
        "fast",
    ]
    text = shown.run("document.body.innerText")
    changes = re.findall(r"^(?:ideal network|rank \d twice as slow)\s.*\s(\S)\S+ %$", text, re.M)
    assert set(changes) == {"+", "\u2212"}, text
    (tmp_path / "same.html").write_text(page([slow, slow]))
    shown.open(tmp_path / "same.html")
    text = shown.run("document.getElementById('compare').innerText")
    assert re.search(r"slow takes [\d.]+ ms, as slow\.", text), text
    assert shown.errors == []


@needs_browser
def test_everything_can_be_reached_without_a_mouse_and_has_a_name(run_of, shown, tmp_path):
    (tmp_path / "a.html").write_text(page([run_of("ring", 2)]))
    shown.open(tmp_path / "a.html")
    unnamed = shown.run(
        "[...document.querySelectorAll('canvas, button, [role=toolbar], section')].filter((one) =>"
        " !one.getAttribute('aria-label') && !one.getAttribute('aria-labelledby')"
        " && !one.innerText).map((one) => one.outerHTML)"
    )
    assert unnamed == []
    assert shown.run("document.querySelector('.gantt').tabIndex") == 0
    heads = shown.run("[...document.querySelectorAll('th')].every((one) => one.scope === 'col')")
    assert heads is True


def nothing():
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank


@needs_browser
def test_a_run_that_takes_no_time_has_no_empty_charts(record, shown, tmp_path):
    run = record(nothing, 3, compute="none", platform="graphene")
    (tmp_path / "a.html").write_text(page([("none", analyse(EventGraph(run)))]))
    shown.open(tmp_path / "a.html")
    shown.run(FRAME)
    charts = "[...document.querySelectorAll('.gantt, .strip, .overview')]"
    high = shown.run(f"{charts}.map((one) => one.clientHeight)")
    assert len(high) == 3 and 0 < sum(high) < 200
    shown.run("pysmpi.player.step(1); pysmpi.player.end(1); pysmpi.player.play(true)")
    shown.run(FRAME)
    assert shown.run("pysmpi.player.playing") is False
    assert shown.errors == []


def large(record, ranks, calls):
    """The data of a run with many calls, waits and messages."""
    run = record(ring, 4, 2, compute="10us", platform="graphene")
    data = page_data("large", analyse(EventGraph(run)))
    random = np.random.default_rng(1)
    dates = np.cumsum(random.exponential(1.0, (ranks, 2 * calls + 1)), 1)
    dates = dates / dates[:, -1:] * data["ticks"]
    begin, end = dates[:, :-1:2], dates[:, 1::2]
    rank = np.repeat(np.arange(ranks), calls)
    order = np.argsort(begin.ravel())
    data["hosts"] = [f"node-{i}" for i in range(ranks)]
    seconds = data["ticks"]  # of a run that lasts so long, times are ticks
    data["ends"] = [data["seconds"]] * ranks
    for name in ("rank_compute_seconds", "rank_wait_seconds"):
        data["analysis"][name] = [data["seconds"] / 3] * ranks
    data["calls"] = {
        "rank": column(rank, "u4", steps=True),
        **intervals(begin.ravel(), end.ravel(), seconds),
        "site": column(np.zeros(rank.size), "u4"),
    }
    data["waits"] = {
        "rank": column(rank, "u4", steps=True),
        **intervals(
            (begin + 0.2 * (end - begin)).ravel(), (begin + 0.9 * (end - begin)).ravel(), seconds
        ),
        "for": column((rank + 1) % ranks, "i4"),
    }
    data["messages"] = {
        **intervals(begin.ravel()[order], end.ravel()[order], seconds),
        "source": column(rank[order], "u4", steps=True),
        "destination": column((rank[order] + 1) % ranks, "u4"),
        "bytes": column(np.full(rank.size, 1000.0), "f4"),
        "held": column(np.zeros(rank.size), "u4"),
        "latency": column(np.zeros(rank.size), "u4"),
        "collective": column(np.full(rank.size, -1), "i4", steps=True),
        "round": column(np.zeros(rank.size), "u4", steps=True),
    }
    data["picture"] = star(data["hosts"])
    return data


def star(hosts):
    """The picture of hosts at a switch, each of which sends to the next one."""
    ranks = len(hosts)
    links = [(f"cable-{i}_{way}", 1e9) for i in range(ranks) for way in ("UP", "DOWN")]
    record = SimpleNamespace(
        hosts=hosts, ranks=ranks, measured=True, links=links,
        routes=[[2 * i, 2 * ((i + 1) % ranks) + 1] for i in range(ranks)], shares={},
        messages=np.array([[i, i, (i + 1) % ranks, 0, 1000, i, 0, 0, 0] for i in range(ranks)]),
    )  # fmt: skip
    return _picture(SimpleNamespace(record=record), picture_of(record))


PAN = """new Promise((done) => {
  const whole = pysmpi.runs[0].seconds, span = whole * SPAN, first = performance.now();
  const busy = [];
  let frames = 0;
  const step = () => {
    const begun = performance.now(), part = 0.3 * Math.abs(Math.sin(frames / 40));
    pysmpi.show(whole * part, whole * part + span);
    pysmpi.draw();
    busy.push(performance.now() - begun);
    frames++;
    if (performance.now() - first < 1000) requestAnimationFrame(step);
    else {
      busy.sort((a, b) => a - b);
      done([frames / (performance.now() - first) * 1000, busy[frames >> 1]]);
    }
  };
  step();
})"""


PLAY = """new Promise((done) => {
  const { player } = pysmpi, first = performance.now(), busy = [];
  const step = () => {
    const begun = performance.now();
    player.go(player.length * (0.2 + 0.001 * busy.length));
    busy.push(performance.now() - begun);
    if (performance.now() - first < 1000) requestAnimationFrame(step);
    else {
      busy.sort((a, b) => a - b);
      done([busy.length / (performance.now() - first) * 1000, busy[busy.length >> 1]]);
    }
  };
  step();
})"""


@needs_browser
def test_a_million_events_of_256_ranks_load_and_pan(record, shown, tmp_path, record_property):
    text = assemble([large(record, 256, 1350)])
    assert len(text) < 8_000_000
    (tmp_path / "a.html").write_text(text)
    begun = time.monotonic()
    shown.open(tmp_path / "a.html")
    figures = {"seconds to load": time.monotonic() - begun}
    events = shown.run(
        "(({ calls, waits, messages }) => calls.begin.length + waits.begin.length"
        " + messages.begin.length)(pysmpi.runs[0])"
    )
    assert events > 1_000_000
    for span in (1.0, 0.1, 0.001):
        figures[f"frames/s and ms a frame at {span}"] = shown.run(PAN.replace("SPAN", str(span)))
    figures["frames/s and ms a frame of the animation"] = shown.run(PLAY)
    record_property("figures", json.dumps(figures))
    print(figures)
    assert shown.errors == []
    # The work of a frame does not grow with the events: a hundred times as many take little longer
    # (medians, as other processes may hold up single frames).
    (tmp_path / "b.html").write_text(assemble([large(record, 256, 13)]))
    shown.open(tmp_path / "b.html")
    few = shown.run(PAN.replace("SPAN", "1.0"))
    assert figures["frames/s and ms a frame at 1.0"][1] < 30 * few[1]


@needs_browser
def test_measured_runs_are_not_called_predictions(shown, tmp_path):
    kept = Recording()
    options = check(Options(nprocs=4, compute="10us"))
    Job(FunctionProgram(ring, (3,)), options, instruments=[Recorder(kept)]).run()
    # As under another MPI library: only calls, and their dates.
    kept.event_rows, kept.message_rows, kept.routes = [], [], {}
    kept.facts["library"] = "Some MPI 1.0"
    analysis = analyse(EventGraph(activity_of(kept)))
    assert analysis.path.seconds == kept.seconds
    (tmp_path / "a.html").write_text(page([("measured", analysis)]))
    shown.open(tmp_path / "a.html")
    text = shown.run("document.body.innerText")
    assert "measured time" in text and "measured with Some MPI 1.0" in text
    assert "predicted time" not in text and "Times are measured" in text
    assert "Use of links" not in text and "Sendrecv at" in text
    assert shown.errors == []


POWER = {
    "name": "two",
    "hosts": [
        {"name": "a", "speed": "1Gf", "properties": {"wattage_per_state": "90:105:200"}},
        {"name": "b", "speed": "2Gf", "properties": {"wattage_per_state": "60:150"}},
    ],
    "links": [{"name": "l", "bandwidth": "125MBps", "latency": "50us",
               "properties": {"wattage_range": "10:30"}}],
    "routes": [{"from": "a", "to": "b", "via": ["l"]}],
}  # fmt: skip


def heat():
    from mpi4py import MPI

    for _ in range(3):
        pysmpi.execute(5e8)
        MPI.COMM_WORLD.Bcast(bytearray(1_000_000))


@pytest.fixture(scope="module")
def powered(tmp_path_factory):
    """The page of a run on a machine with the power of its parts, and the result."""
    path = tmp_path_factory.mktemp("energy") / "run.html"
    options = {"platform": POWER, "map_by": "node", "compute": "none", "view": path}
    return path, pysmpi.run(heat, 2, **options)


def test_the_page_has_the_energy_of_the_run(powered, run_of):
    path, result = powered
    data = re.search(r'id="data">(.*?)</script>', path.read_text())[1]
    assert json.loads(data)[0]["energy"] == result.energy
    assert "energy" not in page_data(*run_of("ring", 5))


@needs_browser
def test_it_shows_the_energy_of_hosts_links_and_ranks(powered, shown):
    path, result = powered
    shown.open(path)
    text = shown.run("document.querySelector('[aria-labelledby=p-energy]').innerText")
    for one in [*result.energy["hosts"], *result.energy["links"]]:
        assert f"{one['joules']:#.4g} J".replace(". J", " J") in text, text
    assert "ENERGY" in shown.run("document.getElementById('cards').innerText").upper()
    assert shown.errors == []
