"""Random machines: clusters of all topologies, zones of single hosts, and several of them."""

from __future__ import annotations

from random import Random

SHARING = ("SHARED", "SPLITDUPLEX", "SPLITDUPLEX", None)


def bandwidth(draw: Random) -> str:
    """A bandwidth from 100 Mbit/s to 100 Gbit/s."""
    return (
        f"{draw.choice([0.1, 0.5, 1, 1.25, 2.5, 5, 10, 25, 40, 100]) * draw.choice([1, 0.93])}Gbps"
    )


def latency(draw: Random) -> str:
    """A latency from 100 ns to 5 ms."""
    return draw.choice(
        [
            f"{draw.randint(1, 200)}us", f"{draw.randint(100, 5000)}ns",
            f"{draw.uniform(0.1, 3):.3f}us", f"{draw.uniform(0.1, 5):.3f}ms",
        ]
    )  # fmt: skip


def link(draw: Random, name: str, policies: tuple[str | None, ...]) -> tuple[str, str | None]:
    """A link and its sharing policy."""
    policy = draw.choice(policies)
    said = "" if policy is None else f' sharing_policy="{policy}"'
    return (
        f'<link id="{name}" bandwidth="{bandwidth(draw)}" latency="{latency(draw)}"{said}/>\n',
        policy,
    )


def used(name: str, policy: str | None, up: bool = True) -> str:
    """A link of a route."""
    direction = f' direction="{"UP" if up else "DOWN"}"' if policy == "SPLITDUPLEX" else ""
    return f'<link_ctn id="{name}"{direction}/>'


def cluster(draw: Random, name: str, hosts: int, cores: int) -> tuple[str, list[str], str]:
    """A cluster of at least some hosts, their names, and its gateway."""
    topology = draw.choice(["flat", "flat", "backbone", "fat tree", "torus", "dragonfly"])
    words = f' loopback_bw="{bandwidth(draw)}" loopback_lat="{draw.randint(0, 500)}ns"'
    if draw.random() < 0.25:
        words += f' limiter_link="{bandwidth(draw)}"'
    if topology == "backbone":
        words += f' bb_bw="{bandwidth(draw)}" bb_lat="{latency(draw)}" bb_sharing_policy="SHARED"'
    elif topology == "fat tree":
        down = draw.choice([(2, 4), (4, 4), (3, 3), (2, 2, 3), (8, 2)])
        ups = [1, *(draw.randint(1, 3) for _ in down[1:])]
        cables = [1, *(draw.randint(1, 2) for _ in down[1:])]
        hosts = 1
        for one in down:
            hosts *= one
        numbers = ";".join(",".join(map(str, level)) for level in (down, ups, cables))
        words += f' topology="FAT_TREE" topo_parameters="{len(down)};{numbers}"'
    elif topology == "torus":
        sides = draw.choice([(8,), (3, 3), (4, 2), (2, 2, 2), (4, 4), (2, 3, 2, 2)])
        hosts = 1
        for one in sides:
            hosts *= one
        words += f' topology="TORUS" topo_parameters="{",".join(map(str, sides))}"'
    elif topology == "dragonfly":
        groups, chassis, nodes = draw.randint(2, 3), draw.randint(1, 2), draw.randint(1, 2)
        routers = draw.randint(groups, 4)
        hosts = groups * chassis * routers * nodes
        words += (
            f' topology="DRAGONFLY" topo_parameters="{groups},{draw.randint(1, 3)};{chassis},'
            f'{draw.randint(1, 3)};{routers},{draw.randint(1, 2)};{nodes}"'
        )
    policy = draw.choice(SHARING)
    said = "" if policy is None else f' sharing_policy="{policy}"'
    text = (
        f'<cluster id="{name}" prefix="{name}-" suffix="" radical="0-{hosts - 1}" speed="1Gf" '
        f'core="{cores}" bw="{bandwidth(draw)}" lat="{latency(draw)}"{said}{words}/>\n'
    )
    flat = topology in ("flat", "backbone")
    gate = f"{name}-{name}_router" if flat else f"{name}-{draw.randrange(hosts)}"
    return text, [f"{name}-{i}" for i in range(hosts)], gate


def zone(draw: Random, name: str, count: int, cores: int) -> tuple[str, list[str], str]:
    """A zone of single hosts, their names, and its gateway."""
    routing = draw.choice(["Full", "Floyd", "Dijkstra", "DijkstraCache"])
    hosts = [f"{name}h{i}" for i in range(count)]
    gate = f"{name}gate"
    text = f'<zone id="{name}" routing="{routing}">\n'
    text += "".join(f'<host id="{host}" speed="1Gf" core="{cores}"/>\n' for host in hosts)
    text += f'<router id="{gate}"/>\n'
    links, routes = "", ""
    if routing == "Full":
        policies: dict[str, str | None] = {}
        for host in [*hosts, "bb"]:
            more, policies[host] = link(draw, f"{name}l{host}", SHARING)
            links += more
        middle = used(f"{name}lbb", policies["bb"])
        for i, host in enumerate(hosts):
            out = used(f"{name}l{host}", policies[host])
            for other in hosts[i + 1 :]:
                into = used(f"{name}l{other}", policies[other], up=False)
                routes += f'<route src="{host}" dst="{other}">{out}{middle}{into}</route>\n'
            routes += f'<route src="{host}" dst="{gate}">{out}{middle}</route>\n'
    else:
        nodes = [*hosts, gate]
        draw.shuffle(nodes)
        edges = {(nodes[i], nodes[draw.randrange(i)]) for i in range(1, len(nodes))}
        for _ in range(draw.randint(0, count)):
            one, other = draw.sample(nodes, 2)
            if (other, one) not in edges:
                edges.add((one, other))
        for number, (one, other) in enumerate(sorted(edges)):
            parts = ""
            for part in range(draw.choice([1, 1, 2])):
                more, policy = link(draw, f"{name}e{number}_{part}", SHARING)
                links += more
                parts += used(f"{name}e{number}_{part}", policy)
            routes += f'<route src="{one}" dst="{other}">{parts}</route>\n'
    return text + links + routes + "</zone>\n", hosts, gate


def machine(draw: Random, cores: int) -> tuple[str, list[str]]:
    """The XML of a machine, and the names of its hosts."""
    kind = draw.choice(["cluster"] * 5 + ["zone"] * 3 + ["several"] * 3)
    parts, hosts, gates = "", [], []
    if kind == "zone":
        body, hosts, _ = zone(draw, "z", draw.randint(3, 9), cores)
    elif kind == "cluster":
        text, hosts, _ = cluster(draw, "c", draw.randint(3, 12), cores)
        body = f'<zone id="world" routing="Full">\n{text}</zone>\n'
    else:
        for i in range(draw.randint(2, 3)):
            make, name = (zone, f"z{i}") if draw.random() < 0.45 else (cluster, f"c{i}")
            text, names, gate = make(draw, name, draw.randint(2, 5), cores)
            parts += text
            hosts += names
            gates.append((name, gate))
        for i, (one, gate) in enumerate(gates):
            for other, far in gates[i + 1 :]:
                wan = f"wan_{one}_{other}"
                more, policy = link(draw, wan, ("SHARED", "SPLITDUPLEX"))
                parts += more
                parts += (
                    f'<zoneRoute src="{one}" dst="{other}" gw_src="{gate}" gw_dst="{far}">'
                    f"{used(wan, policy)}</zoneRoute>\n"
                )
        # Links come before routes.
        lines = parts.splitlines(keepends=True)
        routes = [line for line in lines if line.startswith("<zoneRoute")]
        wans = [line for line in lines if line.startswith('<link id="wan_')]
        rest = [line for line in lines if line not in routes and line not in wans]
        body = f'<zone id="world" routing="Full">\n{"".join([*rest, *wans, *routes])}</zone>\n'
    head = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    return f'{head}<platform version="4.1">\n{body}</platform>\n', hosts


def piecewise(draw: Random, *ranges: tuple[float, float]) -> str:
    """Values by size of message."""
    bounds = sorted({0, *draw.sample([64, 257, 732, 1426, 9376, 15424, 65472], draw.randint(0, 3))})
    return ";".join(
        ":".join([str(bound), *(f"{draw.uniform(*one):.3g}" for one in ranges)]) for bound in bounds
    )


def options(draw: Random) -> dict[str, str]:
    """Options of SimGrid for a run."""
    found = {"smpi/wtime": "0", "smpi/simulate-computation": "no"}
    model = draw.choice(["SMPI"] * 6 + ["LV08", "CM02", "IB"])
    found["network/model"] = model
    if draw.random() < 0.25 and model != "IB":
        found["network/TCP-gamma"] = str(draw.choice([0, 20000, 65536, 1048576]))
    if draw.random() < 0.3:
        found["network/crosstraffic"] = draw.choice(["no", "yes"])
    if draw.random() < 0.25:
        found["network/weight-S"] = str(draw.choice([0, 8775, 20537, 100000]))
    if model == "SMPI" and draw.random() < 0.3:
        found["smpi/lat-factor"] = piecewise(draw, (0.5, 4))
        found["smpi/bw-factor"] = piecewise(draw, (0.3, 1.1))
    for name in ("smpi/os", "smpi/or", "smpi/ois"):
        if draw.random() < 0.3:
            found[name] = piecewise(draw, (0, 9e-6), (0, 2e-10))
    if draw.random() < 0.5:
        small = draw.choice([0, 1, 1000, 4096, 65536])
        found["smpi/async-small-thresh"] = str(small)
        found["smpi/send-is-detached-thresh"] = str(
            draw.choice([one for one in (0, 1000, 65536, 131072, 1000000) if one >= small])
        )
    if draw.random() < 0.6:
        found["smpi/coll-selector"] = draw.choice(["default", "ompi", "mpich", "mvapich2", "impi"])
    return found
