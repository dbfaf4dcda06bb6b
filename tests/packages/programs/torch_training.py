"""PyTorch on the CPU: data-parallel training, whose gradients MPI averages."""

from __future__ import annotations

import io

import torch
from mpi4py import MPI
from torch import nn

comm = MPI.COMM_WORLD
torch.set_num_threads(1)
torch.manual_seed(7)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.LayerNorm(16), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
generator = torch.Generator().manual_seed(100 + comm.rank)
inputs = torch.randn(64, 6, generator=generator)
targets = torch.stack([inputs.sum(1).sin(), inputs[:, 0] * inputs[:, 1]], 1)
losses = []
for _ in range(15):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    for parameter in model.parameters():
        gradient = parameter.grad.numpy()
        comm.Allreduce(MPI.IN_PLACE, gradient)
        gradient /= comm.size
    optimizer.step()
    losses.append(loss.item())
print(comm.rank, losses[0], losses[-1])
print(comm.rank, sum(parameter.sum().item() for parameter in model.parameters()))
states = comm.allgather(model.state_dict())
print(comm.rank, all(torch.equal(states[0][name], one[name]) for one in states for name in one))
file = io.BytesIO()
torch.save({"rank": comm.rank, "model": model.state_dict()}, file)
loaded = torch.load(io.BytesIO(comm.sendrecv(
    file.getvalue(), (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)))  # fmt: skip
print(comm.rank, loaded["rank"], sorted(loaded["model"]))
tensor = torch.arange(12.0).reshape(3, 4) * (comm.rank + 1)
received = torch.empty(comm.size, 3, 4)
comm.Allgather(tensor, received)
print(comm.rank, received.sum().item(), torch.linalg.svdvals(tensor).tolist())
x = torch.linspace(0, 1, 5, requires_grad=True)
(torch.exp(-x * (comm.rank + 1)).prod() * x.sum()).backward()
print(comm.rank, x.grad.tolist(), torch.rand(2, generator=generator).tolist())
print(comm.rank, torch.fft.rfft(inputs[:, 0]).abs().sum().item(), torch.initial_seed())
