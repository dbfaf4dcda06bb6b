/* The messages of a run on the picture of its machine, at one time. */

const BLOCK = 256;  // messages whose latest arrival is known
const MOST_DOTS = 4000;
const LASTS = 10;  // seconds that a window takes at speed 1
const NEAR = 0.5;  // ticks; times that are as near to each other are one
const JUMPS = 3;  // steps in a second, if the reader wants no motion
const FULL = 6;  // width of a link without free bandwidth, where there is room

class Stage {
  constructor(run) {
    this.run = run;
    this.picture = run.picture;
    this.tick = 0;
    this.chosen = -1;  // the collective call whose messages are shown, -1 for all
    this.canvas = element("canvas", { className: "stage", role: "img", tabIndex: 0 });
    this.said = element("p", { className: "said" });
    this.box = element("div", { className: "run" },
      element("h3", {}, `${run.name}: ${run.where}`), this.canvas, this.said);
    const { begin, end, held, latency } = run.messages, count = begin.length;
    this.departs = new Float64Array(count);
    this.flows = new Float64Array(count);
    this.latest = new Float64Array(Math.ceil(count / BLOCK));
    this.most = 1;
    for (let i = 0; i < count; i++) {
      this.departs[i] = Math.min(end[i], begin[i] + held[i]);
      this.flows[i] = Math.min(end[i], this.departs[i] + latency[i]);
      const block = Math.floor(i / BLOCK);
      if (end[i] > this.latest[block]) this.latest[block] = end[i];
      if (run.messages.bytes[i] > this.most) this.most = run.messages.bytes[i];
    }
    this.readRoutes();
    this.load = new Float64Array(this.picture.links.length);
    this.crossed = new Uint8Array(this.picture.links.length);
    this.canvas.addEventListener("pointermove", (event) => this.explain(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.setWindow(0, run.seconds, -1);
  }

  readRoutes() {
    const { passed, vertex, crossed, link, source, destination, route } = this.picture;
    const cut = (lengths, values) => {
      const found = [];
      let at = 0;
      for (const length of lengths) found.push(values.subarray(at, at += length));
      return found;
    };
    this.passes = cut(passed, vertex);
    this.crosses = cut(crossed, link);
    this.pairs = new Map();
    for (let i = 0; i < source.length; i++) this.pairs.set(source[i] * this.run.ranks + destination[i], route[i]);
  }

  /* The route of a message, -1 inside a host. */
  routeOf(i) {
    const { route, source, destination } = this.run.messages;
    if (route) return route[i];
    return this.pairs.get(source[i] * this.run.ranks + destination[i]) ?? -1;
  }

  /* Show messages between two times (s), or those of a collective call. */
  setWindow(from, to, chosen) {
    const run = this.run, { begin, end } = run.messages;
    this.from = from;
    this.to = to;
    this.chosen = chosen;
    const a = from / run.unit, b = to / run.unit, ends = [];
    this.sent = [];
    if (run.unit)
      for (let i = 0; i < begin.length; i++)
        if (this.shows(i) && begin[i] <= b && end[i] >= a) { ends.push(end[i]); this.sent.push(this.departs[i]); }
    this.ends = Float64Array.from(ends).sort();
    this.sent = Float64Array.from(this.sent).sort();
  }

  shows(i) { return this.chosen < 0 || this.run.messages.collective[i] === this.chosen; }

  /* The messages that are held at their senders or on their way. */
  underway(tick) {
    const { begin, end } = this.run.messages, found = [];
    const stop = lower(begin, tick + 1, 0, begin.length);
    for (let block = 0; block * BLOCK < stop; block++) {
      if (this.latest[block] < tick) continue;
      const last = Math.min(stop, (block + 1) * BLOCK);
      for (let i = block * BLOCK; i < last; i++)
        if (end[i] >= tick && begin[i] <= tick && this.shows(i)) found.push(i);
    }
    return found;
  }

  /* Set the parts of the bandwidths of links that messages take. */
  light(messages, tick) {
    const { load, crossed, run } = this, { bytes, end } = run.messages;
    load.fill(0);
    crossed.fill(0);
    for (const i of messages) {
      const route = this.routeOf(i);
      if (route < 0 || tick < this.departs[i] || end[i] <= tick + NEAR) continue;
      const rate = end[i] > this.flows[i] ? bytes[i] / ((end[i] - this.flows[i]) * run.unit) : 0;
      for (const link of this.crosses[route]) {
        crossed[link] = 1;
        if (tick >= this.flows[i]) load[link] += rate / this.picture.links[link][1];
      }
    }
  }

  /* The colour of a rank: that of its timeline. */
  state(rank) {
    const { run, tick } = this;
    if (tick > run.endTicks[rank]) return 5;
    const { begin, end } = run.waits, last = run.firstWait[rank + 1];
    const j = lower(end, tick, run.firstWait[rank], last);
    if (j < last && begin[j] <= tick && end[j] > tick) return 4;
    const call = run.callAt(rank, tick);
    return call < 0 ? 0 : run.kind[run.calls.site[call]];
  }

  /* Sizes for a width: positions of vertices, of the boxes of hosts and of ranks. */
  place(width) {
    if (this.width === width) return;
    this.width = width;
    const { x, y, hosts, height, tree, hostOf } = this.picture;
    const members = new Uint32Array(hosts);
    const seat = Uint32Array.from(hostOf, (host) => members[host]++);
    const most = Math.max(...members);
    const tall = tree ? Math.max(130, Math.min(250, width * height)) : Math.min(width, x.length > 100 ? 640 : 440);
    const left = tree ? 0 : (width - tall) / 2, wide = tree ? width : tall;
    // In a tree the hosts stand on the lowest line, and the picture ends there.
    const low = tree ? Math.max(...y.slice(0, hosts)) : height;
    const high = tree ? Math.min(...y) : 0;
    const scale = low > high ? (tall - 34) / (low - high) : 0;
    this.x = x.map((one) => left + one * wide);
    this.y = y.map((one) => tree ? 16 + (one - high) * scale : one / height * tall);
    let room = hosts === 1 ? width * 0.9 : tree ? width * 0.9 / hosts * 0.86 : 64;
    if (!tree) for (let a = 0; a < hosts; a++) for (let b = 0; b < a; b++)
      room = Math.min(room, 0.62 * Math.max(10, Math.hypot(this.x[a] - this.x[b], this.y[a] - this.y[b])));
    const deep = tree ? 130 : room;
    let cell = hosts === 1 ? 40 : 26;
    while (cell > 2 && Math.floor(room / cell) * Math.floor(deep / cell) < most) cell--;
    this.cell = Math.min(cell, room);
    // Lines and points are thinner where many hosts stand close together.
    this.thick = Math.max(0.4, Math.min(1, this.cell / 14));
    const fit = Math.max(1, Math.min(most, tree ? Math.floor(room / this.cell) : Math.ceil(Math.sqrt(most))));
    const rows = Math.ceil(most / fit), across = Math.ceil(most / rows);
    this.boxes = Array.from(members, (_, host) => ({
      x: this.x[host] - across * this.cell / 2 - 2, y: this.y[host] + (tree ? 2 : -rows * this.cell / 2 - 2),
      width: across * this.cell + 4, height: rows * this.cell + 4 }));
    this.rankX = Float64Array.from(hostOf, (host, rank) => this.boxes[host].x + 2 + (seat[rank] % across + 0.5) * this.cell);
    this.rankY = Float64Array.from(hostOf, (host, rank) => this.boxes[host].y + 2 + (Math.floor(seat[rank] / across) + 0.5) * this.cell);
    this.height = Math.ceil(Math.max(...this.boxes.map((box) => box.y + box.height), ...this.y) + 10);
  }

  /* The points that a message passes. */
  points(i) {
    const { source, destination } = this.run.messages, a = source[i], b = destination[i], route = this.routeOf(i);
    const found = [[this.rankX[a], this.rankY[a]]];
    if (route >= 0) for (const v of this.passes[route]) found.push([this.x[v], this.y[v]]);
    else if (a !== b) {
      // Inside a host, an arc tells a message from its way back.
      const [x0, y0, x1, y1] = [this.rankX[a], this.rankY[a], this.rankX[b], this.rankY[b]];
      found.push([(x0 + x1) / 2 + (y1 - y0) * 0.15, (y0 + y1) / 2 - (x1 - x0) * 0.15]);
    }
    found.push([this.rankX[b], this.rankY[b]]);
    return found;
  }

  /* The part of its way that a message has behind it. */
  part(i, tick) {
    const begin = this.departs[i], end = this.run.messages.end[i];
    return tick <= begin ? 0 : end > begin ? Math.min(1, (tick - begin) / (end - begin)) : 1;
  }

  draw(second) {
    const { run, picture, canvas } = this;
    this.tick = run.unit ? second / run.unit : 0;
    this.place(canvas.clientWidth || 600);
    const context = prepare(canvas, this.width, this.height);
    context.clearRect(0, 0, this.width, this.height);
    const found = this.underway(this.tick);
    this.light(found, this.tick);
    this.drawLinks(context);
    this.drawHosts(context);
    const stride = Math.max(1, Math.ceil(found.length / MOST_DOTS));
    for (let k = 0; k < found.length; k += stride) this.drawMessage(context, found[k]);
    this.say(found);
  }

  drawLinks(context) {
    const { picture } = this;
    context.lineCap = "round";
    for (const [one, other, links] of picture.edges) {
      let load = 0, crossed = 0;
      for (const link of links) { load = Math.max(load, this.load[link]); crossed |= this.crossed[link]; }
      context.strokeStyle = context.fillStyle = crossed ? palette.accent : palette.soft;
      context.globalAlpha = load > 0 ? 1 : crossed ? 0.6 : 0.4;
      context.lineWidth = this.thick * (load > 0 ? 2 + (FULL - 2) * Math.min(1, load) : crossed ? 2 : 1);
      context.beginPath();
      if (one === other) {
        context.arc(this.x[one], this.y[one], 3 + context.lineWidth, 0, 7);
        context.stroke();
        continue;
      }
      context.moveTo(this.x[one], this.y[one]);
      context.lineTo(this.x[other], this.y[other]);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.fillStyle = palette.soft;
    for (let v = picture.hosts; v < this.x.length; v++) {
      context.beginPath();
      context.arc(this.x[v], this.y[v], this.x.length > 300 ? 2 : 4, 0, 7);
      context.fill();
    }
  }

  drawHosts(context) {
    const { cell, run } = this, gap = cell > 8 ? 2 : cell > 4 ? 1 : 0;
    context.lineWidth = 1;
    if (cell > 5 && this.boxes.length < run.ranks)
      for (const box of this.boxes) {
        context.fillStyle = palette.card;
        context.strokeStyle = palette.soft;
        context.fillRect(box.x, box.y, box.width, box.height);
        context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
      }
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `${Math.min(11, cell * 0.55)}px system-ui, 'DejaVu Sans', sans-serif`;
    for (let rank = 0; rank < run.ranks; rank++) {
      const state = this.state(rank), side = cell - gap, x = this.rankX[rank] - side / 2, y = this.rankY[rank] - side / 2;
      context.fillStyle = palette[CATEGORIES[state] || "idle"];
      context.fillRect(x, y, side, side);
      // Waiting is told by its shape too.
      if (state === 4 && cell > 8) { context.strokeStyle = palette["wait-text"]; context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1); }
      if (cell < 15) continue;
      context.fillStyle = palette.text;
      context.fillText(rank, this.rankX[rank], this.rankY[rank] + 0.5);
    }
  }

  drawMessage(context, i) {
    const points = this.points(i), part = this.part(i, this.tick), lengths = [];
    let total = 0;
    for (let k = 1; k < points.length; k++)
      total += lengths[k - 1] = Math.hypot(points[k][0] - points[k - 1][0], points[k][1] - points[k - 1][1]);
    const at = (way) => {
      let k = 0;
      while (k < lengths.length - 1 && way > lengths[k]) way -= lengths[k++];
      const share = lengths[k] > 0 ? Math.min(1, way / lengths[k]) : 1;
      return [points[k][0] + share * (points[k + 1][0] - points[k][0]), points[k][1] + share * (points[k + 1][1] - points[k][1]), k];
    };
    const [x, y, leg] = at(part * total), [x0, y0, first] = at(Math.max(0, part * total - 26 * this.thick));
    const radius = this.thick * 2.5 + this.thick * 3.5 * Math.log1p(this.run.messages.bytes[i]) / Math.log1p(this.most);
    context.strokeStyle = context.fillStyle = palette.message;
    if (part > 0) {
      context.globalAlpha = 0.45;
      context.lineWidth = Math.max(1.5, radius);
      context.beginPath();
      context.moveTo(x0, y0);
      for (let k = first + 1; k <= leg; k++) context.lineTo(points[k][0], points[k][1]);
      context.lineTo(x, y);
      context.stroke();
      context.globalAlpha = 1;
    }
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.lineWidth = 1.5;
    // A message that is held at its sender is hollow.
    if (this.tick < this.departs[i]) { context.fillStyle = palette.card; context.fill(); context.stroke(); return; }
    context.fill();
    context.strokeStyle = palette.card;
    context.stroke();
  }

  /* The collective call of a time: the chosen one, that of most messages on their way, or the one
     that began last. */
  collective(moving) {
    if (this.chosen >= 0) return this.chosen;
    const votes = new Map();
    let most = -1;
    for (const i of moving) {
      const k = this.run.messages.collective[i];
      if (k < 0) continue;
      votes.set(k, (votes.get(k) || 0) + 1);
      if (most < 0 || votes.get(k) > votes.get(most)) most = k;
    }
    if (most >= 0) return most;
    const { begin, end } = this.run.collectives;
    for (let k = lower(begin, this.tick + 1, 0, begin.length) - 1, tries = 0; k >= 0 && tries < 1000; k--, tries++)
      if (end[k] >= this.tick) return k;
    return -1;
  }

  say(found) {
    const { run, tick } = this, { bytes, collective, round } = run.messages;
    const moving = found.filter((i) => this.departs[i] <= tick && run.messages.end[i] > tick + NEAR);
    const held = found.filter((i) => this.departs[i] > tick).length;
    const k = this.collective(moving);
    const parts = [];
    if (k >= 0) {
      const mine = moving.filter((i) => collective[i] === k).map((i) => round[i]);
      const low = mine.reduce((a, b) => Math.min(a, b), Infinity), high = Math.max(0, ...mine);
      const all = run.collectives.rounds[k];
      parts.push(run.callName(k) + (all === 0 ? "" : mine.length === 0 ? `: ${counted(all, "round")}` :
        low === high ? `: round ${low} of ${all}` : `: rounds ${low} to ${high} of ${all}`));
    }
    const arrived = lower(this.ends, tick + NEAR, 0, this.ends.length);
    parts.push(`${counted(moving.length, "message")} on the way (${bytesOf(moving, bytes)})` + (held ? `, ${whole(held)} held` : "") +
      `, ${whole(arrived)} of ${whole(this.ends.length)} arrived`);
    const text = `${seconds(Number((tick * run.unit).toPrecision(6)))}. ${parts.join("; ")}.`;
    this.said.textContent = text;
    this.canvas.setAttribute("aria-label", `Machine of ${run.name} at ${text}`);
  }

  explain(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const { picture, run, cell } = this;
    for (let rank = 0; rank < run.ranks; rank++)
      if (Math.abs(x - this.rankX[rank]) <= cell / 2 && Math.abs(y - this.rankY[rank]) <= cell / 2) {
        const found = run.describe(rank, this.tick);
        showTip(event, found.head, found.lines);
        return;
      }
    let best = null, least = 7;
    for (const edge of picture.edges) {
      const [x0, y0, x1, y1] = [this.x[edge[0]], this.y[edge[0]], this.x[edge[1]], this.y[edge[1]]];
      const length = (x1 - x0) ** 2 + (y1 - y0) ** 2;
      const share = length ? Math.max(0, Math.min(1, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length)) : 0;
      const far = Math.hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0));
      if (far < least && edge[2].length) { least = far; best = edge; }
    }
    if (!best) { hideTip(); return; }
    showTip(event, "Links", best[2].map((link) => `${picture.links[link][0]}: ${percent(this.load[link])} of ${bytes(picture.links[link][1])}/s`));
  }
}

function bytesOf(messages, sizes) { return bytes(messages.reduce((sum, i) => sum + sizes[i], 0)); }

/* The stages of all runs, with one clock. `moved` hears of the time of each run (s). */

class Player {
  constructor(runs, moved = () => {}) {
    this.stages = runs.map((run) => new Stage(run));
    this.moved = moved;
    this.now = 0;  // s since the begin of the window
    this.playing = false;
    this.speed = 1;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.panel = this.build(runs);
    this.window();
  }

  get length() { return Math.max(...this.stages.map((stage) => stage.to - stage.from), 0); }

  build(runs) {
    const button = (name, text, go) => element("button", { type: "button", "aria-label": name, title: name, onclick: go }, text);
    this.toggle = button("Play", "\u25b6", () => this.play(!this.playing));
    this.toggle.id = "play";
    this.slider = element("input", { type: "range", min: 0, max: 1000, value: 0, step: "any", id: "time", "aria-label": "Virtual time" });
    this.slider.addEventListener("input", () => { this.play(false); this.go(this.slider.value / 1000 * this.length); });
    this.clock = element("output", { id: "clock" });
    const speeds = [0.1, 0.25, 0.5, 1, 2, 4, 10];
    this.speeds = element("select", { id: "speed", "aria-label": "Speed" }, ...speeds.map((one) => element("option", { value: one, selected: one === 1 }, `${one}\u00d7`)));
    this.speeds.addEventListener("change", () => { this.speed = Number(this.speeds.value); this.tell(); });
    const call = this.calls();
    const panel = element("section", { id: "animation", "aria-labelledby": "animation-title" },
      element("div", { className: "bar" }, element("h2", { id: "animation-title" }, "Messages on the machine"),
        element("ul", { className: "legend", "aria-label": "Colours of ranks and links" }, ...CATEGORIES.map((name, i) => this.mark(name, NAMES[i])),
          this.mark("message", "message"), this.mark("accent", "link in use: the wider, the less is free")),
        element("div", { className: "tools" }, ...call)),
      element("div", { className: "stages" }, ...this.stages.map((stage) => stage.box)),
      element("div", { className: "player", role: "toolbar", "aria-label": "Animation" },
        button("First time", "|\u2039", () => this.end(0)), button("Step back", "\u2039", () => this.step(-1)), this.toggle,
        button("Step", "\u203a", () => this.step(1)), button("Last time", "\u203a|", () => this.end(1)),
        this.slider, this.clock, this.speeds),
      element("p", { className: "hint" }, "Space plays and pauses, arrow keys step to the next time at which a message leaves or arrives, " +
        "Home and End go to the first and the last time, + and \u2212 change the speed."));
    panel.addEventListener("keydown", (event) => this.key(event));
    return panel;
  }

  mark(name, text) {
    const dot = element("i");
    dot.style.background = `var(--${name})`;
    return element("li", {}, dot, text);
  }

  /* The choice of a collective call: that of the same number in each run. */
  calls() {
    const [run] = this.stages.map((stage) => stage.run), { begin, end } = run.collectives;
    if (!begin.length) return [];
    const longest = [...begin.keys()].sort((a, b) => (end[b] - begin[b]) - (end[a] - begin[a]) || a - b).slice(0, 1000).sort((a, b) => a - b);
    this.choice = element("select", { id: "call", "aria-label": "Collective call" }, element("option", { value: -1 }, "all calls"),
      ...longest.map((k) => element("option", { value: k }, `${k + 1}: ${run.callName(k)}`)));
    if (longest.length < begin.length) this.choice.title = `The 1000 longest of ${whole(begin.length)} collective calls`;
    this.choice.addEventListener("change", () => this.choose(Number(this.choice.value)));
    return [element("label", { className: "chosen" }, "Show ", this.choice)];
  }

  /* Show a collective call, or all again. */
  choose(k) {
    for (const stage of this.stages) {
      const { begin, end } = stage.run.collectives, unit = stage.run.unit;
      if (k >= 0 && k < begin.length) stage.setWindow(begin[k] * unit, end[k] * unit, k);
      else stage.setWindow(0, stage.run.seconds, -1);
    }
    if (this.choice) this.choice.value = k;
    this.window();
  }

  /* Show a span of time (s) of each run. */
  span(from, to) {
    const before = this.stages[0].from + this.now;
    for (const stage of this.stages) stage.setWindow(Math.max(0, from), Math.min(stage.run.seconds, Math.max(from, to)), -1);
    if (this.choice) this.choice.value = -1;
    this.window(before - this.stages[0].from);
  }

  /* Begin with a new window. */
  window(now = 0) {
    this.times = null;
    this.now = Math.max(0, Math.min(this.length, now));
    if (this.ready) this.go(this.now);
  }

  /* The times (s since the begin of the window) at which messages leave or arrive. */
  get steps() {
    if (!this.times) {
      const found = new Set([0, this.length]);
      for (const { run, from, sent, ends } of this.stages)
        for (const list of [sent, ends]) for (const tick of list) {
          const time = tick * run.unit - from;
          if (time > 0 && time < this.length) found.add(Number(time.toPrecision(9)));
        }
      this.times = Float64Array.from(found).sort();
    }
    return this.times;
  }

  step(direction) {
    this.play(false);
    const { steps, now } = this, near = 1e-9 * this.length;
    const i = direction > 0 ? lower(steps, now + near, 0, steps.length) : lower(steps, now - near, 0, steps.length) - 1;
    this.go(steps[Math.max(0, Math.min(steps.length - 1, i))]);
  }

  end(part) { this.play(false); this.go(part * this.length); }

  go(now) {
    this.now = Math.max(0, Math.min(this.length, now));
    for (const stage of this.stages) stage.draw(Math.min(stage.to, stage.from + this.now));
    this.tell();
    this.moved(this.stages.map((stage) => Math.min(stage.to, stage.from + this.now)));
  }

  tell() {
    const rate = this.length / LASTS * this.speed;
    this.slider.value = this.length ? this.now / this.length * 1000 : 0;
    this.clock.textContent = seconds(Number(this.now.toPrecision(4))) + " of " + seconds(this.length);
    this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    this.speeds.title = rate > 0 ? `One second shows ${seconds(Number(rate.toPrecision(3)))}` : "";
  }

  play(wanted) {
    if (wanted === this.playing) return;
    this.playing = wanted;
    this.toggle.textContent = wanted ? "\u275a\u275a" : "\u25b6";
    this.toggle.title = wanted ? "Pause" : "Play";
    this.toggle.setAttribute("aria-label", this.toggle.title);
    if (!wanted) return;
    if (this.now >= this.length) this.now = 0;
    let last = performance.now();
    const frame = (time) => {
      if (!this.playing) return;
      const passed = Math.max(0, Math.min(200, time - last)) / 1000;
      if (this.still.matches) {
        // Jumps from event to event are no motion.
        if (time - last >= 1000 / JUMPS / this.speed) {
          last = time;
          const { steps } = this, i = lower(steps, this.now + 1e-9 * this.length, 0, steps.length);
          this.go(steps[Math.min(steps.length - 1, i)]);
        }
      } else {
        last = time;
        this.go(this.now + passed * this.speed * this.length / LASTS);
      }
      if (this.now >= this.length) this.play(false);
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
    const faster = (by) => {
      const options = this.speeds.options, i = Math.max(0, Math.min(options.length - 1, this.speeds.selectedIndex + by));
      this.speeds.selectedIndex = i;
      this.speed = Number(this.speeds.value);
      this.tell();
    };
    const go = { " ": () => this.play(!this.playing), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      Home: () => this.end(0), End: () => this.end(1), "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1) }[event.key];
    if (!go || (event.key === " " && event.target.tagName === "BUTTON" && event.target !== this.toggle)) return;
    event.preventDefault();
    go();
  }

  draw(all) {
    this.ready = true;
    if (all) for (const stage of this.stages) stage.width = 0;
    this.go(this.now);
  }
}
