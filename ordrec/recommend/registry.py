"""The table of models: their names, where they are defined, and how they are used.

One line of `MODELS` adds a model to `make_model`, to ``ordrec fit`` and ``ordrec evaluate``, and
to model files.
"""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ordrec.errors import ArgumentError

__all__ = [
    "ModelEntry",
    "default_model_names",
    "make_model",
    "model_names",
    "register_model",
    "storable_kinds",
    "storable_model_names",
]


@dataclass(frozen=True)
class ModelEntry:
    """One model.

    Attributes
    ----------
    name : str
        What `make_model` and the command line call it; empty for a model that is only made from
        a script.
    home : str
        ``"package.module:Class"``, or a function that makes the model; imported when it is made.
    by_default : bool
        Whether ``ordrec evaluate`` compares it by default.
    storable : bool
        Whether the class declares what its files hold.
    for_picks : bool
        Whether ``ordrec evaluate`` compares it by default on a table without ratings.
    """

    name: str
    home: str
    by_default: bool = False
    storable: bool = True
    for_picks: bool = False


MODELS: list[ModelEntry] = [
    ModelEntry("mean", "ordrec.rating.baselines.mean:GlobalMean", by_default=True),
    ModelEntry("histogram", "ordrec.rating.baselines.histogram:RatingHistogram"),
    ModelEntry("bias", "ordrec.rating.baselines.bias:BiasModel", by_default=True),
    ModelEntry("item-knn", "ordrec.rating.baselines.item_knn:ItemKNN", by_default=True),
    ModelEntry("factors", "ordrec.rating.factors.model:OrdinalFactors", by_default=True),
    ModelEntry(
        "popularity", "ordrec.choice.popularity:Popularity", by_default=True, for_picks=True
    ),
    ModelEntry(
        "recommender-fast", "ordrec.recommend.recommender:fast_recommender", by_default=True
    ),
    ModelEntry("recommender", "ordrec.recommend.recommender:Recommender", for_picks=True),
    ModelEntry("choice", "ordrec.choice.mixture:ChoiceMixture"),
    ModelEntry("ordered", "ordrec.choice.ordered:OrderedChoice"),
    ModelEntry("ease", "ordrec.choice.ease:EASE", by_default=True, for_picks=True),
    ModelEntry("als", "ordrec.choice.als:ImplicitALS", for_picks=True),
    ModelEntry("implicit-als", "ordrec.peers.implicit:implicit_als", storable=False),
    ModelEntry("per-user-svor", "ordrec.rating.per_user.model:PerUserPredictor"),
    ModelEntry("per-user-logistic", "ordrec.rating.per_user.model:per_user_logistic"),
    ModelEntry("predictor", "ordrec.rating.predictor:RatingPredictor"),
    # not by default: recommender-fast predicts ratings with it
    ModelEntry("predictor-fast", "ordrec.rating.predictor:fast_predictor"),
    ModelEntry("", "ordrec.rating.process.model:ProcessPredictor"),
    ModelEntry("", "ordrec.rating.thresholds.model:PersonalThresholds"),
    ModelEntry("surprise-svd", "ordrec.peers.surprise:SurpriseModel", storable=False),
    ModelEntry("surprise-knn", "ordrec.peers.surprise:surprise_knn", storable=False),
    ModelEntry("implicit-bpr", "ordrec.peers.implicit:implicit_bpr", storable=False),
    ModelEntry("myfm", "ordrec.peers.myfm:MyFMModel", storable=False),
    ModelEntry("ridge", "ordrec.peers.sklearn:ridge_on_ids", storable=False),
]


def register_model(name: str, home: str) -> None:
    """Make a model of your own known to `make_model` and to the command line.

    Parameters
    ----------
    name : str
        Lower case, words joined by hyphens.
    home : str
        ``"package.module:Class"``, imported when the model is first made.
    """
    if ":" not in home:
        raise ArgumentError(f'home must read "package.module:Class", got {home!r}')
    taken = _by_name().get(name)
    if taken is None:
        MODELS.append(ModelEntry(name, home, storable=False))
    elif taken.home != home:
        raise ArgumentError(f"model name {name!r} is taken by {taken.home}: choose another")


def model_names() -> list[str]:
    """The names that `make_model` knows, in the order of the table."""
    return list(_by_name())


def default_model_names(*, has_ratings: bool = True) -> list[str]:
    """The names of the models that ``ordrec evaluate`` compares by default."""
    return [
        entry.name for entry in MODELS if (entry.by_default if has_ratings else entry.for_picks)
    ]


def storable_model_names() -> list[str]:
    """The names of the models that can be saved."""
    return [entry.name for entry in MODELS if entry.name and entry.storable]


def storable_kinds() -> dict[str, str]:
    """For each class of models that can be saved, in alphabetical order, its home."""
    homes = {entry.home.partition(":")[2]: entry.home for entry in MODELS if entry.storable}
    return {kind: homes[kind] for kind in sorted(homes) if kind[0].isupper()}


def make_model(name: str, **params: Any) -> Any:
    """Make an unfitted model by its name.

    Parameters
    ----------
    name : str
        One of `model_names`.
    **params
        The model's own parameters.

    Raises
    ------
    ArgumentError
        For an unknown name or parameter, listing the known ones and the nearest.

    Examples
    --------
    >>> make_model("bias", user_damping=5)
    BiasModel(user_damping=5, item_damping=10.0, tol=1e-06, max_iter=200)
    """
    entry = _by_name().get(name)
    if entry is None:
        raise ArgumentError(f"unknown model {name!r}: {_suggestion(name, model_names())}")
    module, _, attribute = entry.home.partition(":")
    factory = getattr(import_module(module), attribute)
    taken = inspect.signature(factory).parameters
    model = factory(**{param: value for param, value in params.items() if param in taken})
    known = list(dict.fromkeys([*taken, *_parameters_of(model)]))
    for param in params:
        if param not in known:
            raise ArgumentError(
                f"model {name!r} has no parameter {param!r}: {_suggestion(param, known)}"
            )
    further = {param: value for param, value in params.items() if param not in taken}
    return model.set_params(**further) if further else model


def _parameters_of(model: Any) -> dict[str, Any]:
    """The parameters of a model, which may be more than those of the function that makes it."""
    return model.get_params(deep=False) if hasattr(model, "get_params") else {}


def _by_name() -> dict[str, ModelEntry]:
    return {entry.name: entry for entry in MODELS if entry.name}


def _suggestion(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word.lower(), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}choose from {', '.join(known) or 'none'}"
