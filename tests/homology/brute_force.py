"""Links by the oracle's loops over cells: nothing of the package computes here."""

import numpy as np
import oracle

OPEN, EXTEND = 3, 1
LETTERS = "ACGTN"
WILDCARD = LETTERS.index("N")  # as in the DNA alphabet: identical to nothing


def matrix() -> np.ndarray:
    """Match 2, mismatch -1; N matches nothing."""
    scores = np.where(np.eye(len(LETTERS), dtype=bool), 2, -1)
    scores[WILDCARD, WILDCARD] = -1
    return scores


def below(kind: str, m: int, n: int) -> float:
    return {"longer": max(m, n), "shorter": min(m, n), "mean": (m + n) / 2}[kind]


PARTNER = dict(zip(LETTERS, "TGCAN", strict=True))


def turned(word: str) -> str:
    """The reverse complement of a word of ``LETTERS``."""
    return "".join(PARTNER[x] for x in reversed(word))


def either_strand(of, a: str, b: str, *about) -> float:
    """The larger value of two words, and of the first one turned and the second."""
    return float(np.fmax(of(a, b, *about), of(turned(a), b, *about)))


def identity(a: str, b: str, *about) -> float:
    """The identity of two words along either strand, the default for DNA."""
    return either_strand(plus_identity, a, b, *about)


def local_identity(a: str, b: str, least: float) -> float:
    """The identity of two words by the default link, along either strand."""
    return either_strand(plus_local_identity, a, b, least)


def plus_identity(a: str, b: str, kind: str = "longer", mode: str = "global") -> float:
    """The identity of two words of ``LETTERS``, 1 of equal ones; nan of an empty one,
    over the shorter."""
    if a == b:
        return 1.0
    codes = [[LETTERS.index(x) for x in word] for word in (a, b)]
    scores = matrix()
    _, count = oracle.max_identities(
        *codes, scores, OPEN, EXTEND, mode, wildcard=WILDCARD
    )
    divisor = below(kind, len(a), len(b))
    return count / divisor if divisor else float("nan")


def plus_local_identity(a: str, b: str, least: float) -> float:
    """The identity of two words by ``link="local"``, the default; nan below the score.

    Short ones, whose letters cannot score twice as much, are also compared from end to
    end, and the larger identity counts.
    """
    reach = min(2 * (len(x) - x.count("N")) for x in (a, b)) / least
    whole = plus_identity(a, b) if a == b or reach < 2 else float("nan")
    if a == b or reach < 1:
        return whole
    codes = [[LETTERS.index(x) for x in word] for word in (a, b)]
    score, count = oracle.max_identities(
        *codes, matrix(), OPEN, EXTEND, "local", wildcard=WILDCARD
    )
    local = count / min(len(a), len(b)) if score >= least else float("nan")
    return float(np.fmax(local, whole))


def identities(words, *about, of=identity) -> np.ndarray:
    """All pairs, (n, n).

    of : function of two words and ``about``
    """
    n = len(words)
    square = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(i + 1, n):
            square[i, j] = square[j, i] = of(words[i], words[j], *about)
    return square


def drawn_link(seed: int, words, kind: str = "longer") -> tuple[dict, np.ndarray]:
    """(options, identities (n, n)) of a link: over a length from end to end, or the
    default, with a least score."""
    random = np.random.default_rng([seed, 1])
    if random.random() < 0.5:
        return {"identity": kind}, identities(words, kind)
    least = int(random.integers(3, 8))
    return {"min_score": least}, identities(words, least, of=local_identity)


def random_words(random: np.random.Generator, count: int, longest: int = 9):
    """Words of which some are copies of others, with changes."""
    words: list[str] = []
    for _ in range(count):
        if words and random.random() < 0.5:
            letters = list(words[random.integers(len(words))])
            for _ in range(random.integers(0, 3)):
                if letters:
                    letters[random.integers(len(letters))] = random.choice([*LETTERS])
            words.append("".join(letters[random.integers(0, 2) :]))
        else:
            size = random.integers(0, longest)
            words.append("".join(random.choice([*LETTERS], size)))
    return words


def leaks(part, shares, cut) -> int:
    """Pairs across parts at or above the cut, counted one by one."""
    return sum(
        part[i] >= 0 and part[j] >= 0 and part[i] != part[j] and shares[i, j] >= cut
        for i in range(len(part))
        for j in range(i)
    )


def labels_of(linked: np.ndarray) -> np.ndarray:
    """Components, numbered in the order of their first vertices, by relabelling."""
    label = np.arange(len(linked))
    for i, j in np.argwhere(linked):
        label[label == label[i]] = label[j]
    numbers = dict.fromkeys(label.tolist())
    return np.array([[*numbers].index(x) for x in label.tolist()])
