"""Splits without leaks, metrics with names, and the comparison of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.evaluation.comparison import evaluate
    from ordrec.evaluation.errors import (
        kendall_tau,
        macro_mae,
        mae,
        mze,
        off_by_one,
        quadratic_kappa,
        rmse,
    )
    from ordrec.evaluation.experiment import Experiment
    from ordrec.evaluation.experiment_result import ExperimentResult
    from ordrec.evaluation.measures import DEFAULT_METRICS, decide, measure_from_name, metric_names
    from ordrec.evaluation.partition import RowSplit, Split, Splitter
    from ordrec.evaluation.probability import (
        brier_score,
        expected_calibration_error,
        log_loss,
        ranked_probability_score,
    )
    from ordrec.evaluation.problems import Problem
    from ordrec.evaluation.query_problem import QueryProblem
    from ordrec.evaluation.ranking import (
        fcp,
        mean_average_precision,
        mean_reciprocal_rank,
        ndcg,
        pooled_fcp,
        precision_at,
        recall_at,
    )
    from ordrec.evaluation.rating_problem import RatingsProblem
    from ordrec.evaluation.result import EvaluationResult
    from ordrec.evaluation.row_splits import StratifiedHoldOut, StratifiedKFold
    from ordrec.evaluation.selection import Candidates
    from ordrec.evaluation.splits import (
        GlobalTime,
        HoldOut,
        KFold,
        LeaveOut,
        PublishedFolds,
        StrongGeneralisation,
        UserHoldOut,
        UserTime,
        split_from_name,
    )
    from ordrec.evaluation.table_problem import TableProblem

__all__ = [
    "DEFAULT_METRICS",
    "Candidates",
    "EvaluationResult",
    "Experiment",
    "ExperimentResult",
    "GlobalTime",
    "HoldOut",
    "KFold",
    "LeaveOut",
    "Problem",
    "PublishedFolds",
    "QueryProblem",
    "RatingsProblem",
    "RowSplit",
    "Split",
    "Splitter",
    "StratifiedHoldOut",
    "StratifiedKFold",
    "StrongGeneralisation",
    "TableProblem",
    "UserHoldOut",
    "UserTime",
    "brier_score",
    "decide",
    "evaluate",
    "expected_calibration_error",
    "fcp",
    "kendall_tau",
    "log_loss",
    "macro_mae",
    "mae",
    "mean_average_precision",
    "mean_reciprocal_rank",
    "measure_from_name",
    "metric_names",
    "mze",
    "ndcg",
    "off_by_one",
    "pooled_fcp",
    "precision_at",
    "quadratic_kappa",
    "ranked_probability_score",
    "recall_at",
    "rmse",
    "split_from_name",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "errors": "kendall_tau macro_mae mae mze off_by_one quadratic_kappa rmse",
        "comparison": "evaluate",
        "experiment": "Experiment",
        "experiment_result": "ExperimentResult",
        "measures": "DEFAULT_METRICS decide measure_from_name metric_names",
        "partition": "RowSplit Split Splitter",
        "probability": "brier_score expected_calibration_error log_loss ranked_probability_score",
        "problems": "Problem",
        "query_problem": "QueryProblem",
        "ranking": "fcp mean_average_precision mean_reciprocal_rank ndcg pooled_fcp "
        "precision_at recall_at",
        "rating_problem": "RatingsProblem",
        "result": "EvaluationResult",
        "row_splits": "StratifiedHoldOut StratifiedKFold",
        "selection": "Candidates",
        "splits": "GlobalTime HoldOut KFold LeaveOut PublishedFolds StrongGeneralisation "
        "UserHoldOut UserTime split_from_name",
        "table_problem": "TableProblem",
    },
)
