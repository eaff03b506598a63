"""jaxalign.torch: its overhead, and its times beside soft DTW in Triton.

    python benchmarks/soft_torch.py --json soft_torch.json    # a GPU, or a CPU
    python benchmarks/soft_torch.py --quick                   # too small for figures

values    largest differences of results and gradients, of CUDA tensors from the CPU's
training  20 steps of a small network through ``alignment_log_prob``, on either device
overhead  microseconds of a call on 4 pairs of 5 x 6, beside the jitted function of JAX
times     score and gradient, ms: by PyTorch, by JAX, and of ``soft_dtw`` (one state)
matrix    ``hard_matrix`` of embeddings of bfloat16, 1,024 wide: 10^12 cells a second
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import measure
import numpy as np

import jaxalign

try:
    import torch

    import jaxalign.torch as tensors
except ImportError:  # the options are shown without it
    torch = tensors = None

COSTS = {"gap_open": 5.5, "gap_extend": 0.5, "mode": "local"}
SIZES = ((900, 256), (128, 900), (64, 2000))
QUICK = ((3, 12), (2, 20))
CUDA = bool(torch) and torch.cuda.is_available()
DEVICE = torch and torch.device("cuda" if CUDA else "cpu")


def synchronised(function):
    def run():
        result = function()
        if CUDA:
            torch.cuda.synchronize()
        return result

    return run


def similarity(count, length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(count, length, length, generator=generator) - 1


def values() -> list[dict]:
    """Each function on both devices."""
    s = similarity(3, 30)
    lengths = torch.tensor([[30, 28], [12, 30], [1, 4]])
    weights = torch.randn(3, 30, 30, generator=torch.Generator().manual_seed(1))

    def once(device):
        x = s.to(device).requires_grad_()
        at = lengths.to(device)
        cost = torch.tensor(5.5, device=device, requires_grad=True)
        options = COSTS | {"gap_open": cost}
        score = tensors.soft_score(x, at, **options)
        gradient, by_cost = torch.autograd.grad(
            score.sum(), (x, cost), create_graph=True
        )
        turned = (gradient * weights.to(device)).sum()
        twice = torch.autograd.grad(turned, (x, cost))
        posterior = tensors.soft_posterior(x, at, **options)
        entropy = tensors.alignment_entropy(x, at, **options)
        best = tensors.hard_alignment(x, at, **COSTS)
        log_p = tensors.alignment_log_prob(best.partners, x, at, **options)
        return {
            "score": score,
            "gradient": gradient,
            "by gap cost": by_cost,
            "second derivative": twice[0],
            "second by gap cost": twice[1],
            "posterior": posterior,
            "entropy": entropy,
            "hard score": best.score,
            "partners": best.partners,
            "log probability": log_p,
        }

    with ThreadPoolExecutor(2) as pool:
        here, there = pool.map(once, (torch.device("cpu"), DEVICE))
    assert all(x.device.type == DEVICE.type for x in there.values())
    rows = []
    for name, x in here.items():
        difference = (x.detach() - there[name].detach().cpu()).abs().max().item()
        largest = x.detach().abs().max().item()
        rows.append({"result": name, "largest": largest, "difference": difference})
        print(rows[-1], flush=True)
    return rows


def training() -> list[dict]:
    """Losses of the same steps on both devices."""
    rows = []
    for device in dict.fromkeys((torch.device("cpu"), DEVICE)):
        torch.manual_seed(0)
        network = torch.nn.Sequential(
            torch.nn.Embedding(24, 16), torch.nn.Linear(16, 16)
        ).to(device)
        codes = torch.randint(20, (8, 60), device="cpu").to(device)
        label = torch.arange(60, device=device).expand(8, 60)
        optimiser = torch.optim.Adam(network.parameters(), 1e-2)
        losses = []
        for _ in range(20):
            x = network(codes)
            log_p = tensors.alignment_log_prob(
                label, (x, x), gap_open=2.0, gap_extend=0.5
            )
            loss = -log_p.mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        rows.append({"device": device.type, "first": losses[0], "last": losses[-1]})
        print(rows[-1], flush=True)
    return rows


def overhead(repeats: int) -> list[dict]:
    """Of the score, and of score and gradient; the first decile of calls, each to its
    end."""
    s = torch.randn(4, 5, 6).to(DEVICE)
    lengths = torch.tensor([[5, 6], [4, 4], [3, 6], [2, 2]], device=DEVICE)
    array, sizes = (jax.dlpack.from_dlpack(x) for x in (s, lengths.int()))

    def score(x, n, opening, extending):
        costs = {"gap_open": opening, "gap_extend": extending}
        return jaxalign.soft_score(x, n, mode="local", **costs)

    moved = s.clone().requires_grad_()
    ones = torch.ones(4, device=DEVICE)
    gradient = jax.value_and_grad(lambda *x: score(*x).sum())
    numbers = array, sizes, 5.5, 0.5

    def by_torch():
        value = tensors.soft_score(moved, lengths, **COSTS)
        return torch.autograd.grad(value, moved, ones)

    calls = {
        "score": (lambda: tensors.soft_score(s, lengths, **COSTS), score),
        "score and gradient": (by_torch, gradient),
    }
    rows = []
    for name, (ours, function) in calls.items():
        row: dict = {"call": name}
        for tool, run in {
            "torch": ours,
            "jax": measure.ready(jax.jit(function), *numbers),
        }.items():
            run = synchronised(run)
            spans = [measure.timed(run).seconds for _ in range(repeats)]
            tenth = np.percentile(spans[repeats // 10 :], 10)
            row[f"{tool} us"] = 1e6 * float(tenth)
        rows.append(row | {"overhead us": row["torch us"] - row["jax us"]})
        print(rows[-1], flush=True)
    return rows


def times(sizes, repeats: int) -> list[dict]:
    """Score and gradient of random similarities, float32. All is compiled first,
    several programs at a time."""
    calls = {size: gradient_calls(*size) for size in sizes}
    with ThreadPoolExecutor(8) as pool:
        every = [call for group in calls.values() for call in group.values()]
        list(pool.map(lambda call: call(), every))
    rows = []
    for (count, length), group in calls.items():
        timed = measure.in_turns(group, repeats)
        row = {"work": f"{count} x {length} x {length}"}
        row |= {f"{name} ms": 1e3 * x["seconds"] for name, x in timed.items()}
        rows.append(row)
        print(row, flush=True)
    return rows


def gradient_calls(count: int, length: int) -> dict:
    """Name -> call of score and gradient."""
    s = similarity(count, length).to(DEVICE)
    moved, ones = s.clone().requires_grad_(), torch.ones(count, device=DEVICE)
    array = jax.dlpack.from_dlpack(s)
    run = jax.jit(jax.value_and_grad(lambda x: jaxalign.soft_score(x, **COSTS).sum()))

    def by_torch():
        return torch.autograd.grad(tensors.soft_score(moved, **COSTS), moved, ones)

    calls = {
        "jaxalign.torch": synchronised(by_torch),
        "jaxalign": measure.ready(run, array),
    }
    if CUDA:
        import soft_dtw

        costs = (-s).requires_grad_()

        def by_dtw():
            value = soft_dtw.SoftDTW.apply(costs)
            return torch.autograd.grad(value, costs, ones)

        calls["soft DTW, Triton"] = synchronised(by_dtw)
    return calls


def matrix(count: int, length: int, width: int, memory: str) -> list[dict]:
    """All of ``count`` with as many others."""
    rng = np.random.default_rng(0)
    sets = [
        jnp.asarray(rng.normal(size=(count, length, width)), jnp.bfloat16) / width**0.5
        for _ in range(2)
    ]
    rows = []
    for mode in ("global", "local"):
        costs = {"gap_open": 1.0, "gap_extend": 0.1, "mode": mode}
        run = partial(jaxalign.hard_matrix, *sets, memory=memory, **costs)
        calls = [measure.timed(run) for _ in range(3)]
        seconds, scores = [one.seconds for one in calls], calls[-1].result
        i, j = count - 1, count // 2
        one = jaxalign.hard_alignment((sets[0][i], sets[1][j]), **costs).score
        assert np.isclose(scores[i, j], float(one), rtol=1e-4, atol=1e-3)
        cells = count**2 * length**2
        rows.append({"work": f"{count}^2 pairs of {length}^2, {mode}"})
        rows[-1] |= {"first s": seconds[0], "s": min(seconds)}
        rows[-1]["TCUPS"] = cells / min(seconds) / 1e12
        print(rows[-1], flush=True)
    return rows


def main(argv=None) -> None:
    args = measure.arguments(__doc__, "quick", "json").parse_args(argv)
    quick = args.quick or not torch.cuda.is_available()
    job = (4, 20, 8, "1MiB") if quick else (256, 384, 1024, "16GiB")
    report = {"machine": measure.machine(), "torch": torch.__version__}
    report |= {
        "times": times(QUICK if quick else SIZES, 3 if quick else 7),
        "values": values(),
        "overhead": overhead(50 if args.quick else 1000),
        "matrix": matrix(*job),
        "training": training(),
    }
    measure.save(args.json, report)


if __name__ == "__main__":
    main()
