"""Arrays of torch split over the ranks: sums, sorting, products, decompositions."""

from __future__ import annotations

import heat as ht

ht.random.seed(7)
a = ht.arange(1000, split=0, dtype=ht.float64)
print(a.comm.rank, tuple(a.lshape), float(a.sum()), float(a.std()))
b = ht.array([[float((7 * i + 3 * j) % 11) for j in range(8)] for i in range(24)], split=0)
print(a.comm.rank, (b.T @ b).numpy().sum(), ht.sort(b.flatten())[0][:5].numpy())
q, r = ht.linalg.qr(b)
print(a.comm.rank, bool(ht.allclose(q @ r, b, atol=1e-4)), ht.cumsum(b, 0)[-1].numpy())
print(a.comm.rank, ht.unique(b, sorted=True).numpy(), ht.where(b > 9)[:3].shape)
