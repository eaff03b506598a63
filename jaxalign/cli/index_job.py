"""The straight line of ``jaxalign index``."""

from jaxalign.cli import terminal
from jaxalign.cli.inputs import opening, scoring_for
from jaxalign.cli.options import IndexOptions, ScoringOptions
from jaxalign.cli.request import scoring_of
from jaxalign.database.api import index_database, open_database
from jaxalign.errors import UsageError
from jaxalign.io.encoded_database import SUFFIX, is_database


def run(database: str, scoring: ScoringOptions, options: IndexOptions) -> int:
    """``jaxalign index DB``."""
    say = (lambda _: None) if options.quiet else terminal.say
    if options.verify:
        index = open_database(database, verify=True)
        say(f"{database}: {len(index):,} sequences, checksums are right")
        return 0
    if is_database(database):
        raise UsageError(f"{database}: is an index already; --verify checks it")
    if options.out is None and database == "-":
        raise UsageError("an index of standard input needs a name: -o OUT")
    texts, warn = opening(database), lambda text: terminal.say(f"warning: {text}")
    scored = scoring_for(texts, scoring_of(scoring), scoring, database, warn)
    out = options.out or database + SUFFIX
    about = index_database(
        database, out, scored, unknown=scoring.unknown, force=options.force
    )
    if about["substituted"]:
        letters = f"{about['substituted']} unknown letters are read as"
        terminal.say(f"warning: {database}: {letters} {scored.alphabet.wildcard}")
    say(
        f"{out}: {about['records']:,} sequences, {about['residues']:,} residues, "
        f"longest {about['longest']:,}, {scored.alphabet.kind} alphabet"
    )
    return 0
