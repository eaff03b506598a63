"""The peers of ``soft.py``, each where it is installed."""

import sys
import time

import numpy as np

GAPS = {"gap_open": 5.5, "gap_extend": 0.5}
LETTERS = "ARNDCQEGHILKMFPSTWYV"


def problem(count: int, length: int, seed: int = 0):
    """Codes (count, length) of both sides, and their similarity, in half bits / 2."""
    import jax.numpy as jnp

    from jaxalign import Scoring

    codes = np.random.default_rng(seed).integers(0, 20, (2, count, length))
    scores = Scoring().scores[codes[0][:, :, None], codes[1][:, None, :]] / 2
    return codes, jnp.asarray(scores, jnp.float32)


def autodiff(s):
    """Global, linear gaps of 0.5: a scan over anti-diagonals, differentiated by JAX."""
    import jax
    import jax.numpy as jnp

    from jaxalign.similarity.arrays import down, skew

    def one(s):
        m, n = s.shape
        whole = skew(jnp.pad(s, ((1, 0), (1, 0)), constant_values=-1e30), -1e30)
        i = jnp.arange(m + 1, dtype=jnp.int32)

        def step(carry, x):
            before, last = carry
            d, s = x
            moves = s + down(before, -1e30), down(last, -1e30) - 0.5, last - 0.5
            h = jax.nn.logsumexp(jnp.stack(moves), axis=0)
            inside = (d - i >= 0) & (d - i <= n)
            h = jnp.where((i == 0) & (d == 0), 0, jnp.where(inside, h, -1e30))
            return (last, h), None

        dead = jnp.full(m + 1, -1e30, s.dtype)
        steps = jnp.arange(m + n + 1, dtype=jnp.int32)
        return jax.lax.scan(step, (dead, dead), (steps, whole))[0][1][m]

    return jax.vmap(one)(s).sum()


def diffbio(length: int):
    """Similarity -> sum of DiffBio's scores, local, linear gaps of 0.5."""
    import jax
    import jax.numpy as jnp
    from diffbio.operators.alignment import smith_waterman

    costs = {"temperature": 1.0, "gap_open": 0.0, "gap_extend": -0.5}
    config = smith_waterman.SmithWatermanConfig(**costs)
    # It multiplies one-hot sequences with a matrix: here the similarity with ones.
    one = jnp.eye(length)
    aligner = smith_waterman.SmoothSmithWaterman(config, scoring_matrix=one)
    return lambda s: jax.vmap(lambda x: aligner.align(x, one).score)(s).sum()


def soft_dtw():
    """(x, y) -> sum of soft-DTW costs."""
    import jax
    from ott.geometry import costs

    cost = costs.SoftDTW(gamma=1.0)
    return lambda x, y: jax.vmap(cost)(x, y).sum()


def series(count, length):
    """Two batches of random series."""
    import jax.numpy as jnp

    rng = np.random.default_rng(1)
    return tuple(jnp.asarray(rng.normal(size=(count, length)), "float32") for _ in "xy")


def nwgrad_call(count, length):
    """The same pairs by nwgrad, or None. Its gap of k costs open + extend k."""
    try:
        import nwgrad
        from nwgrad.matrices import BLOSUM62
    except ImportError as missing:
        print(f"# nwgrad left out: {missing}")
        return None
    codes, _ = problem(count, length)
    texts = [["".join(LETTERS[c] for c in row) for row in side] for side in codes]
    costs = {
        f"gap_{k}_{s}": v for s in "ab" for k, v in (("open", 5.0), ("extend", 0.5))
    }
    params = nwgrad.AlignParams(BLOSUM62, **costs)
    options = {"gap_model": "affine", "mode": "local", "grad_mode": "soft"}
    batch = nwgrad.SeqPairBatch(*texts, params, **options)

    def call():
        batch.set_params(params)
        return batch.score_and_grad(), batch.compute_grad()

    return call


def smurf_forms(folder, count, length) -> dict:
    """As ``forms``, of SMURF's gradients; it keeps the scores to itself."""
    import jax
    import jax.numpy as jnp

    sys.path.insert(0, folder)
    import sw_functions

    _, s = problem(count, length)
    lengths = jnp.full((count, 2), length, jnp.int32)
    costs = -GAPS["gap_extend"], -GAPS["gap_open"], 1.0
    lowered = jax.jit(sw_functions.sw_affine(batch=True)).lower(s, lengths, *costs)
    began = time.perf_counter()
    compiled = lowered.compile()
    seconds = time.perf_counter() - began
    call = ready(compiled, (s, lengths, *costs))
    return {
        "score+grad": (call, seconds, compiled.memory_analysis().temp_size_in_bytes)
    }


def ready(compiled, args):
    """A call of a compiled function that waits for its result."""
    import jax

    return lambda: jax.block_untilready(compiled(*args))
