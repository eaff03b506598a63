"""Tests start strict: rank and dtype promotion are errors, so are warnings; four
virtual CPU devices. XLA must be told before jax is imported. Small jobs are compiled
too, but in the tests that run as users do."""

import os
import sys

import pytest

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
# Tests change constants that programs are made of; few of them want the folder.
os.environ["JAXALIGN_CACHE_DIR"] = "off"
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ["JAXALIGN_ROWS"] = "off"  # most tests are of what XLA compiles

# Tests that run as users do: small jobs by rows.
AS_USERS = {
    "test_api.py",
    "test_cli.py",
    "test_docs.py",
    "test_entered_files.py",
    "test_inputs.py",
    "test_notebooks.py",
    "test_options.py",
    "test_pictures.py",
    "cli/test_search.py",
    "test_small_jobs.py",
}

# Cases, and tests of what others look at too, that take more than three seconds on a
# core with nothing compiled: `make test-all` has them.
SLOW = (
    "test_bands_by_rows_of_a_batch",
    "test_large_jobs_of_narrow_and_wide_scores[1-int8]",
    "test_any_rows_score_what_the_general_fill_finds",
    "test_equal_to_align_pairs[semiglobal-None]",
    "test_chosen_where_they_run[semiglobal]",
    "test_hits_and_their_paths[local-sweep]",
    "test_a_certain_label_has_a_gradient",
    "test_one_gradient[mode1]",
    "test_the_k_best_of_a_batch",
    "test_narrow_embeddings_are_multiplied_as_they_are[bfloat16]",
    "test_scores_by_stripes",
    "test_large_jobs_of_narrow_and_wide_scores[40-int32]",
    "test_nan_within_the_lengths_is_nan[gaps-log]",
    "test_nan_within_the_lengths_is_nan[posterior-log]",
    "test_gradients_of_nan_are_nan[log]",
    "test_a_device_by_name_computes",
    "test_hits_and_scores_are_parasails",
    "test_every_path_by_enumeration[float32]",
    "test_the_k_best_by_enumeration[True]",
    "test_equal_to_align_pairs[global-free_ends0]",
    "test_sequences_of_other_lengths_are_refused",
    "test_paths_beyond_eight_bits[stats]",
    "test_tables_of_scores_beyond_eight_bits[refilled]",
    "test_sets_are_those_of_the_lanes[global-identity]",
    "test_scores_beyond_eight_bits[1-65536]",
    "test_rows_find_the_same_hits[local-200]",
    "test_hits_are_those_of_both_searches_by_hand[1]",
    "test_the_sample_does_not_depend_on_blocks",
    "test_a_batch_with_a_band_is_its_pairs",
    "test_hard_alignments_too",
    "test_each_device_computes_its_share[gradient-log]",
    "test_finite_differences",
    "test_enumeration[None]",
    "test_every_transformation_agrees",
    "test_samples_follow_the_posterior[global-True]",
    "test_padding_and_batches[global]",
    "test_memory_of_gradients[entropy-100]",
    "test_posterior_forward_and_back",
    "test_samples_and_divergence_of_nan",
    "test_samples_divergence_and_hard_alignments_without_entries[shape3]",
    "test_infinite_costs_forbid_gaps",
    "test_large_jobs_have_their_gap_costs_in_the_program",
    "test_columns_in_chunks[local]",
    "test_eight_bits_say_when_they_do_not_hold[constant-costs]",
    "test_kill_at_random_moments[2]",
    "test_parts_shards_and_what_is_there_already[True]",
    "test_launches_that_find_no_memory_run_in_halves[zipped-issued]",
    "test_paths[local-int16-block]",
    "test_witnesses[linear]",
    "test_striped_is_the_sweep[1-8-True]",
    "test_a_process_that_dies_or_hangs_is_a_fault[time.sleep(60)-silent for]",
    "test_examples[docs/how-to/soft-alignment.md]",
    "test_examples[docs/how-to/fit-a-profile.md]",
    "test_group_by_rows[commands: formats]",
    "test_paths_beyond_eight_bits[alignment]",
    "test_the_k_best_by_enumeration[False]",
    "test_parts_of_a_search_and_single_alignments",
    "test_triples_of_nucleotides[align_triples]",
    "test_each_device_computes_its_share[gradient-pallas]",
    "test_columns_in_chunks[global]",
    "test_narrow_embeddings_are_multiplied_as_they_are[float16]",
    "test_equal_to_align_pairs[global-free_ends3]",
    "test_equal_to_align_pairs[local-None]",
    "test_chunks_find_the_stored_path[bt3-sloped-case2]",
    "test_sets_are_those_of_the_lanes[local-stats]",
    "test_samples_follow_the_posterior[semiglobal-False]",
    "test_chosen_where_they_run[local]",
    "test_paths_by_differences[limits]",
    "test_any_window_gives_the_same[5]",
    "test_batches_keep_the_order_and_send_large_ones_alone",
    "test_scores_beyond_eight_bits[1-3]",
    "test_hits_are_those_of_both_searches_by_hand[3]",
    "test_unique_paths_and_their_identities[affine]",
    "test_where_there_is_no_bound_the_result_says_so",
    "test_links_of_a_set[launches]",
    "test_audits[launches-3]",
    "test_audits[launches-400]",
    "test_audits[launches of two devices-400]",
    "test_greedy_clusters[launches]",
    "test_audits_are_told_of_all_cells[launches]",
    "test_rows_of_large_sets_do_not_depend_on_devices[audit]",
)


def pytest_collection_modifyitems(items):
    """Mark the tests of ``SLOW``."""
    for item in items:
        if item.name in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def as_users_run(request, monkeypatch):
    """Small jobs by rows, as in a new process, in the tests of ``AS_USERS``."""
    if any(request.path.match(name) for name in AS_USERS):
        monkeypatch.delenv("JAXALIGN_ROWS")


@pytest.fixture(autouse=True)
def few_programs():
    """All tests together compile more programs than a process may have."""
    yield
    from jaxalign.runtime.memory import maps_run_short

    if maps_run_short():
        import jax

        from jaxalign.runtime import programs

        programs.clear()
        jax.clear_caches()


@pytest.fixture(autouse=True)
def accesses_inside():
    """A kernel that leaves its arrays fails the test that ran it."""
    yield
    check = sys.modules.get("kernels_pallas.core.access_check")
    if check and check.OUTSIDE:
        outside = list(dict.fromkeys(check.OUTSIDE))
        check.OUTSIDE.clear()
        pytest.fail("a kernel left its arrays:\n" + "\n".join(outside[:20]))
