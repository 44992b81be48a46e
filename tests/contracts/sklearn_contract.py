"""The checks of scikit-learn that an ordinal estimator fails by design, with the reasons.

Used as ``parametrize_with_checks([...], expected_failed_checks=expected_failures)``.
"""

from __future__ import annotations

import inspect
from typing import Any

NO_ORDER = "three labels of type str have no order: classes= must declare it"
SCALE_SEES_ROWS = 'gamma="scale" depends on the variance of the given rows, repeated ones included'
UNITS_SEE_ROWS = "features are standardised by the given rows, repeated ones included"
MEDIAN = "predict is the median of the probabilities, which need not be their mode"


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the names of the checks that fail, with the reasons."""
    expected = {"check_classifiers_classes": NO_ORDER}
    if type(estimator).__name__ == "CumulativeLink":
        expected["check_classifiers_train"] = MEDIAN
    parameters = estimator.get_params()
    weighted = "sample_weight" in inspect.signature(estimator.fit).parameters
    # the check compares decision values or probabilities if there are any, otherwise labels
    valued = hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")
    if (
        weighted
        and valued
        and parameters.get("kernel") == "rbf"
        and parameters.get("gamma") == "scale"
    ):
        expected["check_sample_weight_equivalence_on_dense_data"] = SCALE_SEES_ROWS
        expected["check_sample_weight_equivalence_on_sparse_data"] = SCALE_SEES_ROWS
    if weighted and valued and parameters.get("scaling") == "standard":
        expected["check_sample_weight_equivalence_on_dense_data"] = UNITS_SEE_ROWS
        expected["check_sample_weight_equivalence_on_sparse_data"] = UNITS_SEE_ROWS
    return expected
