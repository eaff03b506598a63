"""A corpus as a caller may hold it: in memory, or files that are read in blocks."""

from collections.abc import Callable, Iterator

from jaxalign import inputs
from jaxalign.inputs import SetLike
from jaxalign.io import corpus_files, fasta
from jaxalign.io.corpus_files import files_of
from jaxalign.io.encoded_database import is_database, mapped
from jaxalign.model.alphabet import AS_WRITTEN, Reading, Sequences, in_blocks
from jaxalign.model.scoring import Scoring
from jaxalign.model.source import reads_again
from jaxalign.runtime.devices import block_sizes


class Corpus:
    """A corpus in blocks, and the number of letters that were replaced while they were
    read.

    Attributes
    ----------
    files : tuple of str
        Empty where it is in memory.
    substituted : int
        Letters read as the wildcard, so far.
    """

    def __init__(
        self,
        corpus: SetLike,
        scoring: Scoring,
        reading: Reading = AS_WRITTEN,
        memory_budget: int | str | None = None,
    ):
        self.files: tuple[str, ...] = ()
        self.substituted = 0
        self._sequences: Sequences | None = None
        self._scoring, self._reading = scoring, reading
        sizes = corpus_files.BLOCK_RESIDUES, corpus_files.BLOCK_RECORDS
        self._sizes = block_sizes(sizes, memory_budget)
        if isinstance(corpus, inputs.PATH):
            self.files = files_of(corpus)
            if not all(map(reads_again, self.files)):  # a pipe, whose size is asked for
                raw = fasta.read_raw(self.files[0], reading=reading)
                encoded = fasta.encode_counted(raw, scoring.alphabet, reading.unknown)
                self._sequences, self.substituted = encoded
        else:
            (self._sequences,) = inputs.sets(scoring, corpus)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Sequences]:
        """Yield blocks in order, of the records from ``start`` up to ``stop``."""
        first = 0
        for block in self._whole_blocks():
            last = first + len(block)
            low = max(start - first, 0)
            high = len(block) if stop is None else min(stop - first, len(block))
            if low < high:
                whole = (low, high) == (0, len(block))
                yield block if whole else block.between(low, high)
            first = last
            if stop is not None and first >= stop:
                return

    def _whole_blocks(self) -> Iterator[Sequences]:
        if self._sequences is not None:
            yield from in_blocks(self._sequences, *self._sizes)
            return
        about = self.files, self._scoring.alphabet, self._reading
        for block in corpus_files.blocks(*about, at_most=self._sizes):
            self.substituted += block.substituted
            yield block.sequences

    def known_size(self) -> tuple[int, int] | None:
        """Return (sequences, residues) where nothing need be read for it, else None."""
        if self._sequences is not None:
            return len(self._sequences), len(self._sequences.codes)
        if not all(map(is_database, self.files)):
            return None
        databases = [mapped(path, self._scoring.alphabet) for path in self.files]
        return sum(map(len, databases)), sum(len(x.codes) for x in databases)

    def size(self) -> tuple[int, int]:
        """Return (sequences, residues); FASTA is read once more for it."""
        sizes = self.known_size()
        if sizes is not None:
            return sizes
        counts, replaced = (0, 0), self.substituted
        for block in self.blocks():
            counts = counts[0] + len(block), counts[1] + len(block.codes)
        self.substituted = replaced
        return counts

    def names(self) -> Iterator[str]:
        """Yield the names of all sequences; FASTA is read once more for it."""
        replaced = self.substituted
        for block in self.blocks():
            yield from block.names
        self.substituted = replaced

    def teller(
        self, progress: Callable[[int, int | None], object] | None, queries: Sequences
    ) -> Callable[[int], object]:
        """Make a callback that takes the cells of the queries so far, and reports them
        with their total where the size of the corpus is known."""
        if progress is None:
            return lambda cells: None
        sizes = self.known_size()
        total = None if sizes is None else sizes[1] * len(queries.codes)
        return lambda cells: progress(cells, total)
