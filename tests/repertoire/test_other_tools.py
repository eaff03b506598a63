"""The same matrices as scirpy and tcrdist3: a stored sample, and their own code.

``python tests/repertoire/test_other_tools.py`` writes it again, where scirpy and
pwseqdist (the distances of tcrdist3) are installed.
"""

import importlib.metadata
import json
import zlib
from pathlib import Path

import numpy as np
import pytest
import receptor_oracle as oracle

import jaxalign

SAMPLE = Path(__file__).parent / "golden" / "other_tools.json"
TEXTS = oracle.receptors(300, seed=2025)
# Calls of scirpy's calculators, and ours.
SCIRPY = {
    "tcrdist": ("TCRdistDistanceCalculator", {}, {}),
    "tcrdist, sliding gap": (
        "TCRdistDistanceCalculator",
        {"cutoff": 35, "fixed_gappos": False, "ntrim": 2, "ctrim": 1},
        {"cutoff": 35, "fixed_gap": False, "ntrim": 2, "ctrim": 1},
    ),
    "tcrdist, other weights": (
        "TCRdistDistanceCalculator",
        {"cutoff": 40, "dist_weight": 2, "gap_penalty": 7},
        {"cutoff": 40, "weight": 2, "gap_penalty": 7},
    ),
    "hamming": ("HammingDistanceCalculator", {}, {"metric": "hamming"}),
    "levenshtein": ("LevenshteinDistanceCalculator", {}, {"metric": "levenshtein"}),
    "alignment": ("NeedlemanWunschDistanceCalculator", {}, {"metric": "alignment"}),
    "alignment, gap 11": (
        "AlignmentDistanceCalculator",
        {"cutoff": 30, "gap_open": 11, "gap_extend": 11},
        {"metric": "alignment", "cutoff": 30, "gap_penalty": 11},
    ),
}  # fmt: skip
# tcrdist3 multiplies the gap penalty by the weight of the CDR3, too.
TCRDIST3 = {"weight": 3, "gap_penalty": 12, "fixed_gap": False, "cutoff": 60}


def digest(matrix):
    """CRC of a CSR matrix, and how many entries it has."""
    parts = [matrix.indptr, matrix.indices, matrix.data]
    flat = np.concatenate([np.asarray(part, np.int64) for part in parts])
    return [int(matrix.nnz), zlib.crc32(flat.astype("<i8").tobytes())]


def ours(options):
    return jaxalign.repertoire_graph(TEXTS, **options).to_scirpy()


def scirpys(name, options):
    metrics = pytest.importorskip("scirpy.ir_dist.metrics", reason="needs scirpy")
    if not hasattr(metrics, name):
        pytest.skip(f"this scirpy has no {name}")
    matrix = getattr(metrics, name)(**options).calc_dist_mat(np.array(TEXTS))
    matrix.sort_indices()
    return matrix


def tcrdist3s():
    """scirpy's form of the distances of the CDR3 by pwseqdist, as tcrdist3 calls it."""
    pwseqdist = pytest.importorskip("pwseqdist", reason="needs tcrdist3")
    from scipy.sparse import csr_matrix

    distances = pwseqdist.apply_pairwise_rect(
        metric=pwseqdist.metrics.nb_vector_tcrdist,
        seqs1=TEXTS, ncpus=1, uniqify=False, use_numba=True,
        distance_matrix=pwseqdist.matrices.tcr_nb_distance_matrix,
        dist_weight=1, gap_penalty=4, ntrim=3, ctrim=2, fixed_gappos=False,
    )  # fmt: skip
    total = 3 * np.asarray(distances, np.int64)
    return csr_matrix(np.where(total <= TCRDIST3["cutoff"], total + 1, 0))


@pytest.mark.parametrize("name", [*SCIRPY, "tcrdist3"])
def test_stored_sample(name):
    options = TCRDIST3 if name == "tcrdist3" else SCIRPY[name][2]
    assert digest(ours(options)) == json.loads(SAMPLE.read_text())["digests"][name]


@pytest.mark.parametrize("name", SCIRPY)
def test_scirpy(name):
    calculator, options, own = SCIRPY[name]
    theirs, matrix = scirpys(calculator, options), ours(own)
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(theirs, part), getattr(matrix, part))


def test_tcrdist3():
    theirs, matrix = tcrdist3s(), ours(TCRDIST3)
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(theirs, part), getattr(matrix, part))


def versions():
    names = ("scirpy", "pwseqdist", "tcrdist3")
    known = {}
    for name in names:
        try:
            known[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return known


def write():
    """Digests of the tools that are installed here, beside those that are stored."""
    stored = json.loads(SAMPLE.read_text()) if SAMPLE.exists() else {}
    digests, known = stored.get("digests", {}), stored.get("versions", {})
    calls = {name: lambda x=x: scirpys(*x[:2]) for name, x in SCIRPY.items()}
    for name, call in (calls | {"tcrdist3": tcrdist3s}).items():
        try:
            digests[name] = digest(call())
            known[name] = versions()
        except (pytest.skip.Exception, ImportError) as why:
            print(name, why)
    SAMPLE.write_text(json.dumps({"versions": known, "digests": digests}, indent=1))


if __name__ == "__main__":
    write()
