"""Models named on the command line: those of the library, and your own ``package.module:Class``.

Your own class is imported because you name it there. A model file can only name classes of the
library: to read one of yours, name its class again (``--class``).
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ordrec.cli.options import check_kinds, settings_of
from ordrec.errors import ArgumentError

__all__ = [
    "ClassOption",
    "imported",
    "loaded",
    "made_model",
    "made_models",
    "must_have",
    "remember_class",
    "say_chosen",
]

ClassOption = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="NAME",
        help="For a MODEL of a class of your own: package.module:Class, whose code is run.",
    ),
]


def made_model(name: str, settings: list[str]) -> Any:
    """Make the unfitted model of a name, or of ``package.module:Class``, with these settings."""
    parameters = settings_of(settings)
    if ":" not in name:
        from ordrec.recommend import make_model

        model = make_model(name, **parameters)
        check_kinds(parameters, make_model(name))
        return model
    factory = imported(name)
    known = inspect.signature(factory).parameters
    for parameter in parameters:
        if parameter not in known:
            raise ArgumentError(
                f"{name} has no parameter {parameter!r}: choose from {', '.join(known) or 'none'}"
            )
    model = factory(**parameters)
    if not hasattr(model, "fit") or not (hasattr(model, "predict") or hasattr(model, "scores")):
        raise ArgumentError(
            f"{name} is no rating model: it needs fit(ratings) and predict(users, items)"
        )
    return model


def made_models(names: list[str], settings: list[str], seed: int) -> dict[str, Any]:
    """Make the models to compare, by the name they have in the results.

    Parameters
    ----------
    names : list of str
    settings : list of str
        ``model.name=value``.
    seed : int
        The ``random_state`` of models that have one, unless it is set.
    """
    own: dict[str, list[str]] = {name: [] for name in names}
    for setting in settings:
        place, equals, value = setting.partition("=")
        model, _, parameter = place.strip().rpartition(".")
        if not (model and equals):
            raise ArgumentError(
                f"--set {setting!r}: write it as model.name=value, such as factors.n_factors=8"
            )
        if model not in own:
            raise ArgumentError(
                f"--set {setting!r}: {model!r} is not one of the models {', '.join(names)}"
            )
        own[model].append(f"{parameter}={value}")
    return {
        _short(name, names): _seeded(made_model(name, own[name]), own[name], seed) for name in names
    }


def loaded(model: Path, max_memory: float | None, own_class: str | None = None) -> Any:
    """Load the file of a rating model within a limit on memory, the usual one if None."""
    from ordrec.files import ESTIMATORS, RANKERS, load

    if own_class is not None:
        remember_class(imported(own_class), own_class)
    found = load(model) if max_memory is None else load(model, max_memory=max_memory)
    if type(found).__name__ in RANKERS:
        raise ArgumentError(
            f"{model}: a {type(found).__name__} ranks documents, not items for users: use "
            "'ordrec rank predict'"
        )
    if type(found).__name__ in ESTIMATORS:
        raise ArgumentError(
            f"{model}: a {type(found).__name__} predicts from features, not for users and items: "
            "use it from Python, by ordrec.load"
        )
    return found


def must_have(fitted: Any, method: str) -> None:
    """Raise an error, with the models that can, if a model cannot do what a command asks for."""
    if not hasattr(fitted, method):
        all_three = "Recommender, RatingPredictor, OrdinalFactors"
        what, able = {
            "recommend": ("recommend", f"{all_three} and the choice models"),
            "recommend_all": ("recommend to all", f"{all_three} and the choice models"),
            "explain": ("explain", all_three),
            "similar_items": ("tell what is similar", all_three),
        }[method]
        raise ArgumentError(
            f"{type(fitted).__name__} cannot {what}: fit a model that can ({able}), "
            "such as --model recommender"
        )


def remember_class(kind: Any, name: str) -> None:
    """Let model files hold a class of your own, in this process."""
    from ordrec.files import register

    if not isinstance(kind, type) or not hasattr(kind, "stored"):
        raise ArgumentError(f"{name}: is no storable class: a file cannot hold it")
    register(kind.__name__, f"{kind.__module__}:{kind.__name__}")


def imported(
    name: str, otherwise: str = "neither a class nor a function that makes a model"
) -> Callable[..., Any]:
    """Import ``package.module:Class``, also from the folder in which the command runs."""
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # worker processes get it from here
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses another one
        raise ArgumentError(
            f"{name}: there is no module {error.name!r}: run ordrec in the folder that has it, or "
            "install it"
        ) from None
    except (AttributeError, ValueError):
        raise ArgumentError(f"{name}: {module} has no {attribute!r}") from None
    if not callable(found):
        raise ArgumentError(f"{name}: is {otherwise}")
    return found


def _short(name: str, names: list[str]) -> str:
    """The class alone for a model of your own, unless another one is called the same."""
    short = name.rpartition(":")[2]
    return short if [each.rpartition(":")[2] for each in names].count(short) == 1 else name


def _seeded(model: Any, settings: list[str], seed: int) -> Any:
    is_set = any(setting.startswith("random_state=") for setting in settings)
    if hasattr(model, "random_state") and not is_set:
        model.random_state = seed
    return model


def say_chosen(fitted: Any, n_ratings: int) -> None:
    """Say on standard error what a model has chosen, if it chose: its preset, how it lists."""
    chosen = getattr(fitted, "chosen_", None)
    if getattr(chosen, "names", ()):
        print(f"ordrec: chosen for lists: {chosen}", file=sys.stderr)
    predictor = getattr(fitted, "rating_", fitted)
    chose = "auto" in (getattr(fitted, "rating", None), getattr(predictor, "preset", None))
    if chose and hasattr(predictor, "preset_"):
        print(
            f'ordrec: RatingPredictor chose preset="{predictor.preset_}" for {n_ratings:,} ratings',
            file=sys.stderr,
        )
