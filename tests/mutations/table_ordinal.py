"""Mutations of the ordinal estimators."""

from __future__ import annotations

from mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = [
    Mutation(
        "ordinal/decisions.py",
        "[:, :-1] < 0.5 - 1e-12)",
        "[:, :-1] <= 0.5)",
        "ordinal/test_thresholds_and_decisions.py::test_decisions_are_ratings_where_values_are_given"
        " ordinal/test_thresholds_and_decisions.py::test_an_exact_half_is_the_lower_rank",
        "a cumulative probability of exactly one half does not reach it",
    ),
    Mutation(
        "ordinal/decisions.py",
        "return (probabilities @ costs).argmin(axis=1)",
        "return (probabilities @ costs.T).argmin(axis=1)",
        "ordinal/test_thresholds_and_decisions.py::test_decisions_have_the_least_expected_cost",
        "costs are transposed",
    ),
    Mutation(
        "ordinal/losses.py",
        "counts = (k == ranks[:, None]) | (k == ranks[:, None] - 1)",
        "counts = (k == ranks[:, None]) | (k == ranks[:, None] + 1)",
        "ordinal/test_losses.py::test_objective_against_loops_for_every_cell_of_the_table",
        "the wrong neighbour of a threshold",
    ),
    Mutation(
        "ordinal/losses.py",
        "        return w[sample, threshold]\n",
        "        return w[sample, 0]\n",
        "ordinal/test_losses.py::test_objective_against_loops_for_every_cell_of_the_table",
        "weights of thresholds are ignored",
    ),
    Mutation(
        "ordinal/thresholds/best.py",
        "middle = (good + 1) // 2",
        "middle = 1",
        "ordinal/test_thresholds_fitted.py::"
        "test_absolute_error_is_the_default_cost_and_the_middle_cut_is_taken",
        "the first tied cut, not the middle one",
        compiled=False,
    ),
    Mutation(
        "ordinal/thresholds/link.py",
        "gradient[-1] += GAP_PRIOR * x[-1]",
        "gradient[-1] += 0.0 * x[-1]",
        "ordinal/test_thresholds_and_decisions.py::test_link_gradient_by_central_differences",
        "the prior of the scale is missing from the gradient",
    ),
    Mutation(
        "ordinal/gpor/evidence.py",
        "            gradient[cut:] += slope[self.free]\n",
        "",
        "ordinal/gpor/test_gpor_inference.py::"
        "test_the_gradient_contains_the_prior_of_an_absent_rank",
        "the prior is missing from the gradient",
        compiled=False,
    ),
    Mutation(
        "ordinal/gpor/laplace.py",
        "converged = violation <= STALLED * scale",
        "converged = True",
        "ordinal/gpor/test_gpor_inference.py::"
        "test_a_search_that_stalls_far_from_the_mode_has_not_converged",
        "a stalled search is reported as converged",
        compiled=False,
    ),
    Mutation(
        "ordinal/gpor/parameters.py",
        "tails[1:] * np.exp(rho[2:])",
        "tails[1:]",
        "ordinal/gpor/test_gpor_inference.py::test_the_gradient_is_the_finite_difference",
        "the gradient by gaps instead of their logarithms",
        compiled=False,
    ),
    Mutation(
        "ordinal/gpor/ep.py",
        "cavity = (h - A * nu) / rest",
        "cavity = h / rest",
        "ordinal/gpor/test_gpor_inference.py::test_ep_for_one_sample_is_exact",
        "the cavity contains its own site",
        compiled=False,
    ),
    Mutation(
        "ordinal/boosting/stump.py",
        "if not cut < values[j, i + 1]:",
        "if not cut <= values[j, i + 1]:",
        "ordinal/boosting/test_boosting_learners.py::test_stump_parts_neighbouring_floats",
        "neighbouring floats are not parted",
        compiled=False,
    ),
    Mutation(
        "ordinal/boosting/orboost.py",
        "return pooled_thresholds(up[:-1], down[1:])",
        "return 0.5 * (up[:-1] - down[1:])",
        "ordinal/boosting/test_boosting_losses.py::"
        "test_left_right_thresholds_need_pooling_on_this_example",
        "thresholds are not pooled",
        compiled=False,
    ),
    Mutation(
        "ordinal/boosting/rankboost.py",
        "return 0.25 * bounded_ratio(",
        "return 0.5 * bounded_ratio(",
        "ordinal/boosting/test_boosting_losses.py::test_step_of_rankboost_is_that_of_the_paper",
        "steps are twice as long",
        compiled=False,
    ),
    Mutation(
        "ordinal/boosting/stopping.py",
        "own.size)), own.size - 1)",
        "own.size)), own.size)",
        "ordinal/boosting/test_boosting_models.py::test_every_rank_keeps_a_training_row",
        "all samples of a rank are held out",
    ),
    Mutation(
        "ordinal/boosting/stopping.py",
        "if error < self.best_error:",
        "if error <= self.best_error:",
        "ordinal/boosting/test_boosting_models.py::test_patience_counts_rounds_without_a_lower_error",
        "an equal error counts as progress",
    ),
    Mutation(
        "ordinal/npsvor/active_set.py",
        "new[on & (place == UPPER) & (t > -eps + slack)]",
        "new[on & (place == UPPER) & (t > eps + slack)]",
        "ordinal/npsvor/test_npsvor_solver.py::test_exchanges_by_hand",
        "the wrong side of the tube in the pivot",
    ),
    Mutation(
        "ordinal/npsvor/bias.py",
        "shrinking = planes.target(np.where(z > 0, 1.0, -1.0)) - F",
        "shrinking = planes.target(np.where(z >= 0, 1.0, -1.0)) - F",
        "ordinal/npsvor/test_npsvor_solver.py::"
        "test_meets_the_conditions_of_optimality_from_scratch",
        "the kink has one slope",
    ),
    Mutation(
        "ordinal/svor/interior.py",
        "gap = max(gap, float(np.abs(balance).max() / pairs.cap.max()))",
        "gap = max(gap, 0.0)",
        "ordinal/svor/test_svor_solver.py::"
        "test_the_interior_point_is_far_while_multipliers_are_out_of_balance",
        "balance is no part of the stopping rule",
        compiled=False,
    ),
    Mutation(
        "ordinal/svor/bordered.py",
        "changed = np.flatnonzero(shift != self.shift)",
        "changed = np.flatnonzero(np.isfinite(shift) != np.isfinite(self.shift))",
        "ordinal/svor/test_svor_solver.py::test_a_factor_serves_rows_that_leave_come_and_change",
        "a row whose shift has changed keeps the old one",
        compiled=False,
    ),
    Mutation(
        "ordinal/svor/implicit.py",
        "ordered = not _lemma_holds(at_thresholds)",
        "ordered = False",
        "ordinal/svor/test_svor_costs.py::test_zero_one_costs_are_exc",
        "costs for which the order must be forced do without",
    ),
    Mutation(
        "ordinal/svor/pairs.py",
        "near = (j == ranks[:, None]) | (j == ranks[:, None] - 1)",
        "near = (j == ranks[:, None]) | (j == ranks[:, None] + 1)",
        "ordinal/svor/test_svor_solver.py::test_pairs_of_both_forms",
        "the wrong neighbour of a threshold",
    ),
    Mutation(
        "ordinal/svor/bounds.py",
        "low[j], low_pair[j] = low[j - 1], low_pair[j - 1]",
        "low[j], low_pair[j] = low[j], low_pair[j]",
        "ordinal/svor/test_svor_solver.py::test_bounds_are_passed_on_by_hand",
        "ordered thresholds do not pass on their lower bounds",
        compiled=False,
    ),
    Mutation(
        "ordinal/logistic/objective.py",
        "total.slope + self.alpha * w,",
        "total.slope,",
        "ordinal/logistic/test_logistic_objective.py::test_derivatives_by_central_differences",
        "the penalty is missing from the gradient",
        compiled=False,
    ),
    Mutation(
        "ordinal/baselines/prank.py",
        "if side * (score - b[j]) <= 0.0:",
        "if side * (score - b[j]) < 0.0:",
        "ordinal/baselines/test_baselines.py::test_prank_follows_the_papers_box_and_keeps_the_order",
        "a score on the threshold is no mistake",
        compiled=False,
    ),
    Mutation(
        "ordinal/baselines/svr.py",
        "            epsilon=self.epsilon,\n",
        "",
        "ordinal/baselines/test_baselines.py::test_regression_on_ranks_is_rounded_and_clipped",
        "epsilon is ignored",
    ),
]
