"""Results are those of ``golden/jobs.json``, bit for bit; see ``golden_jobs``."""

from pathlib import Path

import golden_jobs
import pytest

PATH = Path(__file__).parent / "golden" / "jobs.json"
GROUPS = golden_jobs.groups()
QUICK = {group.name for group in golden_jobs.quick()}
PARAMETERS = [
    pytest.param(
        k, id=group.name, marks=() if group.name in QUICK else pytest.mark.slow
    )
    for k, group in enumerate(GROUPS)
]


@pytest.fixture(scope="module")
def known():
    return golden_jobs.read(PATH)


def test_the_file_has_all_groups(known):
    assert list(known) == [group.name for group in GROUPS]
    assert sum(one["jobs"] for one in known.values()) >= 5000


OF_THREE = "align_three", "align_triples"
OF_TWO = [
    one for one in PARAMETERS if not GROUPS[one.values[0]].name.startswith(OF_THREE)
]


@pytest.mark.parametrize("k", OF_TWO)
def test_group_by_rows(k, known):
    """The same results without a compiler: all jobs of two sequences are small."""
    assert golden_jobs.entry(GROUPS[k]) == known[GROUPS[k].name]


# Groups that are quick with a compiler too: one fill with paths, one of identities.
COMPILED = (
    "align_pairs: affine free_ends=none",
    "align_pairs: affine min_score",
    "mea_alignment",
    "commands: refusals",
)


@pytest.mark.parametrize(
    "k",
    [
        one
        if one.id.startswith(COMPILED)
        else pytest.param(*one.values, id=one.id, marks=pytest.mark.slow)
        for one in PARAMETERS
    ],
)
def test_group(k, known, compiled):
    found = golden_jobs.entry(GROUPS[k])
    show = f"rows: python tests/golden_jobs.py --show {k}"
    assert found == known[GROUPS[k].name], show
