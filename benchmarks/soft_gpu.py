"""Soft alignment on a GPU: the kernels beside XLA's scan, in one run.

    python benchmarks/soft_gpu.py --json soft_gpu.json
    python benchmarks/soft_gpu.py --quick          # any machine; too small for figures
    python benchmarks/soft_gpu.py --devices        # a training step by all of a host

times      score; score and gradient; Hessian-vector product
precision  score and posterior in float32 against float64, one pair of relatives
batch      gradients and products of all tables of the first batch likewise

Random proteins with BLOSUM62 / 2 at T = 1, gaps of 5.5 + 0.5 (k - 1), local;
milliseconds are medians of calls in turns on arrays that lie on the device. Everything
is compiled before anything is timed, several programs at a time ("compile": seconds of
one, among the others). XLA's scan is ``log``, or ``blocked`` where that is the default.
float64 is XLA's scan on the host's CPU for the batch.
"""

import time
from concurrent.futures import ThreadPoolExecutor, wait

import jax
import jax.numpy as jnp
import measure
import numpy as np
import soft
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxalign
import kernels_pallas

# A training step by one device and by several -----------------------------------------
# An encoder, one matrix, makes vectors of residues; the loss is the mean soft score of
# pairs of related sequences, negated. A mesh with explicit axes divides the batch, and
# JAX adds up the gradients of the devices, in another order than one device does;
# products of vectors keep all digits of float32. Times are medians.

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
    return measure.ready(jax.jit(jax.value_and_grad(loss)), *arrays)


def devices(count: int, length: int, width: int, repeats: int) -> None:
    """Print the time of a step, by one device and by all, and how gradients differ."""
    rng = np.random.default_rng(1)
    shape = count, length, width
    queries = rng.normal(size=shape).astype(np.float32)
    noise = rng.normal(size=shape).astype(np.float32)
    batch = [queries, queries + noise]
    lengths = rng.integers(length // 2, length + 1, (count, 2))
    batch.append(lengths.astype(np.int32))
    encoder = rng.normal(size=(width, 32)).astype(np.float32) / width
    print(jax.__version__, jax.devices(), flush=True)
    single = None
    for number in sorted({1, jax.device_count()}):
        step = step_of(number, encoder, batch)
        value, gradient = map(np.asarray, step())
        median = measure.median_seconds(step, repeats)
        line = f"{number} devices: {1e3 * median:.2f} ms, loss {value:.6f}"
        if single is not None:
            apart = np.abs(gradient - single[1]).max() / np.abs(single[1]).max()
            line += f", {single[0] / median:.2f} times, gradients {apart:.1e} apart"
        single = single or (median, gradient)
        print(line, flush=True)


# Kernels and XLA's scan ---------------------------------------------------------------

CHUNK = 30  # tables of which products are computed at a time in float64
GAPS = {"gap_open": 5.5, "gap_extend": 0.5, "mode": "local"}
SIZES = ((900, 256, "log"), (128, 900, "log"), (64, 2000, "blocked"))
SCAN_HVP = 256  # rows up to which XLA's product is compiled too; it takes long
QUICK = ((3, 12, "log"), (5, 8, "blocked"))
FORMS = ("score", "score+grad", "hvp")
RELATED = 0.6  # of the residues of the pair whose precision is measured


def forms(implementation: str) -> dict:
    """name -> function of (similarity, direction)."""
    options = GAPS | {"implementation": implementation}

    def total(s):
        return jaxalign.soft_score(s, **options).sum()

    return {
        "score": lambda s, v: total(s),
        "score+grad": lambda s, v: jax.value_and_grad(total)(s),
        "hvp": lambda s, v: jax.jvp(jax.grad(total), (s,), (v,))[1],
    }


def programs(sizes, kernels: bool, pool) -> dict:
    """(count, length, implementation, form) -> future of (program, seconds)."""
    made = {}
    for count, length, scan in sizes:
        like = jax.ShapeDtypeStruct((count, length, length), jnp.float32)
        for implementation in ("pallas", scan) if kernels else (scan,):
            for form, function in forms(implementation).items():
                if form == "hvp" and implementation == scan and length > SCAN_HVP:
                    continue
                key = count, length, implementation, form
                made[key] = pool.submit(measure.compiled, function, like, like)
    return made


def times(sizes, made: dict, repeats: int) -> list[dict]:
    """A row a size and implementation."""
    rows = []
    for count, length, _ in sizes:
        s = soft.problem(count, length)[1]
        v = direction(s)
        found = {key[2:]: x.result() for key, x in made.items() if key[0] == count}
        calls = {k: measure.ready(program, s, v) for k, (program, _) in found.items()}
        timed = measure.in_turns(calls, repeats)
        ms = {key: 1e3 * one["seconds"] for key, one in timed.items()}
        scan = next(name for name, _ in found if name != "pallas")
        for name in dict.fromkeys(name for name, _ in found):
            both, product = ms[name, "score+grad"], ms.get((name, "hvp"))
            row = {"work": f"{count} x {length} x {length}", "implementation": name}
            row |= {f"{form} ms": ms.get((name, form)) for form in FORMS}
            row["hvp / grad"] = product / both if product else None
            row["scan / this"] = ms[scan, "score+grad"] / both
            row["compile s"] = found[name, "score+grad"][1]
            print(row, flush=True)  # a run that is cut off has something to show
            rows.append(row)
    return rows


def wide(length: int):
    """Score and gradient of one pair in float64, compiled."""
    with jax.enable_x64(True):
        like = jax.ShapeDtypeStruct((1, length, length), jnp.float64)
        return measure.compiled(forms("log")["score+grad"], like, like)[0]


def precision(implementations, length: int, made, in_double) -> list[dict]:
    """Errors of float32 on a pair of relatives."""
    s = soft.problem(1, length, 2, RELATED)[1]
    with jax.enable_x64(True):
        s64 = jnp.asarray(np.float64(s))
        double = in_double.result()(s64, s64)
    rows = []
    for name in implementations:
        program, _ = made[1, length, name, "score+grad"].result()
        row = {"pair": f"{length} x {length}", "implementation": name}
        rows.append(row | soft.errors(program(s, s), double))
    return rows


def direction(s):
    """The factors of the Hessian."""
    return jax.random.normal(jax.random.key(0), s.shape, s.dtype)


def batch_in_double(count: int, length: int, workers: int = 8):
    """Gradients and products of the batch in float64, on the CPU, kept as float32."""

    def total(s):
        return jaxalign.soft_score(s, **GAPS, implementation="log").sum()

    def both(s, v):
        return jax.jvp(jax.grad(total), (s,), (v,))

    s = soft.problem(count, length)[1]
    s, v = np.asarray(s), np.asarray(direction(s))
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        size = min(CHUNK, count)
        like = jax.ShapeDtypeStruct((size, length, length), np.float64)
        program = jax.jit(both).lower(like, like).compile()

    def chunk(k):
        k = min(k, count - size)  # the last one overlaps
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            given = (jax.numpy.asarray(np.float64(x[k : k + size])) for x in (s, v))
            found = [np.asarray(x) for x in program(*given)]
        return k, [np.float32(x) for x in found]

    wanted = [np.empty(s.shape, np.float32) for _ in "gv"]
    with ThreadPoolExecutor(workers) as pool:
        for k, found in pool.map(chunk, range(0, count, size)):
            for whole, part in zip(wanted, found, strict=True):
                whole[k : k + size] = part
    return wanted


def batch(sizes, made, in_double) -> list[dict]:
    """Errors against float64 over all tables, relative to the largest entry of all."""
    count, length, scan = sizes[0]
    s = soft.problem(count, length)[1]
    v = direction(s)
    rows = []
    for form, want in zip(FORMS[1:], in_double, strict=True):
        for name in ("pallas", scan):
            if (count, length, name, form) not in made:
                continue
            program, _ = made[count, length, name, form].result()
            found = program(s, v)
            found = np.asarray(found[1] if form == "score+grad" else found)
            error = np.abs(found - want).max((1, 2))
            row = {"of": "gradient" if form == "score+grad" else "product"}
            row |= {"implementation": name, "largest": float(np.abs(want).max())}
            row["worst"] = float(error.max())
            row["relative"] = row["worst"] / row["largest"]
            row["its table"] = int(error.argmax())
            row["median of tables"] = float(np.median(error))
            rows.append(row)
    return rows


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "json", repeats=5)
    parser.add_argument("--devices", action="store_true")
    asked = parser.parse_args(argv)
    if asked.devices:
        devices(*((8, 40, 16) if asked.quick else (4096, 400, 128)), asked.repeats)
        return
    began = time.perf_counter()
    report: dict = {"machine": measure.machine()}
    works, why = kernels_pallas.supported()
    if not works:
        print(f"# the kernels are left out: {why}")
    sizes, length = (QUICK, 20) if asked.quick else (SIZES, 2000)
    names = ("pallas", "log") if works else ("log",)
    pool = ThreadPoolExecutor(16)
    made = programs(sizes, works, pool)
    like = soft.problem(1, length)[1]
    for name in names:
        key = 1, length, name, "score+grad"
        function = forms(name)["score+grad"]
        made[key] = pool.submit(measure.compiled, function, like, like)
    in_double = pool.submit(wide, length)
    of_batch = pool.submit(batch_in_double, *sizes[0][:2])
    wait([*made.values(), in_double, of_batch])
    print(f"# compiled after {time.perf_counter() - began:.0f} s", flush=True)
    tables = {
        "times": lambda: times(sizes, made, asked.repeats),
        "precision": lambda: precision(names, length, made, in_double),
        "batch": lambda: batch(sizes, made, of_batch.result()),
    }
    for name, table in tables.items():
        report[name] = table()
        print(f"\n# {name}")
        measure.show(report[name])
        measure.save(asked.json, report)


if __name__ == "__main__":
    main()
