"""All-against-all of embeddings: scores of the best alignments, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.choices import EndKeywords, FreeEnd, Mode
from jaxalign.model.scoring import resolve_ends
from jaxalign.model.show import brief
from jaxalign.runtime import backend
from jaxalign.runtime.devices import by_length, parse_bytes
from jaxalign.runtime.programs import program
from jaxalign.signatures import with_options
from jaxalign.similarity.arguments import check_costs
from jaxalign.similarity.hard import engine
from jaxalign.similarity.hard.api import hard_alignment
from jaxalign.similarity.options import SimilarityOptions

Embeddings = Sequence[Any] | np.ndarray | jax.Array
BYTES_A_CELL = 24  # scores as they are multiplied, by pair and by diagonal
MIN_PADDED_LENGTH = 64
RECENT_GROUPS = 16  # of each set, whose embeddings stay on the device


class ScoreBlock(NamedTuple):
    """A block of a score matrix.

    Attributes
    ----------
    queries, targets : int64 (count,)
        Indices of the block's queries and targets.
    scores : float32 (queries, targets)"""

    queries: np.ndarray
    targets: np.ndarray
    scores: np.ndarray

    __repr__ = brief


@with_options(SimilarityOptions, named=True)
def hard_matrix(
    queries: Embeddings,
    targets: Embeddings | None = None,
    *,
    gap_open: Any,
    gap_extend: Any,
    memory: int | str = "1GiB",
    **options: Unpack[EndKeywords],
) -> np.ndarray:
    """Score the best alignments of all queries with all targets, by embeddings.

    The similarity of two residues is the dot product of their embeddings. Without
    targets, a set is scored against itself.

    Parameters
    ----------
    queries, targets : sequence of (length, k) arrays, or an array (count, length, k)
        Embeddings. 16-bit floats are multiplied as they are, and summed in float32.
    gap_open, gap_extend : number, or a pair (query's, target's)
        Costs in the unit of the similarity.
    memory : int, or text such as "4GiB"
        Approximate size of a block's tables, in bytes. Larger ones use a GPU better.

    Returns
    -------
    float32 (queries, targets)
        ``hard_alignment(...).score`` of each pair. For a set against itself, only one
        half is computed if costs and free ends are the same for both sequences.

    Raises
    ------
    UsageError
        If embeddings differ in width, or a cost or the memory is invalid.

    Examples
    --------
    >>> import numpy as np, jaxalign
    >>> a = [np.eye(4)[:3], np.eye(4)[1:]]
    >>> jaxalign.hard_matrix(a, gap_open=1.0, gap_extend=0.5, mode="local")
    array([[3., 2.],
           [2., 3.]], dtype=float32)
    """
    blocks = _blocks(queries, targets, (gap_open, gap_extend), memory, options)
    target_set = queries if targets is None else targets
    matrix = np.zeros((len(queries), len(target_set)), np.float32)
    for block in blocks:
        matrix[np.ix_(block.queries, block.targets)] = block.scores
    return matrix


@with_options(SimilarityOptions, named=True, like=(hard_matrix,))
def stream_hard_matrix(
    queries: Embeddings,
    targets: Embeddings | None = None,
    *,
    gap_open: Any,
    gap_extend: Any,
    memory: int | str = "1GiB",
    **options: Unpack[EndKeywords],
) -> Iterator[ScoreBlock]:
    """Compute ``hard_matrix`` block by block, for a matrix too large to keep.

    Yields
    ------
    ScoreBlock
        Every pair is in exactly one block.

    Raises
    ------
    UsageError
        As ``hard_matrix``, before the first block.

    Examples
    --------
    >>> import numpy as np, jaxalign
    >>> costs = {"gap_open": 1.0, "gap_extend": 0.5}
    >>> (block,) = jaxalign.stream_hard_matrix([np.eye(3)], [np.eye(3)[:2]], **costs)
    >>> block.queries.tolist(), block.targets.tolist(), block.scores.tolist()
    ([0], [0], [[1.0]])
    """
    return _blocks(queries, targets, (gap_open, gap_extend), memory, options)


def _blocks(
    queries: Embeddings,
    targets: Embeddings | None,
    costs: tuple[Any, Any],
    memory: int | str,
    options: EndKeywords,
):
    """Check the arguments at once, and return the iterator of blocks."""
    free = resolve_ends(options.get("mode", "global"), options.get("free_ends"))
    check_costs(*costs, None, ())
    numbers = [np.asarray(x, np.float32) for x in costs]
    if any(x.shape not in ((), (2,)) for x in numbers):
        raise UsageError("gap costs of a matrix must be numbers, or a pair of numbers")
    sets = [queries] if targets is None else [queries, targets]
    widths: set[int] = set()
    for embeddings in sets:
        whole = isinstance(embeddings, (jax.Array, np.ndarray))
        tables = [embeddings[0]] if whole and len(embeddings) else embeddings
        for x in tables:
            if np.ndim(x) != 2:
                shape = np.shape(x)
                raise UsageError(f"embeddings of shape {shape}: (length, k) is needed")
            widths.add(x.shape[1])
    if len(widths) > 1:
        raise UsageError(
            f"embeddings of widths {sorted(widths)}: all must have one width"
        )
    side = isqrt(parse_bytes(memory) // BYTES_A_CELL)
    groups = [list(_groups(embeddings, side)) for embeddings in sets]
    # One half of a set with itself is enough where both sequences are treated alike.
    ends = [{x.split("_")[1] for x in free if x.startswith(s)} for s in ("q", "t")]
    alike = ends[0] == ends[1] and all(x.ndim == 0 or x[0] == x[1] for x in numbers)
    rule = options.get("mode", "global"), tuple(sorted(free))
    return _run(sets, groups, numbers, rule, targets is None and alike)


class LengthGroup(NamedTuple):
    """Sequences of a block: their numbers, and the ``shape`` (count, length) to which
    they are padded."""

    indices: np.ndarray
    shape: tuple[int, int]


def _groups(embeddings: Embeddings, side: int) -> Iterator[LengthGroup]:
    """Sequences of similar lengths, the longest first, padded to few shapes; a group
    has about ``side`` residues."""
    if isinstance(embeddings, (jax.Array, np.ndarray)):
        lengths = np.full(len(embeddings), embeddings.shape[1], np.int64)
    else:
        lengths = np.array([len(x) for x in embeddings], np.int64)
    order = by_length(lengths)
    padded = np.array([_padded(x) for x in lengths[order].tolist()], np.int64)
    for length in dict.fromkeys(padded.tolist()):
        members = order[padded == length]
        count = max(side // length, 1)
        count = min(count, 1 << (len(members) - 1).bit_length())
        for first in range(0, len(members), count):
            yield LengthGroup(members[first : first + count], (count, length))


def _padded(length: int) -> int:
    """Round a length up to 64, 96, 128, 192, 256 ..."""
    size = MIN_PADDED_LENGTH
    while size < length:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def _run(
    sets: Sequence[Embeddings],
    groups: Sequence[Sequence[LengthGroup]],
    costs: Sequence[np.ndarray],
    rule: tuple[Mode, tuple[FreeEnd, ...]],
    mirrored: bool,
) -> Iterator[ScoreBlock]:
    """Blocks, each of which is collected when the next one has been started."""
    tables = [_DeviceTables(embeddings, {}) for embeddings in sets]
    waiting: list[tuple[LengthGroup, LengthGroup, jax.Array]] = []
    for k, query in enumerate(groups[0]):
        a = _on_device(tables[0], query)
        # The kernels run where the embeddings lie on a single GPU.
        platforms = [device.platform for device in a[0].devices()]
        kernels = platforms == ["gpu"] and backend.kernels()[0] is not None
        form = {"rule": rule, "kernels": kernels}
        for target in groups[-1][k:] if mirrored else groups[-1]:
            scores = _scores(*a, *_on_device(tables[-1], target), *costs, **form)
            waiting.append((query, target, scores))
            if len(waiting) > 1:
                yield from _collected(*waiting.pop(0), mirrored)
    for block in waiting:
        yield from _collected(*block, mirrored)


def _collected(
    query: LengthGroup, target: LengthGroup, scores: jax.Array, mirrored: bool
) -> Iterator[ScoreBlock]:
    a, b = query.indices, target.indices
    block = np.asarray(scores)[: len(a), : len(b)]
    yield ScoreBlock(a, b, block)
    if mirrored and query is not target:
        yield ScoreBlock(b, a, block.T)


class _DeviceTables(NamedTuple):
    """A set, and the padded embeddings and lengths of the last few groups, by the
    number of their first sequence."""

    embeddings: Embeddings
    recent: dict[int, tuple[jax.Array, jax.Array]]


def _on_device(tables: _DeviceTables, group: LengthGroup):
    """Padded embeddings and lengths of a group; the last few stay on the device."""
    (embeddings, recent), (count, length) = tables, group.shape
    first = int(group.indices[0])
    if first in recent:
        return recent[first]
    if len(recent) >= RECENT_GROUPS:
        del recent[next(iter(recent))]
    lengths = np.zeros(count, np.int32)
    if isinstance(embeddings, jax.Array):  # it need not see the host
        rows = embeddings[group.indices]
        padding = (0, count - rows.shape[0]), (0, length - rows.shape[1]), (0, 0)
        lengths[: rows.shape[0]] = rows.shape[1]
        table = jnp.pad(rows, padding)
    else:
        members = [np.asarray(embeddings[k]) for k in group.indices.tolist()]
        table = np.zeros((*group.shape, members[0].shape[1]), members[0].dtype)
        for k, x in enumerate(members):
            table[k, : len(x)], lengths[k] = x, len(x)
    recent[first] = jnp.asarray(table), jnp.asarray(lengths)
    return recent[first]


@program(("rule", "kernels"))
def _scores(
    a: jax.Array,
    m: jax.Array,
    b: jax.Array,
    n: jax.Array,
    gap_open: jax.Array,
    gap_extend: jax.Array,
    *,
    rule: tuple[Mode, tuple[FreeEnd, ...]],
    kernels: bool,
):
    """Scores (Q, T) of embeddings a (Q, M, K) and b (T, N, K) of these lengths."""
    mode, free = rule
    a, b = (x if x.dtype.itemsize == 2 else x.astype(jnp.float32) for x in (a, b))
    form = "qik,tjk->qitj" if kernels else "qik,tjk->qtij"
    s = jnp.einsum(form, a, b, preferred_element_type=jnp.float32)
    batch = a.shape[0], b.shape[0]
    lengths = jnp.broadcast_to(m[:, None], batch), jnp.broadcast_to(n[None], batch)
    costs = [(x[0], x[1]) if x.ndim else (x, x) for x in (gap_open, gap_extend)]
    if kernels:
        return engine.scores_by_kernel(s, lengths, costs, mode == "local", free)
    best = hard_alignment(
        s,
        lengths,
        gap_open=costs[0],
        gap_extend=costs[1],
        mode=mode,
        free_ends=free if mode == "global" else None,
    )
    return best.score
