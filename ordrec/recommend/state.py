"""A `Recommender` as arrays and metadata of a model file, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.choice.base import ChoiceModel
from ordrec.choice.calibration import PickCalibration
from ordrec.errors import ModelFileError
from ordrec.storage import model_of, state_of, texts_from_arrays, texts_to_arrays

__all__ = ["recommender_from_state", "recommender_to_state"]

CHOICE, RATING = "choice.", "rating."  # prefixes of arrays in a file


def recommender_to_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata of a fitted recommender."""
    model._check_fitted()
    arrays, choice = state_of(model.choice_)
    arrays = {CHOICE + name: array for name, array in arrays.items()}
    rating = None
    if model.rating_ is not None:
        own, rating = state_of(model.rating_)
        arrays |= {RATING + name: array for name, array in own.items()}
    if model.titles_ is not None:
        arrays |= texts_to_arrays("titles", model.titles_)
    return arrays, {
        "choice": choice,
        "rating": rating,
        "taste": model.taste,
        "like": model.like,
        "n_candidates": model.n_candidates,
        "calibration": model.calibration_.to_metadata(),
        "titled": model.titles_ is not None,
    }


def recommender_from_state(cls: Any, arrays: Any, metadata: dict[str, Any]) -> Any:
    """The recommender that `recommender_to_state` stored."""
    choice = model_of(_part(arrays, CHOICE), metadata["choice"])
    if not isinstance(choice, ChoiceModel):
        raise ModelFileError("what should be its choice model is another one")
    rating = None
    if metadata["rating"] is not None:
        rating = model_of(_part(arrays, RATING), metadata["rating"])
        if not hasattr(rating, "predict"):
            raise ModelFileError("its rating model does not predict ratings")
        if not choice.item_ids_.isin(rating.item_ids_).all():  # the latter may know more
            raise ModelFileError("its two models know different items")
    calibration = PickCalibration.from_metadata(metadata["calibration"])
    like, taste = metadata["like"], metadata["taste"]
    model = cls.of_fitted(
        choice,
        rating,
        calibration,
        taste=taste if taste == "auto" else float(taste),
        like=None if like is None else float(like),
        n_candidates=int(metadata["n_candidates"]),
    )
    model._check_parameters()
    model.titles_ = None
    if metadata["titled"]:
        model.titles_ = texts_from_arrays("titles", arrays)
        if len(model.titles_) != len(model.item_ids_):
            raise ModelFileError("it has not one title per item")
    return model


def _part(arrays: Any, prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
