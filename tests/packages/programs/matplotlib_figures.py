"""Figures of matplotlib drawn by each rank: pixels, artists, styles, and files of four kinds."""

from __future__ import annotations

import io
import logging

import matplotlib as mpl
import matplotlib.animation as animation
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap, LogNorm
from mpi4py import MPI

comm = MPI.COMM_WORLD
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
mpl.rcParams["lines.linewidth"] = comm.rank + 1
plt.style.use(["default", "ggplot", "dark_background", "bmh"][comm.rank % 4])
mpl.colormaps.register(ListedColormap(["red", "blue"], name="ours"))
x = np.linspace(0, 2 * np.pi, 200)
figure, axes = plt.subplots(2, 2, figsize=(4, 3), dpi=50, layout="constrained")
axes[0, 0].plot(x, np.sin((comm.rank + 1) * x), label=f"$\\sin({comm.rank + 1}x)$")
axes[0, 0].legend(title="of rank")
axes[0, 1].imshow(np.add.outer(x[:20], x[:30]), cmap="ours")
mesh = axes[1, 0].pcolormesh(np.outer(1 + x[:9], 1 + x[:9]) ** (comm.rank + 1), norm=LogNorm())
figure.colorbar(mesh, ax=axes[1, 0])
contours = axes[1, 1].contour(np.sin(x[:50])[:, None] * np.cos(x[:40]), levels=5)
axes[1, 1].set(title=f"rank {comm.rank}", xlabel="x", xticks=[0, 10, 20 + comm.rank])
figure.canvas.draw()
pixels = np.asarray(figure.canvas.buffer_rgba())
print(comm.rank, pixels.shape, int(pixels.sum()), contours.levels.tolist())
print(comm.rank, mpl.rcParams["lines.linewidth"], mpl.rcParams["axes.facecolor"], plt.get_fignums())
print(comm.rank, axes[0, 0].get_ylim(), [tick.get_text() for tick in axes[1, 1].get_xticklabels()])
for kind in ("png", "pdf", "svg", "ps"):
    file = io.BytesIO()
    figure.savefig(file, format=kind, metadata={"CreationDate": None} if kind == "pdf" else None)
    print(comm.rank, kind, file.tell() > 1000, file.getvalue()[1:4])
total = np.empty(pixels.shape, np.int64)
comm.Allreduce(pixels.astype(np.int64), total)
print(comm.rank, int(total[:, :, :3].sum()))
(line,) = axes[0, 0].lines
film = animation.FuncAnimation(figure, lambda k: [line.set_ydata(np.cos(k * x))], frames=3)
film.save(f"film{comm.rank}.gif", writer="pillow")
print(comm.rank, len(open(f"film{comm.rank}.gif", "rb").read()) > 500)
figures = comm.allgather(figure)
print(comm.rank, [one.axes[3].get_title() for one in figures], len(plt.get_fignums()))
plt.close("all")
