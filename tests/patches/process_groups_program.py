"""Prints the results of all operations of a process group, which are those of gloo."""

from __future__ import annotations

import json
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
lines: list[str] = []


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.detach().tolist()
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def show(name, value):
    lines.append(json.dumps([rank, name, plain(value)]))


def row(*values, **options):
    return torch.tensor(values, **options)


def empty(*sizes):
    return [torch.empty(one) for one in sizes]


# Collectives
for kind in "float32 float64 int64 int32 uint8 float16 bfloat16".split():
    x = row(rank + 1, 2, dtype=getattr(torch, kind))
    dist.all_reduce(x)
    show(f"sum of {kind}", x.float())
for name in "SUM PRODUCT MIN MAX BAND BOR BXOR".split():
    x = row(rank + 1, 5)
    dist.all_reduce(x, getattr(dist.ReduceOp, name))
    show(name, x)
x = torch.arange(6.0).view(2, 3).t() + rank
dist.all_reduce(x)
show("columns", x)
x = row(1 + rank, dtype=torch.complex64)
dist.all_reduce(x)
show("complex", torch.view_as_real(x))
x = torch.tensor(float(rank))
dist.broadcast(x, 1)
show("broadcast", x)
x = row(1.0)
work = dist.all_reduce(x, async_op=True)
work.wait()
show("async", [x, work.is_completed()])
outputs = empty(*[2] * size)
dist.all_gather(outputs, row(rank, 1.0))
show("all_gather", outputs)
x = torch.empty(2 * size)
dist.all_gather_into_tensor(x, row(rank, 1.0))
show("all_gather_into_tensor", x)
x = torch.empty(2)
dist.reduce_scatter(x, [row(rank + k, 1.0) for k in range(size)])
show("reduce_scatter", x)
dist.reduce_scatter_tensor(x, torch.arange(2.0 * size) + rank)
show("reduce_scatter_tensor", x)
outputs = empty(*[1] * size)
dist.all_to_all(outputs, [row(10.0 * rank + k) for k in range(size)])
show("all_to_all", outputs)
x = torch.empty(size)
dist.all_to_all_single(x, torch.arange(float(size)) + 10 * rank)
show("all_to_all_single", x)
sent, received = [k + 1 for k in range(size)], [rank + 1] * size
x = torch.empty(sum(received))
dist.all_to_all_single(x, torch.arange(float(sum(sent))) + 100 * rank, received, sent)
show("all_to_all_single of parts", x)
x = row(rank + 1.0)
dist.reduce(x, 1)
show("reduce", x if rank == 1 else None)
outputs = empty(*[1] * size) if rank == 2 else None
dist.gather(row(rank + 1.0), outputs, 2)
show("gather", outputs)
x = torch.empty(2)
dist.scatter(x, [row(k, 3.0) for k in range(size)] if rank == 0 else None, 0)
show("scatter", x)
xs = [row(rank + 1.0), row(2.0, 3.0)]
dist.all_reduce_coalesced(xs)
show("all_reduce_coalesced", xs)
# Messages
left, right = (rank - 1) % size, (rank + 1) % size
if rank == 0:
    dist.send(row(7.0), 1, tag=3)
if rank == 1:
    x = torch.empty(1)
    show("recv", [dist.recv(x, 0, tag=3), x])
x = torch.empty(1)
for work in [dist.irecv(x, left), dist.isend(row(float(rank)), right)]:
    work.wait()
show("irecv", x)
x = torch.empty(1)
operations = [dist.P2POp(dist.isend, row(float(rank)), right), dist.P2POp(dist.irecv, x, left)]
for work in dist.batch_isend_irecv(operations):
    work.wait()
show("batch_isend_irecv", x)
if rank:
    dist.send(row(1.0 * rank), 0)
else:
    show("sources", sorted(dist.recv(x) for _ in range(size - 1)))
dist.barrier()
dist.monitored_barrier()
# Objects
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank})
show("all_gather_object", objects)
objects = [1, "a"] if rank == 0 else [None, None]
dist.broadcast_object_list(objects, 0)
show("broadcast_object_list", objects)
objects = [None] * size if rank == 0 else None
dist.gather_object(["x", rank], objects, 0)
show("gather_object", objects)
objects = [None]
dist.scatter_object_list(objects, list(range(size)) if rank == 0 else None, 0)
show("scatter_object_list", objects)
# Groups and stores
groups = [dist.new_group([k for k in range(size) if k % 2 == parity]) for parity in (0, 1)]
group, other = groups[rank % 2], groups[1 - rank % 2]
x = row(rank + 1.0)
dist.all_reduce(x, group=group)
dist.broadcast(x, rank % 2, group=group)
show("group", [x, dist.get_rank(group), dist.get_process_group_ranks(group), dist.get_rank(other)])
show("backend", [dist.get_backend(), dist.get_backend(group), dist.get_world_size(group)])
dist.destroy_process_group(group)
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]) + 1, size, rank == 0)
if rank == size - 1:
    store.set("key", "value")
show("store", store.get("key").decode())
store.add("count", 2)
dist.barrier()
show("count", store.add("count", 0))


# Models
def model():
    torch.manual_seed(rank)  # the initial weights are those of rank 0
    return nn.Sequential(
        nn.Linear(4, 64),
        nn.ReLU(),
        nn.BatchNorm1d(64),
        nn.Linear(64, 8),
        nn.ReLU(),
        nn.Linear(8, 1),
    )


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.common, self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x, which=0):
        return (self.two if which else self.one)(self.common(x))


def weights(module):
    return [p.detach().double().sum().item() for p in module.parameters()]


def backward(module, x, **options):
    module(x, **options).square().mean().backward()


def train(name, module, step=lambda module, number, x: backward(module, x), optimizer=None):
    optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for number in range(3):
        optimizer.zero_grad()
        step(module, number, torch.randn(8, 4, generator=generator))
        optimizer.step()
    show(name, weights(module))


def branch(module, number, x):
    backward(module, x, which=(number + rank) % 2)


def accumulate(module, number, x):
    with module.no_sync():
        backward(module, x)
    backward(module, x + 1)


train("model", DistributedDataParallel(model()))
train("buckets", DistributedDataParallel(model(), bucket_cap_mb=0.001))
view = DistributedDataParallel(model(), gradient_as_bucket_view=True, bucket_cap_mb=0.001)
train("views", view)
train("static", DistributedDataParallel(model(), static_graph=True))
train("branches", DistributedDataParallel(Branches(), find_unused_parameters=True), branch)
train("no_sync", DistributedDataParallel(model()), accumulate)
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook  # noqa: E402

hooked = DistributedDataParallel(model())
hooked.register_comm_hook(None, default_hooks.allreduce_hook)
train("hook", hooked)
hooked = DistributedDataParallel(Branches(), find_unused_parameters=True)
state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
hooked.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
train("PowerSGD", hooked, branch)
from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: E402

module = DistributedDataParallel(model())
adam = ZeroRedundancyOptimizer(module.parameters(), torch.optim.Adam, lr=0.01)
train("ZeroRedundancyOptimizer", module, optimizer=adam)
module = DistributedDataParallel(Branches(), find_unused_parameters=True)
with module.join():
    for _ in range(2 + rank % 2):
        backward(module, torch.ones(2, 4) * rank)
show("join", [None if p.grad is None else p.grad.sum() for p in module.parameters()][:3])
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402
from torch.utils.data.distributed import DistributedSampler  # noqa: E402

data = TensorDataset(torch.arange(10.0))
sampler = DistributedSampler(data, shuffle=True, seed=3)
sampler.set_epoch(1)
show("sampler", [batch[0] for batch in DataLoader(data, batch_size=2, sampler=sampler)])
# Communication of functions that C++ calls
parameter = nn.Parameter(row(1.0))
parameter.register_hook(lambda gradient: (dist.all_reduce(gradient), gradient)[1])
(parameter * (rank + 1)).sum().backward()
show("hook of a gradient", parameter.grad)
import torch.distributed.nn.functional as functional  # noqa: E402

x = row(rank + 1.0, requires_grad=True)
functional.all_reduce(x * x).sum().backward()
show("autograd", x.grad)
import torch.distributed._functional_collectives as operators  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

x = operators.all_reduce(row(rank + 1.0), "sum", dist.group.WORLD)
show("operator", x + 0)
mesh = init_device_mesh("cpu", (2, size // 2))
x = row(rank + 1.0)
dist.all_reduce(x, group=mesh.get_group(1))
show("mesh", x)
module = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
torch.manual_seed(1)
for parameter in module.parameters():
    nn.init.uniform_(parameter)
fully_shard(module, mesh=init_device_mesh("cpu", (size,)))
optimizer = torch.optim.SGD(module.parameters(), lr=0.001)
for number in range(3):
    optimizer.zero_grad()
    backward(module, torch.ones(2, 4) * (rank + number))
    optimizer.step()
show("fully_shard", [p.full_tensor().double().sum() for p in module.parameters()])
dist.barrier()
dist.destroy_process_group()
show("initialized", dist.is_initialized())
sys.stdout.write("\n".join(lines) + "\n")
