"""Every public object survives pickle, deepcopy, joblib and another process; models also clone."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from importlib import import_module
from operator import methodcaller
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import ordrec.kernels as kernels
import ordrec.ordinal as ordinal
import ordrec.recommend.registry as registry
from ordrec.data import Ratings
from ordrec.datasets import (
    describe_dataset,
    latent_model,
    load_letor,
    load_ohsumed,
    load_table,
    synthetic_ratings,
)
from ordrec.documents import (
    BM25,
    QueryDocumentFeatures,
    RankSVM,
    RelevanceRanker,
    evaluate_ranking,
    read_judgements,
)
from ordrec.errors import ArgumentError
from ordrec.evaluation import (
    Between,
    Candidates,
    ColdItems,
    Experiment,
    GlobalTime,
    HoldOut,
    KFold,
    LeaveLast,
    LeaveOut,
    OwnMetric,
    PublishedFolds,
    QueryProblem,
    RatingsProblem,
    StratifiedHoldOut,
    StratifiedKFold,
    StrongGeneralisation,
    TableProblem,
    UserHoldOut,
    UserTime,
    evaluate,
    tune_model,
)
from ordrec.features import (
    DocumentTfidf,
    LowRankEM,
    MeanImputer,
    RatingMatrix,
    SideEncoder,
    damped_biases,
)
from ordrec.recommend import (
    BiasModel,
    ChoiceModel,
    ConformalRatings,
    HeldOut,
    PersonalThresholds,
    ProcessPredictor,
    Recommender,
    SklearnModel,
    make_model,
    predict_scan,
)
from ordrec.runtime.parallel import run_all

RATINGS = synthetic_ratings(30, 25, n_ratings=500, seed=0)
FOLDED = Ratings(
    RATINGS.users, RATINGS.items, RATINGS.levels,
    scale=RATINGS.scale, user_ids=RATINGS.user_ids, item_ids=RATINGS.item_ids,
    timestamps=np.arange(500), folds={"u1": np.arange(500) % 5 == 0},
    item_table=pd.DataFrame({"title": [f"no. {k}" for k in range(25)]}),
)  # fmt: skip
USERS = [0, 0, 3, 99]
ITEMS = [1, 5, 2, 1]
SMALL = {
    "recommender": {"rating": "factors"},
    "factors": {"max_iter": 2, "n_factors": 2},
    "choice": {"n_factors": 2},
    "als": {"n_factors": 2},
    "implicit-als": {"n_factors": 2},
    "implicit-bpr": {"n_factors": 2, "n_iter": 2},
    "predictor": {"learn": "defaults"},
    "myfm": {"n_iter": 4, "n_factors": 2},
}
MODELS = {
    **{
        entry.name: (entry.name, SMALL.get(entry.name, {}))
        for entry in registry.MODELS
        if entry.name and entry.home.startswith("ordrec.")  # not those of other tests
    },
    "thresholds": (PersonalThresholds, {"model": BiasModel(), "n_splits": 2}),
    "nested": (Recommender, {"rating": PersonalThresholds(BiasModel(), n_splits=2)}),
    "classifier": (SklearnModel, {"estimator": LogisticRegression(max_iter=500)}),
}


def unfitted(name: str) -> Any:
    made, params = MODELS[name]
    return make_model(made, **params) if isinstance(made, str) else made(**params)


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {}


def model_of(name: str, fitted: dict[str, Any]) -> Any:
    if name not in fitted:
        try:
            fitted[name] = unfitted(name).fit(RATINGS)
        except ArgumentError as error:
            if "cannot be imported" not in str(error):
                raise
            pytest.skip(str(error))
    return fitted[name]


def predicted(model: Any) -> np.ndarray:
    return model.predict(USERS, ITEMS) if hasattr(model, "predict") else model.scores(USERS, ITEMS)


def by_joblib(value: Any, folder: Any) -> Any:
    joblib.dump(value, folder / "value")
    return joblib.load(folder / "value")


def described(value: Any) -> str:
    """The representation without places in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def copies(value: Any, folder: Any) -> list[Any]:
    pickled = [
        pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ]
    return [*pickled, copy.deepcopy(value), copy.copy(value), by_joblib(value, folder)]


@pytest.mark.parametrize("name", MODELS)
def test_a_fitted_model_can_be_copied(name: str, fitted: dict[str, Any], tmp_path) -> None:
    model = model_of(name, fitted)
    expected = predicted(model)
    for again in copies(model, tmp_path):
        assert type(again) is type(model)
        np.testing.assert_array_equal(predicted(again), expected)


def test_fitted_models_go_to_other_processes(fitted: dict[str, Any]) -> None:
    models = [model_of(name, fitted) for name in ("bias", "per-user-logistic", "predictor-fast")]
    # a function of the standard library: workers need not know the folder of the tests
    predict = methodcaller("predict", USERS, ITEMS)
    found = run_all(predict, models, engine="processes", n_jobs=2)
    for model, elsewhere in zip(models, found, strict=True):
        np.testing.assert_array_equal(predicted(model), elsewhere)


@pytest.mark.parametrize("name", MODELS)
def test_a_clone_has_the_parameters_and_nothing_else(name: str, fitted: dict[str, Any]) -> None:
    model = model_of(name, fitted)
    again = clone(model)
    assert type(again) is type(model)
    assert described(again) == described(model)
    assert not hasattr(again, "scale_")
    for key, value in model.get_params(deep=False).items():
        assert getattr(again, key) is not value or not hasattr(value, "fit")
    np.testing.assert_array_equal(predicted(again.fit(RATINGS)), predicted(model))


@pytest.mark.parametrize("name", MODELS)
def test_parameters_can_be_read_and_set(name: str) -> None:
    model = unfitted(name)
    for key, value in model.get_params().items():
        assert model.set_params(**{key: value}) is model
    assert described(model) == described(unfitted(name))
    with pytest.raises(ArgumentError, match="no parameter 'colour'"):
        model.set_params(colour="red")


def test_parameters_of_a_parameter() -> None:
    model = PersonalThresholds(BiasModel())
    assert model.get_params()["model__user_damping"] == model.model.user_damping
    model.set_params(model=BiasModel(), model__user_damping=7.0)
    assert model.model.user_damping == 7.0
    with pytest.raises(ArgumentError, match="has no parameters"):
        model.set_params(decision__k=3)


# ---- everything else ---------------------------------------------------------------------------


def test_copied_ratings_are_equal_read_only_and_need_no_cache(tmp_path) -> None:
    _ = FOLDED.user_counts
    for again in copies(FOLDED, tmp_path):
        assert repr(again) == repr(FOLDED)
        pd.testing.assert_frame_equal(again.to_frame(), FOLDED.to_frame())
        pd.testing.assert_frame_equal(again.item_table, FOLDED.item_table)
        np.testing.assert_array_equal(again.folds["u1"], FOLDED.folds["u1"])
        for array in (again.users, again.levels, again.timestamps, again.folds["u1"]):
            assert not array.flags.writeable
        with pytest.raises(TypeError):
            again.folds["u2"] = again.folds["u1"]
        assert again.scale == FOLDED.scale
        assert not again.scale.values.flags.writeable


def public_objects(samples, folder) -> list[Any]:
    """At least one object of every public class that is neither a rating model nor abstract."""
    X, y = np.linspace(0, 1, 24)[:, None] ** [1.0, 2.0], np.repeat([1, 2, 3], 8)
    matrix = RatingMatrix.from_ratings(RATINGS)
    RATINGS.to_partitions(folder / "parts")
    scan, held = Ratings.scan(folder / "parts"), HeldOut(0.2)
    factors = make_model("factors", max_iter=2, n_factors=2).fit(held.parted(scan.collect())[0])
    table, letor = load_table(samples / "ordinal/grades.csv"), load_letor(samples / "letor")
    judged = read_judgements(samples / "documents/judged-documents.csv")
    ranked = [
        getattr(ordinal, name)()
        for name in dir(ordinal)
        if inspect.isclass(getattr(ordinal, name))
        and hasattr(getattr(ordinal, name), "fit")
        and name != "ConformalOrdinal"
    ]
    conformal = ordinal.ConformalOrdinal(ordinal.OrdinalLogistic(), coverage=0.7, random_state=0)
    experiment = Experiment({"mean": "mean"}, [RatingsProblem(RATINGS, HoldOut(0.2))])
    plain = kernels.Gaussian(0.5)
    return [
        RATINGS, RATINGS.scale, scan, held, predict_scan(factors, scan, held, folder / "out"),
        GlobalTime(0.2), HoldOut(0.2), KFold(3), LeaveLast(1),
        ColdItems(0.1), OwnMetric(np.ptp, "higher"), LeaveOut(1),
        PublishedFolds(["u1"]), UserTime(0.2), StrongGeneralisation(0.2),
        UserHoldOut(0.2), StratifiedHoldOut(0.2), StratifiedKFold(2),
        next(iter(HoldOut(0.2).split(RATINGS))), next(iter(StratifiedKFold(2).split(y))),
        evaluate(RATINGS, ["mean"], metrics=["mae"]), experiment, experiment.run(),
        RatingsProblem(RATINGS, HoldOut(0.2)), TableProblem(table), QueryProblem.from_letor(letor),
        Candidates({"a": ordinal.PRank()}, "mae"), Between(1, 10, log=True),
        tune_model(RATINGS, "bias", {"user_damping": [1.0]}, split="holdout:0.2"),
        table, letor, load_ohsumed(samples / "ohsumed"), describe_dataset("ml-1m"),
        ProcessPredictor("fast"), SideEncoder(),
        SideEncoder().fit(pd.DataFrame({"age": [20, 30, 40, 45, 50, 61]})),
        latent_model(5, 5), LowRankEM(2), matrix, MeanImputer(), DocumentTfidf(),
        damped_biases(RATINGS.users, RATINGS.items, RATINGS.values, 30, 25),
        *ranked, *(model.fit(X, y) for model in map(clone, ranked)),
        ordinal.tune(ordinal.PRank(), X, y, {"n_iter": [1, 2]}, cv=2),
        RelevanceRanker(ordinal.PRank()), QueryDocumentFeatures().fit(["a word"]),
        BM25(), RankSVM(), judged, evaluate_ranking(["bm25"], judged, metrics=["map"]),
        ordinal.PerceptronRCD(), ordinal.SigmoidRCD(),
        ordinal.fit_many([(X @ X.T, y - 1)]), conformal.fit(X, y),
        ConformalRatings(make_model("histogram"), coverage=0.5).fit(RATINGS),
        make_model("predictor-fast").fit(RATINGS).explain(0, 1),
        make_model("bias").fit(RATINGS).fit_report_,
        plain, kernels.ARDGaussian([1.0, 2.0]), kernels.Linear(), kernels.ARDLinear([1.0, 2.0]),
        kernels.Polynomial(), kernels.Precomputed(), kernels.Constant(), plain + plain,
        plain * plain, 2.0 * plain, plain.normalised(), kernels.Content(), kernels.CoRating(),
        kernels.Pearson(), kernels.Residual(), kernels.LowRank(2),
        kernels.ItemKernel(kernels.Pearson()).fit(matrix),
    ]  # fmt: skip


def test_every_public_object_can_be_copied(samples, tmp_path) -> None:
    objects = public_objects(samples, tmp_path)
    for value in objects:
        for again in copies(value, tmp_path):
            assert type(again) is type(value)
            assert described(again) == described(value)
    copied = {type(value) for value in objects}
    copied |= {type(unfitted(name)) for name in MODELS}
    assert public_classes() - copied == set()


def public_classes() -> set[type]:
    """All public classes that can be instantiated."""
    found = set()
    for room in ("data", "datasets", "features", "kernels", "ordinal", "recommend",
                 "evaluation", "documents"):  # fmt: skip
        module = import_module(f"ordrec.{room}")
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.isclass(value) or inspect.isabstract(value) or value is ChoiceModel:
                continue
            if not getattr(value, "_is_protocol", False):
                found.add(value)
    return found
