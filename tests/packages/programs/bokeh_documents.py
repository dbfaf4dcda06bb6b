"""Documents of bokeh: models, properties, JSON and pages, in each rank."""

from __future__ import annotations

import numpy as np
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.layouts import gridplot
from bokeh.models import ColumnDataSource, HoverTool, Slider
from bokeh.plotting import figure
from bokeh.resources import CDN
from mpi4py import MPI

comm = MPI.COMM_WORLD
source = ColumnDataSource({"x": np.arange(20), "y": np.arange(20) ** 2 / (comm.rank + 1)})
plots = []
for kind in ("line", "scatter", "vbar"):
    plot = figure(width=200, height=150, title=f"{kind} of {comm.rank}", tools=[HoverTool()])
    options = {"top": "y", "width": 0.5} if kind == "vbar" else {"y": "y"}
    getattr(plot, kind)(x="x", source=source, **options)
    plots.append(plot)
document = Document()
document.add_root(gridplot([plots[:2], [plots[2], None]]))
changes = []
document.on_change(lambda event: changes.append(type(event).__name__))
slider = Slider(start=0, end=10, value=comm.rank, step=1)
slider.on_change("value", lambda attr, old, new: changes.append((attr, old, new)))
document.add_root(slider)
slider.value = comm.rank + 2
source.patch({"y": [(3, -1.0)]})
print(comm.rank, changes, source.data["y"].sum())
data = document.to_json()
again = Document.from_json(data)
print(comm.rank, len(again.roots), len(again.models), again.select_one({"type": Slider}).value)
page = file_html(plots[0], CDN, title=f"page {comm.rank}")
print(comm.rank, f"<title>page {comm.rank}</title>" in page, page.count("<script") > 1)
titles = sorted(one.title.text for one in again.select({"type": type(plots[0])}))
print(comm.rank, comm.allgather(slider.value), comm.allgather(titles)[(comm.rank + 1) % comm.size])
try:
    slider.step = "x"
except ValueError as error:
    print(comm.rank, str(error).split(",")[0])
