/* The view that all timelines share: a span of simulated time (s), and the rows on top. */

const runs = [];
const view = { from: 0, to: 1e-12 };
let longestRun = view.to;

async function openView() {
  runs.push(...await readRuns());
  view.to = longestRun = Math.max(...runs.map((run) => run.seconds), longestRun);
}

let moved = () => {};  // hears that the view has changed
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
  moved();
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
    this.top = 0;  // the first row that is shown
    this.order = run.matching("");  // the rank of each row
    this.rowOf = new Int32Array(run.ranks);
    this.filter("");
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
    this.scroller = new Strip(this);
    this.overview = element("canvas", { className: "overview", role: "img",
      "aria-label": `Share of the ranks that compute, are in calls, and wait, over the time of ${run.name}` });
    this.box = element("div", { className: "run" },
      runs.length > 1 ? element("h3", {}, `${run.name}: ${seconds(run.seconds)}`) : null,
      this.note = element("p", { className: "hint", hidden: true }),
      element("div", { className: "rows" }, this.canvas, this.scroller.canvas, this.cursor = element("i", { className: "cursor", hidden: true })),
      this.overview);
    this.listen();
  }

  /* Show the ranks that a text selects, or all if it selects none. */
  filter(text) {
    const chosen = this.run.matching(text);
    this.none = chosen.length === 0;
    this.order = this.none ? this.run.matching("") : chosen;
    this.rowOf.fill(-1);
    this.order.forEach((rank, row) => { this.rowOf[rank] = row; });
    this.scroll(0);
    if (this.rank !== undefined && this.rowOf[this.rank] < 0) this.rank = this.order[0];
  }

  /* Show the rows from `row` on, or the last ones. */
  scroll(row) {
    this.top = Math.max(0, Math.min(this.order.length - this.rows, Math.round(row)));
    redraw();
  }

  get rowHeight() { return Math.max(3, Math.min(26, Math.floor(this.room() / this.order.length))); }
  room() { return runs.length > 1 ? 300 : 430; }
  get rows() { return Math.min(this.order.length, Math.floor(this.room() / this.rowHeight)); }
  get width() { return this.canvas.clientWidth || 900; }
  x(second) { return LEFT + (second - view.from) / (view.to - view.from) * (this.width - LEFT); }
  second(x) { return view.from + (x - LEFT) / (this.width - LEFT) * (view.to - view.from); }
  y(rank) { return TOP + (this.rowOf[rank] - this.top + 0.5) * this.rowHeight; }

  draw(all) {
    if (all) this.run.mix();
    const run = this.run, width = this.width, height = TOP + this.rows * this.rowHeight + 4;
    const shown = this.order.length;
    this.note.hidden = !this.none && this.rows >= run.ranks;
    if (this.none) this.note.textContent = `No rank or host matches: all ${run.ranks} ranks are shown`;
    else if (this.rows < shown)
      this.note.textContent = `Ranks ${this.order[this.top]} to ${this.order[this.top + this.rows - 1]} of ` +
        `${shown < run.ranks ? `${shown} chosen of ` : ""}${run.ranks}: ` +
        "drag up or down, use the strip at the right, or choose ranks to see the others";
    else this.note.textContent = `${counted(shown, "rank")} of ${run.ranks}`;
    const context = prepare(this.canvas, width, height);
    context.clearRect(0, 0, width, height);
    if (!run.unit) {
      context.fillStyle = palette.text;
      context.fillText("nothing takes time", LEFT, TOP + 12);
      this.scroller.canvas.style.display = this.overview.style.display = "none";
      return;
    }
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
    this.scroller.draw(all, height);
    this.drawOverview(all);
    this.point(this.pointed);
  }

  /* Mark a time (s), that of the animation. */
  point(second) {
    this.pointed = second;
    this.cursor.hidden = second === undefined || second < view.from || second > view.to;
    if (!this.cursor.hidden) this.cursor.style.transform = `translateX(${this.x(second)}px)`;
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
      const rank = this.order[this.top + i];
      if (rank === undefined || (this.top + i) % step) continue;
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
    const idle = PLAIN[5];
    for (let row = 0; row < rows; row++) {
      const rank = this.order[this.top + row], start = row * columns_;
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
      const rank = this.order[this.top + row], stop = run.firstCall[rank + 1];
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
      const a = this.rowOf[source[i]], b = this.rowOf[destination[i]], low = Math.min(a, b), high = Math.max(a, b);
      if (low < 0 || low === high || high < this.top || low >= this.top + this.rows) continue;
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
      if (rank[i] < 0 || this.rowOf[rank[i]] < 0 || (receiver[i] >= 0 && this.rowOf[receiver[i]] < 0)) { open = false; continue; }
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
    const used = new Uint8Array(rows);
    const add = (who, weight, i) => {
      const row = who < 0 || this.rowOf[who] < 0 ? -1 : this.rowOf[who] - this.top;
      if (row < 0 || row >= rows) return;
      used[row] = 1;
      let x = Math.max(0, (begin[i] - from) * scale);
      const stop = Math.min(count, (end[i] - from) * scale);
      while (x < stop) {
        const next = Math.min(stop, Math.floor(x) + 1);
        shares[row * count + Math.floor(x)] += (next - x) * weight;
        x = next;
      }
    };
    for (let i = first; i < last; i++) {
      add(rank[i], receiver[i] >= 0 ? 0.5 : 1, i);
      if (receiver[i] >= 0) add(receiver[i], 0.5, i);
    }
    const strip = this.pathStrip;
    if (strip.width !== count || strip.height !== rows) { strip.width = count; strip.height = rows; }
    const target = strip.getContext("2d"), image = target.createImageData(count, rows);
    const pixels = new Uint32Array(image.data.buffer), value = parseInt(palette.path.slice(1), 16);
    const colour = ((value & 255) << 16) | (value & 0xff00) | (value >> 16);
    for (let row = 0; row < rows; row++)
      for (let x = 0; used[row] && x < count; x++) {
        const share = shares[row * count + x];
        if (share < 0.004) continue;
        pixels[row * count + x] = ((Math.min(255, 38 + share * 280) << 24) | colour) >>> 0;
      }
    target.putImageData(image, 0, 0);
    const thick = Math.max(1, Math.min(4, this.rowHeight / 4));
    for (let row = 0; row < rows; row++)
      if (used[row])
        context.drawImage(strip, 0, row, count, 1, LEFT, this.y(this.order[this.top + row]) - thick / 2, count, thick);
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
    const row = Math.floor((y - TOP) / this.rowHeight);
    return { x, second: this.second(x), rank: row < 0 || row >= this.rows ? -1 : this.order[this.top + row] };
  }

  select(rank, tick) {
    this.rank = rank;
    this.tick = tick;
    const found = this.run.describe(rank, tick);
    document.getElementById("selection").textContent = `${found.head}: ${found.lines.join("; ")}`;
    return found;
  }

  /* Scroll as far as a rank needs; show all ranks if the chosen ones do not have it. */
  reveal(rank) {
    if (this.rowOf[rank] < 0) {
      document.getElementById("filter").value = "";
      this.filter("");
    }
    const row = this.rowOf[rank];
    if (row < this.top) this.scroll(row);
    if (row >= this.top + this.rows) this.scroll(row - this.rows + 1);
  }

  /* Go up or down by rows. */
  choose(rows) {
    const row = Math.max(0, Math.min(this.order.length - 1, this.rowOf[this.rank] + rows));
    const rank = this.order[row];
    this.reveal(rank);
    this.select(rank, Math.max(0, (view.from + view.to) / 2 / this.run.unit));
    redraw();
  }

  /* Show a piece of the critical path; `number` counts those of its place, the longest first. */
  showPiece(piece, number, count) {
    const { begin, end, rank, receiver, place, cause } = this.run.path, unit = this.run.unit;
    const from = begin[piece] * unit, to = end[piece] * unit, margin = Math.max(2 * (to - from), longestRun * 1e-7);
    show(from - margin, to + margin);
    this.mark = [from, to];
    if (receiver[piece] >= 0) this.reveal(receiver[piece]);
    if (rank[piece] >= 0) { this.rank = rank[piece]; this.reveal(this.rank); }
    this.tick = (begin[piece] + end[piece]) / 2;
    const whose = rank[piece] < 0 ? "" : receiver[piece] >= 0 && receiver[piece] !== rank[piece] ?
      `, from rank ${rank[piece]} to rank ${receiver[piece]}` : `, rank ${rank[piece]} (${this.run.hosts[rank[piece]]})`;
    document.getElementById("selection").textContent = `${this.run.causes[cause[piece]]}, ` +
      `${this.run.places[place[piece]]}: ${seconds(to - from)}, from ${seconds(from)}${whose}; ` +
      `piece ${whole(number + 1)} of ${whole(count)} on the critical path, the longest first`;
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
      this.mark = null;
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
          this.scroll(drag.top - (event.clientY - drag.y) / this.rowHeight);
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
      if (drag && drag.marks && this.mark) {
        const [a, b] = this.mark;
        this.mark = null;
        if (b > a) show(a, b);
      }
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
      const left = canvas.getBoundingClientRect().left;
      if (event.altKey || event.clientX - left < LEFT)
        this.scroll(this.top + Math.sign(event.deltaY) * Math.max(1, Math.round(Math.abs(event.deltaY) / 10 / this.rowHeight)));
      else if (event.shiftKey) pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
      else zoom(Math.pow(1.0015, event.deltaY), this.second(event.clientX - left));
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
        ArrowUp: () => this.choose(-1), ArrowDown: () => this.choose(1),
        PageUp: () => this.choose(-this.rows), PageDown: () => this.choose(this.rows),
        End: () => this.choose(this.order.length), "/": () => document.getElementById("filter").focus(),
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

/* A strip beside the rows: all of them, the mean colours of each, and a frame around those shown. */

const WIDE = 16;
class Strip {
  constructor(gantt) {
    this.gantt = gantt;
    this.image = document.createElement("canvas");
    this.canvas = element("canvas", { className: "strip", tabIndex: 0, role: "scrollbar",
      "aria-orientation": "vertical", "aria-valuemin": 0,
      "aria-label": `Ranks of ${gantt.run.name} that the timeline shows: arrow keys and page keys scroll` });
    const go = (event) => {
      const box = this.canvas.getBoundingClientRect(), { rows, order } = this.gantt;
      this.gantt.scroll((event.clientY - box.top - TOP) / (box.height - TOP - 4) * order.length - rows / 2);
    };
    this.canvas.addEventListener("pointerdown", (event) => { this.canvas.setPointerCapture(event.pointerId); go(event); });
    this.canvas.addEventListener("pointermove", (event) => { if (event.buttons) go(event); });
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      gantt.scroll(gantt.top + Math.sign(event.deltaY) * Math.max(1, Math.round(gantt.rows / 8)));
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const { top, rows, order } = gantt;
      const keys = { ArrowUp: top - 1, ArrowDown: top + 1, PageUp: top - rows, PageDown: top + rows,
        Home: 0, End: order.length };
      if (event.key in keys && !event.ctrlKey && !event.metaKey) { event.preventDefault(); gantt.scroll(keys[event.key]); }
    });
  }

  draw(all, height) {
    const { gantt, canvas } = this, { order, rows, run, top } = gantt, count = order.length;
    canvas.hidden = rows >= count;
    if (canvas.hidden) return;
    canvas.setAttribute("aria-valuemax", count - rows);
    canvas.setAttribute("aria-valuenow", top);
    canvas.setAttribute("aria-valuetext", `rows ${top} to ${top + rows - 1} of ${count}`);
    if (all || this.drawn !== order) {
      this.drawn = order;
      this.image.width = 1;
      this.image.height = count;
      const target = this.image.getContext("2d"), image = target.createImageData(1, count);
      const pixels = new Uint32Array(image.data.buffer);
      order.forEach((rank, row) => { pixels[row] = run.means[rank]; });
      target.putImageData(image, 0, 0);
    }
    const context = prepare(canvas, WIDE, height), long = height - TOP - 4;
    context.clearRect(0, 0, WIDE, height);
    context.drawImage(this.image, 0, 0, 1, count, 3, TOP, WIDE - 6, long);
    context.strokeStyle = palette.accent;
    context.lineWidth = 1.5;
    context.strokeRect(1, TOP + top / count * long, WIDE - 2, Math.max(4, rows / count * long));
  }
}

/* Step through the pieces of a place of the critical path: each call shows the next one. */
function tour(chart, place, cause) {
  let next = 0, pieces = null;
  return () => {
    pieces = pieces || chart.run.pieces(place, cause);
    if (!pieces.length) return;
    chart.showPiece(pieces[next], next, pieces.length);
    next = (next + 1) % pieces.length;
    document.getElementById("timeline-title").scrollIntoView({ block: "nearest" });
  };
}
