"""Animations: messages on the machine at the times of the recording, links, rounds, keys."""

import json

import browser
import numpy as np
import pytest
from click.testing import CliRunner
from columns_of_pages import values

import pysmpi
from pysmpi.analysis.animation import animate
from pysmpi.analysis.graph import EventGraph
from pysmpi.analysis.movement import collective_calls, picture_of, rounds
from pysmpi.analysis.observation import Observation
from pysmpi.analysis.page import assemble
from pysmpi.analysis.scene import TICKS, scene_of
from pysmpi.cli.animate import command
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options, check
from pysmpi.platform import load

needs_browser = pytest.mark.skipif(
    browser.find() is None, reason="shows pages in Chromium, which is not installed"
)

# Machines of each kind, with the options that place eight ranks on them.
BACKBONE = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="old" prefix="old-" suffix="" radical="0-7" speed="1Gf" bw="125MBps" lat="50us"
           bb_bw="1GBps" bb_lat="10us"/>
</platform>
"""
CYCLE = {
    "directed": False, "multigraph": False, "graph": {},
    "nodes": [{"id": f"h{i}"} for i in range(8)],
    "links": [
        {"source": f"h{i}", "target": f"h{(i + 1) % 8}", "bandwidth": 1e9, "latency": 1e-6}
        for i in range(8)
    ],
}  # fmt: skip
MACHINES = {
    "graphene": {},
    "fat-tree": {"map_by": "node"},
    "torus": {"map_by": "node"},
    "dragonfly": {"map_by": "node"},
    "multicore-cluster": {"map_by": "node"},
    "laptop": {},
    "backbone.xml": {},
    "cycle.json": {},
}


def exchange(sizes):
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    right, left = (comm.rank + 3) % comm.size, (comm.rank - 3) % comm.size
    for size in sizes:
        comm.Sendrecv(np.zeros(size), right, recvbuf=np.zeros(size), source=left)
    comm.Bcast(np.zeros(20_000))
    window = MPI.Win.Create(np.zeros(10), comm=comm)
    window.Fence()
    window.Put(np.ones(10), right)
    window.Fence()
    window.Free()
    comm.Ibarrier().Wait()


@pytest.fixture
def recorded(record, tmp_path):
    """The graph of a run of eight ranks on a machine."""

    def run(machine, program=exchange, *args, **options):
        texts = {"backbone.xml": BACKBONE, "cycle.json": json.dumps(CYCLE)}
        platform = machine
        if machine in texts:
            platform = str(tmp_path / machine)
            (tmp_path / machine).write_text(texts[machine])
        options = {**MACHINES.get(machine, {}), "platform": platform, **options}
        args = args or ((10, 300_000),)
        return EventGraph(record(program, 8, *args, compute="none", **options))

    return run


def moves(graph):
    """The messages of a recording: sender, receiver, bytes, and the times of their way (s)."""
    found = []
    for number, source, destination, _, nbytes in graph.record.messages[:, :5].tolist():
        depart = graph.departs[number]
        times = (graph.sends[number], depart, graph.arrives[number])
        found.append(
            (source, destination, nbytes, *(graph.date[row] for row in times), graph.b[depart])
        )
    return sorted(found, key=lambda one: one[3])


@pytest.mark.parametrize("machine", MACHINES)
def test_each_message_leaves_once_and_arrives_once_over_the_links_of_its_route(machine, recorded):
    graph = recorded(machine)
    record, data = graph.record, scene_of("a", graph).data
    shown, wanted = values(data["messages"]), moves(graph)
    assert len(wanted) == len(record.messages) == len(shown["begin"]) > 40
    tick = graph.seconds / TICKS
    columns = ("source", "destination", "bytes", "begin", "held", "end", "latency")
    rows = zip(*(shown[name].astype(float) for name in columns))
    for row, one in zip(rows, wanted, strict=True):
        source, destination, nbytes, begin, held, end, latency = row
        assert (source, destination, nbytes) == one[:3]
        times = [begin * tick, (begin + held) * tick, end * tick, latency * tick]
        assert times == pytest.approx(one[3:], rel=1e-6, abs=3 * tick)
    picture, drawn = data["picture"], values(data["picture"]["columns"])
    passed = np.split(drawn["vertex"], np.cumsum(drawn["passed"])[:-1])
    crossed = np.split(drawn["link"], np.cumsum(drawn["crossed"])[:-1])
    pairs = dict(
        zip(zip(drawn["source"].tolist(), drawn["destination"].tolist()), drawn["route"].tolist())
    )
    platform = load(record.facts["machine"]["platform"])
    edges = {}
    for one, other, links in picture["edges"]:
        edges |= dict.fromkeys(links, {one, other})
    between = {
        (source, destination)
        for source, destination in record.messages[:, 1:3].tolist()
        if record.hosts[source] != record.hosts[destination]
    }
    assert "route" not in shown and set(pairs) == between
    for (source, destination), route in pairs.items():
        hosts = record.hosts[source], record.hosts[destination]
        names = [record.links[link][0] for link in crossed[route]]
        way = platform.way(*map(platform.host, hosts))
        assert names == list(dict.fromkeys(link.name for link in way if link.name in names))
        assert {link.name for link in way if link.index >= 0} == set(names)
        path = passed[route].tolist()
        assert [picture["names"][v] for v in (path[0], path[-1])] == list(hosts)
        assert [path[0], path[-1]] == [picture["hostOf"][rank] for rank in (source, destination)]
        legs = [set(leg) for leg in zip(path, path[1:])]
        for link in crossed[route].tolist():
            assert edges[link] in legs or len(edges[link]) == 1 and edges[link] <= set(path)
    assert len(picture["x"]) == len(picture["names"]) and all(0 <= x <= 1 for x in picture["x"])


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_messages_of_a_round_follow_those_of_the_one_before(size, recorded):
    def ring(size):
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Bcast(bytearray(size))
        comm.Allgather(bytearray(size), bytearray(8 * size))

    coll = {"bcast": "binomial_tree", "allgather": "ring"}
    graph = recorded("graphene", ring, size, coll=coll, selector="mpich")
    round_of = rounds(graph)
    calls = collective_calls(graph, round_of)
    assert [graph.record.site(one.site).split(" at ")[0] for one in calls.values()] == [
        "Bcast",
        "Allgather",
    ]
    bcast, gather = calls
    table = [one for one in graph.record.messages.tolist() if one[-1]]
    for number, source, *_, call in table:
        before = [
            round_of[one[0]] for one in table
            if one[-1] == call and source in one[1:3]
            and graph.arrives[one[0]] < graph.sends[number]
        ]  # fmt: skip
        assert round_of[number] == 1 + max(before, default=0)
    if size > 10:  # each send is over when its message has arrived
        numbers = [round_of[one[0]] for one in table if one[-1] == bcast]
        assert sorted(numbers) == [1, 2, 2, 3, 3, 3, 3]
    assert calls[bcast].rounds >= 3 and calls[gather].rounds >= 7
    ends = [graph.date[graph.arrives[n]] for n in round_of]
    assert max(ends) <= calls[gather].end <= graph.seconds


def test_a_machine_that_cannot_be_read_is_drawn_from_its_routes(recorded):
    graph = recorded("graphene")
    known = picture_of(graph.record)
    graph.record.facts = {"machine": {"platform": "no-such-machine"}}
    drawn = picture_of(graph.record)
    assert drawn.names[:8] == known.names[:8] and drawn.tree
    assert drawn.route_of.keys() == known.route_of.keys()
    assert sorted(one.links for one in drawn.routes) == sorted(one.links for one in known.routes)
    # Times that were measured have no routes: hosts stand in a circle.
    graph.record.routes, graph.record.measured = [[]], True
    graph.record.messages[:, 5] = 0
    drawn = picture_of(graph.record)
    assert drawn.edges == [] and len(set(drawn.positions)) == 8
    assert {one.vertices for one in drawn.routes} == {
        (drawn.host_of[a], drawn.host_of[b]) for a, b in graph.record.messages[:, 1:3].tolist()
    }
    graph.record.hosts = [f"h{i}" for i in range(1025)]
    assert picture_of(graph.record) is None


def test_two_routes_of_a_pair_of_ranks_are_told_apart(recorded):
    graph = recorded("graphene")
    table = graph.record.messages
    pair = table[0, 1:3].tolist()
    graph.record.routes.append(graph.record.routes[table[0, 5]][:2])
    table[0, 5] = len(graph.record.routes) - 1
    data = scene_of("a", graph).data
    messages = values(data["messages"])
    drawn = values(data["picture"]["columns"])
    crossed = np.split(drawn["link"], np.cumsum(drawn["crossed"])[:-1])
    routes = {
        messages["route"][i] for i in range(len(table))
        if [messages["source"][i], messages["destination"][i]] == pair
    }  # fmt: skip
    assert sorted(len(crossed[route]) for route in routes) == [2, 4]


def test_animate_takes_results_and_recordings(tmp_path):
    def bcast():
        from mpi4py import MPI

        MPI.COMM_WORLD.Bcast(bytearray(1000))
        MPI.COMM_WORLD.Barrier()

    options = {"platform": "graphene", "compute": "none", "explain": True}
    trace = tmp_path / "a.jsonl"
    runs = [
        pysmpi.run(bcast, 4, coll={"bcast": name}, trace=trace, **options)
        for name in ("flattree", "binomial_tree")
    ]
    shown = pysmpi.animate(*runs)
    assert "bcast (coll bcast=flattree) and " in shown.html
    assert "bcast (coll bcast=binomial_tree) - pysmpi" in shown.html
    assert "a.jsonl" in animate(str(trace)).html and "tree" in animate(runs[0], names=["tree"]).html
    shown.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text() == shown.html
    frame = shown._repr_html_()
    assert frame.startswith("<iframe srcdoc=") and "<script" not in frame
    plain = pysmpi.run(bcast, 4, platform="graphene")
    last = runs[0].seconds
    for given, wrong in (
        ((), "expected one run, or two to compare, got 0"),
        ((plain,), "expected a run with explain=True, or a recording, got a run without"),
        ((7,), "expected a Result or the path of a recording, got int"),
    ):
        with pytest.raises(pysmpi.UsageError, match=wrong):
            animate(*given)
    for given, wrong in (
        ({"call": 3}, "a collective call from 1 to 2, got 3"),
        ({"call": 0}, "a collective call from 1 to 2, got 0"),
        ({"call": 1, "end": 1.0}, "expected call, or begin and end, got both"),
        ({"begin": last}, "0 <= begin < end"),
        ({"begin": -1.0}, "0 <= begin < end"),
        ({"names": ["a", "b"]}, "names: expected 1 of them, got 2"),
    ):
        with pytest.raises(pysmpi.UsageError, match=wrong):
            animate(runs[0], **given)
    assert f'<script type="application/json" id="options">{{"window":[0.0,{last / 2}]}}' in (
        animate(runs[0], end=last / 2).html
    )
    assert runs[0].report().keys().isdisjoint({"scene"}) and "scene" not in repr(runs[0])


@pytest.mark.parametrize("command", [None, "pysmpi run --explain"])
def test_only_runs_from_python_keep_what_is_shown(command):
    def barrier():
        from mpi4py import MPI

        MPI.COMM_WORLD.Barrier()

    options = check(Options(nprocs=2, compute="none"))
    job = Job(FunctionProgram(barrier, ()), options, instruments=[Observation(None)])
    job.command = command
    result = job.run()
    assert result.analysis is not None and (result.scene is None) == (command is not None)


def test_the_command_writes_a_page(tmp_path, recorded, record):
    record(exchange, 8, (10,), path=tmp_path / "a.jsonl", compute="none", platform="graphene")
    name = str(tmp_path / "a.jsonl")
    done = CliRunner().invoke(command, [name, name, "--call", "1"], catch_exceptions=False)
    assert "a-animation.html" in done.output
    text = (tmp_path / "a-animation.html").read_text()
    assert '{"call":1}' in text and "http" not in text.replace("http://www.w3.org", "")
    with pytest.raises(pysmpi.UsageError, match="^call: expected the number"):
        CliRunner().invoke(command, [name, "--call", "99"], catch_exceptions=False)
    with pytest.raises(pysmpi.UsageError, match="got 3 traces"):
        CliRunner().invoke(command, [name, name, name], catch_exceptions=False)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A page in a browser."""
    with browser.Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
STATE = """(() => {
  const stage = pysmpi.player.stages[0], { source, destination, bytes } = stage.run.messages;
  return { messages: stage.underway(stage.tick).map((i) =>
      [source[i], destination[i], bytes[i], stage.part(i, stage.tick)]),
    crossed: [...stage.crossed.keys()].filter((i) => stage.crossed[i]), load: [...stage.load] };
})()"""


@needs_browser
@pytest.mark.parametrize("machine", ["graphene", "torus", "backbone.xml", "multicore-cluster"])
def test_links_are_lit_while_bytes_flow_over_them(machine, recorded, shown, tmp_path):
    graph = recorded(machine)
    (tmp_path / "a.html").write_text(assemble([scene_of("a", graph).data], {}))
    shown.open(tmp_path / "a.html")
    picture = picture_of(graph.record)
    wanted = moves(graph)
    routes = {ends[:2]: route for ends, route in picture.route_of.items()}
    edge = 2 * graph.seconds / TICKS
    seen = 0
    for part in (0.03, 0.1, 0.31, 0.5, 0.77, 0.97):
        now = part * graph.seconds
        if any(abs(now - time) < edge for one in wanted for time in one[3:6]):
            continue
        shown.run(f"pysmpi.player.go({now!r})")
        state = shown.run(STATE)
        under = [one for one in wanted if one[3] <= now <= one[5]]
        assert sorted(map(tuple, (row[:3] for row in state["messages"]))) == sorted(
            one[:3] for one in under
        )
        crossed, load = set(), np.zeros(len(graph.record.links))
        for source, destination, nbytes, _, depart, end, latency in under:
            if now < depart or (source, destination) not in routes:
                continue
            links = list(picture.routes[routes[source, destination]].links)
            crossed |= set(links)
            begin = min(end, depart + latency)
            if now >= begin and end > begin:
                for link in links:
                    load[link] += nbytes / (end - begin) / graph.record.links[link][1]
        assert set(state["crossed"]) == crossed
        assert state["load"] == pytest.approx(load.tolist(), rel=1e-3, abs=1e-6)
        seen += len(under)
        for row in state["messages"]:
            assert 0 <= row[3] <= 1
    assert seen > 10
    for part, arrived in ((0.0, 0), (1.0, len(wanted))):
        shown.run(f"pysmpi.player.end({part})")
        said = shown.run("document.querySelector('.said').textContent")
        assert f"{arrived} of {len(wanted)} arrived" in said, said
    assert shown.errors == []


@needs_browser
def test_keys_buttons_and_the_slider_move_the_time(recorded, shown, tmp_path):
    graph = recorded("graphene")
    data = scene_of("a", graph).data
    (tmp_path / "a.html").write_text(assemble([data, {**data, "name": "b"}], {}))
    shown.open(tmp_path / "a.html")
    now, length = "pysmpi.player.now", shown.run("pysmpi.player.length")
    assert length == pytest.approx(graph.seconds)
    assert shown.run("document.querySelectorAll('canvas.stage').length") == 2
    times = sorted(
        {round(time, 15) for one in moves(graph) for time in one[4:6] if 0 < time < length}
    )
    shown.press("ArrowRight", 39)
    assert shown.run(now) == pytest.approx(times[0], abs=1e-8)
    shown.press("ArrowRight", 39)
    assert shown.run(now) > times[0]
    shown.press("ArrowLeft", 37)
    shown.press("ArrowLeft", 37)
    assert shown.run(now) == 0
    shown.press("End", 35)
    assert shown.run(now) == length
    shown.press("Home", 36)
    assert shown.run(now) == 0
    speed = "document.getElementById('speed').value"
    for keys, wanted in (("++", "4"), ("---", "0.5"), ("---", "0.1")):
        for key in keys:
            shown.press(key)
        assert shown.run(speed) == wanted
    shown.press(" ", 32)
    assert shown.run("pysmpi.player.playing") is True
    assert shown.run(f"{FRAME}.then(() => {FRAME}).then(() => {now})") > 0
    shown.press(" ", 32)
    assert shown.run("pysmpi.player.playing") is False
    still = shown.run(now)
    assert shown.run(f"{FRAME}.then(() => {now})") == still
    shown.run(
        "(() => { const s = document.getElementById('time'); s.value = 500;"
        " s.dispatchEvent(new Event('input')) })()"
    )
    assert shown.run(now) == pytest.approx(length / 2)
    assert "of" in shown.run("document.getElementById('time').getAttribute('aria-valuetext')")
    # A call shows its own time and messages only.
    names = shown.run("[...document.getElementById('call').options].map((one) => one.text)")
    assert names[0] == "all calls" and any("Bcast at " in one for one in names)
    bcast = next(i for i, one in enumerate(names) if "Bcast at " in one)
    shown.run(
        f"(() => {{ const s = document.getElementById('call'); s.selectedIndex = {bcast};"
        " s.dispatchEvent(new Event('change')) })()"
    )
    assert shown.run("pysmpi.player.length") < length
    shown.run("pysmpi.player.end(1)")
    said = shown.run("document.querySelector('.said').textContent")
    assert "Bcast at " in said and "7 of 7 arrived" in said and "1 round;" in said
    labels = shown.run(
        "[...document.querySelectorAll('button, canvas, input, select')].every((one) =>"
        " one.getAttribute('aria-label') || one.innerText)"
    )
    assert labels is True and shown.errors == []


@needs_browser
def test_who_wants_no_motion_sees_one_time_after_the_other(recorded, shown, tmp_path):
    graph = recorded("graphene")
    (tmp_path / "a.html").write_text(assemble([scene_of("a", graph).data], {"call": 1}))
    try:
        shown.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-reduced-motion", "value": "reduce"}],
        )
        shown.open(tmp_path / "a.html")
        assert shown.run("pysmpi.player.still.matches") is True
        # It plays at its highest speed to its end; each time that it has shown is one of the steps.
        seen = shown.run(
            """new Promise((done) => {
              const { player } = pysmpi, seen = [], go = player.go.bind(player);
              player.go = (now) => {
                seen.push(now);
                go(now);
                if (seen.length === 4) { player.play(false); done(seen); }
              };
              player.speed = 10;
              player.play(true);
            })"""
        )
        steps = shown.run("[...pysmpi.player.steps]")
        assert seen == steps[1:5]
    finally:
        shown.send("Emulation.setEmulatedMedia", features=[])
    assert shown.errors == []


@needs_browser
def test_the_picture_fits_a_telephone_and_a_frame_of_a_notebook(recorded, shown, tmp_path):
    graph = recorded("torus")
    text = assemble([scene_of("a", graph).data] * 2, {})
    (tmp_path / "a.html").write_text(text)
    shown.send(
        "Emulation.setDeviceMetricsOverride",
        width=390, height=844, deviceScaleFactor=1, mobile=True,
    )  # fmt: skip
    try:
        shown.open(tmp_path / "a.html")
        assert shown.run("document.documentElement.scrollWidth") <= 390
        inside = shown.run(
            "pysmpi.player.stages.every((s) => [...s.rankX].every((x) => x > 0 && x < s.width)"
            " && [...s.rankY].every((y) => y > 0 && y < s.height))"
        )
        assert inside is True
    finally:
        shown.send(
            "Emulation.setDeviceMetricsOverride",
            width=1440, height=1000, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
    frame = animate_frame(graph)
    (tmp_path / "b.html").write_text(
        f"<body data-jp-theme-light=false>{frame}<script>window.pysmpi = 0</script>"
    )
    shown.open(tmp_path / "b.html")
    shown.run(
        "new Promise((done) => {"
        " const wait = () => frames[0].pysmpi ? done() : setTimeout(wait, 20); wait() })"
    )
    assert shown.run("frames[0].document.documentElement.dataset.theme") == "dark"
    tall = shown.run("document.querySelector('iframe').clientHeight")
    assert tall >= shown.run("frames[0].document.body.scrollHeight") > 300
    assert shown.errors == []


def animate_frame(graph):
    from pysmpi.analysis.animation import Animation

    return Animation(assemble([scene_of("a", graph).data], {}))._repr_html_()


@needs_browser
def test_the_animation_of_a_page_shows_what_its_timeline_shows(record, shown, tmp_path):
    from pysmpi.analysis.page import page
    from pysmpi.analysis.why import analyse

    run = record(exchange, 8, (10, 300_000), compute="10us", platform="graphene")
    (tmp_path / "a.html").write_text(page([("a", analyse(EventGraph(run)))]))
    shown.open(tmp_path / "a.html")
    half = run.seconds / 2
    shown.run(f"pysmpi.show(0, {half})")
    shown.run(
        "new Promise((done) => { const wait = () => pysmpi.player.length < pysmpi.runs[0].seconds"
        " ? done() : setTimeout(wait, 20); wait() })"
    )
    assert shown.run("pysmpi.player.length") == pytest.approx(half, rel=0.05)
    cursor = "document.querySelector('.cursor')"
    assert shown.run(f"{cursor}.hidden") is True
    shown.run("pysmpi.player.go(pysmpi.player.length / 2)")
    assert shown.run(f"{cursor}.hidden") is False
    box = shown.run(f"{cursor}.getBoundingClientRect().left")
    gantt = shown.run(
        "(() => { const c = pysmpi.charts[0];"
        " return c.canvas.getBoundingClientRect().left + c.x(pysmpi.player.now) })()"
    )
    assert box == pytest.approx(gantt, abs=1.5)
    shown.run("pysmpi.player.choose(0)")
    begin, end = shown.run("[pysmpi.player.stages[0].from, pysmpi.player.stages[0].to]")
    assert shown.run("pysmpi.view.from") <= begin < end <= shown.run("pysmpi.view.to")
    assert shown.errors == []
