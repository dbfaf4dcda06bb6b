"""Plots of seaborn in each rank, read back from matplotlib's artists."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(comm.rank)
frame = pd.DataFrame({
    "x": rng.normal(size=120), "kind": np.array(list("abc"))[np.arange(120) % 3],
    "side": np.array(["left", "right"])[np.arange(120) // 60],
})  # fmt: skip
frame["y"] = frame.x * (comm.rank + 1) + rng.normal(size=120) / 4
sns.set_theme(style=["white", "dark", "whitegrid", "darkgrid"][comm.rank % 4], palette="deep")
print(comm.rank, plt.rcParams["axes.facecolor"], plt.rcParams["axes.grid"])
axes = sns.histplot(frame, x="x", bins=9)
print(comm.rank, [int(bar.get_height()) for bar in axes.patches])
plt.close()
axes = sns.kdeplot(frame, x="x")
line = axes.lines[0].get_xydata()
print(comm.rank, line.shape, line[:, 1].max())
plt.close()
axes = sns.regplot(frame, x="x", y="y", ci=None)
slope = np.polyfit(*axes.lines[0].get_xydata().T, 1)[0]
print(comm.rank, slope)
plt.close()
grid = sns.relplot(frame, x="x", y="y", hue="kind", col="side", height=2)
print(comm.rank, [axis.get_title() for axis in grid.axes.flat], len(grid.legend.get_texts()))
grid.savefig(f"grid{comm.rank}.png", dpi=40)
print(comm.rank, plt.imread(f"grid{comm.rank}.png").shape)
plt.close("all")
axes = sns.heatmap(frame.pivot_table(index="kind", columns="side", values="y"), annot=True)
print(comm.rank, [text.get_text() for text in axes.texts])
plt.close()
frames = pd.concat(comm.allgather(frame.assign(rank=comm.rank)))
axes = sns.boxplot(frames, x="rank", y="y", hue="kind")
print(comm.rank, sum(len(one.get_xydata()) for one in axes.lines), len(plt.get_fignums()))
