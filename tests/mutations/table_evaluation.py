"""Mutations of splits, metrics, tests of significance, reports and the command line."""

from __future__ import annotations

from mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

SPLITS = "evaluation/splits/test_splits.py"
SIGNIFICANCE = "evaluation/significance/test_significance.py"

MUTATIONS = [
    Mutation(
        "evaluation/full_catalogue.py",
        "known, test = split.train_and_given(), split.test",
        "known, test = split.train, split.test",
        "evaluation/test_full_catalogue.py::test_places_by_hand_without_what_was_given",
        "given items stay in the catalogue",
    ),
    Mutation(
        "evaluation/splits/ratings.py",
        "_share_of_each(ratings, self.given), 1\n",
        "_share_of_each(ratings, self.given), 0\n",
        f"{SPLITS}::test_a_held_out_user_shows_at_least_one_rating_and_not_all",
        "a held-out user may show nothing",
    ),
    Mutation(
        "evaluation/splits/ratings.py",
        "enough = ratings.user_counts[ratings.users] > self.n",
        "enough = ratings.user_counts[ratings.users] >= self.n",
        f"{SPLITS}::test_leave_out_takes_n_of_those_who_have_more",
        "users with exactly n ratings lose them all",
    ),
    Mutation(
        "evaluation/splits/ratings.py",
        "yield part_ratings(ratings, times > cut, self.name)",
        "yield part_ratings(ratings, times >= cut, self.name)",
        f"{SPLITS}::test_nothing_in_training_is_later_than_the_global_cut",
        "the cut itself is tested",
    ),
    Mutation(
        "evaluation/splits/ratings.py",
        'rows = rank[np.argsort(-latest_first[rank], kind="stable")]',
        'rows = rank[np.argsort(latest_first[rank], kind="stable")]',
        f"{SPLITS}::test_no_user_has_training_ratings_later_than_test_ratings",
        "the earliest ratings are tested",
    ),
    Mutation(
        "evaluation/splits/base.py",
        "scale = ratings.scale.recentred(ratings.values[train], ratings.levels[train])",
        "scale = ratings.scale.recentred(ratings.values, ratings.levels)",
        "recommend/test_fine_scale.py::test_values_of_bins_are_means_of_the_training_ratings",
        "values of bins see the test ratings",
    ),
    Mutation(
        "evaluation/significance/against_best.py",
        "np.minimum(2 * not_behind",
        "np.minimum(1 * not_behind",
        "evaluation/test_evaluate.py::test_p_values_are_two_sided_and_exact_on_three_users",
        "one-sided p-values",
    ),
    Mutation(
        "evaluation/significance/against_best.py",
        "np.nanquantile(drawn, [level / 2, 1 - level / 2], axis=0)",
        "np.nanquantile(drawn, [0.025, 0.975], axis=0)",
        "evaluation/test_evaluate.py::test_intervals_have_the_level_asked_for",
        "level is ignored",
    ),
    Mutation(
        "evaluation/significance/rank_tests.py",
        "p = (signed_rank if paired else rank_sum)(a, b).p",
        "p = signed_rank(a, b).p",
        f"{SIGNIFICANCE}::test_folds_are_paired_only_if_they_are",
        "paired=False is ignored",
    ),
    Mutation(
        "evaluation/significance/rank_tests.py",
        "ascending=not higher_is_better).mean()",
        "ascending=True).mean()",
        f"{SIGNIFICANCE}::test_demsars_example_of_friedmans_test",
        "higher_is_better is ignored",
    ),
    Mutation(
        "evaluation/significance/bootstrap.py",
        "confidence_level=level,",
        "confidence_level=0.95,",
        f"{SIGNIFICANCE}::test_the_level_is_the_coverage_of_the_interval",
        "level is ignored",
    ),
    Mutation(
        "evaluation/significance/paired_tests.py",
        "* (1 / difference.size + n_test / n_train)",
        "* (1 / difference.size)",
        f"{SIGNIFICANCE}::test_corrected_t_keeps_its_level_under_overlapping_splits",
        "no correction for overlapping training parts",
    ),
    Mutation(
        "evaluation/metrics/rating_errors.py",
        "(np.abs(y_pred - y_true) <= 1.0)",
        "(np.abs(y_pred - y_true) < 1.0)",
        "evaluation/metrics/test_rating_errors.py::"
        "test_pooled_and_per_user_forms_equal_plain_loops",
        "off by exactly one is too far",
    ),
    Mutation(
        "evaluation/metrics/rating_errors.py",
        "/ (counts > 0).sum(axis=1)",
        "/ classes.size",
        "evaluation/metrics/test_rating_errors.py::"
        "test_pooled_and_per_user_forms_equal_plain_loops",
        "classes that a user never gave count",
    ),
    Mutation(
        "evaluation/metrics/probability.py",
        "np.ceil(stated * n_bins).astype(np.int64) - 1",
        "np.floor(stated * n_bins).astype(np.int64)",
        "evaluation/metrics/test_probability.py::"
        "test_calibration_of_cumulative_events_equals_plain_loops"
        " evaluation/metrics/test_probability.py::test_a_bin_includes_its_upper_end",
        "bins include the wrong end",
    ),
    Mutation(
        "evaluation/metrics/probability.py",
        "((below - happened) ** 2).mean(axis=1)",
        "((below - happened) ** 2).sum(axis=1)",
        "evaluation/metrics/test_probability.py::test_pooled_and_per_user_forms_equal_plain_loops",
        "the ranked probability score is not divided",
    ),
    Mutation(
        "evaluation/metrics/ranking.py",
        "weight[rank > k] = 0.0",
        "weight[rank >= k] = 0.0",
        "evaluation/metrics/test_ranking.py::test_equal_to_plain_loops",
        "the place k itself does not count",
    ),
    Mutation(
        "evaluation/metrics/ranking.py",
        "rows = np.random.default_rng(0).permutation(scores.size)",
        "rows = np.arange(scores.size)",
        "evaluation/metrics/test_ranking.py::"
        "test_equal_scores_gain_nothing_from_the_order_of_the_file",
        "ties are ordered by the file",
    ),
    Mutation(
        "evaluation/metrics/top_lists.py",
        "share = np.maximum(lists.item_counts, 1) / max(lists.n_training_users, 1)",
        "share = np.maximum(lists.item_counts, 1) / lists.item_counts.sum()",
        "evaluation/test_full_catalogue.py::test_metrics_equal_plain_loops",
        "novelty by the share of ratings, not of users",
    ),
    Mutation(
        "evaluation/experiment/selection.py",
        "int(np.nanargmin(means))",
        "int(np.nanargmax(means))",
        "evaluation/experiment/test_experiment.py::"
        "test_the_best_of_a_grid_by_mean_over_inner_folds",
        "the worst candidate wins",
    ),
    Mutation(
        "report/tables.py",
        "return float(values[as_losses(name, values).idxmin()])",
        "return float(values.min())",
        "test_cli_evaluate.py::test_the_highest_is_best_where_higher_is_better",
        "the lowest value is bold, whatever the metric",
    ),
    Mutation(
        "report/figures.py",
        "means, errors = grouped.mean(), grouped.sem().fillna(0.0)",
        "means, errors = grouped.median(), grouped.sem().fillna(0.0)",
        "report/test_figures.py::test_curves_go_through_the_means",
        "curves go through the medians",
    ),
    Mutation(
        "cli/outputs.py",
        "if source.is_file() and source.samefile(path):",
        "if source.is_file() and source == path:",
        "test_cli_outputs.py::test_an_input_is_never_replaced",
        "a link to an input is overwritten",
    ),
    Mutation(
        "cli/outputs.py",
        "if not (ours or overwrite):",
        "if not (ours or not overwrite):",
        "test_cli_outputs.py::test_a_strangers_file_is_replaced_only_when_asked",
        "a stranger's file is replaced unasked",
    ),
    Mutation(
        "cli/chosen_models.py",
        "found = load(model) if max_memory is None else load(model, max_memory=max_memory)",
        "found = load(model)",
        "test_cli_outputs.py::test_memory_for_models_is_bounded",
        "--max-memory is ignored",
    ),
]
