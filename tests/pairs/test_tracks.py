"""Two tracks in one scoring: an oracle of full tables that adds up two matrices, and
biotite's aligner for one track."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from biotite.sequence.align import SubstitutionMatrix, align_optimal
from biotite.structure.alphabet import I3DSequence

import jaxalign
from jaxalign import Scoring
from jaxalign.cli.main import main
from jaxalign.errors import InputError, UsageError
from jaxalign.model.alphabet import named_alphabet
from jaxalign.model.scoring import load_matrix

LENGTHS = (0, 1, 7, 23, 40, 40, 95)
BLOSUM62, STATE_SCORES = load_matrix("BLOSUM62"), load_matrix("3Di")
FREE = ("query_start", "query_end", "target_start", "target_end")


def asymmetric(letters):
    scores = np.random.default_rng(3).integers(-6, 7, (len(letters), len(letters)))
    return letters, scores + 8 * np.eye(len(letters), dtype=int)


SCORINGS = {
    "foldseek": Scoring.preset("foldseek"),
    "weights": Scoring(
        tracks=[("protein", "BLOSUM62", 3), ("3di", "3Di", 1)],
        gap_open=12,
        gap_extend=2,
    ),
    "fractions": Scoring(
        tracks=[("protein", "BLOSUM62", 0.5), ("3di", "3Di", 1.25)],
        gap_open=9.5,
        gap_extend=0.5,
    ),
    "asymmetric": Scoring(
        tracks=[
            ("protein", asymmetric(BLOSUM62[0]), 1),
            ("3di", asymmetric(STATE_SCORES[0]), -1),
        ],
        gap_open=4,
        gap_extend=1,
    ),
}


def drawn(lengths, seed=0):
    """Two tracks of random residues, two of which are alike."""
    random = np.random.default_rng(seed)
    tracks = [
        {f"s{k}": "".join(random.choice([*letters], n)) for k, n in enumerate(lengths)}
        for letters in ("ARNDCQEGHILKMFPSTWYVX", "acdefghiklmnpqrstvwyx")
    ]
    for track in tracks if len(lengths) > 5 else ():
        track["s5"] = track["s4"][:20] + track["s5"][:20]
    return tracks


def encoded(tracks):
    letters, states = (
        jaxalign.model.alphabet.as_sequences(track, named_alphabet(kind))
        for track, kind in zip(tracks, ("protein", "3di"), strict=True)
    )
    return letters.with_states(states)


def oracle(query, target, scoring, mode):
    """The best score, by tables of Python numbers; (letters, states) of each side."""
    tables = [
        {(a, b): x for a, row in zip(letters, scores, strict=True)
         for b, x in zip(letters, row, strict=True)}
        for letters, scores in (matrix_of(track) for track in scoring.tracks)
    ]  # fmt: skip
    weights = [weight for *_, weight in scoring.tracks]
    m, n = len(query[0]), len(target[0])
    first, further, low = scoring.gap_open, scoring.gap_extend, float("-inf")
    free = {"local": FREE, "semiglobal": FREE, "global": ()}[mode]
    h = np.full((m + 1, n + 1), low)
    e, f = h.copy(), h.copy()
    for i, j in product(range(m + 1), range(n + 1)):
        if i == j == 0:
            h[0, 0] = 0
            continue
        if i:
            e[i, j] = max(e[i - 1, j] - further, h[i - 1, j] - first)
        if j:
            f[i, j] = max(f[i, j - 1] - further, h[i, j - 1] - first)
        values = [e[i, j], f[i, j]]
        if i and j:
            pair = sum(
                weight * table[query[k][i - 1], target[k][j - 1]]
                for k, (weight, table) in enumerate(zip(weights, tables, strict=True))
            )
            values.append(h[i - 1, j - 1] + pair)
        if (i == 0 and "target_start" in free) or (j == 0 and "query_start" in free):
            values.append(0)
        if mode == "local":
            values.append(0)
        h[i, j] = max(values)
    if mode == "local":
        return h.max()
    if mode == "semiglobal":
        return max(h[m].max(), h[:, n].max())
    return h[m, n]


def matrix_of(track):
    _, matrix, _ = track
    return load_matrix(matrix) if isinstance(matrix, str) else matrix


def both(tracks, name):
    return tracks[0][name], tracks[1][name]


def rescored(table, row, tracks, scoring):
    """The score of a path, from its operations alone."""
    alignment = table.alignment(row)
    matrices = [matrix_of(track) for track in scoring.tracks]
    a, b = both(tracks, alignment.query_name), both(tracks, alignment.target_name)
    i, j, total = alignment.query_start, alignment.target_start, 0
    for run in alignment.operations.tolist():
        count, kind = run >> 4, run & 15
        if kind:
            total -= scoring.gap_open + (count - 1) * scoring.gap_extend
        else:
            for k in range(count):
                for (letters, scores), (*_, w), q, t in zip(
                    matrices, scoring.tracks, a, b, strict=True
                ):
                    row = letters.index(q[i + k]), letters.index(t[j + k])
                    total += w * np.asarray(scores)[row]
        i, j = i + count * (kind != 2), j + count * (kind != 1)
    assert (i, j) == (alignment.query_end, alignment.target_end)
    return total


@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
@pytest.mark.parametrize("name", SCORINGS)
def test_rows_equal_the_oracle(name, mode):
    scoring, tracks = SCORINGS[name], drawn(LENGTHS)
    sequences = encoded(tracks)
    table = jaxalign.align_all(
        sequences, scoring, mode=mode, output="alignment", implementation="rows"
    )
    for k in range(len(table)):
        query, target = (sequences.names[table[x][k]] for x in ("query", "target"))
        best = oracle(both(tracks, query), both(tracks, target), scoring, mode)
        assert table["score"][k] == pytest.approx(best, abs=1e-9)
        assert rescored(table, k, tracks, scoring) == pytest.approx(best, abs=1e-9)
        text = table.alignment(k)
        assert text.rescore() == pytest.approx(best, abs=1e-9)
        pairs = zip(*text.rows(), strict=True)
        same = sum(x == y and x not in "X-" for x, y in pairs)
        assert table["identities"][k] == same  # of the amino acids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "name", "mode"),
    [
        ("sweep", "foldseek", "local"),
        ("sweep", "asymmetric", "semiglobal"),
        ("sweep", "asymmetric", "global"),
        ("wavefront", "foldseek", "local"),
        ("wavefront", "asymmetric", "global"),
    ],
)
def test_compiled_implementations_equal_rows(way, name, mode):
    scoring = SCORINGS[name]
    a, b = encoded(drawn(LENGTHS)), encoded(drawn((*LENGTHS[::-1], 150), 1))
    for output in ("alignment", "identity", "score"):
        tables = [
            jaxalign.align_pairs(
                a.take(pairs[0]), b.take(pairs[1]), scoring,
                mode=mode, output=output, implementation=x,
            )
            for x in ("rows", way)
            for pairs in [np.indices((len(a), len(b))).reshape(2, -1)]
        ]  # fmt: skip
        tables += [
            jaxalign.align_all(b, scoring, mode=mode, output=output, implementation=x)
            for x in ("rows", way)
        ]
        for x, y in (tables[:2], tables[2:]):
            for column in x.columns:
                assert np.array_equal(x[column], y[column]), column
            if output == "alignment":
                assert np.array_equal(x.operations, y.operations)


@pytest.mark.slow
def test_many_local_scores_in_8_bits_equal_rows(monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 1)
    scoring, sequences = SCORINGS["foldseek"], encoded(drawn([*range(6, 66)], 2))
    for output in ("score", "stats"):
        ways = [
            jaxalign.align_all(
                sequences, scoring, mode="local", output=output, implementation=x
            )
            for x in ("rows", "sweep")
        ]
        for column in ways[0].columns:
            assert np.array_equal(ways[0][column], ways[1][column]), column


@pytest.mark.parametrize("mode", ["global", "local"])
def test_states_alone_equal_biotite(mode):
    states = {k: x.replace("x", "d") for k, x in drawn(LENGTHS)[1].items() if x}
    table = jaxalign.align_all(states, "3Di", mode=mode)
    matrix = SubstitutionMatrix.std_3di_matrix()
    assert table.scoring == Scoring("3Di", 10, 1)
    for k in range(len(table)):
        pair = [I3DSequence(states[table.row(k)[x]]) for x in ("query", "target")]
        found = align_optimal(
            *pair, matrix, gap_penalty=(-10, -1), local=mode == "local",
            terminal_penalty=True, max_number=1,
        )  # fmt: skip
        assert table["score"][k] == found[0].score


def test_an_unknown_state_scores_nothing():
    assert jaxalign.align("xXxd", "DXDD", "3Di").score == 4
    assert jaxalign.align("xXxd", "DXDD", "3Di").identities == 1


def test_foldseek_adds_up_rounded_bits():
    """Log-odds of BLOSUM62 in half bits times 1.4 bits; of 3Di in units of its lambda,
    0.351568, times 2.1 bits: W/W 11 -> 7.7 -> 8, m/m 10 -> 10.65 -> 11."""
    scoring = Scoring.preset("foldseek")
    pair = Scoring(tracks=scoring.tracks, gap_open=10, gap_extend=1)
    assert pair == scoring and scoring.scale == 1
    one = encoded([{"a": "WWA"}, {"a": "mmx"}])
    other = encoded([{"b": "WRV"}, {"b": "mvd"}])
    assert jaxalign.align(one, one, scoring).score == 2 * (8 + 11) + 3
    # W/R -3 -> -2.1 -> -2, m/v -16 -> -17.04 -> -17; A/V 0, x/d 0
    assert scoring.pair_scores(one[0], other[0]).tolist() == [19, -19, 0]
    assert (scoring.highest, scoring.lowest) == (19, -3 - 18)


def test_tracks_are_data_of_a_scoring():
    scoring = SCORINGS["weights"]
    again = Scoring(tracks=list(scoring.tracks), gap_open=12, gap_extend=2)
    assert again == scoring and hash(again) == hash(scoring)
    assert replace(scoring, gap_open=5).gap_open == 5
    assert str(scoring) == "3*BLOSUM62 + 3Di, gap(k) = 12 + 2*(k-1)"
    assert scoring.symmetric and not SCORINGS["asymmetric"].symmetric
    assert SCORINGS["fractions"].scale == 4
    for tracks in (
        [("protein", "BLOSUM62", 1)],
        [("protein", "3Di", 1), ("3di", "3Di", 1)],
        [("protein", "BLOSUM62", float("nan")), ("3di", "3Di", 1)],
        [("protein", "BLOSUM62", 1), "3Di"],
    ):
        with pytest.raises(UsageError):
            Scoring(tracks=tracks)
    with pytest.raises(UsageError, match="matrices and alphabets of their own"):
        Scoring("PAM30", tracks=scoring.tracks)


def test_sets_of_two_tracks():
    tracks = drawn(LENGTHS)
    sequences = encoded(tracks)
    assert sequences.texts() == [*tracks[0].values()]
    assert sequences.track(1).texts() == [*tracks[1].values()]
    part = sequences.take([6, 2]).between(1, 2)
    assert part.text(0) == tracks[0]["s2"] and part.track(1).text(0) == tracks[1]["s2"]
    letters, states = sequences.track(0), sequences.track(1)
    with pytest.raises(InputError, match="unequal lengths: s1 has 1 residues and 0"):
        letters.with_states(encoded(drawn((0, 0, 7))).track(1))
    with pytest.raises(InputError, match="unequal names"):
        letters.with_states(replace(states, names=states.names[::-1]))
    # A scoring of one track takes the track that it has letters of, one of two both.
    plain = jaxalign.align_all(letters)["score"]
    assert np.array_equal(jaxalign.align_all(sequences)["score"], plain)
    plain = jaxalign.align_all(states, "3Di")["score"]
    assert np.array_equal(jaxalign.align_all(sequences, "3Di")["score"], plain)
    for data in (letters, ["MKV", "MK"], {"a": "MKV"}):
        with pytest.raises(InputError, match="two tracks"):
            jaxalign.align_all(data, SCORINGS["foldseek"])
    for call in (
        lambda: jaxalign.align_three(*["MKV"] * 3, scoring=SCORINGS["foldseek"]),
        lambda: jaxalign.search_family(["MKV"], ["MKV"], SCORINGS["foldseek"]),
    ):
        with pytest.raises(UsageError, match="two tracks"):
            call()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two tracks of some sequences, a few of which are alike, as files."""
    monkeypatch.chdir(tmp_path)
    tracks = drawn((60, 70, 80, 50, 40, 40, 90, 45))
    for track in tracks:
        track["s7"] = track["s2"][5:50]
    for name, track in zip(("set.fa", "set_ss.fa"), tracks, strict=True):
        text = "".join(f">{x} d\n{y[:33]}\n{y[33:]}\n" for x, y in track.items())
        (tmp_path / name).write_text(text)
    return tmp_path, tracks


def test_both_files_are_read(folder, capsys):
    path, tracks = folder
    scoring, sequences = SCORINGS["foldseek"], encoded(tracks)
    (table,) = [jaxalign.align_all(str(path / "set.fa"), scoring, mode="local")]
    want = jaxalign.align_all(sequences, scoring, mode="local")
    assert np.array_equal(table["score"], want["score"])
    hits = jaxalign.search(
        sequences.take([2]), path / "set.fa", scoring, statistics="published"
    )
    assert [hits.row(k)["target"] for k in range(2)] == ["s2", "s7"]
    assert main(["index", "set.fa", "-q"]) == 0
    with pytest.raises(InputError, match="has not both tracks"):
        jaxalign.align_all(path / "set.fa.jaxdb", scoring)
    text = (path / "set_ss.fa").read_text()
    (path / "set_ss.fa").write_text(text.replace(">s3", ">s9"))
    with pytest.raises(InputError, match="unequal names"):
        jaxalign.align_all(str(path / "set.fa"), scoring)
    (path / "set_ss.fa").unlink()
    assert main(["all", "set.fa", "--preset", "foldseek"]) == 3
    assert "jaxalign structures" in capsys.readouterr().err
    assert main(["all", "set.fa", "--preset", "foldseek", "--matrix", "PAM30"]) == 2


def test_further_alignments_are_of_both_tracks():
    tracks = drawn((60, 70, 80, 50, 40, 40, 90, 45))
    for track in tracks:
        track["s7"] = track["s2"][5:50] + track["s3"] + track["s2"][5:50]
    sequences, scoring = encoded(tracks), SCORINGS["foldseek"]
    hits = jaxalign.search(
        sequences.take([2]), sequences, scoring, hsps=2, statistics="fitted"
    )
    spans = [[hits.row(k)[x] for x in ("target", "query_start", "target_start")]
             for k in range(3)]  # fmt: skip
    assert spans == [["s2", 0, 0], ["s7", 5, 0], ["s7", 5, 95]]
    # The second copy ends with its sequence, as the first without what follows it.
    piece = [track["s2"][5:50] for track in tracks], [track["s2"] for track in tracks]
    assert hits["score"][2] == oracle(piece[1], piece[0], scoring, "local")


def test_verbs_link_by_both_tracks(folder, capsys):
    """Clusters, splits and audits are those of the pairs at the cut; a certificate
    says which states it is of."""
    path, tracks = folder
    words = "--min-identity 0.4 --min-score 60 --preset foldseek -q".split()
    table = jaxalign.align_all(
        encoded(tracks), SCORINGS["foldseek"], mode="local", output="stats"
    )
    lengths = encoded(tracks).lengths
    longer = np.maximum(lengths[table["query"]], lengths[table["target"]])
    linked = (table["identities"] >= 0.4 * longer) & (table["score"] >= 60)
    pairs = {tuple(table.row(k)[x] for x in ("query", "target"))
             for k in np.flatnonzero(linked)}  # fmt: skip
    assert pairs == {("s2", "s7"), ("s4", "s5")}
    assert main(["cluster", "set.fa", *words, "-o", "c.tsv"]) == 0
    rows = [x.split("\t") for x in (path / "c.tsv").read_text().splitlines()[1:]]
    cluster_of = {name: cluster for name, cluster, *_ in rows}
    together = {(a, b) for a, b in product(cluster_of, repeat=2)
                if a < b and cluster_of[a] == cluster_of[b]}  # fmt: skip
    assert together == pairs
    more = "--folds 2 -o s.tsv --certificate s.json --too-large keep".split()
    assert main(["split", "set.fa", *words, *more]) == 0
    assert main(["audit", "--verify", "s.json", "-q"]) == 0
    text = (path / "set_ss.fa").read_text()
    (path / "set_ss.fa").write_text(text.replace("a", "c", 1))
    capsys.readouterr()
    assert main(["audit", "--verify", "s.json", "-q"]) != 0
    (path / "set_ss.fa").write_text(text)
    near = "nearest set.fa set.fa --preset foldseek --min-score 1 -q -o n.tsv".split()
    assert main(near) == 0
    purge = "purge set.fa --against set.fa -o p.fa --min-score 60 -q".split()
    assert main([*purge, "--preset", "foldseek"]) == 0
