"""Soft dynamic time warping in Triton: a peer of soft alignment on a GPU.

The algorithm of pytorch-softdtw-cuda (Maghoumi; Cuturi and Blondel, ICML 2017), whose
kernels need numba.cuda: a program a pair, a lane a row, one anti-diagonal after the
other through global memory with a barrier between, and the same backwards. One state,
no gap costs, no lengths. Written for this comparison, and not tuned.
"""

import torch
import triton
import triton.language as tl

FAR = 1e30


@triton.jit
def _forward(costs, table, N, M, LANES: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, LANES)
    width = N + 1
    r = table + pair * (N + M + 1) * width
    d_of = costs + pair * N * M
    for d in range(2, N + M + 1):
        j = d - i
        ok = (i >= 1) & (i <= N) & (j >= 1) & (j <= M)
        up = tl.load(r + (d - 1) * width + i - 1, mask=ok, other=1e30)
        left = tl.load(r + (d - 1) * width + i, mask=ok, other=1e30)
        both = tl.load(r + (d - 2) * width + i - 1, mask=ok, other=1e30)
        cost = tl.load(d_of + (i - 1) * M + j - 1, mask=ok, other=0.0)
        low = tl.minimum(tl.minimum(up, left), both)
        total = tl.exp(low - up) + tl.exp(low - left) + tl.exp(low - both)
        tl.store(r + d * width + i, cost + low - tl.log(total), mask=ok)
        tl.debug_barrier()


@triton.jit
def _backward(costs, table, flows, gradient, N, M, LANES: tl.constexpr):
    pair = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, LANES)
    width = N + 1
    r = table + pair * (N + M + 1) * width
    e = flows + pair * (N + M + 3) * (N + 2)
    d_of, g = costs + pair * N * M, gradient + pair * N * M
    for back in range(0, N + M - 1):
        d = N + M - back
        j = d - i
        ok = (i >= 1) & (i <= N) & (j >= 1) & (j <= M)
        here = tl.load(r + d * width + i, mask=ok, other=0.0)
        value = tl.where((i == N) & (j == M), 1.0, 0.0)
        for k in tl.static_range(3):  # down, right, both
            di, dj = (1 if k != 1 else 0), (1 if k != 0 else 0)
            inside = ok & (i + di <= N) & (j + dj <= M)
            after = tl.load(r + (d + di + dj) * width + i + di, mask=inside, other=0.0)
            flow = tl.load(e + (d + di + dj) * (N + 2) + i + di, mask=inside, other=0.0)
            at = (i - 1 + di) * M + j - 1 + dj
            cost = tl.load(d_of + at, mask=inside, other=0.0)
            value += tl.where(inside, flow * tl.exp(after - here - cost), 0.0)
        tl.store(e + d * (N + 2) + i, value, mask=ok)
        tl.store(g + (i - 1) * M + j - 1, value, mask=ok)
        tl.debug_barrier()


class SoftDTW(torch.autograd.Function):
    """Costs float32 (B, N, M) -> soft minimum (B,) over warping paths, gamma = 1."""

    @staticmethod
    def forward(ctx, costs):
        count, n, m = costs.shape
        table = torch.full((count, n + m + 1, n + 1), FAR, device=costs.device)
        table[:, 0, 0] = 0
        lanes = triton.next_power_of_2(n + 1)
        _forward[(count,)](costs, table, n, m, LANES=lanes, num_warps=8)
        ctx.save_for_backward(costs, table)
        return table[:, n + m, n].clone()

    @staticmethod
    def backward(ctx, cotangent):
        costs, table = ctx.saved_tensors
        count, n, m = costs.shape
        flows = torch.empty((count, n + m + 3, n + 2), device=costs.device)
        gradient = torch.empty_like(costs)
        lanes = triton.next_power_of_2(n + 1)
        _backward[(count,)](
            costs, table, flows, gradient, n, m, LANES=lanes, num_warps=8
        )
        return gradient * cotangent[:, None, None]
