"""Figures of plotly: made in each rank, sent as JSON, merged, written as HTML."""

from __future__ import annotations

import base64
import json

import numpy as np
import plotly.express as px
import plotly.graph_objects as go
import plotly.io as pio
from mpi4py import MPI
from plotly.subplots import make_subplots

comm = MPI.COMM_WORLD
pio.templates.default = ["plotly", "simple_white", "ggplot2", "none"][comm.rank % 4]
x = np.linspace(0, 2 * np.pi, 50)
figure = go.Figure(go.Scatter(x=x, y=np.sin((comm.rank + 1) * x), name=f"rank {comm.rank}"))
figure.update_layout(title={"text": f"<b>{comm.rank}</b>"}, xaxis_range=[0, comm.rank + 1])
print(comm.rank, pio.templates.default, figure.layout.xaxis.range, len(figure.to_json()) > 1000)
received = [pio.from_json(text) for text in comm.allgather(figure.to_json())]
merged = make_subplots(rows=comm.size, cols=1, shared_xaxes=True)
for row, one in enumerate(received, 1):
    merged.add_traces(one.data, rows=row, cols=1)
print(comm.rank, len(merged.data), [trace.yaxis for trace in merged.data])
values = [
    np.frombuffer(base64.b64decode(trace.y["bdata"]), trace.y["dtype"]) for trace in merged.data
]
print(comm.rank, [float(np.sum(np.square(one))) for one in values])
bars = px.bar(x=list("abcd"), y=[comm.rank, 2, 3, 1], color=list("xyxy"), text_auto=True)
print(comm.rank, [(trace.name, list(trace.y)) for trace in bars.data], bars.layout.barmode)
html = merged.to_html(include_plotlyjs=False, full_html=False, div_id="d")
print(comm.rank, "Plotly.newPlot" in html, html.count("scatter") >= comm.size)
try:
    figure.update_traces(colour="red")
except ValueError as error:
    print(comm.rank, str(error).strip().splitlines()[0])
print(comm.rank, json.loads(figure.to_json())["data"][0]["type"], comm.allreduce(len(bars.data)))
