"""Profiles: their scores, and that rows of a matrix align as a sequence does."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import oracle
import pytest
from cases import same_tables
from gpu_windows_cases import _drive, interpreted

import jaxalign
from jaxalign import Profile, Scoring
from jaxalign.errors import UsageError
from jaxalign.model import profile
from jaxalign.pairs import by_rows
from jaxalign.pairs.cpu import partition
from jaxalign.pairs.dp import rows

LETTERS = "ARNDCQEGHILKMFPSTWYV"
SEED = Path(jaxalign.__file__).parent / "data/pfam/RRM_1.fasta"
# Transitions behind position 1 have a likely insertion, into position 2 a likely gap.
HMM = """HMMER3/f [3.3.2 | Nov 2020]
NAME  two
LENG  2
ALPH  amino
HMM          A        C
            m->m     m->i     m->d     i->m     i->i     d->m     d->d
  COMPO   {row}
          {row}
          0.02     4.61     4.61     0.7      0.7      0.0        *
      1   {first}      1 x - - -
          {row}
          0.36     1.61     2.3      0.3      1.35     0.5      0.94
      2   {row}      2 x - - -
          {row}
          0.01     4.61       *      0.7      0.7      0.0        *
//
"""


def random_protein(rng, size):
    return "".join(rng.choice(list(LETTERS), size))


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_rows_of_a_matrix_give_the_alignment_of_a_sequence(mode):
    rng = np.random.default_rng(5)
    query = random_protein(rng, 40)
    targets = [query[5:20] + random_protein(rng, 7) + query[22:], "W"]
    targets += [random_protein(rng, n) for n in (30, 61)]
    profile = Profile.from_sequence(query)
    found = jaxalign.align_profile(profile, targets, mode=mode)
    for target, one in zip(targets, found, strict=True):
        want = jaxalign.align(query, target, mode=mode)
        assert (one.score, one.cigar()) == (want.score, want.cigar())
        assert one.target_start == want.target_start
        assert one.query_start == want.query_start


def test_position_based_weights_are_those_of_the_paper():
    """The example of Henikoff and Henikoff (1994)."""
    rows = profile.codes_of(["GYVGS", "GFDGF", "GYDGF", "GYQGG"])
    weights = profile.row_weights(rows, "henikoff")
    np.testing.assert_allclose(weights, [4 / 15, 4 / 15, 3 / 15, 4 / 15])


def test_log_odds_by_their_definition():
    """Of a single row all is pseudocounts: lambda times a row of BLOSUM62."""
    letters = profile.codes_of(["MKW"])
    odds = profile.log_odds_of(letters, np.ones(1), 10.0)
    matrix = Profile.from_sequence("MKW").scores[:, :20]
    np.testing.assert_allclose(odds / profile.LAMBDA, matrix, atol=0.25)
    many = Profile.from_alignment(["MA", "MC", "MD", "ME"], pseudocounts=1e-6)
    top = np.log(1 / profile.FREQUENCIES[12]) / profile.LAMBDA
    assert many.scores[0, 12] == round(top)


def test_the_formats_agree(tmp_path):
    rows = ["MK-VA", "MRGV-", "MK-IA"]
    plain = "".join(f">r{k}\n{row}\n" for k, row in enumerate(rows))
    stockholm = "# STOCKHOLM 1.0\n#=GF ID x\n"
    stockholm += "".join(f"r{k} {row[:2]}\n" for k, row in enumerate(rows)) + "\n"
    stockholm += "".join(f"r{k} {row[2:]}\n" for k, row in enumerate(rows)) + "//\n"
    texts = plain, stockholm, ">r0\nMKVA\n>r1\nMRgV-\n>r2\nMKIA\n"
    profiles = []
    for k, text in enumerate(texts):
        path = tmp_path / f"x{k}.txt"
        path.write_text(text)
        profiles.append(Profile.from_alignment(path))
    for one in profiles:
        assert len(one) == 4
        np.testing.assert_array_equal(one.scores, profiles[0].scores)


def test_a_hmm_has_gap_costs_by_position(tmp_path):
    row = " ".join(f"{-np.log(1 / 20):.5f}" for _ in range(20))
    first = " ".join(["0.05000", *["6.00000"] * 19])  # A
    path = tmp_path / "two.hmm"
    path.write_text(HMM.format(row=row, first=first))
    profile = Profile.from_hmm(path)
    assert (profile.name, len(profile), profile.consensus[0]) == ("two", 2, "A")
    _, inserted = profile.gap_open
    np.testing.assert_allclose(inserted[0], (1.61 + 0.3 - 0.36) / profile.unit)
    skipped, _ = profile.gap_open
    np.testing.assert_allclose(skipped[1], (2.3 + 0.0 - 0.01) / profile.unit)
    (one,) = jaxalign.align_profile(profile, ["AWWC"])
    a, w = jaxalign.Scoring().alphabet.encode("AW")
    assert one.score == profile.scores[0, a] + profile.scores[1, w]


def test_a_family_is_told_from_its_shuffled_rows():
    profile = Profile.from_alignment(SEED)
    lines = SEED.read_text().splitlines()[1::2][:6]
    rng = np.random.default_rng(0)
    members = [line.replace("-", "") for line in lines]
    decoys = ["".join(rng.permutation(list(one))) for one in members]
    score = [one.score for one in jaxalign.align_profile(profile, members + decoys)]
    assert min(score[:6]) > max(score[6:])


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: Profile.from_alignment([]), jaxalign.InputError),
        (lambda: Profile.from_alignment(["MK", "M"]), jaxalign.InputError),
        (lambda: Profile.from_alignment(["--"]), jaxalign.UsageError),
        (lambda: Profile.from_alignment("nowhere"), jaxalign.InputError),
        (lambda: Profile.from_hmm(SEED), jaxalign.InputError),
        (lambda: Profile.from_alignment(["MK"], pseudocounts=0), jaxalign.UsageError),
        (lambda: Profile.from_alignment(["MK"], weights="none"), jaxalign.UsageError),
    ],
)
def test_what_is_refused(call, error):
    with pytest.raises(error):
        call()


# Queries ------------------------------------------------------------------------------


MODES = ("local", "global", "semiglobal")
FORMS = [
    *[(mode, "rows") for mode in MODES],
    ("local", "wavefront"),
    *[pytest.param(mode, "wavefront", marks=pytest.mark.slow) for mode in MODES[1:]],
    *[pytest.param(mode, "sweep", marks=pytest.mark.slow) for mode in MODES],
]


def problem(seed=3, m=45, count=6):
    """A query, and targets of which some are near it, one is empty of likeness and
    some have equal scores."""
    rng = np.random.default_rng(seed)
    query = random_protein(rng, m)
    near = query[5:20] + random_protein(rng, 4) + query[24:], query[:30] + query[33:]
    targets = [*near, query, query, "W", query[8:11] * 5]
    targets += [random_protein(rng, n) for n in rng.integers(1, 60, count)]
    return query, targets


def same_hits(query, targets, scoring=None, **options):
    """The tables of a search of both kinds; they differ in published statistics."""
    profile = Profile.from_sequence(query, scoring)
    want = jaxalign.search([("sequence", query)], targets, scoring, **options)
    found = jaxalign.search(profile, targets, scoring, **options)
    assert len(found) > 3
    for name in want.columns.keys() - {"bits", "evalue"}:
        np.testing.assert_array_equal(found[name], want[name], name)
    if want.operations is not None:
        np.testing.assert_array_equal(found.operations, want.operations)
        np.testing.assert_array_equal(found.rescore(), found["score"])
    return found, want


@pytest.mark.parametrize("mode, implementation", FORMS)
def test_hits_and_their_paths(mode, implementation):
    options = {"mode": mode, "implementation": implementation}
    found, _ = same_hits(*problem(), **options)
    assert found.implementation == implementation


@pytest.mark.parametrize("mode", MODES)
def test_positions_as_rows(mode, monkeypatch):
    """Of a long target the letters are the columns: few rows, and the same answer."""
    count, one_row = [0], rows._row

    def counted(*arguments):
        count[0] += 1
        one_row(*arguments)

    monkeypatch.setattr(rows, "_row", counted)
    query, targets = problem()
    long = random_protein(np.random.default_rng(6), 3000) + query
    ((found, _), calls) = same_hits(query, [long, *targets], mode=mode), count[0]
    # Of a sequence and a profile: scan and paths of the long target, and the others.
    assert calls < 8 * max(len(query), *map(len, targets)) < len(long)
    one = jaxalign.align(Profile.from_sequence(query), long, mode=mode)
    assert one.cigar() == jaxalign.align(query, long, mode=mode).cigar()
    monkeypatch.setattr(by_rows, "has_long_target", lambda m, n: n > 0 * m)
    again, _ = same_hits(query, [long, *targets], mode=mode)
    same_tables(again, found)


@pytest.mark.slow
@pytest.mark.parametrize("factor, dtype", [(1, "int8"), (40, "int32")])
def test_large_jobs_of_narrow_and_wide_scores(factor, dtype, monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    base = Scoring()
    matrix = base.alphabet.letters, base.scores * factor
    scoring = Scoring(matrix, 11 * factor, factor)
    options = {"implementation": "sweep", "align_top": False}
    found, _ = same_hits(*problem(m=90), scoring, **options)
    assert dtype in found.info["dtypes"]


@pytest.mark.slow
def test_a_long_query_in_strips():
    query, targets = problem(m=700)
    same_hits(query, targets[:4], implementation="wavefront", align_top=False)


def test_fitted_statistics():
    found, want = same_hits(*problem(), statistics="fitted", implementation="rows")
    assert np.isfinite(want["evalue"]).all()
    for name in ("bits", "evalue"):
        np.testing.assert_array_equal(found[name], want[name])


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["local", "semiglobal"])
def test_hits_by_the_gpu_kernels(mode, monkeypatch):
    _drive(monkeypatch)
    query, targets = problem(m=20, count=2)
    profile = Profile.from_sequence(query)
    found = jaxalign.search(profile, targets, mode=mode, implementation="pallas")
    want = jaxalign.search([query], targets, mode=mode, implementation="rows")
    assert found.implementation == "pallas"
    for name in ("score", "target", "query_start", "target_end", "gaps"):
        np.testing.assert_array_equal(found[name], want[name], name)


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("factor, dtype", [(1, "int16"), (900, "int32")])
def test_costs_of_positions_in_the_gpu_kernels(factor, dtype, monkeypatch):
    """Scores of a scan, whose hits rows align."""
    _drive(monkeypatch)
    rng = np.random.default_rng(28)
    profile = with_costs(rng, 70)
    profile = replace(profile, scores=profile.scores * factor)
    targets = ["", *near(rng, profile, 6)]
    found = jaxalign.search(profile, targets, implementation="pallas")
    want = jaxalign.search(profile, targets, implementation="rows")
    assert found.implementation == "pallas"
    assert found.info["dtypes"] == [dtype]
    same_tables(found, want)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_any_rows_score_what_the_general_fill_finds():
    rng = np.random.default_rng(1)
    rows = ["MKV-LAGEHW", "MKI-LAGDHW", "MRVGL-GEHF", "LKVALAGE-W"]
    profile = Profile.from_alignment(rows)
    targets = ["GG" + row.replace("-", "") + random_protein(rng, 5) for row in rows]
    for mode in ("local", "global"):
        found = jaxalign.align_profile(
            profile, targets, gap_open=5, gap_extend=2, mode=mode
        )
        for target, one in zip(targets, found, strict=True):
            codes = profile.alphabet.encode(target).astype(np.int32)
            pair = profile.positions, codes, profile.scores
            best = jaxalign.hard_alignment(pair, gap_open=5, gap_extend=2, mode=mode)
            assert one.score == best.score == one.rescore()
            assert one.cigar() == best.alignment(profile.consensus, target).cigar()


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_parts_of_a_search_and_single_alignments():
    query, targets = problem()
    profile = Profile.from_sequence(query)
    want = jaxalign.search(profile, targets)
    ((_, found),) = jaxalign.stream_search(profile, targets)
    same_tables(found, want)
    one = jaxalign.align(profile, targets[0], mode="local")
    assert one.score == jaxalign.align(query, targets[0], mode="local").score
    again = jaxalign.align_pairs([profile.consensus], targets, one.scoring)
    assert again["score"].tolist() == [
        x.score for x in jaxalign.align_profile(profile, targets, mode="global")
    ]


@pytest.mark.slow
def test_signs_are_those_of_positions():
    """A position that likes W only, whose consensus is W, beside one that likes all."""
    profile = Profile.from_sequence("WW")
    scores = profile.scores.copy()
    scores[1] = 1
    scores[1, LETTERS.index("W")] = 2
    mixed = Profile("mixed", scores, profile.alphabet)
    text = str(jaxalign.align(mixed, "AA"))
    assert text.splitlines()[3].split() == [".:"]


@pytest.mark.parametrize(
    "call",
    [
        lambda p: jaxalign.align_pairs(p, ["MKV"]),
        lambda p: jaxalign.align_all(["MKV"], Scoring(p)),
        lambda p: jaxalign.align_pairs(["MKVA"], ["MKV"], Scoring(p)),
        lambda p: jaxalign.align("MKV", "MKV", Scoring(p)),
        lambda p: jaxalign.align(p, "MKV", return_directions=True),
        lambda p: jaxalign.align_three("MKV", "MKV", "MKV", Scoring(p)),
        lambda p: jaxalign.cluster(["MKV"], Scoring(p), min_identity=0.5),
        lambda p: jaxalign.search(p, ["MKV"], strand="minus"),
        lambda p: jaxalign.align_profile(p, ["MKV"], gap_open=1, gap_extend=2),
    ],
)
def test_what_a_profile_is_not(call):
    with pytest.raises(UsageError, match=r"profile|gap_extend"):
        call(Profile.from_sequence("MKV"))


# Gap costs of positions --------------------------------------------------------------


def with_costs(rng, m, low=0):
    """A profile with costs of its positions, some of which cost more to extend."""
    alphabet = Scoring().alphabet
    scores = rng.integers(-4, 4, (m, alphabet.size))
    scores[np.arange(m), rng.integers(0, 20, m)] += 7
    opening, extending = rng.uniform(low, low + 9, (2, m)), rng.uniform(0, 4, (2, m))
    costs = {"gap_open": (opening[0], opening[1]), "gap_extend": (*extending,)}
    return Profile("family", scores, alphabet, **costs)


def near(rng, profile, count):
    """The consensus with letters lost, gained and changed, and other proteins."""
    texts = [random_protein(rng, n) for n in rng.integers(1, 50, count)]
    for _ in range(count):
        text = profile.consensus
        for _ in range(3):
            a, b = np.sort(rng.integers(0, len(text) + 1, 2)).tolist()
            b = min(a + 6, b)
            text = text[:a] + random_protein(rng, int(rng.integers(0, 5))) + text[b:]
        texts.append(text or "W")
    return texts


def scores_of(hits, count):
    scores = np.zeros(count, np.int64)
    scores[hits["target"]] = hits["score"]
    return scores.tolist()


@pytest.mark.parametrize("striped", [1, 2**12])
def test_scores_by_costs_of_positions(striped, monkeypatch):
    monkeypatch.setattr(rows, "STRIPED_CELLS", striped)
    rng = np.random.default_rng(21)
    for m in (1, 2, 7, 19, 40):
        profile = with_costs(rng, m)
        costs, texts = Scoring(profile).gap_costs, near(rng, profile, 5)
        hits = jaxalign.search(profile, texts, top=10, implementation="rows")
        codes = [profile.alphabet.encode(text).tolist() for text in texts]
        want = [oracle.position_score(profile.scores, b, costs) for b in codes]
        assert scores_of(hits, len(texts)) == want
        np.testing.assert_array_equal(hits.rescore(), hits["score"])


def test_paths_are_those_of_hard_alignment():
    rng = np.random.default_rng(22)
    gaps, skipped = 0, 0
    for m in rng.integers(1, 40, 12).tolist():
        profile = with_costs(rng, m)
        costs = [x.astype(np.float32) for x in Scoring(profile).gap_costs]
        for text in near(rng, profile, 3):
            one = jaxalign.align(profile, text, mode="local")
            codes = profile.alphabet.encode(text).astype(np.int32)
            inserts = (
                np.broadcast_to(x[:, None], (m, len(text))).copy() for x in costs[2:]
            )
            opening, extending = zip(costs[:2], inserts, strict=True)
            best = jaxalign.hard_alignment(
                profile.scores[:, codes].astype(np.float32),
                gap_open=opening,
                gap_extend=extending,
                mode="local",
            )
            assert one.score == best.score == one.rescore()
            if one.score:
                want = best.alignment(profile.consensus, text)
                assert one.cigar() == want.cigar()
                assert one.query_start == want.query_start
                assert one.target_start == want.target_start
            gaps += one.gaps
            skipped += "I" in one.cigar() and "D" in one.cigar()
    assert gaps > 50 and skipped > 5


def test_further_hits_by_costs_of_positions():
    """``local_hits`` finds them one by one in a table of all scores."""
    rng = np.random.default_rng(23)
    profile = with_costs(rng, 12, 3)
    text = (
        profile.consensus[:9] + "WWW" + profile.consensus[2:] + random_protein(rng, 9)
    )
    decoys = [random_protein(rng, 30) for _ in range(40)]
    options = {"hsps": 3, "statistics": "fitted", "top": 1}
    hits = jaxalign.search(profile, [text, *decoys], **options)
    costs = [x.astype(np.float32) for x in Scoring(profile).gap_costs]
    inserts = (np.broadcast_to(x[:, None], (12, len(text))) for x in costs[2:])
    opening, extending = zip(costs[:2], map(np.array, inserts), strict=True)
    codes = profile.alphabet.encode(text).astype(np.int32)
    similarity = profile.scores[:, codes].astype(np.float32)
    gaps = {"gap_open": opening, "gap_extend": extending}
    want = jaxalign.local_hits(3, similarity, **gaps).score.tolist()
    assert len(hits) > 1
    assert hits["score"].tolist() == want[: len(hits)]


@pytest.mark.slow
@pytest.mark.parametrize("large", [2**62, 0], ids=["int16", "int8"])
def test_search_by_costs_of_positions(large, monkeypatch):
    """Compiled scores, of which large jobs try 8 bits first, and E-values that are
    fitted to scores by the same costs; pairs that no window holds go by rows."""
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", large)
    rng = np.random.default_rng(24)
    profile = with_costs(rng, 70, 4)
    texts = near(rng, profile, 60) + [profile.consensus, random_protein(rng, 400)]
    options = {"top": 200, "statistics": "fitted"}
    want = jaxalign.search(profile, texts, implementation="rows", **options)
    found = jaxalign.search(profile, texts, implementation="sweep", **options)
    assert ("int8" in found.info["dtypes"]) == (not large)
    assert found.implementation == "sweep"
    same_tables(found, want)
    np.testing.assert_array_equal(found["evalue"], want["evalue"])
    constant = {"implementation": "rows"} | options
    constant = jaxalign.search(profile, texts, Scoring(), **constant)
    assert constant.info["lambda"] != want.info["lambda"]
    if large:
        return
    split = partition.cut
    monkeypatch.setattr(partition, "cut", lambda *x, **y: alone(split(*x, **y)))
    found = jaxalign.search(profile, texts, implementation=None, **options)
    same_tables(found, want)


def alone(split):
    """Windows without the last one, whose pairs are alone."""
    window = split.blocks[-1]
    pairs = [(i, j) for i in window.queries for j in window.targets]
    return split._replace(blocks=split.blocks[:-1], pairs=[*split.pairs, *pairs])


def test_costs_of_positions_are_whole_and_no_less_to_open():
    profile = with_costs(np.random.default_rng(25), 9)
    scoring = Scoring(profile)
    costs = scoring.gap_costs
    np.testing.assert_array_equal(costs.open_e, np.rint(profile.gap_open[0]))
    np.testing.assert_array_equal(costs.open_f, np.rint(profile.gap_open[1]))
    for opening, extending, exact in (
        (costs.open_e, costs.extend_e, profile.gap_extend[0]),
        (costs.open_f, costs.extend_f, profile.gap_extend[1]),
    ):
        assert (np.rint(exact) > opening).any()
        np.testing.assert_array_equal(extending, np.minimum(np.rint(exact), opening))
    assert str(scoring) == "profile family, gap costs by position"
    assert Scoring(profile, 11, 1).gap_costs is None
    assert scoring not in (Scoring(profile, 11, 1), Scoring())
    assert scoring == Scoring(profile) and hash(scoring) == hash(Scoring(profile))
    assert (scoring.gap_open, scoring.gap_extend) == (None, None)


@pytest.mark.parametrize(
    "call",
    [
        lambda p: jaxalign.align_pairs([p.consensus], ["MKV"], Scoring(p)),
        lambda p: jaxalign.align_pairs(
            [p.consensus], ["MKV"], Scoring(p), mode="local", output="identity"
        ),
        lambda p: jaxalign.search(p, ["MKV"], implementation="wavefront"),
        lambda p: jaxalign.align(p, "MKV", mode="local", implementation="sweep"),
        lambda p: jaxalign.search(p, ["MKV"], hsps=2),
    ],
)
def test_where_costs_of_positions_are_refused(call):
    with pytest.raises(UsageError, match="by position"):
        call(with_costs(np.random.default_rng(26), 9))


def test_other_modes_have_constant_costs():
    profile = with_costs(np.random.default_rng(27), 9)
    for call in (jaxalign.align, jaxalign.search):
        text = "MKV" if call is jaxalign.align else ["MKV"]
        assert call(profile, text, mode="global").scoring == Scoring(profile, 11, 1)
        assert call(profile, text, Scoring(), mode="local").scoring.gap_open == 11
