# For type checkers: the names that `__init__.py` loads on first use.
from jaxalign.database.api import index_database as index_database
from jaxalign.database.api import open_database as open_database
from jaxalign.database.api import read_structures as read_structures
from jaxalign.database.api import search as search
from jaxalign.database.api import stream_search as stream_search
from jaxalign.database.nearest import nearest as nearest
from jaxalign.database.nearest_result import Nearest as Nearest
from jaxalign.errors import DeviceError as DeviceError
from jaxalign.errors import DeviceFailure as DeviceFailure
from jaxalign.errors import InputError as InputError
from jaxalign.errors import JaxalignError as JaxalignError
from jaxalign.errors import MemoryPlanError as MemoryPlanError
from jaxalign.errors import UsageError as UsageError
from jaxalign.family.api import search_complexes as search_complexes
from jaxalign.family.api import search_family as search_family
from jaxalign.family.pairing import ComplexAlignment as ComplexAlignment
from jaxalign.family.result import FamilyAlignment as FamilyAlignment
from jaxalign.homology.api import audit as audit
from jaxalign.homology.api import audit_pairs as audit_pairs
from jaxalign.homology.api import cluster as cluster
from jaxalign.homology.api import deduplicate as deduplicate
from jaxalign.homology.api import identity_graph as identity_graph
from jaxalign.homology.api import split as split
from jaxalign.homology.api import split_pairs as split_pairs
from jaxalign.homology.api import split_series as split_series
from jaxalign.homology.audit import Audit as Audit
from jaxalign.homology.pair_splits import PairAudit as PairAudit
from jaxalign.homology.pair_splits import PairSplit as PairSplit
from jaxalign.homology.purge import purge as purge
from jaxalign.homology.purge_scan import Purge as Purge
from jaxalign.homology.result import Clusters as Clusters
from jaxalign.homology.result import Split as Split
from jaxalign.model.alignment import Alignment as Alignment
from jaxalign.model.alphabet import Alphabet as Alphabet
from jaxalign.model.alphabet import Sequences as Sequences
from jaxalign.model.choices import Edges as Edges
from jaxalign.model.profile import Profile as Profile
from jaxalign.model.scoring import Scoring as Scoring
from jaxalign.model.table import Table as Table
from jaxalign.model.triple import TripleAlignment as TripleAlignment
from jaxalign.model.triple import TripleTable as TripleTable
from jaxalign.pairs.api import align as align
from jaxalign.pairs.api import align_all as align_all
from jaxalign.pairs.api import align_pairs as align_pairs
from jaxalign.pairs.api import directions as directions
from jaxalign.pairs.api import distance_matrix as distance_matrix
from jaxalign.pairs.api import dp_table as dp_table
from jaxalign.pairs.api import plan as plan
from jaxalign.pairs.api import scores_matrix as scores_matrix
from jaxalign.pairs.jobs import stream_all as stream_all
from jaxalign.pairs.part_stream import Part as Part
from jaxalign.pairs.plan import Plan as Plan
from jaxalign.pairs.profile_alignments import align_profile as align_profile
from jaxalign.repertoire.api import repertoire_graph as repertoire_graph
from jaxalign.repertoire.api import stream_repertoire as stream_repertoire
from jaxalign.repertoire.graph import EdgeBlock as EdgeBlock
from jaxalign.repertoire.result import RepertoireGraph as RepertoireGraph
from jaxalign.similarity.distribution import (
    AlignmentDistribution as AlignmentDistribution,
)
from jaxalign.similarity.hard.api import HardAlignments as HardAlignments
from jaxalign.similarity.hard.api import hard_alignment as hard_alignment
from jaxalign.similarity.hard.api import k_best as k_best
from jaxalign.similarity.hard.api import local_hits as local_hits
from jaxalign.similarity.hard.api import (
    profile_similarity as profile_similarity,
)
from jaxalign.similarity.hard.matrices import ScoreBlock as ScoreBlock
from jaxalign.similarity.hard.matrices import hard_matrix as hard_matrix
from jaxalign.similarity.hard.matrices import stream_hard_matrix as stream_hard_matrix
from jaxalign.similarity.soft.api import alignment_entropy as alignment_entropy
from jaxalign.similarity.soft.api import alignment_log_prob as alignment_log_prob
from jaxalign.similarity.soft.api import expected_gaps as expected_gaps
from jaxalign.similarity.soft.api import kl_divergence as kl_divergence
from jaxalign.similarity.soft.api import mea_alignment as mea_alignment
from jaxalign.similarity.soft.api import sample_alignments as sample_alignments
from jaxalign.similarity.soft.api import soft_posterior as soft_posterior
from jaxalign.similarity.soft.api import soft_score as soft_score
from jaxalign.similarity.soft.buckets import LengthBucket as LengthBucket
from jaxalign.similarity.soft.buckets import bucket_lengths as bucket_lengths
from jaxalign.triples.api import align_three as align_three
from jaxalign.triples.api import align_triples as align_triples
from jaxalign.triples.api import plan_three as plan_three
from jaxalign.triples.plan import TriplePlan as TriplePlan
from jaxalign.words.api import edit_distance as edit_distance
from jaxalign.words.api import edit_distance_graph as edit_distance_graph

__version__: str
