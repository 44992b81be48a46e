"""The application: which address answers which question."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ordrec import __version__
from ordrec.errors import OrdrecError, shortened
from ordrec.serve import messages
from ordrec.serve.catalogue import UnknownItem, plain_id
from ordrec.serve.documentation import documentation
from ordrec.serve.guard import Guard, problem
from ordrec.serve.served_model import ServedModel
from ordrec.serve.traffic import Traffic

__all__ = ["LOCAL", "make_app"]

LOCAL = ("127.0.0.1", "localhost")
TEXTS = {"/": "page.html", "/page.css": "page.css", "/page.js": "page.js"}
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": messages.Problem, "description": text}
    for status, text in {
        400: "The body is not json.",
        404: "An item is not in the model.",
        413: "The body is too large.",
        415: "The body is not declared to be json.",
        422: "A value is missing or wrong; the text names it.",
    }.items()
}
SUMMARY = (
    "Rating distributions, lists and reasons of one fitted model. Every request is answered from "
    "the model as it was loaded: nothing is written or remembered."
)


def make_app(
    model: Any,
    name: str = "",
    hosts: Collection[str] = LOCAL,
    access_log: Callable[[str], None] | None = None,
) -> FastAPI:
    """Make a web application of a fitted model: a page and a read-only JSON API.

    ``ordrec serve`` runs it on this machine. Needs ``pip install 'ordrec[serve]'``.

    Parameters
    ----------
    model : fitted model
        `Recommender`, `RatingPredictor`, `OrdinalFactors`, or any other. What it cannot do is
        refused with a sentence.
    name : str
        Shown on the page; by default the class of the model.
    hosts : collection of str
        The host names under which it is asked; requests to others are refused. "*" stands for all.
    access_log : callable, optional
        Called with one line per request that was answered.

    Returns
    -------
    FastAPI
        With the page at ``/``, its documentation at ``/docs`` and ``/openapi.json``, ``/health``
        for whoever watches over it, and counts of its answers for Prometheus at ``/metrics``.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import RatingHistogram
    >>> model = RatingHistogram().fit(synthetic_ratings(20, 12, n_ratings=100, seed=0))
    >>> sorted(make_app(model).openapi()["paths"])[:2]
    ['/api/explain', '/api/fold-in']
    """
    served = ServedModel(model, name)
    app = FastAPI(
        title="ordrec",
        summary=SUMMARY,
        version=__version__,
        docs_url=None,  # FastAPI's own page loads scripts from elsewhere
        redoc_url=None,
    )
    _add_questions(app, served)
    _add_pages(app, served)
    _add_refusals(app)
    traffic = Traffic([*app.openapi()["paths"], *TEXTS, "/docs", "/health", "/metrics"], access_log)
    _add_watching(app, served, traffic)
    app.add_middleware(Guard, hosts=hosts, traffic=traffic)
    return app


def _add_questions(app: FastAPI, served: ServedModel) -> None:
    @app.get("/api/model", summary="About the model")
    def model() -> messages.About:
        """Return the scale, the sizes, and what the model can do."""
        return messages.About(**served.about())

    @app.get("/api/items", summary="Search items", responses={422: REFUSALS[422]})
    def items(
        q: Annotated[str, Query(max_length=100, description="Words of a title.")] = "",
        n: Annotated[int, Query(ge=1, le=messages.MOST_ITEMS)] = 20,
    ) -> messages.FoundItems:
        """Return the items whose titles contain all words, the most rated first."""
        found = [
            {"item": plain_id(each), "title": served.items.titles[each]}
            for each in served.items.search(q, n)
        ]
        return messages.FoundItems.model_validate({"items": found})

    @app.post("/api/predict", summary="Predict ratings", responses=REFUSALS)
    def predict(asked: messages.PredictRequest) -> messages.Predictions:
        """Return a rating and its distribution for pairs of users and items."""
        pairs = [(pair.user, pair.item, _time(pair.timestamp)) for pair in asked.pairs]
        return messages.Predictions.model_validate(
            {"scale": served.about()["scale"], "pairs": served.predict(pairs)}
        )

    @app.post("/api/recommend", summary="List the best items", responses=REFUSALS)
    def recommend(asked: messages.RecommendRequest) -> messages.Recommended:
        """Return the items that a user of the model should see first."""
        rows = served.recommend(
            asked.user, asked.n, asked.reasons, exclude=asked.exclude, only=asked.only
        )
        return messages.Recommended.model_validate(rows)

    @app.post("/api/explain", summary="Explain an expected rating", responses=REFUSALS)
    def explain(asked: messages.ExplainRequest) -> messages.Explained:
        """Return what speaks for picking an item, and what its expected rating is made of."""
        found = served.explain(asked.user, asked.item, _time(asked.timestamp), asked.reasons)
        return messages.Explained.model_validate(found)

    @app.post("/api/fold-in", summary="Ask for somebody new", responses=REFUSALS)
    def fold_in(asked: messages.FoldInRequest) -> messages.FoldedIn:
        """Return a list, with distributions and reasons, for somebody who gave these ratings."""
        ratings = [(each.item, each.rating) for each in asked.ratings]
        rows = served.fold_in(
            ratings, asked.n, asked.reasons, asked.items,
            exclude=asked.exclude, only=asked.only, ordered=asked.ordered,
        )  # fmt: skip
        return messages.FoldedIn.model_validate(rows)


def _add_pages(app: FastAPI, served: ServedModel) -> None:
    def shown(name: str) -> Any:
        text = resources.files("ordrec.serve").joinpath(name).read_text(encoding="utf-8")
        kind = KINDS[name.rpartition(".")[2]]
        return lambda: Response(text, media_type=f"{kind}; charset=utf-8")

    for path, name in TEXTS.items():
        app.get(path, include_in_schema=False)(shown(name))

    @app.get("/docs", include_in_schema=False)
    def docs(request: Request) -> Response:
        address = str(request.base_url).rstrip("/")
        text = documentation(app.openapi(), address, served.example())
        return Response(text, media_type="text/html; charset=utf-8")


def _add_watching(app: FastAPI, served: ServedModel, traffic: Traffic) -> None:
    @app.get("/health", include_in_schema=False)
    async def health() -> dict[str, str]:  # without a thread: it answers while others are answered
        return {"status": "ok", "model": served.name, "version": __version__}

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(traffic.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _add_refusals(app: FastAPI) -> None:
    @app.exception_handler(OrdrecError)
    def refuse(_: Request, error: OrdrecError) -> Response:
        status = 404 if isinstance(error, UnknownItem) else 422
        return problem(status, " ".join(str(error).split()))

    @app.exception_handler(RequestValidationError)
    def refuse_fields(_: Request, error: RequestValidationError) -> Response:
        broken = any(each["type"] == "json_invalid" for each in error.errors())
        faults = [_in_words(each) for each in error.errors()[:3]]
        return problem(400 if broken else 422, shortened("; ".join(faults)))

    @app.exception_handler(HTTPException)
    def refuse_address(request: Request, error: HTTPException) -> Response:
        texts = {
            404: f"there is nothing at {request.url.path}: see /docs",
            405: f"{request.url.path} is not asked by {request.method}: see /docs",
        }
        headers = dict(error.headers) if error.headers else None
        return problem(
            error.status_code, shortened(texts.get(error.status_code, error.detail)), headers
        )


def _in_words(error: Any) -> str:
    """Write pydantic's error as ``ratings[0].rating: input should be a valid number``."""
    place = ""
    for part in error["loc"][1:]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isidentifier() and part not in ("int", "str"):  # the rest names a kind of value
            place += f".{part}" if place else part
    text = error["msg"]
    return f"{place or 'the body'}: {text[:1].lower()}{text[1:]}"


def _time(given: int | str | None) -> str:
    return "" if given is None else str(given)
