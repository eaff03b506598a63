"""Every kernel, compiled for a GPU that need not be there: ``python
tests/kernel_programs.py sm_80`` prints registers, spilled bytes and shared memory of
each as JSON, and with ``--write`` stores them in the golden table. Names of programs
limit it to these.

JAX's CUDA plugin compiles for the topology of a card that is described in words
(``kernels_pallas.core.target.configuration``). LLVM ends the whole process where it
cannot select an instruction, so each target has a process of its own.
"""

import json
import os
import re
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

import kernels_pallas as kp
from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.core.target import TARGETS, Target, configuration
from kernels_pallas.pairs.long_fill import fill as fill_long
from kernels_pallas.pairs.long_values import LongFill, LongInputs, LongNumbers
from kernels_pallas.similarity.hard_align import choose as choose_hard
from kernels_pallas.triples import api as triples
from kernels_pallas.words import lcs
from kernels_pallas.words import near as near

SETTINGS = {"JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
LETTERS = 24
GOLDEN = Path(__file__).with_name("kernels") / "resources.json"
DUMPS = ("MOSAIC_GPU_DUMP_PTXAS", "MOSAIC_GPU_DUMP_PTX")


def array(*shape, dtype=jnp.int32):
    return jax.ShapeDtypeStruct(shape, dtype)


def pairs_program(shape, rows, columns, queries=2, targets=64):
    """``align`` of queries of ``rows`` letters and targets of ``columns``."""
    s = shape
    count = queries if s.shared else targets
    costs, ends = [array()] * 2, [array(dtype=bool)] * 4
    problem = kp.Problem(array(LETTERS, LETTERS), *costs, *ends, array())
    stacks = kp.stack([rows] * count, s) if s.stacks else None
    sides = (array(count, rows, dtype=jnp.uint8), array(count),
             array(targets, columns, dtype=jnp.uint8), array(targets))  # fmt: skip
    run = partial(kp.align, stacks=stacks, shape=s, runs=8 if s.tile else 0)
    return run, (problem, *sides)


def pair_programs(target: Target):
    choose = partial(kp.choose, target=target)
    for local in (True, False):
        mode = "local" if local else "border"
        for name, packed, shared, paths, length in (
            ("scores", True, True, False, 384),
            ("scores-int32", False, True, False, 384),
            ("list", True, False, False, 384),
            ("paths", True, True, True, 384),
            ("paths-int32", False, True, True, 384),
            ("long-paths", True, True, True, 1000),
            ("longest", True, True, False, 10000),
        ):
            s = choose(length, local=local, packed=packed, shared=shared, paths=paths)
            yield f"{mode}-{name}", *pairs_program(s, length, 384)
        s = choose(384, local=local, packed=True, linear=True)
        yield f"{mode}-linear", *pairs_program(s, 384, 384)
    stacked = kp.Fill(64, 8, 4, True, True, stacks=2, target=target)
    yield "stacked", *pairs_program(stacked, 1000, 384, queries=5)
    by_position = replace(stacked, lanes=4, stacks=1)
    run, (problem, *sides) = pairs_program(by_position, 300, 384, queries=1)
    costs = {"scores": array(512, LETTERS), "gap_costs": array(512, 4)}
    yield "gap-costs", run, (problem._replace(**costs), *sides)


def word_programs():
    def blocks(rows):
        return lcs.TargetBlocks(array(2), array(2), array(rows * THREADS))

    def size(words, letters):
        return -(-letters * lcs.row_words(words) // THREADS) * THREADS

    for words in (1, 16, 128):
        run = partial(kp.subsequences, words=words)
        yield f"subsequences-{words}", run, (array(4, size(words, 25)), blocks(64))
    for words in (17, 49):
        run = partial(kp.edit_distances, words=words, padding=24, rows=8)
        given = array(4, size(words, 26)), array(4), blocks(64), array(2 * THREADS)
        yield f"edits-{words}", run, given
    for words, several in ((1, False), (16, True)):
        run = partial(kp.pair_edits, words=words, several=several, padding=31)
        side = blocks(600), array(2 * THREADS)
        yield f"edit-pairs-{words}", run, (*side, *side)


def triple_programs(target: Target):
    search: dict = {"best": True}
    kinds: dict[str, dict] = {
        "scores": {},
        "paths": {"bytes": True},
        "free": {"bytes": True, "free": True},
        "ends": search | {"floor": True},
        "starts": search | {"backwards": True},
    }
    for rule in triples.RULES.values():
        for name, options in kinds.items():
            s = triples.shape_of((100, 90, 80), rule, target=target, **options)
            seeds = (1, rule.seed_words - 1)
            shapes = (1, 3), (3, LETTERS, LETTERS), (2,), seeds, (1,), (1, 6)
            request = triples.Triples(
                tuple(np.zeros((1, n), np.uint8) for n in triples.rooms(s)),
                *(np.zeros(shape, np.int32) for shape in shapes),
            )
            packed = triples.pack_triples(request, s)
            run = partial(triples.solve_packed, s=s, letters=LETTERS)
            given = (array(*packed.shape, dtype=jnp.uint8),)
            yield f"triple-{rule.name}-{name}", run, given


def similarity_programs(target: Target):
    reals = partial(array, dtype=jnp.float32)
    for what, m, n in (("score", 100, 90), ("expected", 300, 20), ("product", 600, 30)):
        given = kp.Tables(reals(3, m, n), reals(3, 4), reals(3), array(3, 3))
        more = (given.scores, given.costs) if what == "product" else ()
        yield f"soft-{what}", getattr(kp, f"soft_{what}"), (given, *more)
    for dtype, shape, local in (
        ("int8", (5000, 40, 45), False),
        ("float16", (8, 30, 600), True),
        ("bfloat16", (8, 40, 33), False),
    ):
        batch, m, n = shape
        borders = [reals(batch, x) for x in (4, m + 1, n + 1)]
        given = array(*shape, dtype=dtype), *borders, array(batch, 3)
        s = choose_hard(batch, n, target, local, not local)
        run = partial(kp.hard_paths, local=local, last_column=not local, shape=s)
        yield f"hard-{dtype}", run, (given,)


def near_programs():
    rows = kp.NearRows(array(2**15), array(2**14, 8))
    limits = kp.NearLimits(array(2**14), array(2**14), array(2**10))
    given = rows, rows, limits, kp.NearSizes(*[array()] * 6)
    yield "near-ends", kp.near_ends, given
    ends = array(near.threads_of(rows))
    yield "near-list", partial(kp.near_list, room=2**16), (*given, ends, array())
    queries = kp.NearRows(rows.codes, array(2**14, 32))
    given = queries, rows, limits, kp.NearSizes(*[array()] * 6)
    yield "near-edits", partial(kp.near_ends, edits=True), given


def long_programs(target: Target):
    """A block of one long pair."""
    for local in (True, False):
        for rows in (8, 16):
            s = LongFill(rows, local, 8, 40, 6, 3, 2, last_row=not local, target=target)
            inputs = LongInputs(
                array(len(LongNumbers._fields)),
                array(s.bands * s.letters * s.letter_words),
                array(s.width), array(2 * s.bands * s.band), array(s.bands * 32),
                array(s.bands + 1),
            )  # fmt: skip
            name = f"long-{'local' if local else 'border'}-{rows}"
            yield (
                name,
                partial(fill_long, s=s, segments=4),
                (inputs, array(s.width, 4, 2)),
            )


def programs(target: Target):
    """(name, function, its arguments) of every kernel."""
    yield from pair_programs(target)
    yield from long_programs(target)
    yield from word_programs()
    yield from near_programs()
    yield from triple_programs(target)
    yield from similarity_programs(target)


def compile_for(device, run, arguments) -> None:
    """Compile a function for a device that need not be there."""
    there = SingleDeviceSharding(device)
    arguments = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there), arguments
    )
    # Mosaic takes the capability of the default device for that of the target.
    with jax.default_device(device):
        traced = jax.jit(run, out_shardings=there).trace(*arguments)
        traced.lower(lowering_platforms=("cuda",)).compile()


def resources(folder: Path) -> dict[str, list[int]]:
    """Registers of a thread, bytes it spills and bytes of shared memory, as ``ptxas``
    says of the kernels that were compiled into a folder."""
    kernels: dict[str, list[int]] = {}
    order = lambda file: int(file.stem.rpartition("_")[2])  # noqa: E731
    for file in sorted(folder.glob("*.ptxas"), key=order):
        text = file.read_text()
        scratch = file.with_suffix(".resources.txt").read_text()
        found = (
            re.findall(r"Used (\d+) registers", text)[-1],
            re.findall(r"(\d+) bytes spill loads", text)[-1],
            re.findall(r"smem_scratch_bytes=(\d+)", scratch)[0],
        )
        name = file.stem.rpartition("_")[0].removesuffix("_program")
        name = name if name not in kernels else f"{name}-{len(kernels) + 1}"
        kernels[name] = [int(x) for x in found]
    return kernels


def compile_all(target: Target, names=()) -> dict[str, list[int]]:
    """``resources`` of all programs, or of those with these names."""
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=configuration(target), topology="1x1x1"
    )
    table = {}
    for name, run, arguments in programs(target):
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ["MOSAIC_GPU_DUMP_TO"] = folder
            compile_for(topology.devices[0], run, arguments)
            for kernel, numbers in resources(Path(folder)).items():
                table[f"{name}/{kernel}"] = numbers
    return table


def main(architecture: str, *names: str) -> None:
    target = next(x for x in TARGETS if x.architecture == architecture)
    write = "--write" in names
    chosen = {*names} - {"--write"}
    table = compile_all(target, chosen)
    print(json.dumps(table))
    if write:
        golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
        golden[architecture] = (golden.get(architecture, {}) if chosen else {}) | table
        GOLDEN.write_text(text_of(golden))


def text_of(golden: dict) -> str:
    """The golden table as JSON, a kernel a line."""
    parts = []
    for architecture, kernels in sorted(golden.items(), key=lambda x: int(x[0][3:])):
        lines = (f'  "{k}": {json.dumps(v)}' for k, v in sorted(kernels.items()))
        parts.append(f' "{architecture}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
