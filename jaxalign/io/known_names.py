"""The names that a table may call the sequences of a file by."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from jaxalign.io.fasta_records import headings


@dataclass(frozen=True, eq=False)
class KnownNames:
    """Names of sequences: first words of headings, and the headings, whole.

    Attributes
    ----------
    names : collection of str
        First words.
    path : str or None
        The FASTA that they come from, if it can be read again.
    """

    names: Collection[str]
    path: str | None = None

    def resolve(self, text: str) -> str:
        """The name that a text means; the text itself where it means none."""
        if text in self.names or len(text.split()) < 2:
            return text
        return self._whole.get(" ".join(text.split()), text)

    @cached_property
    def _whole(self) -> dict[str, str]:
        """Names by whole headings, of which none comes twice."""
        if self.path is None:
            return {}
        whole: dict[str, str] = {}
        twice = set()
        for heading in headings(self.path):
            words = heading.split()
            text = " ".join(words)
            twice |= {text} & whole.keys()
            whole[text] = words[0] if words else ""
        return {text: name for text, name in whole.items() if text not in twice}
