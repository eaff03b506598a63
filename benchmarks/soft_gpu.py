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

import statistics
import time
from concurrent.futures import ThreadPoolExecutor, wait

import jax
import jax.numpy as jnp
import measure
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxalign

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
    run = jax.jit(jax.value_and_grad(loss))
    return lambda: jax.block_until_ready(run(*arrays))


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
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - began)
        median = statistics.median(seconds)
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


def problem(count: int, length: int, related: float = 0.0, seed: int = 0):
    """float32 (count, length, length), on the device."""
    import jax
    import jax.numpy as jnp

    from jaxalign import Scoring

    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 20, (2, count, length))
    b = np.where(rng.random(b.shape) < related, a, b)
    matrix = jnp.asarray(Scoring().scores / 2, jnp.float32)
    gather = jax.jit(lambda a, b: matrix[a[:, :, None], b[:, None, :]])
    return gather(jnp.asarray(a), jnp.asarray(b))


def forms(implementation: str) -> dict:
    """name -> function of (similarity, direction)."""
    import jax

    import jaxalign

    options = GAPS | {"implementation": implementation}

    def total(s):
        return jaxalign.soft_score(s, **options).sum()

    return {
        "score": lambda s, v: total(s),
        "score+grad": lambda s, v: jax.value_and_grad(total)(s),
        "hvp": lambda s, v: jax.jvp(jax.grad(total), (s,), (v,))[1],
    }


def compiled(function, args):
    """(program, seconds)."""
    import jax

    lowered = jax.jit(function).lower(*args)
    began = time.perf_counter()
    program = lowered.compile()
    return program, time.perf_counter() - began


def programs(sizes, kernels: bool, pool) -> dict:
    """(count, length, implementation, form) -> future of ``compiled``."""
    import jax
    import jax.numpy as jnp

    made = {}
    for count, length, scan in sizes:
        like = jax.ShapeDtypeStruct((count, length, length), jnp.float32)
        for implementation in ("pallas", scan) if kernels else (scan,):
            for form, function in forms(implementation).items():
                if form == "hvp" and implementation == scan and length > SCAN_HVP:
                    continue
                key = count, length, implementation, form
                made[key] = pool.submit(compiled, function, (like, like))
    return made


def times(sizes, made: dict, repeats: int) -> list[dict]:
    """A row a size and implementation."""
    rows = []
    for count, length, _ in sizes:
        s = problem(count, length)
        v = direction(s)
        found = {key[2:]: x.result() for key, x in made.items() if key[0] == count}
        calls = {key: _ready(program, s, v) for key, (program, _) in found.items()}
        timed = measure.in_turns(calls, repeats)
        scan = next(name for name, _ in found if name != "pallas")
        for name in dict.fromkeys(name for name, _ in found):
            ms = {
                form: 1e3 * timed[name, form]["seconds"]
                if (name, form) in timed
                else None
                for form in FORMS
            }
            both = ms["score+grad"]
            row = {"work": f"{count} x {length} x {length}", "implementation": name}
            row |= {f"{form} ms": value for form, value in ms.items()}
            row["hvp / grad"] = ms["hvp"] / both if ms["hvp"] else None
            row["scan / this"] = 1e3 * timed[scan, "score+grad"]["seconds"] / both
            row["compile s"] = found[name, "score+grad"][1]
            print(row, flush=True)  # a run that is cut off has something to show
            rows.append(row)
    return rows


def _ready(program, *args):
    import jax

    return lambda: jax.block_until_ready(program(*args))


def wide(length: int):
    """Score and gradient of one pair in float64, compiled."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        like = jax.ShapeDtypeStruct((1, length, length), jnp.float64)
        return compiled(forms("log")["score+grad"], (like, like))[0]


def precision(implementations, length: int, made, in_double) -> list[dict]:
    """Errors of float32 on a pair of relatives."""
    import jax

    s = problem(1, length, RELATED, seed=2)
    with jax.enable_x64(True):
        s64 = jax.numpy.asarray(np.float64(s))
        f64, p64 = jax.tree.map(np.asarray, in_double.result()(s64, s64))
    rows = []
    for name in implementations:
        program, _ = made[1, length, name, "score+grad"].result()
        f, p = jax.tree.map(np.asarray, program(s, s))
        row = {"pair": f"{length} x {length}", "implementation": name, "F": float(f64)}
        row["|F - F64|"] = float(abs(f - f64))
        row["allowed"] = max(1e-4, 1.2e-7 * abs(float(f64)))
        row["|P - P64|"] = float(abs(p - p64).max())
        row["row sum"] = float(p.sum(-1).max())
        rows.append(row)
    return rows


def direction(s):
    """The factors of the Hessian."""
    import jax

    return jax.random.normal(jax.random.key(0), s.shape, s.dtype)


def batch_in_double(count: int, length: int, workers: int = 8):
    """Gradients and products of the batch in float64, on the CPU, kept as float32."""
    import jax

    import jaxalign

    def total(s):
        return jaxalign.soft_score(s, **GAPS, implementation="log").sum()

    def both(s, v):
        return jax.jvp(jax.grad(total), (s,), (v,))

    s = problem(count, length)
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
    s = problem(count, length)
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
    """Command line."""
    parser = measure.arguments(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--devices", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", metavar="PATH")
    asked = parser.parse_args(argv)
    if asked.devices:
        devices(*((8, 40, 16) if asked.quick else (4096, 400, 128)), asked.repeats)
        return
    import kernels_pallas

    began = time.perf_counter()
    report = {"machine": measure.machine()}
    measure.show_machine(report["machine"])
    works, why = kernels_pallas.supported()
    if not works:
        print(f"# the kernels are left out: {why}")
    sizes, length = (QUICK, 20) if asked.quick else (SIZES, 2000)
    names = ("pallas", "log") if works else ("log",)
    pool = ThreadPoolExecutor(16)
    made = programs(sizes, works, pool)
    like = problem(1, length)
    for name in names:
        key = 1, length, name, "score+grad"
        made[key] = pool.submit(compiled, forms(name)["score+grad"], (like, like))
    in_double = pool.submit(wide, length)
    of_batch = pool.submit(batch_in_double, *sizes[0][:2])
    wait([*made.values(), in_double, of_batch])
    print(f"# compiled after {time.perf_counter() - began:.0f} s", flush=True)
    report["times"] = times(sizes, made, asked.repeats)
    print("\n# times")
    measure.show(report["times"])
    measure.save(asked.json, report)
    report["precision"] = precision(names, length, made, in_double)
    print("\n# precision")
    measure.show(report["precision"])
    report["batch"] = batch(sizes, made, of_batch.result())
    print("\n# batch")
    measure.show(report["batch"])
    measure.save(asked.json, report)


if __name__ == "__main__":
    main()
