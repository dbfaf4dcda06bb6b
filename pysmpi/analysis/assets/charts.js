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
    const step = Math.max(1, Math.ceil(30 / cell));
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

