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


# One group of each verb and implementation; the first ones are quick. The rest of a
# digest's work is done by rows, and the fills are those of rows by tests of their own
# (``pairs/test_dp.py``, ``pairs/test_windows.py``). Three sequences have no rows.
COMPILED = (
    "align_pairs: affine free_ends=none",
    "align_pairs: affine min_score=20 output=identity",
    "mea_alignment: mode=global",
    "commands: refusals",
)
COMPILED_SLOWLY = (
    "align_pairs: large mode=global",
    "align_pairs: affine window=7 devices=all",
    "align_pairs: half implementation=wavefront mode=local",
    "align_pairs: half output=alignment mode=local 6 to 3000",
    "align: affine+linear+half+ties mode=semiglobal",
    "align_all: skew output=alignment free_ends=q5+t5",
    "stream_all: skew",
    "scores_matrix: skew mode=local",
    "distance_matrix: dna",
    "search: half",
    "search: affine top=8 implementation=wavefront",
    "stream_search: ties",
    "commands: formats",
    *OF_THREE,
)


@pytest.mark.parametrize(
    "k",
    [
        pytest.param(
            *one.values,
            id=one.id,
            marks=() if one.id.startswith(COMPILED) else pytest.mark.slow,
        )
        for one in PARAMETERS
        if one.id.startswith(COMPILED + COMPILED_SLOWLY)
    ],
)
def test_group(k, known, compiled):
    found = golden_jobs.entry(GROUPS[k])
    show = f"rows: python tests/golden_jobs.py --show {k}"
    assert found == known[GROUPS[k].name], show


def test_every_name_above_is_of_a_group():
    names = [group.name for group in GROUPS]
    for start in COMPILED + COMPILED_SLOWLY:
        assert any(name.startswith(start) for name in names), start
