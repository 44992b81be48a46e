"""The two models of a recommender, made of what its parameters say."""

from __future__ import annotations

import copy
from typing import Any

from ordrec.choice.base import ChoiceModel
from ordrec.choice.mixture import ChoiceMixture
from ordrec.errors import ArgumentError
from ordrec.recommend.registry import make_model

__all__ = ["new_choice_model", "new_rating_model"]

FULL_UP_TO = 200_000  # ratings: beyond, the fast preset of the rating predictor


def new_choice_model(choice: Any, n_jobs: int | None, random_state: int) -> ChoiceModel:
    """Return an unfitted choice model: a copy of the one given, one by name, or a mixture."""
    if isinstance(choice, str):
        if choice == "auto":
            return ChoiceMixture(n_jobs=n_jobs, random_state=random_state)
        choice = make_model(choice)
    if not isinstance(choice, ChoiceModel):
        raise ArgumentError(
            f'choice must be "auto" or a choice model such as EASE(), got {choice!r}'
        )
    return copy.deepcopy(choice)


def new_rating_model(rating: Any, n_ratings: int, n_jobs: int | None, random_state: int) -> Any:
    """Return an unfitted rating model, or None: as given, by name, or a rating predictor."""
    if rating is None:
        return None
    if isinstance(rating, str):
        if rating != "auto":
            return make_model(rating)
        preset = "full" if n_ratings <= FULL_UP_TO else "fast"
        return make_model("predictor", preset=preset, n_jobs=n_jobs, random_state=random_state)
    if not hasattr(rating, "predict"):
        raise ArgumentError(
            f'rating must be "auto", None or a rating model, got {type(rating).__name__}, '
            "which does not predict"
        )
    return copy.deepcopy(rating)
