"""The loops of the CPU fills are vectors as wide as a machine has.

XLA is told which instructions the machine has, so that a test does not depend on where
it runs, and LLVM's text of the program is read. A loop that LLVM leaves as it is takes
a hundred times as long.
"""

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# So many lanes that every loop over them stays one, of at least 8 steps: unrolled,
# the steps of several loops would stand together.
PROGRAM = """
import sys; sys.path[:0] = [{tests!r}, {tests!r} + '/pairs']
import test_dp
from test_dp import *
test_dp.LANES = 1024
queries, targets = some_pairs(np.random.default_rng(0), 1024, 20)
S = padded_matrix(Scoring().scores)
problem = problem_of(S, (11, 1), set(), "int16")
{call}
"""
# Two columns of 8 rows in blocks of 2 x 2 cells, twice, or of 2 x 1: 8 loops each.
LOOPS = 8
SCORES = "scores_alone(queries[0], targets, problem, Constants(11, 1))"
POSITIONS = (
    "scores_alone(queries[0], targets, by_position(problem, queries[0]), "
    "Constants(0, 0))"
)
DIFFERENCES = "scores_alone(queries[0], targets, problem, opening=10)"
WIDE_DIFFERENCES = (
    "scores_alone(queries[0], targets, problem, opening=10, cell='uint16')"
)
DIFFERENCE_PATHS = "scores_alone(queries[0], targets, problem, opening=10, paths=True)"
PATHS = "swept(queries, targets, problem, False, True, 0)"
# Program -> the operation of its cells, bits of a value, and how many a loop has: five
# maxima a cell and more, or two subtractions that stop at 0, or four; of one of these
# LLVM makes a comparison.
CELLS = {
    SCORES: ("smax", 16, 20),
    POSITIONS: ("smax", 16, 20),
    DIFFERENCES: ("usub.sat", 8, 8),
    WIDE_DIFFERENCES: ("usub.sat", 16, 8),
    DIFFERENCE_PATHS: ("usub.sat", 8, 7),
    PATHS: ("smax", 16, 8),
}


def machine_has(instructions: str) -> bool:
    flags = Path("/proc/cpuinfo")
    return flags.exists() and instructions.lower() in flags.read_text()


def text_of(call: str, instructions: str, folder: Path) -> list[str]:
    """LLVM's text of the functions of a window's program, for a machine with these
    instructions."""
    flags = f"--xla_cpu_max_isa={instructions}"
    flags += f" --xla_dump_to={folder} --xla_dump_emitter_re=llvm"
    more = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    more |= {"JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}
    script = PROGRAM.format(tests=str(TESTS), call=call)
    subprocess.run([sys.executable, "-c", script], env=os.environ | more, check=True)
    return [path.read_text() for path in folder.glob("*run_window*ir-with-opt.ll")]


def loops_of_vectors(text: str, operation: str, vector: str, times: int) -> int:
    """How many loops have the operation on such vectors so many times."""
    steps = re.split(r"(?m)^[\w.]+:", text)
    return sum(step.count(f"@llvm.{operation}.{vector}(") >= times for step in steps)


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86")
@pytest.mark.parametrize(
    "instructions, vector_bits, call",
    [
        ("AVX2", 256, SCORES),
        ("SSE4_2", 128, SCORES),
        ("AVX512", 512, SCORES),
        ("AVX2", 256, POSITIONS),
        ("AVX2", 256, DIFFERENCES),
        ("SSE4_2", 128, WIDE_DIFFERENCES),
        ("AVX512", 512, DIFFERENCE_PATHS),
        ("AVX2", 256, PATHS),
    ],
    ids=["scores"] * 3
    + ["positions", "differences", "wide-differences", "difference-paths", "paths"],
)
def test_loops_over_lanes_are_vectors(call, instructions, vector_bits, tmp_path):
    if instructions != "SSE4_2" and not machine_has(instructions):
        pytest.skip(f"this machine cannot run {instructions}")
    operation, bits, times = CELLS[call]
    vector = f"v{vector_bits // bits}i{bits}"
    texts = text_of(call, instructions, tmp_path)
    counts = [loops_of_vectors(text, operation, vector, times) for text in texts]
    assert max(counts) >= LOOPS, f"{operation} of {vector}"
