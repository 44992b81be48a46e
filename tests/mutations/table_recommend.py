"""Mutations of the rating models, choice models and lists."""

from __future__ import annotations

from mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

LEAKS = "recommend/process_model/test_leakage.py"
THRESHOLDS = "recommend/thresholds/test_thresholds.py"
BASELINES = "recommend/baselines/test_baselines.py"

MUTATIONS = [
    Mutation(
        "recommend/process_model/learning.py",
        "data, start = weighted_data(inner, side,",
        "data, start = weighted_data(ratings, side,",
        f"{LEAKS}::test_the_hold_out_error_is_that_of_a_hold_out_made_by_hand",
        "weights are learnt with the hold-out inside training",
    ),
    Mutation(
        "recommend/process/fitting.py",
        "rest, own = fold != k, fold == k",
        "rest, own = fold >= 0, fold == k",
        f"{LEAKS}::test_a_ratings_own_thresholds_are_fitted_without_it",
        "the cross-fitted likelihood sees its own ratings",
    ),
    Mutation(
        "recommend/process/fitting.py",
        "return Process(K, a, y - a / d, noise, n_iter, undated)",
        "return Process(K, a, y - noise * a, noise, n_iter, undated)",
        f"{LEAKS}::test_left_out_scores_do_not_see_their_own_rating",
        "fitted scores in place of leave-one-out ones",
    ),
    Mutation(
        "recommend/process/fitting.py",
        "1.0 / (W * self.typical**2)",
        "1.0 / (W * self.typical)",
        f"{LEAKS}::test_newton_targets_by_hand",
        "the scale for its square",
    ),
    Mutation(
        "recommend/process/loadings.py",
        "rows = fold[owner] != k",
        "rows = fold[owner] >= 0",
        f"{LEAKS}::test_an_owners_loadings_are_fitted_without_the_owner",
        "loadings are fitted with their own owners",
    ),
    Mutation(
        "recommend/process/components.py",
        "n = diag[:, COMMON_SUM] - seen",
        "n = diag[:, COMMON_SUM]",
        "recommend/process/test_process.py::test_covariance_equals_rebuilding_without_each_owner",
        "the owner's own rating counts",
        compiled=False,
    ),
    Mutation(
        "recommend/process/posterior_mean.py",
        "table -= data.products.adjoint(gamma.astype(np.float32), n_jobs)",
        "table += data.products.adjoint(gamma.astype(np.float32), n_jobs)",
        "recommend/process/test_process.py::test_hold_out_gradient_equals_finite_differences",
        "the sign of the second half of the gradient",
    ),
    Mutation(
        "recommend/factors/row_updates.py",
        "np.sqrt(1.0 + np.pi / 8.0 * v)",
        "np.sqrt(1.0 + np.pi / 4.0 * v)",
        "recommend/factors/test_row_updates.py::test_probabilities_are_those_of_the_dense_twin",
        "pi/4 for pi/8 in predictions",
    ),
    Mutation(
        "recommend/factors/row_updates.py",
        "ONE + PI_8 * v",
        "ONE + HALF * v",
        "recommend/factors/test_row_updates.py::test_rows_are_those_of_the_dense_twin",
        "1/2 for pi/8 in updates",
    ),
    Mutation(
        "recommend/factors/version_0_1.py",
        "np.sqrt(1.0 + np.pi / 8.0 * variance)",
        "np.sqrt(1.0 + np.pi / 4.0 * variance)",
        "recommend/factors/test_version_0_1.py::test_probabilities_are_those_of_version_0_1",
        "pi/4 for pi/8 in old models",
    ),
    Mutation(
        "recommend/thresholds/ordered_probit.py",
        "np.log1p(variance * np.exp(-2.0 * log_scale))",
        "np.log1p(variance * np.exp(-log_scale))",
        f"{THRESHOLDS}::test_uncertain_thresholds_widen_by_the_sum_of_variances",
        "the scale for its square",
    ),
    Mutation(
        "recommend/thresholds/ordered_probit.py",
        "logs = np.log(np.maximum(counts, 1.0))",
        "logs = np.log1p(np.maximum(counts, 1.0))",
        f"{THRESHOLDS}::test_counts_enter_the_scale_as_their_logarithm",
        "log(1 + n) for log(n) in training",
    ),
    Mutation(
        "recommend/thresholds/ordered_probit.py",
        "usual = c[0] + c[1] * np.log(scores.size)",
        "usual = c[0] + c[1] * np.log1p(scores.size)",
        f"{THRESHOLDS}::test_one_more_user_has_the_scale_of_their_count",
        "log(1 + n) for log(n) of one more user",
    ),
    Mutation(
        "recommend/thresholds/ordered_probit.py",
        "[[self.threshold_sd], gaps, [self.user_sd]]",
        "[[0.25], gaps, [self.user_sd]]",
        f"{THRESHOLDS}::test_starting_deviations_of_users_count_as_twenty_users",
        "threshold_sd is ignored",
    ),
    Mutation(
        "recommend/thresholds/model.py",
        "fit(ratings.select(fold != k))",
        "fit(ratings)",
        f"{THRESHOLDS}::test_scores_of_the_layer_come_from_fits_without_the_rating",
        "scores are fitted to their own ratings",
    ),
    Mutation(
        "recommend/thresholds/newton.py",
        "to[SCALE] -= by_low * low + by_high * high",
        "to[SCALE] += by_low * low + by_high * high",
        f"{THRESHOLDS}::test_slope_of_a_users_likelihood",
        "the sign of the slope by the scale",
        compiled=False,
    ),
    Mutation(
        "recommend/predictor/model.py",
        "members = process.follow_in_part(plan, inner), factors",
        "members = process.follow(plan, ratings), factors",
        "recommend/predictor/test_hold_out.py::"
        "test_a_held_out_rating_does_not_change_what_is_said_about_it",
        "the pool is learnt on ratings that the process knows",
    ),
    Mutation(
        "recommend/predictor/pool.py",
        "(-slope.sum(axis=1) + PRIOR * away) / levels.size,",
        "(-slope.sum(axis=1)) / levels.size,",
        "recommend/predictor/test_pool.py::test_the_gradient_is_that_of_the_loss",
        "the prior is missing from the gradient",
    ),
    Mutation(
        "recommend/predictor/pool.py",
        "if levels.size < FEW:",
        "if levels.size <= FEW:",
        "recommend/predictor/test_pool.py::test_from_few_ratings_nothing_is_learnt",
        "exactly enough ratings are too few",
    ),
    Mutation(
        "recommend/top_n.py",
        "best = np.lexsort((-expected, -score))[:n]",
        'best = np.argsort(-score, kind="stable")[:n]',
        "recommend/test_top_n.py::test_ties_are_ordered_by_the_expected_rating",
        "ties are not ordered by the expected rating",
    ),
    Mutation(
        "recommend/per_user/model.py",
        "wanted &= ratings.user_counts >= self.min_ratings",
        "wanted &= ratings.user_counts > self.min_ratings",
        "recommend/per_user/test_per_user.py::test_exactly_min_ratings_are_enough",
        "exactly min_ratings make no model",
    ),
    Mutation(
        "recommend/per_user/model.py",
        ".sum(axis=1) >= self.min_ratings)",
        ".sum(axis=1) > self.min_ratings)",
        "recommend/per_user/test_per_user.py::test_exactly_min_ratings_are_enough",
        "exactly min_ratings of one value are no habit",
    ),
    Mutation(
        "recommend/per_user/item_views.py",
        "self._kernel.for_user(user, np.maximum(items, 0), others)",
        "self._kernel.for_user(None, np.maximum(items, 0), others)",
        "recommend/per_user/test_per_user.py::"
        "test_a_users_model_is_the_one_made_by_hand_without_their_column",
        "the user's own column is in their kernel",
    ),
    Mutation(
        "recommend/baselines/bias.py",
        "np.maximum(counts + self.user_damping, 1)",
        "np.maximum(counts, 1)",
        f"{BASELINES}::test_folding_in_a_user_the_model_was_trained_on_changes_nothing",
        "damping is ignored in fold_in",
    ),
    Mutation(
        "recommend/baselines/histogram.py",
        "minlength=ratings.scale.n_ranks) + self.smoothing",
        "minlength=ratings.scale.n_ranks) + 1.0",
        f"{BASELINES}::test_mean_and_histogram_by_hand",
        "smoothing is ignored",
    ),
    Mutation(
        "recommend/baselines/item_knn.py",
        "common = sums[j, 3] - 1.0",
        "common = sums[j, 3]",
        f"{BASELINES}::test_item_neighbours_equal_plain_loops",
        "one more common user than there is",
        compiled=False,
    ),
    Mutation(
        "recommend/baselines/item_knn.py",
        "if norm > 0.0 and common > 0.0 and j != i:",
        "if norm > 0.0 and common > 0.0:",
        f"{BASELINES}::test_a_rating_does_not_predict_itself",
        "an item is its own neighbour",
        compiled=False,
    ),
    Mutation(
        "recommend/choice/ease_solver.py",
        'leverage = np.einsum("ij,ij->i", ZP, Z)[:, None] - ZP**2 / p',
        'leverage = np.einsum("ij,ij->i", ZP, Z)[:, None]',
        "recommend/choice/test_ease.py::test_left_out_scores_are_those_of_a_fit_without_the_user",
        "the leverage of unconstrained regressions",
        compiled=False,
    ),
    Mutation(
        "recommend/choice/als.py",
        "Q = solve_rows(by_item, weight, weight, P, self.unseen_weight, ridge, n_jobs)",
        "Q = solve_rows(by_item, weight, weight, P, 1.0, ridge, n_jobs)",
        "recommend/choice/test_als.py::test_sweeps_do_not_raise_the_loss_of_the_documentation",
        "unseen_weight is ignored for items",
    ),
    Mutation(
        "recommend/choice/cold_start.py",
        "share = (cold / (cold + sizes**2))",
        "share = (cold / (cold + sizes))",
        "recommend/choice/test_choice_models.py::test_users_without_taste_get_popularity"
        " recommend/choice/test_choice_models.py::test_shares_of_popularity_by_hand",
        "popularity counts too much for long histories",
    ),
    Mutation(
        "recommend/choice/calibration.py",
        "return np.minimum(p / self.bias, 1.0)",
        "return np.minimum(p, 1.0)",
        "recommend/choice/test_choice_models.py::test_expected_picks_are_divided_by_their_bias",
        "the bias of the calibration is ignored",
    ),
    Mutation(
        "recommend/lists.py",
        "candidates = np.flatnonzero((scores[row] >= least[row])",
        "candidates = np.flatnonzero((scores[row] > least[row])",
        "recommend/choice/test_choice_models.py::"
        "test_a_list_is_the_order_of_the_scores_without_what_was_rated",
        "the last place of a list is empty",
    ),
    Mutation(
        "recommend/recommender/taste.py",
        "p_like = p[:, scale.values >= like].sum(axis=1)",
        "p_like = p[:, scale.values > like].sum(axis=1)",
        "recommend/test_recommender.py::test_the_order_is_choice_plus_taste_by_hand",
        "exactly `like` is not liked",
    ),
    Mutation(
        "recommend/relevance.py",
        'frame -= frame.groupby(queries).transform("mean")',
        "frame -= frame.mean()",
        "recommend/test_relevance.py::test_scaling_within_queries_by_hand",
        "centred over all queries, not within each",
    ),
]
