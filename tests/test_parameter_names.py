"""The parameters of public classes have one word for each thing."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

PACKAGES = ["recommend", "ordinal", "documents", "features", "kernels", "evaluation"]
# What must not be used: what is used instead.
WORDS = {
    "rank": "n_factors",
    "factors": "n_factors",
    "iterations": "n_iter or max_iter",
    "n_epochs": "n_iter",
    "learn_iter": "max_iter",
    "shrinkage": "damping",
    "scorer": "model",
    "base_estimator": "estimator",
    "margins": "threshold",
    "seed": "random_state",
    "random_seed": "random_state",
}


def public_classes(package: str) -> list[type]:
    module = import_module(f"ordrec.{package}")
    found = [getattr(module, name) for name in module.__all__]
    return [each for each in found if inspect.isclass(each)]


@pytest.mark.parametrize("package", PACKAGES)
def test_there_is_one_word_for_each_thing(package: str) -> None:
    classes = public_classes(package)
    assert classes
    for kind in classes:
        for name in inspect.signature(kind).parameters:
            assert name not in WORDS, f"{kind.__name__}({name}=) should be {WORDS[name]}"


def test_the_scale_is_that_of_the_ratings() -> None:
    for kind in public_classes("ordinal"):
        assert "scale" not in inspect.signature(kind).parameters, kind.__name__
