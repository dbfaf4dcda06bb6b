"use strict";
(() => {
const TYPES = { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array };
const CATEGORIES = ["compute", "p2p", "collective", "other", "wait"];
const NAMES = ["computing or asleep", "point-to-point call", "collective call", "other call", "waiting"];
const MOST_BINS = 1 << 21;  // of all ranks, in the finest level of detail
const LEFT = 74, TOP = 22;

function column(packed) {
  const text = atob(packed.data), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[packed.type](bytes.buffer);
}

function columns(group) {
  const found = {};
  for (const [name, packed] of Object.entries(group)) found[name] = column(packed);
  return found;
}

/* Text. */

function seconds(value) {
  const size = Math.abs(value);
  for (const [unit, name] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]])
    if (size >= unit) return Number((value / unit).toPrecision(4)) + " " + name;
  return value === 0 ? "0 s" : value.toPrecision(3) + " s";
}
function bytes(value) {
  for (const [unit, name] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
    if (value >= unit) return Number((value / unit).toPrecision(4)) + " " + name;
  return Math.round(value) + " bytes";
}
const percent = (value) => (100 * value).toFixed(1) + " %";
const signed = (value, text) => (value < 0 ? "\u2212" : "+") + text(Math.abs(value));
const whole = (value) => value.toLocaleString("en");

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== "style") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/* The first position in a sorted column, from `low` to `high`, whose value is at least `wanted`. */
function lower(values, wanted, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

/* The data of a run. */

class Run {
  constructor(data) {
    Object.assign(this, data);
    this.ranks = data.hosts.length;
    this.calls = columns(data.calls);
    this.waits = columns(data.waits);
    this.messages = columns(data.messages);
    this.path = columns(data.path);
    this.links = data.links.map((link) => ({ ...link, use: column(link.use) }));
    this.matrix = { ...data.matrix, bytes: column(data.matrix.bytes), count: column(data.matrix.count) };
    this.kind = Uint8Array.from(data.kinds, (kind) => kind + 1);
    this.firstCall = this.offsets(this.calls.rank);
    this.firstWait = this.offsets(this.waits.rank);
    this.unit = data.seconds > 0 ? data.seconds / data.ticks : 0;
    let longest = 0;
    const { begin, end } = this.messages;
    for (let i = 0; i < begin.length; i++) longest = Math.max(longest, end[i] - begin[i]);
    this.longest = longest;
    this.endTicks = Float64Array.from(data.ends, (end) => (this.unit ? end / this.unit : 0));
  }

  offsets(ranks) {
    const first = new Uint32Array(this.ranks + 1);
    for (let i = 0; i < ranks.length; i++) first[ranks[i] + 1]++;
    for (let i = 0; i < this.ranks; i++) first[i + 1] += first[i];
    return first;
  }

  /* The levels of detail: the mixed colours of bins of time for each rank, each level half as
     fine as the one before; and the shares of categories of all ranks together. */
  mix() {
    let bins = 512;
    while (bins < 16384 && bins * 2 * this.ranks <= MOST_BINS) bins *= 2;
    const shares = new Float32Array(bins * 5), points = 512, per = bins / points;
    const totals = this.totals = new Float32Array(points * 5);
    this.levels = [];
    for (let size = bins; size >= 512; size >>= 1) this.levels.push({ bins: size, colours: new Uint32Array(size * this.ranks) });
    for (let rank = 0; rank < this.ranks; rank++) {
      shares.fill(0);
      this.cover(rank, 0, this.ticks, bins, shares);
      for (let i = 0; i < bins; i++) {
        const point = Math.floor(i / per) * 5;
        for (let k = 0; k < 5; k++) totals[point + k] += shares[i * 5 + k] / per / this.ranks;
      }
      for (const level of this.levels) {
        const offset = rank * level.bins;
        for (let i = 0; i < level.bins; i++) level.colours[offset + i] = blend(shares, i);
        for (let i = 0; i < level.bins >> 1; i++)
          for (let k = 0; k < 5; k++) shares[i * 5 + k] = (shares[i * 10 + k] + shares[i * 10 + 5 + k]) / 2;
      }
    }
  }

  /* Add to `out` the shares of categories in `count` spans between two dates. */
  cover(rank, from, to, count, out) {
    const scale = count / (to - from), { begin, end, site } = this.calls;
    const paint = (a, b, category, sign) => {
      let x = (a - from) * scale, y = (b - from) * scale;
      if (x < 0) x = 0;
      if (y > count) y = count;
      if (y <= x) return;
      let i = Math.floor(x);
      const last = Math.min(count - 1, Math.floor(y));
      if (i === last) { out[i * 5 + category] += sign * (y - x); return; }
      out[i * 5 + category] += sign * (i + 1 - x);
      for (i++; i < last; i++) out[i * 5 + category] += sign;
      out[last * 5 + category] += sign * (y - last);
    };
    paint(Math.max(0, from), Math.min(this.endTicks[rank], to), 0, 1);
    const start = this.firstCall[rank], stop = this.firstCall[rank + 1];
    let i = lower(end, from, start, stop);
    for (; i < stop && begin[i] < to; i++) {
      const kind = this.kind[site[i]];
      paint(begin[i], end[i], kind, 1);
      paint(begin[i], end[i], 0, -1);
    }
    const waits = this.waits, first = this.firstWait[rank], last = this.firstWait[rank + 1];
    let call = lower(end, from, start, stop);
    for (let j = lower(waits.end, from, first, last); j < last && waits.begin[j] < to; j++) {
      while (call < stop && end[call] < waits.end[j]) call++;
      const kind = call < stop ? this.kind[site[call]] : 3;
      paint(waits.begin[j], waits.end[j], 4, 1);
      paint(waits.begin[j], waits.end[j], kind, -1);
    }
  }

  callAt(rank, tick) {
    const start = this.firstCall[rank], stop = this.firstCall[rank + 1];
    const i = lower(this.calls.end, tick, start, stop);
    return i < stop && this.calls.begin[i] <= tick ? i : -1;
  }

  waitsIn(rank, from, to) {
    const { begin, end } = this.waits, found = new Map();
    let total = 0;
    const last = this.firstWait[rank + 1];
    for (let j = lower(end, from, this.firstWait[rank], last); j < last && begin[j] < to; j++) {
      const lasted = Math.min(end[j], to) - Math.max(begin[j], from);
      total += lasted;
      found.set(this.waits.for[j], (found.get(this.waits.for[j]) || 0) + lasted);
    }
    let whom = -1, most = 0;
    for (const [rank_, lasted] of found) if (lasted > most) { most = lasted; whom = rank_; }
    return { total: total * this.unit, whom };
  }

  describe(rank, tick) {
    const i = this.callAt(rank, tick);
    const head = `rank ${rank} (${this.hosts[rank]})`;
    if (i < 0) {
      if (tick > this.endTicks[rank]) return { head, lines: ["has ended"] };
      const stop = this.firstCall[rank + 1];
      const next = lower(this.calls.begin, tick, this.firstCall[rank], stop);
      const a = next > this.firstCall[rank] ? this.calls.end[next - 1] : 0;
      const b = next < stop ? this.calls.begin[next] : this.endTicks[rank];
      return { head, begin: a, end: b, lines: [
        `computing for ${seconds((b - a) * this.unit)}`,
        next < stop ? `before ${this.sites[this.calls.site[next]]}` : "until the end"] };
    }
    const a = this.calls.begin[i], b = this.calls.end[i], wait = this.waitsIn(rank, a, b);
    const lines = [this.sites[this.calls.site[i]],
      `${seconds((b - a) * this.unit)}, from ${seconds(a * this.unit)}`];
    if (wait.total > 0)
      lines.push(`waits ${seconds(wait.total)}` + (wait.whom >= 0 ? `, mostly for rank ${wait.whom}` : ""));
    return { head, lines, begin: a, end: b, call: i };
  }
}

/* Colours of the theme. */

/* The colour of a bin: its categories mixed; what is left of it is idle. */
function blend(shares, i) {
  let r = 0, g = 0, b = 0, sum = 0;
  const at = i * 5, rgb = palette.rgb;
  for (let k = 0; k < 5; k++) {
    const part = shares[at + k];
    if (part > 0.0005) { const c = rgb[k]; r += part * c[0]; g += part * c[1]; b += part * c[2]; sum += part; }
  }
  if (sum < 1) { const rest = 1 - sum, c = rgb[5]; r += rest * c[0]; g += rest * c[1]; b += rest * c[2]; sum = 1; }
  return ((255 << 24) | ((b / sum) << 16) | ((g / sum) << 8) | (r / sum)) >>> 0;
}

let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  palette = {};
  for (const name of ["compute", "p2p", "collective", "other", "wait", "path", "arrow", "idle",
    "text", "soft", "line", "card", "accent", "back"])
    palette[name] = style.getPropertyValue("--" + name).trim();
  palette.rgb = [...CATEGORIES, "idle"].map((name) => {
    const value = parseInt(palette[name].slice(1), 16);
    return [value >> 16, (value >> 8) & 255, value & 255];
  });
}

function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = "11.5px system-ui, 'DejaVu Sans', sans-serif";
  return context;
}

/* Round steps of an axis. */
function steps(from, to, most) {
  const raw = (to - from) / most, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) found.push(i * step);
  return found;
}

/* The view that all timelines share: a span of simulated time (s), and the rows on top. */

const runs = JSON.parse(document.getElementById("data").textContent).map((data) => new Run(data));
document.getElementById("data").textContent = "";
const longestRun = Math.max(...runs.map((run) => run.seconds), 1e-12);
const view = { from: 0, to: longestRun };
const shows = { path: true, messages: true };
const charts = [];
let due = false, everything = false;

/* Draw in the next frame what depends on the view; with `all`, also what depends on the theme. */
function redraw(all) {
  everything = everything || all === true;
  if (due) return;
  due = true;
  requestAnimationFrame(() => { if (due) draw(everything); });
}
function draw(all) {
  due = everything = false;
  for (const chart of charts) if (all || chart.moves) chart.draw(all);
}

function show(from, to) {
  let span = Math.min(Math.max(to - from, longestRun * 1e-8), longestRun * 1.02);
  from = Math.min(Math.max(from, -0.01 * longestRun), longestRun * 1.01 - span);
  view.from = from;
  view.to = from + span;
  redraw();
}
function zoom(factor, at = (view.from + view.to) / 2) {
  show(at - (at - view.from) * factor, at + (view.to - at) * factor);
}
const pan = (part) => {
  const span = view.to - view.from;
  show(view.from + part * span, view.to + part * span);
};

class Gantt {
  constructor(run) {
    this.moves = true;
    this.run = run;
    this.top = 0;
    this.rank = 0;
    this.tick = 0;
    this.strip = document.createElement("canvas");
    this.pathStrip = document.createElement("canvas");
    this.shape = document.createElement("canvas");  // the overview without its frame
    this.canvas = element("canvas", {
      className: "gantt", tabIndex: 0, role: "application",
      "aria-label": `Timeline of ${run.name}: ${run.ranks} ranks, ${seconds(run.seconds)}. ` +
        "Arrow keys move, plus and minus zoom, square brackets step through the calls of a rank.",
      "aria-describedby": "keys",
    });
    this.overview = element("canvas", { className: "overview", role: "img",
      "aria-label": `Share of the ranks that compute, are in calls, and wait, over the time of ${run.name}` });
    this.box = element("div", { className: "run" },
      runs.length > 1 ? element("h3", {}, `${run.name}: ${seconds(run.seconds)}`) : null,
      this.note = element("p", { className: "hint", hidden: true }), this.canvas, this.overview);
    this.listen();
  }

  get rowHeight() { return Math.max(3, Math.min(26, Math.floor(this.room() / this.run.ranks))); }
  room() { return runs.length > 1 ? 300 : 430; }
  get rows() { return Math.min(this.run.ranks, Math.floor(this.room() / this.rowHeight)); }
  get width() { return this.canvas.clientWidth || 900; }
  x(second) { return LEFT + (second - view.from) / (view.to - view.from) * (this.width - LEFT); }
  second(x) { return view.from + (x - LEFT) / (this.width - LEFT) * (view.to - view.from); }
  y(rank) { return TOP + (rank - this.top + 0.5) * this.rowHeight; }

  draw(all) {
    if (all) this.run.mix();
    const run = this.run, width = this.width, height = TOP + this.rows * this.rowHeight + 4;
    this.note.hidden = this.rows >= run.ranks;
    if (!this.note.hidden)
      this.note.textContent = `Ranks ${this.top} to ${this.top + this.rows - 1} of ${run.ranks}: ` +
        "drag up or down to see the others";
    const context = prepare(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    if (!run.unit) { context.fillText("nothing takes time", LEFT, TOP + 12); return; }
    this.axis(context, width, height);
    this.fill(context, width);
    this.labels(context, width);
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, width - LEFT, height - TOP);
    context.clip();
    if (shows.messages) this.arrows(context, width);
    if (shows.path) this.critical(context);
    if (this.mark) {
      context.fillStyle = palette.accent;
      context.globalAlpha = 0.18;
      context.fillRect(this.x(this.mark[0]), TOP, this.x(this.mark[1]) - this.x(this.mark[0]), height);
      context.globalAlpha = 1;
    }
    context.restore();
    this.drawOverview(all);
  }

  axis(context, width, height) {
    context.fillStyle = palette.soft;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (const second of steps(view.from, view.to, Math.max(2, width / 130))) {
      const x = Math.round(this.x(second)) + 0.5;
      if (x < LEFT) continue;
      context.beginPath(); context.moveTo(x, TOP - 4); context.lineTo(x, height); context.stroke();
      if (x > LEFT + 20 && x < width - 24) context.fillText(seconds(Number(second.toPrecision(6))), x, 9);
    }
    context.textAlign = "right";
    const step = Math.max(1, Math.ceil(14 / this.rowHeight));
    for (let i = 0; i < this.rows; i++) {
      const rank = this.top + i;
      if (rank >= this.run.ranks || rank % step) continue;
      context.fillStyle = rank === this.rank && document.activeElement === this.canvas ? palette.accent : palette.soft;
      context.fillText(`rank ${rank}`, LEFT - 8, this.y(rank));
    }
  }

  /* One image of a line of pixels for each rank, mixed from the categories in each pixel. */
  fill(context, width) {
    const run = this.run, columns_ = Math.max(1, Math.floor(width - LEFT)), rows = this.rows;
    const strip = this.strip;
    if (strip.width !== columns_ || strip.height !== rows) { strip.width = columns_; strip.height = rows; }
    const target = strip.getContext("2d"), image = target.createImageData(columns_, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const from = view.from / run.unit, to = view.to / run.unit;
    const perPixel = (to - from) / columns_;
    // The coarsest level that still has a bin for each pixel.
    const level = run.levels.findLast((one) => run.ticks / one.bins <= perPixel);
    const shares = level ? null : new Float32Array(columns_ * 5);
    const idle = blend([0, 0, 0, 0, 0], 0);
    for (let row = 0; row < rows; row++) {
      const rank = this.top + row, start = row * columns_;
      if (rank >= run.ranks) break;
      if (level) {
        const scale = level.bins / run.ticks, offset = rank * level.bins;
        for (let x = 0; x < columns_; x++) {
          const bin = Math.floor((from + (x + 0.5) * perPixel) * scale);
          pixels[start + x] = bin >= 0 && bin < level.bins ? level.colours[offset + bin] : idle;
        }
      } else {
        shares.fill(0);
        run.cover(rank, from, to, columns_, shares);
        for (let x = 0; x < columns_; x++) pixels[start + x] = blend(shares, x);
      }
    }
    target.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    const gap = this.rowHeight > 6 ? Math.min(5, Math.floor(this.rowHeight / 4)) : 0;
    if (!gap) context.drawImage(strip, 0, 0, columns_, rows, LEFT, TOP, columns_, rows * this.rowHeight);
    else for (let row = 0; row < rows; row++)
      context.drawImage(strip, 0, row, columns_, 1, LEFT, TOP + row * this.rowHeight + gap / 2,
        columns_, this.rowHeight - gap);
  }

  labels(context, width) {
    if (this.rowHeight < 14) return;
    const run = this.run, from = view.from / run.unit, to = view.to / run.unit;
    const least = 46 / (width - LEFT) * (to - from), { begin, end, site } = run.calls;
    context.textAlign = "left";
    context.fillStyle = palette.text;
    for (let row = 0; row < this.rows; row++) {
      const rank = this.top + row, stop = run.firstCall[rank + 1];
      let i = lower(end, from, run.firstCall[rank], stop);
      const most = i + 400;
      for (; i < Math.min(stop, most) && begin[i] < to; i++) {
        if (end[i] - begin[i] < least) continue;
        const x = Math.max(LEFT, this.x(begin[i] * run.unit)) + 4, right = Math.min(width, this.x(end[i] * run.unit));
        const name = run.sites[site[i]].split(" at ")[0];
        if (context.measureText(name).width < right - x - 4) context.fillText(name, x, this.y(rank) + 0.5);
      }
    }
  }

  arrows(context, width) {
    const run = this.run, { begin, end, source, destination } = run.messages;
    const from = view.from / run.unit, to = view.to / run.unit, count = begin.length;
    const first = lower(begin, Math.max(0, from - run.longest), 0, count), last = lower(begin, to, 0, count);
    const most = 700, stride = Math.max(1, Math.ceil((last - first) / most));
    this.thinned = stride;
    context.strokeStyle = context.fillStyle = palette.arrow;
    context.lineWidth = 1;
    context.globalAlpha = stride === 1 ? 0.62 : stride <= 4 ? 0.42 : 0.2;
    context.beginPath();
    const heads = [];
    for (let i = Math.ceil(first / stride) * stride; i < last; i += stride) {
      if (end[i] < from) continue;
      const low = Math.min(source[i], destination[i]), high = Math.max(source[i], destination[i]);
      if (low === high || high < this.top || low >= this.top + this.rows) continue;
      const x0 = this.x(begin[i] * run.unit), y0 = this.y(source[i]);
      const x1 = this.x(end[i] * run.unit), y1 = this.y(destination[i]);
      context.moveTo(x0, y0); context.lineTo(x1, y1);
      if (heads.length < 500) heads.push([x0, y0, x1, y1]);
    }
    context.stroke();
    if (this.rowHeight >= 8 && stride === 1) {
      context.beginPath();
      for (const [x0, y0, x1, y1] of heads) {
        const a = Math.atan2(y1 - y0, x1 - x0), size = 5.5;
        context.moveTo(x1, y1);
        context.lineTo(x1 - size * Math.cos(a - 0.45), y1 - size * Math.sin(a - 0.45));
        context.lineTo(x1 - size * Math.cos(a + 0.45), y1 - size * Math.sin(a + 0.45));
        context.closePath();
      }
      context.fill();
    }
    context.globalAlpha = 1;
  }

  critical(context) {
    const run = this.run, { begin, end, rank, receiver } = run.path, count = begin.length;
    const from = view.from / run.unit, to = view.to / run.unit;
    const first = lower(end, from, 0, count), last = lower(begin, to, first, count);
    if (last - first > (this.width - LEFT) * 0.6) { this.criticalShares(context, first, last); return; }
    context.strokeStyle = palette.path;
    context.lineWidth = Math.max(1.5, Math.min(3, this.rowHeight / 5));
    context.lineJoin = "round";
    context.beginPath();
    let px = -1e9, py = -1e9, open = false;
    for (let i = first; i < count && begin[i] < to; i++) {
      if (rank[i] < 0) continue;
      const x0 = this.x(begin[i] * run.unit), x1 = this.x(end[i] * run.unit), y0 = this.y(rank[i]);
      // A message in several pieces is one line, from its first to its last.
      let j = i;
      if (receiver[i] >= 0) while (j + 1 < count && receiver[j + 1] === receiver[i] && rank[j + 1] === rank[i]) j++;
      const y1 = receiver[i] >= 0 ? this.y(receiver[i]) : y0;
      const xe = j > i ? this.x(end[j] * run.unit) : x1;
      i = j;
      if (open && Math.abs(xe - px) < 0.5 && Math.abs(y1 - py) < 0.5) continue;
      if (!open) { context.moveTo(x0, y0); open = true; } else context.lineTo(x0, y0);
      context.lineTo(xe, y1);
      px = xe; py = y1;
    }
    context.stroke();
  }

  /* From afar: how much of the path each rank has in each pixel, as the strength of a line. */
  criticalShares(context, first, last) {
    const run = this.run, { begin, end, rank, receiver } = run.path;
    const count = Math.floor(this.width - LEFT), rows = this.rows, shares = new Float32Array(rows * count);
    const from = view.from / run.unit, scale = count / (view.to / run.unit - from);
    for (let i = first; i < last; i++) {
      for (const [who, weight] of receiver[i] >= 0 ? [[rank[i], 0.5], [receiver[i], 0.5]] : [[rank[i], 1]]) {
        const row = who - this.top;
        if (row < 0 || row >= rows) continue;
        let x = Math.max(0, (begin[i] - from) * scale);
        const stop = Math.min(count, (end[i] - from) * scale);
        while (x < stop) {
          const next = Math.min(stop, Math.floor(x) + 1);
          shares[row * count + Math.floor(x)] += (next - x) * weight;
          x = next;
        }
      }
    }
    const strip = this.pathStrip;
    if (strip.width !== count || strip.height !== rows) { strip.width = count; strip.height = rows; }
    const target = strip.getContext("2d"), image = target.createImageData(count, rows);
    const pixels = new Uint32Array(image.data.buffer), value = parseInt(palette.path.slice(1), 16);
    const colour = ((value & 255) << 16) | (value & 0xff00) | (value >> 16), used = new Uint8Array(rows);
    for (let row = 0; row < rows; row++)
      for (let x = 0; x < count; x++) {
        const share = shares[row * count + x];
        if (share < 0.004) continue;
        used[row] = 1;
        pixels[row * count + x] = ((Math.min(255, 38 + share * 280) << 24) | colour) >>> 0;
      }
    target.putImageData(image, 0, 0);
    const thick = Math.max(1, Math.min(4, this.rowHeight / 4));
    for (let row = 0; row < rows; row++)
      if (used[row])
        context.drawImage(strip, 0, row, count, 1, LEFT, this.y(this.top + row) - thick / 2, count, thick);
  }

  drawShape(width, height) {
    const run = this.run;
    const context = prepare(this.shape, width, height);
    context.clearRect(0, 0, width, height);
    const scale = (width - LEFT) * run.seconds / longestRun, total = run.totals, points = total.length / 5;
    const base = height - 4, high = height - 12;
    let below = new Float32Array(points);
    for (const k of [0, 1, 2, 3, 4]) {
      context.fillStyle = palette[CATEGORIES[k]];
      context.beginPath();
      context.moveTo(LEFT, base);
      const above = new Float32Array(points);
      for (let i = 0; i < points; i++) {
        above[i] = below[i] + Math.max(0, total[i * 5 + k]);
        context.lineTo(LEFT + i / points * scale, base - above[i] * high);
        context.lineTo(LEFT + (i + 1) / points * scale, base - above[i] * high);
      }
      for (let i = points - 1; i >= 0; i--) {
        context.lineTo(LEFT + (i + 1) / points * scale, base - below[i] * high);
        context.lineTo(LEFT + i / points * scale, base - below[i] * high);
      }
      context.fill();
      below = above;
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillStyle = palette.soft;
    context.fillText("all ranks", LEFT - 8, base - high / 2);
  }

  drawOverview(all) {
    const run = this.run, width = this.width, height = 46;
    if (all || this.shape.width === 0 || this.shapeWidth !== width) { this.shapeWidth = width; this.drawShape(width, height); }
    const context = prepare(this.overview, width, height);
    context.clearRect(0, 0, width, height);
    context.drawImage(this.shape, 0, 0, width, height);
    const base = height - 4, high = height - 12;
    const a = LEFT + Math.max(0, view.from) / longestRun * (width - LEFT);
    const b = LEFT + Math.min(longestRun, view.to) / longestRun * (width - LEFT);
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5;
    context.strokeRect(a + 0.75, base - high - 3, Math.max(2, b - a - 1.5), high + 6);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const rank = this.top + Math.floor((y - TOP) / this.rowHeight);
    return { x, second: this.second(x), rank: y < TOP || rank >= this.run.ranks ? -1 : rank };
  }

  select(rank, tick) {
    this.rank = rank;
    this.tick = tick;
    const found = this.run.describe(rank, tick);
    document.getElementById("selection").textContent = `${found.head}: ${found.lines.join("; ")}`;
    return found;
  }

  choose(rank) {
    rank = Math.max(0, Math.min(this.run.ranks - 1, rank));
    if (rank < this.top) this.top = rank;
    if (rank >= this.top + this.rows) this.top = rank - this.rows + 1;
    const tick = Math.max(0, (view.from + view.to) / 2 / this.run.unit);
    this.select(rank, tick);
    redraw();
  }

  step(direction) {
    const run = this.run, first = run.firstCall[this.rank], stop = run.firstCall[this.rank + 1];
    if (first === stop) return;
    let i = lower(run.calls.end, this.tick, first, stop) + direction;
    i = Math.max(first, Math.min(stop - 1, i));
    const begin = run.calls.begin[i], end = run.calls.end[i], middle = (begin + end) / 2;
    this.select(this.rank, middle);
    const second = middle * run.unit, span = view.to - view.from;
    if (second < view.from || second > view.to) show(second - span / 2, second + span / 2);
    redraw();
  }

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      const at = this.at(event);
      drag = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: this.top,
        start: at.second, marks: event.shiftKey, moved: false };
      canvas.classList.add("dragging");
    });
    canvas.addEventListener("pointermove", (event) => {
      const at = this.at(event);
      if (drag) {
        drag.moved = drag.moved || Math.abs(event.clientX - drag.x) > 3;
        if (drag.marks) this.mark = [Math.min(drag.start, at.second), Math.max(drag.start, at.second)];
        else {
          const shift = (event.clientX - drag.x) / (this.width - LEFT) * (drag.to - drag.from);
          this.top = Math.max(0, Math.min(this.run.ranks - this.rows,
            drag.top - Math.round((event.clientY - drag.y) / this.rowHeight)));
          show(drag.from - shift, drag.to - shift);
        }
        redraw();
        return;
      }
      if (at.rank < 0 || at.x < LEFT || !this.run.unit) { hideTip(); return; }
      const found = this.run.describe(at.rank, at.second / this.run.unit);
      showTip(event, found.head, found.lines);
    });
    const stop = (event) => {
      canvas.classList.remove("dragging");
      if (drag && drag.marks && this.mark) { const [a, b] = this.mark; this.mark = null; if (b > a) show(a, b); }
      else if (drag && !drag.moved) {
        const at = this.at(event);
        if (at.rank >= 0) { this.select(at.rank, at.second / this.run.unit); redraw(); }
      }
      drag = null;
    };
    canvas.addEventListener("pointerup", stop);
    canvas.addEventListener("pointercancel", stop);
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.shiftKey) pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
      else zoom(Math.pow(1.0015, event.deltaY), this.second(event.clientX - canvas.getBoundingClientRect().left));
    }, { passive: false });
    canvas.addEventListener("dblclick", (event) => {
      const at = this.at(event);
      if (at.rank < 0) return;
      const found = this.run.describe(at.rank, at.second / this.run.unit);
      if (found.end > found.begin) {
        const margin = (found.end - found.begin) * 0.6;
        show((found.begin - margin) * this.run.unit, (found.end + margin) * this.run.unit);
      }
    });
    canvas.addEventListener("focus", redraw);
    canvas.addEventListener("blur", redraw);
    canvas.addEventListener("keydown", (event) => {
      const keys = {
        ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
        ArrowUp: () => this.choose(this.rank - 1), ArrowDown: () => this.choose(this.rank + 1),
        PageUp: () => this.choose(this.rank - this.rows), PageDown: () => this.choose(this.rank + this.rows),
        "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
        Home: () => show(0, longestRun), "[": () => this.step(-1), "]": () => this.step(1),
        m: () => toggle("messages"), p: () => toggle("path"),
      };
      if (keys[event.key] && !event.ctrlKey && !event.metaKey) { event.preventDefault(); keys[event.key](); }
    });
    this.overview.addEventListener("pointerdown", (event) => {
      const box = this.overview.getBoundingClientRect();
      const second = (event.clientX - box.left - LEFT) / (box.width - LEFT) * longestRun;
      const span = view.to - view.from;
      show(second - span / 2, second + span / 2);
    });
  }
}

function counted(number, name) { return `${whole(number)} ${name}${number === 1 ? "" : "s"}`; }

/* Tooltip. */

const tip = document.getElementById("tip");
function showTip(event, head, lines) {
  tip.replaceChildren(element("b", {}, head), ...lines.flatMap((line, i) => i ? [document.createElement("br"), line] : [line]));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
}
function hideTip() { tip.hidden = true; }

/* Use of links over time. */

class Links {
  constructor(run) {
    this.moves = true;
    this.run = run;
    this.canvas = element("canvas", { role: "img", tabIndex: 0, "aria-label":
      `Use of the ${run.links.length} busiest links over time; the table has their means` });
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect(), row = Math.floor((event.clientY - box.top) / 22);
      const link = run.links[row];
      const second = view.from + (event.clientX - box.left - 190) / (box.width - 190) * (view.to - view.from);
      if (!link || second < 0 || second > run.seconds) { hideTip(); return; }
      const bin = Math.min(link.use.length - 1, Math.floor(second / run.seconds * link.use.length));
      showTip(event, link.name, [`${percent(link.use[bin])} at ${seconds(second)}`,
        `${bytes(link.bytes)} in the run, ${percent(link.mean)} of its bandwidth`]);
    });
    this.canvas.addEventListener("pointerleave", hideTip);
  }

  draw() {
    const run = this.run, width = this.canvas.clientWidth || 600, left = 190;
    const context = prepare(this.canvas, width, Math.max(24, run.links.length * 22 + 4));
    context.clearRect(0, 0, width, 1000);
    context.textBaseline = "middle";
    run.links.forEach((link, row) => {
      const base = row * 22 + 19, bins = link.use.length;
      context.fillStyle = palette.soft;
      context.textAlign = "right";
      const name = link.name.length > 26 ? link.name.slice(0, 25) + "\u2026" : link.name;
      context.fillText(name, left - 8, base - 7);
      context.fillStyle = palette.idle;
      context.fillRect(left, base - 17, width - left, 17);
      context.fillStyle = palette.accent;
      context.beginPath();
      context.moveTo(left, base);
      for (let x = left; x < width; x++) {
        const at = (second) => Math.floor(second / run.seconds * bins);
        const second = view.from + (x - left) / (width - left) * (view.to - view.from);
        const next = second + (view.to - view.from) / (width - left);
        let use = 0;
        for (let i = Math.max(0, at(second)); i <= Math.min(bins - 1, at(next)); i++) use = Math.max(use, link.use[i]);
        context.lineTo(x, base - Math.min(1, use) * 17);
      }
      context.lineTo(width, base);
      context.fill();
    });
  }
}

/* The matrix of messages. */

class Matrix {
  constructor(run) {
    this.run = run;
    const side = run.matrix.size;
    this.canvas = element("canvas", { role: "img", tabIndex: 0, "aria-label":
      `Bytes from each rank (rows) to each rank (columns); the table has the largest` });
    this.most = run.matrix.bytes.reduce((a, b) => Math.max(a, b), 0);
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect(), cell = this.cell();
      const to = Math.floor((event.clientX - box.left - 40) / cell), from = Math.floor((event.clientY - box.top - 20) / cell);
      if (from < 0 || to < 0 || from >= side || to >= side) { hideTip(); return; }
      const i = from * side + to;
      showTip(event, `${this.name(from)} to ${this.name(to)}`,
        [bytes(run.matrix.bytes[i]), `${whole(run.matrix.count[i])} messages`]);
    });
    this.canvas.addEventListener("pointerleave", hideTip);
  }
  name(i) {
    const { block } = this.run.matrix;
    return block === 1 ? `rank ${i}` : `ranks ${i * block}-${Math.min(this.run.ranks, (i + 1) * block) - 1}`;
  }
  cell() { return Math.min(34, (Math.min(this.canvas.clientWidth || 400, 380) - 40) / this.run.matrix.size); }
  draw() {
    const { matrix } = this.run, side = matrix.size, width = this.canvas.clientWidth || 400, cell = this.cell();
    const context = prepare(this.canvas, width, side * cell + 24);
    context.clearRect(0, 0, width, side * cell + 24);
    context.fillStyle = palette.soft;
    context.textBaseline = "middle";
    const step = Math.max(1, Math.ceil(22 / cell));
    for (let i = 0; i < side; i += step) {
      context.textAlign = "center";
      context.fillText(i * matrix.block, 40 + (i + 0.5) * cell, 9);
      context.textAlign = "right";
      context.fillText(i * matrix.block, 34, 20 + (i + 0.5) * cell);
    }
    context.fillStyle = palette.idle;
    context.fillRect(40, 20, side * cell, side * cell);
    context.fillStyle = palette.accent;
    const inset = cell > 8 ? 1 : 0;
    for (let i = 0; i < side; i++)
      for (let j = 0; j < side; j++) {
        const value = matrix.bytes[i * side + j];
        if (!value && !matrix.count[i * side + j]) continue;
        context.globalAlpha = 0.18 + 0.82 * (this.most ? Math.sqrt(value / this.most) : 0);
        context.fillRect(40 + j * cell, 20 + i * cell, cell - inset, cell - inset);
      }
    context.globalAlpha = 1;
  }
  table() {
    const { matrix } = this.run, found = [];
    for (let i = 0; i < matrix.count.length; i++) if (matrix.count[i]) found.push(i);
    found.sort((a, b) => matrix.bytes[b] - matrix.bytes[a]);
    return table("Largest flows", ["from", "to", "bytes", "messages"], found.slice(0, 12).map((i) => [
      this.name(Math.floor(i / matrix.size)), this.name(i % matrix.size), bytes(matrix.bytes[i]), whole(matrix.count[i])]));
  }
}

/* Load of the ranks. */

class Load {
  constructor(run) {
    this.run = run;
    const compute = run.analysis.rank_compute_seconds;
    const most = Math.max(...compute), mean = compute.reduce((a, b) => a + b, 0) / compute.length;
    this.canvas = element("canvas", { role: "img", tabIndex: 0, "aria-label":
      `Compute and waiting of each rank. Most compute: rank ${compute.indexOf(most)} with ${seconds(most)}; mean ${seconds(mean)}` });
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect();
      const rank = Math.floor((event.clientX - box.left) / box.width * run.ranks);
      if (rank < 0 || rank >= run.ranks) return;
      showTip(event, `rank ${rank} (${run.hosts[rank]})`, [`computes ${seconds(compute[rank])}`,
        `waits ${seconds(run.analysis.rank_wait_seconds[rank])}`, `ends at ${seconds(run.ends[rank])}`]);
    });
    this.canvas.addEventListener("pointerleave", hideTip);
  }
  draw() {
    const run = this.run, width = this.canvas.clientWidth || 500, height = 150;
    const context = prepare(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    const { rank_compute_seconds: compute, rank_wait_seconds: wait } = run.analysis;
    const bar = width / run.ranks, gap = bar > 6 ? Math.min(6, bar * 0.2) : 0, scale = (height - 20) / (run.seconds || 1);
    for (let rank = 0; rank < run.ranks; rank++) {
      const x = rank * bar, base = height - 16;
      const parts = [[compute[rank], palette.compute], [Math.max(0, run.ends[rank] - compute[rank] - wait[rank]), palette.p2p], [wait[rank], palette.wait]];
      let y = base;
      for (const [value, colour] of parts) {
        context.fillStyle = colour;
        context.fillRect(x, y - value * scale, Math.max(0.5, bar - gap), value * scale);
        y -= value * scale;
      }
      context.fillStyle = palette.soft;
      context.textAlign = "center";
      if (rank % Math.max(1, Math.ceil(24 / bar)) === 0) context.fillText(rank, x + (bar - gap) / 2, height - 4);
    }
  }
}

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

function pathPanel(run) {
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
    places.slice(0, 30).map((one) => [one.place, one.cause, seconds(one.seconds), meter(one.seconds / total)]))));
}
function whyPanel(run) {
  const pop = run.analysis.efficiencies, rows = Object.entries(run.analysis.what_if);
  return panel("What would change it", false,
    table("Predicted from this run", ["if", "time", "change"], rows.map(([name, value]) => [name, seconds(value),
      element("span", { className: value < run.seconds * 0.9995 ? "better" : value > run.seconds * 1.0005 ? "worse" : "" },
        signed(value / run.seconds - 1, percent))])),
    element("br"),
    table("Efficiencies (POP): parallel = load balance x serialisation x transfer", ["efficiency", "share"],
      pop === null ? [["not known: no compute was timed", "-"]] : [["parallel", pop.parallel], ["load balance", pop.load_balance], ["serialisation", pop.serialisation],
        ["transfer", pop.transfer]].map(([name, value]) => [name, meter(value)])),
    element("br"),
    table("Sensitivity: per cent of time for one per cent of", ["cost", "per cent"],
      Object.entries(run.analysis.sensitivity).map(([name, value]) => [name, value.toFixed(2)])));
}
function sitePanel(run) {
  const total = run.ends.reduce((a, b) => a + b, 0) || 1;
  return panel("Time by call", false, scroll(table("All ranks, main threads", ["call", "calls", "time", "waiting", "sent", "late rank"],
    run.analysis.sites.map((site) => {
      const late = Object.entries(site.late_seconds).sort((a, b) => b[1] - a[1])[0];
      return [site.site, whole(site.calls), meter(site.seconds / total), seconds(site.wait_seconds), bytes(site.sent_bytes), late ? late[0] : "-"];
    }))));
}
function linePanel(run) {
  const rows = Object.entries(run.analysis.compute_lines), total = run.ends.reduce((a, b) => a + b, 0) || 1;
  return panel("Compute by line", false, scroll(table("Between two calls, all ranks", ["lines", "time", "share"],
    rows.map(([name, value]) => [name, seconds(value), meter(value / total)]))));
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
      scroll(table("Mean time of a rank, the largest differences first", ["place", a.name, b.name, "change"],
        rows.map(([name, [x, y]]) => [name, seconds(x), seconds(y), change(x, y)]))),
      element("br"),
      table("Critical path", ["cause", a.name, b.name, "change"], causes.filter(([, x, y]) => x > 0 || y > 0).map(([name, x, y]) => [name, seconds(x), seconds(y), change(x, y)])))));
}

function toggle(name) {
  shows[name] = !shows[name];
  document.getElementById("show-" + name).checked = shows[name];
  redraw();
}

function start() {
  const begun = performance.now();
  const stored = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const setTheme = () => {
    document.documentElement.dataset.theme = chosen || (stored.matches ? "dark" : "light");
    readPalette();
    redraw(true);
  };
  stored.addEventListener("change", setTheme);
  document.getElementById("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme();
  });
  setTheme();
  const run = runs[0], machine = run.machine;
  document.getElementById("facts").textContent =
    counted(run.ranks, "rank") + " on " + counted(new Set(run.hosts).size, "host") +
    (run.measured ? `, measured with ${machine.library || "another MPI library"}` : ` of ${machine.platform}, model ${machine.model}`);
  if (runs.every((one) => one.measured)) document.querySelector("footer").textContent = "Times are measured. The page holds all of its data.";
  const pop = run.analysis.efficiencies;
  const card = (value, name, wide) => element("div", { className: "card" + (wide ? " wide" : "") }, element("b", {}, value), element("span", {}, name));
  document.getElementById("cards").append(
    card(seconds(run.seconds), run.measured ? "measured time" : "predicted time"),
    card(run.analysis.limit, "what limits it", true),
    card(pop === null ? "not timed" : percent(pop.parallel), pop === null ? "compute" : "parallel efficiency"),
    card(pop === null ? "-" : percent(pop.load_balance), "load balance"),
    card(whole(run.messages.begin.length), `messages, ${bytes(run.matrix.bytes.reduce((a, b) => a + b, 0))}`));
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
  const why = document.getElementById("why");
  const links = new Links(run), matrix = new Matrix(run), load = new Load(run);
  if (run.links.length) charts.push(links);
  charts.push(matrix, load);
  const used = panel("Use of links over time", true, links.canvas, element("div", { className: "sr" }, table("Use of links", ["link", "bytes", "mean use"],
    run.links.map((link) => [link.name, bytes(link.bytes), percent(link.mean)]))));
  why.append(pathPanel(run), whyPanel(run), sitePanel(run), linePanel(run), ...(run.links.length ? [used] : []),
    panel("Messages between ranks", false, matrix.canvas, scroll(matrix.table())),
    panel("Load of the ranks", false, load.canvas, scroll(table("Each rank", ["rank", "host", "compute", "waiting", "end"],
      run.hosts.slice(0, 1024).map((host, rank) => [`${rank}`, host, seconds(run.analysis.rank_compute_seconds[rank]),
        seconds(run.analysis.rank_wait_seconds[rank]), seconds(run.ends[rank])])))));
  comparePanel();
  for (const name of ["path", "messages"])
    document.getElementById("show-" + name).addEventListener("change", (event) => { shows[name] = event.target.checked; redraw(); });
  document.getElementById("zoom-in").addEventListener("click", () => zoom(0.6));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  document.getElementById("fit").addEventListener("click", () => show(0, longestRun));
  addEventListener("resize", () => redraw(true));
  draw(true);
  window.pysmpi = { view, show, zoom, pan, draw, runs, charts, shows, ready: performance.now(), begun };
}
start();
})();
