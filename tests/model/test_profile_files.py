"""Files of families: every malformed one is refused with its line, and what is read is
finite."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxalign
from jaxalign import InputError, Profile, UsageError

EQUAL = " ".join(["2.99573"] * 20)
MOVES = "0.35667 1.60944 2.30259 0.30000 1.35023 0.50000 0.93275"
LAST = "0.35667 1.20397 * 0.30000 1.35023 0.00000 *"


def model(length: int = 3, annotations: str = " {0} x - - -") -> list[str]:
    """The lines of a HMMER3 file, as hmmbuild writes it."""
    lines = ["HMMER3/f [3.4 | Aug 2023]", "NAME  fam", "ACC   PF1.1"]
    lines += [f"LENG  {length}", "ALPH  amino", "MAP   yes", "STATS LOCAL MSV -9.4 0.7"]
    lines += ["HMM          A        C        D", "            m->m     m->i     m->d"]
    lines += [f"  COMPO   {EQUAL}", f"          {EQUAL}", f"          {MOVES}"]
    for k in range(1, length + 1):
        lines += [f"      {k}   {EQUAL}{annotations.format(k)}", f"          {EQUAL}"]
        lines += [f"          {MOVES if k < length else LAST}"]
    return [*lines, "//"]


FIRST = 9  # of the lines with numbers


def read(path, lines: list[str]) -> Profile:
    path.write_text("\n".join(lines) + "\n")
    return Profile.from_hmm(path)


@pytest.mark.parametrize("annotations", [" {0} x - - -", " {0} - -", "", " - - - - -"])
def test_what_hmmbuild_writes_is_read(tmp_path, annotations):
    profile = read(tmp_path / "x.hmm", model(4, annotations))
    assert (profile.name, len(profile)) == ("fam", 4)
    assert len(read(tmp_path / "x.hmm", [x for x in model(4) if "COMPO" not in x])) == 4


WRONG = ("nan", "inf", "-inf", "-1", "1_0", "1e999", "x", "0x1", "1,5", "", "9.99999")


def malformed():
    """(what is wrong, lines, the number of the line that is): every number is another,
    too much or missing, and every line is."""
    lines = model()
    for at in (FIRST, FIRST + 2, *range(len(lines) - 4, len(lines) - 1)):
        words = lines[at].split()
        first = int(words[0] == "COMPO" or len(words) > 20)
        count = 7 if len(words) == 7 else 20
        for k in range(first, first + count):
            for wrong in WRONG[: -1 if words[k] == "0.00000" else None]:
                changed = [*words[:k], wrong, *words[k + 1 :]]
                # 0.00009 is a likely letter; all others are as likely as before.
                text = " ".join(changed).replace("9.99999", "0.00009")
                yield f"{wrong!r} at {k}", [*lines[:at], text, *lines[at + 1 :]], at + 1
        more = " ".join([*words[: first + count], "0.1", *words[first + count :]])
        yield "more", [*lines[:at], more, *lines[at + 1 :]], at + 1
    for at in range(FIRST + 1, len(lines)):
        yield "a line less", lines[:at] + lines[at + 1 :], None
        yield "the end is missing", lines[:at], None
    for at in range(FIRST + 1, len(lines) - 1):
        yield "a line more", lines[: at + 1] + lines[at:], None
    for at in range(FIRST + 3, len(lines) - 1, 3):
        node = lines[at].replace(lines[at].split()[0], "7", 1)
        yield "another node", [*lines[:at], node, *lines[at + 1 :]], at + 1
    for length in ("LENG  99", "LENG  2", "LENG  0", "LENG", "LENG  x", "LENG  3.0"):
        yield length, [length if x[:4] == "LENG" else x for x in lines], None
    for name in ("LENG", "ALPH", "HMM "):
        yield f"no {name}", [x for x in lines if not x.startswith(name)], None
    yield "two lengths", [*lines[:4], "LENG  3", *lines[4:]], 5
    yield "DNA", [x.replace("amino", "DNA") for x in lines], 5
    yield "two models", [*lines, "", *model(7)], len(lines) + 2


def test_every_malformed_model_is_refused_with_its_line(tmp_path):
    path, accepted = tmp_path / "x.hmm", []
    for what, lines, number in malformed():
        try:
            accepted.append((what, number, read(path, lines)))
        except InputError as error:
            place = re.search(rf"^{re.escape(str(path))}, line (\d+): ", str(error))
            assert place, (what, str(error))
            assert number is None or int(place[1]) == number, (what, str(error))
    assert [one[:2] for one in accepted] == []


def test_changed_bytes_of_a_model(tmp_path):
    """Any bytes are refused in words, or give finite scores and costs."""
    path, whole = tmp_path / "x.hmm", "\n".join(model(2)).encode() + b"\n"

    def check(changes, end):
        data = bytearray(whole[:end])
        for place, value in changes:
            data[min(place, len(data) - 1)] = value
        path.write_bytes(data)
        try:
            profile = Profile.from_hmm(path)
        except InputError as error:
            assert str(path) in str(error)
        else:
            assert np.abs(profile.scores).max() <= 50
            costs = np.concatenate([*profile.gap_open, *profile.gap_extend])
            assert np.isfinite(costs).all() and (costs >= 0).all()

    changes = st.lists(st.tuples(st.integers(0, len(whole)), st.integers(0, 255)))
    ends = st.one_of(st.just(len(whole)), st.integers(1, len(whole)))
    few = settings(max_examples=60, derandomize=True, deadline=None, database=None)
    few(given(changes, ends)(check))()


@pytest.mark.parametrize(
    "text, line",
    [
        ("MKV\n>a\nMKV\n", 1),
        (">a\nMKV\n>b\nMK\n", 3),
        (">a\nMKV\n\n>b\n>c\nMKV\n", 4),
        (">a\nM\u00e9V\n", 2),
        ("# STOCKHOLM 1.0\na MKV\nb MK\n//\n", 3),
        ("# STOCKHOLM 1.0\na MKV\nb MKV\n", 3),
        ("# STOCKHOLM 1.0\na\n//\n", 2),
        ("# STOCKHOLM 1.0\na MKV\n//\n\n# STOCKHOLM 1.0\nb MKV\n//\n", 5),
        (">a\nMKV\n\0>b\nMKV\n\0", 3),
        (">a\nMKV\0\n>b\nMKV\n", 3),
        (">ss_pred\n999\n>a\nM1V\n", 4),
        (">a\nM1V\n>b\nMKV\n", 2),
    ],
)
def test_malformed_alignments(tmp_path, text, line):
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"x\.txt, line {line}: "):
        Profile.from_alignment(path)


@pytest.mark.parametrize("value", [0, -1, "1", None, True, np.nan, np.inf, 1e300, [1]])
def test_pseudocounts(value):
    with pytest.raises(UsageError, match="pseudocounts"):
        Profile.from_alignment(["MK", "MV"], pseudocounts=value)


@pytest.mark.parametrize("value", [-0.1, 1.5, "1", True, np.nan, [1]])
def test_max_gaps(value):
    with pytest.raises(UsageError, match="max_gaps"):
        Profile.from_alignment(["MK", "MV"], max_gaps=value)


@pytest.mark.parametrize("value", ["none", None, [1], [1, -1], [1, np.nan], ["a", "b"],
                                   [[1, 1]], [0, 0], [np.inf, 1]])  # fmt: skip
def test_weights(value):
    with pytest.raises(UsageError, match="weights"):
        Profile.from_alignment(["MK", "MV"], weights=value)


@pytest.mark.parametrize("value", [None, 5, [b"MK"], [None], ["M\u00e9"], "x\0y"])
def test_sources(value):
    with pytest.raises(InputError):
        Profile.from_alignment(value)


PROTEIN = jaxalign.Scoring().alphabet
SCORES = np.zeros((3, PROTEIN.size), np.int32)
COSTS = np.ones(3), np.ones(3)


@pytest.mark.parametrize(
    "scores, options",
    [
        (np.full(SCORES.shape, np.nan), {}),
        (np.full(SCORES.shape, np.inf), {}),
        (np.full(SCORES.shape, 0.5), {}),
        (np.full(SCORES.shape, 2**40), {}),
        (np.full(SCORES.shape, -(2.0**20)), {}),
        (SCORES.astype(object), {}),
        (SCORES.astype(bool), {}),
        (SCORES[:, :20], {}),
        (SCORES[0], {}),
        (SCORES[:0], {}),
        ("x", {}),
        (SCORES, {"unit": np.nan}),
        (SCORES, {"unit": 0}),
        (SCORES, {"unit": "1"}),
        (SCORES, {"gap_open": COSTS}),
        (SCORES, {"gap_extend": COSTS}),
        (SCORES, {"gap_open": COSTS, "gap_extend": (np.ones(3), np.full(3, np.nan))}),
        (SCORES, {"gap_open": (-np.ones(3), np.ones(3)), "gap_extend": COSTS}),
        (SCORES, {"gap_open": (np.ones(2), np.ones(3)), "gap_extend": COSTS}),
        (SCORES, {"gap_open": 11, "gap_extend": COSTS}),
        (SCORES, {"gap_open": (["a"] * 3, np.ones(3)), "gap_extend": COSTS}),
    ],
)
def test_a_profile_of_anything_else(scores, options):
    with pytest.raises(UsageError):
        Profile("x", scores, PROTEIN, **options)


def test_a_profile_of_numbers():
    profile = Profile("x", SCORES + 2.0, PROTEIN, gap_open=COSTS, gap_extend=COSTS)
    assert profile.scores.dtype == np.int32 and (profile.scores == 2).all()


def test_a_letter_of_no_probability(tmp_path):
    """A family may have no evidence for a letter at all: its scores are the least."""
    lines = model()
    sure = " ".join(["0.00000", *["*"] * 19])
    lines = [f"      2   {sure} 2 a - - -" if x.split()[0] == "2" else x for x in lines]
    profile = read(tmp_path / "x.hmm", lines)
    assert profile.consensus[1] == "A" and profile.scores.min() == -50
