"""A training step by one device and by several: how fast, and the same gradient.

    python -m benchmarks.soft_devices                   # all devices of a host
    python -m benchmarks.soft_devices --pairs 8 --length 40 --width 16 --repeats 2

An encoder, one matrix, makes vectors of residues; the loss is the mean soft score of
pairs of related sequences, negated. A mesh with explicit axes divides the batch, and
JAX adds up the gradients of the devices, in another order than one device does;
products of vectors keep all digits of float32. Times are medians.
"""

import argparse
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxalign

COSTS = {"gap_open": 2.0, "gap_extend": 0.3, "mode": "local"}


def loss(encoder, queries, targets, lengths):
    with jax.default_matmul_precision("highest"):
        vectors = queries @ encoder, targets @ encoder
    return -jnp.mean(jaxalign.soft_score(vectors, lengths, **COSTS))


def step_of(count: int, encoder, batch):
    """A function that computes a step by so many devices: loss and gradient."""
    axes = (AxisType.Explicit,)
    mesh = jax.make_mesh(
        (count,), ("pairs",), axis_types=axes, devices=jax.devices()[:count]
    )
    divided = NamedSharding(mesh, PartitionSpec("pairs"))
    whole = NamedSharding(mesh, PartitionSpec())
    arrays = jax.device_put(encoder, whole), *jax.device_put(batch, divided)
    run = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(run(*arrays))


def main(argv=None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=4096)
    parser.add_argument("--length", type=int, default=400)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args(argv)
    rng = np.random.default_rng(1)
    shape = chosen.pairs, chosen.length, chosen.width
    queries = rng.normal(size=shape).astype(np.float32)
    noise = rng.normal(size=shape).astype(np.float32)
    batch = [queries, queries + noise]
    lengths = rng.integers(chosen.length // 2, chosen.length + 1, (chosen.pairs, 2))
    batch.append(lengths.astype(np.int32))
    encoder = rng.normal(size=(chosen.width, 32)).astype(np.float32) / chosen.width
    print(jax.__version__, jax.devices(), flush=True)
    single = None
    for count in sorted({1, jax.device_count()}):
        step = step_of(count, encoder, batch)
        value, gradient = map(np.asarray, step())
        seconds = []
        for _ in range(chosen.repeats):
            began = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - began)
        median = statistics.median(seconds)
        line = f"{count} devices: {1e3 * median:.2f} ms, loss {value:.6f}"
        if single is not None:
            apart = np.abs(gradient - single[1]).max() / np.abs(single[1]).max()
            line += f", {single[0] / median:.2f} times, gradients {apart:.1e} apart"
        single = single or (median, gradient)
        print(line, flush=True)


if __name__ == "__main__":
    main()
