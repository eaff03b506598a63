"""A report of an audit, as one page of HTML without a network."""

from jaxalign.homology.audit import Audit
from jaxalign.homology.result import Split


def report(audit: Audit, split: Split | None = None) -> list[str]:
    """Lines of HTML."""
    return []
