/* Tables and panels. */

function table(caption, head, rows) {
  return element("table", {}, element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell))))));
}
function panel(title, full, ...children) {
  const id = "p-" + title.toLowerCase().replace(/[^a-z]+/g, "-");
  return element("section", { className: "panel" + (full ? " full" : ""), "aria-labelledby": id },
    element("h2", { id }, title), ...children);
}
// A long table fills the height of its row of panels.
const scroll = (child) => element("div", { className: child.rows.length > 14 ? "scroll long" : "scroll", tabIndex: 0, role: "group", "aria-label": "Table" }, child);
function meter(share) {
  const bar = element("span", { className: "meter" });
  bar.style.width = Math.max(1, share * 70) + "px";
  return element("span", {}, percent(share), bar);
}

const CAUSES = { compute: "--compute", overhead: "--p2p", combine: "--other", latency: "--accent",
  transfer: "--collective", contention: "--path", sleep: "--soft" };

/* A place of the program and its source lines; with `go`, a button that shows it in the timeline. */
function place(run, name, go = null) {
  const lines = run.sources[name] || [];
  return element("span", {},
    go ? element("button", { type: "button", className: "link", title: "Show it in the timeline; again: the next time", onclick: go }, name) : name,
    ...lines.map((line) => element("code", {}, line)));
}

function pathPanel(chart) {
  const run = chart.run;
  const { causes, places } = run.analysis.critical_path, total = run.seconds || 1;
  const stack = element("div", { className: "stack", role: "img", "aria-label": "Causes: " +
    Object.entries(causes).filter(([, part]) => part > 0).map(([name, part]) => `${name} ${percent(part / total)}`).join(", ") });
  const legend = element("ul", { className: "legend" });
  for (const [name, part] of Object.entries(causes)) {
    if (part <= 0) continue;
    const piece = element("div", { title: `${name} ${percent(part / total)}` });
    piece.style.cssText = `flex: ${part / total}; background: var(${CAUSES[name]})`;
    stack.append(piece);
    const dot = element("i");
    dot.style.background = `var(${CAUSES[name]})`;
    legend.append(element("li", {}, dot, `${name} ${percent(part / total)}`));
  }
  return panel("Critical path", false, stack, legend, scroll(table(
    `It is as long as the run, ${seconds(run.seconds)}; only shortening it shortens the run`,
    ["place", "cause", "time", "share"],
    places.slice(0, 30).map((one) => [place(run, one.place, tour(chart, one.place, one.cause)), one.cause,
      seconds(one.seconds), meter(one.seconds / total)]))));
}
function whyPanel(run) {
  const pop = run.analysis.efficiencies, rows = Object.entries(run.analysis.what_if);
  const all = run.ends.reduce((a, b) => a + b, 0) || 1;
  const states = Object.entries(run.analysis.wait_states).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
  return panel("What would change it", false,
    table("Predicted from this run", ["if", "time", "change"], rows.map(([name, value]) => [name, seconds(value),
      element("span", { className: value < run.seconds * 0.9995 ? "better" : value > run.seconds * 1.0005 ? "worse" : "" },
        signed(value / run.seconds - 1, percent))])),
    element("br"),
    table("Efficiencies (POP): parallel = load balance x serialisation x transfer", ["efficiency", "share"],
      pop === null ? [["not known: no compute was timed", "-"]] : [["parallel", pop.parallel], ["load balance", pop.load_balance], ["serialisation", pop.serialisation],
        ["transfer", pop.transfer]].map(([name, value]) => [name, meter(value)])),
    element("br"),
    table("Wait states, in the time of all ranks", ["state", "time", "share"], states.length ?
      states.map(([name, value]) => [name, seconds(value), meter(value / all)]) : [["none", "-", "-"]]),
    element("br"),
    table("Sensitivity: per cent of time for one per cent of", ["cost", "per cent"],
      Object.entries(run.analysis.sensitivity).map(([name, value]) => [name, value.toFixed(2)])));
}
function sitePanel(run) {
  const total = run.ends.reduce((a, b) => a + b, 0) || 1;
  return panel("Time by call", false, scroll(table("All ranks, main threads", ["call", "calls", "time", "waiting", "sent", "late rank"],
    run.analysis.sites.map((site) => {
      const late = Object.entries(site.late_seconds).sort((a, b) => b[1] - a[1])[0];
      return [place(run, site.site), whole(site.calls), meter(site.seconds / total), seconds(site.wait_seconds), bytes(site.sent_bytes), late ? late[0] : "-"];
    }))));
}
function linePanel(run) {
  const rows = Object.entries(run.analysis.compute_lines), total = run.ends.reduce((a, b) => a + b, 0) || 1;
  return panel("Compute by line", false, scroll(table("Between two calls, all ranks", ["lines", "time", "share"],
    rows.map(([name, value]) => [place(run, name), seconds(value), meter(value / total)]))));
}

/* The joules of hosts, links and ranks, if the machine has the power of its parts. */
const joules = (value) => `${value.toPrecision(4)} J`;
function energyPanel(run) {
  const { hosts, links, ranks } = run.energy, most = 256;
  const rows = hosts.slice(0, most).map((one) => [one.host, joules(one.joules), joules(one.idle_joules), meter(one.load)]);
  return panel("Energy", true,
    scroll(table("Hosts", ["host", "energy", "without work", "cores in use"], rows)),
    ...(links.length ? [scroll(table("Links", ["link", "energy", "without work", "sent"],
      links.slice(0, most).map((one) => [one.link, joules(one.joules), joules(one.idle_joules), bytes(one.bytes)])))] : []),
    scroll(table("Ranks", ["rank", "energy"], ranks.slice(0, most).map((value, rank) => [`${rank}`, joules(value)]))));
}

/* The machines and settings of two runs, in rows. */
function settings(a, b) {
  const names = { platform: "machine", hosts: "hosts", nprocs: "ranks", model: "network model",
    selector: "collectives of", compute: "compute", library: "measured with", command: "command" };
  return Object.entries(names).filter(([key]) => a.machine[key] ?? b.machine[key] ?? false).map(([key, name]) => {
    const [x, y] = [a, b].map((run) => `${run.machine[key] ?? "-"}`);
    return [name, x, x === y ? y : element("b", {}, y)];
  });
}

function comparePanel() {
  if (runs.length < 2) return;
  const [a, b] = runs;
  const sites = new Map();
  for (const [side, run] of [[0, a], [1, b]])
    for (const site of run.analysis.sites) {
      if (!sites.has(site.site)) sites.set(site.site, [0, 0]);
      sites.get(site.site)[side] += site.seconds / run.ranks;
    }
  for (const [side, run] of [[0, a], [1, b]])
    for (const [name, value] of Object.entries(run.analysis.compute_lines)) {
      const key = "compute " + name;
      if (!sites.has(key)) sites.set(key, [0, 0]);
      sites.get(key)[side] += value / run.ranks;
    }
  const rows = [...sites].sort((x, y) => Math.abs(y[1][1] - y[1][0]) - Math.abs(x[1][1] - x[1][0])).slice(0, 40);
  const same = (x, y) => Math.abs(y - x) < 1e-9 * Math.max(a.seconds, b.seconds);
  const change = (x, y) => same(x, y) ? "0 s" : element("span", { className: y < x ? "better" : y > x ? "worse" : "" },
    signed(y - x, seconds));
  const causes = a.causes.map((cause) => [cause, a.analysis.critical_path.causes[cause], b.analysis.critical_path.causes[cause]]);
  document.getElementById("compare").replaceWith(element("div", { className: "grid", id: "compare" },
    panel("Comparison", true,
      element("p", {}, `${b.name} takes ${seconds(b.seconds)}, ` + (same(a.seconds, b.seconds) ? `as ${a.name}. ` :
        `${percent(Math.abs(b.seconds / a.seconds - 1))} ` +
        `${b.seconds < a.seconds ? "less" : "more"} than ${a.name} (${seconds(a.seconds)}). `) +
        `The figures at the top are those of ${a.name}.`),
      scroll(table("Machines", ["setting", a.name, b.name], settings(a, b))),
      element("br"),
      scroll(table("Mean time of a rank, the largest differences first", ["place", a.name, b.name, "change"],
        rows.map(([name, [x, y]]) => [name, seconds(x), seconds(y), change(x, y)]))),
      element("br"),
      scroll(table("Critical path", ["cause", a.name, b.name, "change"], causes.filter(([, x, y]) => x > 0 || y > 0)
        .map(([name, x, y]) => [name, seconds(x), seconds(y), change(x, y)]))))));
}

function toggle(name) {
  shows[name] = !shows[name];
  document.getElementById("show-" + name).checked = shows[name];
  redraw();
}

async function start() {
  const begun = performance.now();
  await openView();
  const player = runs.some((one) => !one.picture) ? null : new Player(runs, (times) =>
    times.forEach((second, i) => charts[i].point(player.now > 0 || player.playing ? second : undefined)));
  const switchTheme = followTheme(() => { redraw(true); if (player?.ready) player.draw(true); });
  document.getElementById("theme").addEventListener("click", switchTheme);
  const run = runs[0];
  document.getElementById("facts").append(...runs.flatMap((one, i) =>
    [...(i ? [element("br")] : []), runs.length > 1 ? `${one.name}: ${one.where}` : one.where]));
  if (runs.every((one) => one.measured)) document.querySelector("footer").textContent = "Times are measured. The page holds all of its data.";
  const pop = run.analysis.efficiencies;
  const card = (value, name, wide) => element("div", { className: "card" + (wide ? " wide" : "") }, element("b", {}, value), element("span", {}, name));
  const interval = ({ low_seconds: low, high_seconds: high, unknown }) => low === null
    ? card(`not known: ${unknown.join("; ")}`, "interval of the prediction (90 %)", true)
    : card(`${seconds(low)} to ${seconds(high)}`, "interval of the prediction (90 %)");
  document.getElementById("cards").append(
    card(seconds(run.seconds), run.measured ? "measured time" : "predicted time"),
    ...(run.analysis.interval ? [interval(run.analysis.interval)] : []),
    card(run.analysis.limit, "what limits it", true),
    card(pop === null ? "not timed" : percent(pop.parallel), pop === null ? "compute" : "parallel efficiency"),
    card(pop === null ? "-" : percent(pop.load_balance), "load balance"),
    card(whole(run.messages.begin.length), `messages, ${bytes(run.matrix.bytes.reduce((a, b) => a + b, 0))}`));
  if (run.energy) document.getElementById("cards").append(card(joules(run.energy.joules), "energy"));
  const legend = document.getElementById("legend");
  CATEGORIES.forEach((name, i) => {
    const dot = element("i");
    dot.style.background = `var(--${name})`;
    legend.append(element("li", {}, dot, NAMES[i]));
  });
  const dot = element("i");
  dot.style.cssText = "background: var(--path); height: 3px; vertical-align: 3px";
  legend.append(element("li", {}, dot, "critical path"));
  for (const one of runs) {
    const chart = new Gantt(one);
    charts.push(chart);
    document.getElementById("timelines").append(chart.box);
  }
  if (player) {
    document.getElementById("compare").before(player.panel);
    // The animation shows the part of the run that the timeline shows, or a call that it is told.
    let own = false;
    let timer = 0;
    moved = () => {
      if (own) return;
      clearTimeout(timer);
      timer = setTimeout(() => player.span(view.from, view.to), 150);
    };
    const choose = player.choose.bind(player);
    player.choose = (k) => {
      choose(k);
      const spans = player.stages.map((stage) => [stage.from, stage.to]);
      own = true;
      show(Math.min(...spans.map(([from]) => from)), Math.max(...spans.map(([, to]) => to)));
      own = false;
    };
  }
  const why = document.getElementById("why");
  const links = new Links(run), matrix = new Matrix(run), load = new Load(run);
  if (run.links.length) charts.push(links);
  charts.push(matrix, load);
  const used = panel("Use of links over time", true, links.canvas, element("div", { className: "sr" }, table("Use of links", ["link", "bytes", "mean use"],
    run.links.map((link) => [link.name, bytes(link.bytes), percent(link.mean)]))));
  why.append(pathPanel(charts[0]), whyPanel(run), sitePanel(run), linePanel(run), ...(run.links.length ? [used] : []),
    panel("Messages between ranks", false, matrix.canvas, scroll(matrix.table())),
    panel("Load of the ranks", false, load.canvas, scroll(table("Each rank", ["rank", "host", "compute", "waiting", "end"],
      run.hosts.slice(0, 1024).map((host, rank) => [`${rank}`, host, seconds(run.analysis.rank_compute_seconds[rank]),
        seconds(run.analysis.rank_wait_seconds[rank]), seconds(run.ends[rank])])))));
  if (run.energy) why.append(energyPanel(run));
  comparePanel();
  for (const name of ["path", "messages"])
    document.getElementById("show-" + name).addEventListener("change", (event) => { shows[name] = event.target.checked; redraw(); });
  document.getElementById("zoom-in").addEventListener("click", () => zoom(0.6));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  document.getElementById("fit").addEventListener("click", () => show(0, longestRun));
  const filter = document.getElementById("filter");
  const apply = () => { for (const chart of charts) if (chart.filter) chart.filter(filter.value); };
  filter.addEventListener("input", apply);
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { filter.value = ""; apply(); }
    if (event.key === "Escape" || event.key === "Enter") document.querySelector(".gantt").focus();
  });
  addEventListener("resize", () => { redraw(true); if (player) player.draw(true); });
  draw(true);
  if (player) player.draw(true);
  window.pysmpi = { player, view, show, zoom, pan, draw, runs, charts, shows, ready: performance.now(), begun };
}
start();
