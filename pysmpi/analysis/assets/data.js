const TYPES = { u1: Uint8Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array };
const CATEGORIES = ["compute", "p2p", "collective", "other", "wait"];
const NAMES = ["computing or asleep", "point-to-point call", "collective call", "other call", "waiting"];
const MOST_BINS = 1 << 21;  // of all ranks, in the finest level of detail
const LEFT = 74, TOP = 22;

const VALUE = new Uint8Array(128);
[..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+-;=?@^_`{|}~,.:"]
  .forEach((digit, value) => { VALUE[digit.charCodeAt(0)] = value; });

/* The bytes of a text of digits of base 85: four for each five digits. */
function base85(text) {
  const bytes = new Uint8Array(text.length / 5 * 4);
  for (let i = 0, at = 0; i < text.length; i += 5) {
    let word = 0;
    for (let k = 0; k < 5; k++) word = word * 85 + VALUE[text.charCodeAt(i + k)];
    bytes[at++] = word >>> 24;
    bytes[at++] = word >>> 16;
    bytes[at++] = word >>> 8;
    bytes[at++] = word;
  }
  return bytes;
}

/* A column of numbers. Its data are compressed planes of bytes: first the lowest byte of each
   number, then the next. `steps` are differences of neighbours, with the sign in the lowest bit. */
async function column(packed) {
  const stream = new Blob([base85(packed.data).subarray(0, packed.bytes)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const type = TYPES[packed.type], size = type.BYTES_PER_ELEMENT, count = planes.length / size;
  if (size === 1) return planes;
  const words = new Uint32Array(count);
  for (let i = 0; i < count; i++)
    words[i] = planes[i] | (planes[count + i] << 8) | (planes[2 * count + i] << 16) | (planes[3 * count + i] << 24);
  if (packed.steps) {
    let value = 0;
    for (let i = 0; i < count; i++) {
      value = (value + ((words[i] >>> 1) ^ -(words[i] & 1))) | 0;
      words[i] = value;
    }
  }
  return type === Uint32Array ? words : new type(words.buffer);
}

/* The columns of a group; lengths in time become ends. */
async function columns(group) {
  const names = Object.keys(group), found = {};
  const values = await Promise.all(names.map((name) => column(group[name])));
  names.forEach((name, i) => { found[name] = values[i]; });
  if (found.lasted) {
    const { begin, lasted } = found;
    for (let i = 0; i < begin.length; i++) lasted[i] += begin[i];
    found.end = lasted;
    delete found.lasted;
  }
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
function counted(number, name) { return `${whole(number)} ${name}${number === 1 ? "" : "s"}`; }
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
  static async of(data) {
    const { picture, collectives } = data;
    const [calls, waits, messages, operations, drawn, path, matrix, uses] = await Promise.all([
      ...[data.calls, data.waits, data.messages, collectives.columns, picture?.columns, data.path, data.matrix?.columns]
        .map((group) => group ? columns(group) : null),
      Promise.all((data.links || []).map((link) => column(link.use)))]);
    const links = (data.links || []).map((link, i) => ({ ...link, use: uses[i] }));
    return new Run({ ...data, calls, waits, messages, path, links, collectives: { ...collectives, ...operations },
      picture: picture && { ...picture, ...drawn }, matrix: { ...data.matrix, ...matrix } });
  }

  constructor(data) {
    Object.assign(this, data);
    this.ranks = data.hosts.length;
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
    this.means = new Uint32Array(this.ranks);
    const totals = this.totals = new Float32Array(points * 5);
    this.levels = [];
    for (let size = bins; size >= 512; size >>= 1) this.levels.push({ bins: size, colours: new Uint32Array(size * this.ranks) });
    for (let rank = 0; rank < this.ranks; rank++) {
      shares.fill(0);
      this.cover(rank, 0, this.ticks, bins, shares);
      const mean = new Float32Array(5);
      for (let i = 0; i < bins; i++) {
        const point = Math.floor(i / per) * 5;
        for (let k = 0; k < 5; k++) {
          totals[point + k] += shares[i * 5 + k] / per / this.ranks;
          mean[k] += shares[i * 5 + k] / bins;
        }
      }
      this.means[rank] = blend(mean, 0);
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

  /* The ranks that a text selects: numbers, spans with a step (`0-31`, `0-255:16`), parts of the
     names of hosts, and `path` for those of the critical path. All if it is empty. */
  matching(text) {
    const words = text.toLowerCase().split(/[\s,]+/).filter((word) => word), chosen = new Uint8Array(this.ranks);
    if (!words.length) chosen.fill(1);
    for (const word of words) {
      const span = /^(\d+)(?:-(\d*))?(?::(\d+))?$/.exec(word);
      if (span) {
        const first = Number(span[1]), step = Math.max(1, Number(span[3] || 1));
        const last = span[2] ? Number(span[2]) : span[2] === "" || span[3] ? this.ranks - 1 : first;
        for (let rank = first; rank <= last && rank < this.ranks; rank += step) chosen[rank] = 1;
      } else if (word === "path") {
        for (const ranks of [this.path.rank, this.path.receiver])
          for (const rank of ranks) if (rank >= 0) chosen[rank] = 1;
      } else this.hosts.forEach((host, rank) => { if (host.toLowerCase().includes(word)) chosen[rank] = 1; });
    }
    return Uint32Array.from(chosen.keys()).filter((rank) => chosen[rank]);
  }

  /* The pieces of the critical path of a place and a cause, the longest first. */
  pieces(place, cause) {
    const where = this.places.indexOf(place), why = this.causes.indexOf(cause), found = [];
    const { begin, end, place: at, cause: of_ } = this.path;
    for (let i = 0; i < at.length; i++) if (at[i] === where && of_[i] === why) found.push(i);
    return found.sort((a, b) => (end[b] - begin[b]) - (end[a] - begin[a]) || a - b);
  }

  /* The machine and the library of the run, in a few words. */
  get where() {
    const { machine } = this;
    const hosts = counted(this.ranks, "rank") + " on " + counted(new Set(this.hosts).size, "host");
    return this.measured ? `${hosts}, measured with ${machine.library || "another MPI library"}` :
      `${hosts} of ${machine.platform}, model ${machine.model}`;
  }

  /* The name of a collective call, with its algorithm. */
  callName(k) {
    const site = this.collectives.site[k], algorithm = this.collectives.algorithms[site];
    return (site < 0 ? "collective call" : this.sites[site]) + (algorithm ? ` (${algorithm})` : "");
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

/* The runs whose data the page has. */
async function readRuns() {
  const data = document.getElementById("data");
  const found = await Promise.all(JSON.parse(data.textContent).map(Run.of));
  data.textContent = "";
  return found;
}

/* Colours of the theme. */

const RED = new Float64Array(6), GREEN = new Float64Array(6), BLUE = new Float64Array(6), PLAIN = new Uint32Array(6);

/* The colour of a bin: its categories mixed; what is left of it is idle. */
function blend(shares, i) {
  let r = 0, g = 0, b = 0, sum = 0;
  for (let k = 0, at = i * 5; k < 5; k++, at++) {
    const part = shares[at];
    if (part > 0.9995) return PLAIN[k];
    if (part > 0.0005) { r += part * RED[k]; g += part * GREEN[k]; b += part * BLUE[k]; sum += part; }
  }
  if (sum < 1) { const rest = 1 - sum; r += rest * RED[5]; g += rest * GREEN[5]; b += rest * BLUE[5]; sum = 1; }
  return ((255 << 24) | ((b / sum) << 16) | ((g / sum) << 8) | (r / sum)) >>> 0;
}

let palette = {};
function readPalette() {
  const style = getComputedStyle(document.documentElement);
  palette = {};
  for (const name of ["compute", "p2p", "collective", "other", "wait", "path", "arrow", "idle",
    "text", "soft", "line", "card", "accent", "back", "message", "wait-text"])
    palette[name] = style.getPropertyValue("--" + name).trim();
  [...CATEGORIES, "idle"].forEach((name, k) => {
    const value = parseInt(palette[name].slice(1), 16);
    RED[k] = value >> 16;
    GREEN[k] = (value >> 8) & 255;
    BLUE[k] = value & 255;
    PLAIN[k] = ((255 << 24) | (BLUE[k] << 16) | (GREEN[k] << 8) | RED[k]) >>> 0;
  });
}

/* Take the theme of the system, or that of the notebook around the page; `changed` hears of it.
   Returns a function that switches it. */
function followTheme(changed) {
  const stored = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    const notebook = window.parent !== window && window.parent.document.body.dataset.jpThemeLight;
    if (notebook) chosen = notebook === "false" ? "dark" : "light";
  } catch { /* a page of another origin */ }
  const set = () => {
    document.documentElement.dataset.theme = chosen || (stored.matches ? "dark" : "light");
    readPalette();
    changed();
  };
  stored.addEventListener("change", set);
  set();
  return () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    set();
  };
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

