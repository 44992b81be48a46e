"""What the API is asked and what it answers; FastAPI checks both and documents them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

__all__ = [
    "About",
    "ExplainRequest",
    "Explained",
    "FoldInRequest",
    "FoldedIn",
    "FoundItem",
    "FoundItems",
    "ItemRow",
    "PredictRequest",
    "Predictions",
    "Problem",
    "RecommendRequest",
    "Recommended",
]

MOST_PAIRS, MOST_RATINGS, MOST_ITEMS, MOST_REASONS = 1000, 500, 100, 20
MOST_FILTERED = 10_000
LARGEST_ID = 2**63 - 1

Id = (
    Annotated[int, Field(strict=True, ge=-LARGEST_ID, le=LARGEST_ID)]
    | Annotated[str, Field(strict=True, min_length=1, max_length=200)]
)
Text = Annotated[str, Field(description="An id as a text, which is exact for long numbers, too.")]
Probability = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(strict=True, ge=1, le=MOST_ITEMS)]
Reasons = Annotated[
    int,
    Field(strict=True, ge=0, le=MOST_REASONS, description="How many reasons per item; 0 for none."),
]
Time = Annotated[
    Annotated[int, Field(strict=True, ge=0, le=253_402_300_799)]
    | Annotated[str, Field(strict=True, max_length=40)]
    | None,
    Field(description="When the rating is given: seconds since 1970, or a date."),
]


Filtered = Annotated[list[Id], Field(max_length=MOST_FILTERED)] | None
Excluded = Annotated[Filtered, Field(description="Items that must not be listed.")]
Only = Annotated[Filtered, Field(description="The only items that may be listed.")]


class Message(BaseModel):
    """A message with the fields named below and no others."""

    model_config = ConfigDict(extra="forbid")


# ---- questions ---------------------------------------------------------------------------------


class Pair(Message):
    """A user and an item."""

    user: Id
    item: Id
    timestamp: Time = None


class PredictRequest(Message):
    """Pairs of users and items. Unknown ones are predicted as average ones."""

    pairs: Annotated[list[Pair], Field(min_length=1, max_length=MOST_PAIRS)]


class RecommendRequest(Message):
    """A user of the model. An unknown one gets the list of somebody without ratings."""

    user: Id
    n: Count = 10
    reasons: Reasons = 0
    exclude: Excluded = None
    only: Only = None


class ExplainRequest(Message):
    """A user and an item."""

    user: Id
    item: Id
    timestamp: Time = None
    reasons: Annotated[int, Field(strict=True, ge=1, le=MOST_REASONS)] = 10


class Rating(Message):
    """A rating of an item of the model, on the model's scale."""

    item: Id
    rating: Annotated[float, Field(strict=True, allow_inf_nan=False)]


class FoldInRequest(Message):
    """The ratings of somebody new; with ``items``, these are predicted in place of a list."""

    ratings: Annotated[list[Rating], Field(max_length=MOST_RATINGS)]
    ordered: Annotated[
        StrictBool,
        Field(description="Whether they stand in the order in which they were given, newest last."),
    ] = False
    n: Count = 10
    reasons: Reasons = 0
    items: Annotated[list[Id], Field(min_length=1, max_length=MOST_ITEMS)] | None = None
    exclude: Excluded = None
    only: Only = None


# ---- answers -----------------------------------------------------------------------------------


class Problem(Message):
    """What is wrong with a request, and what to do about it."""

    error: str


class Abilities(Message):
    """What the model can do."""

    distributions: bool
    recommend: bool
    explain: bool
    fold_in: bool


class About(Message):
    """The model."""

    name: str
    model: str
    n_users: int
    n_items: int
    scale: Annotated[list[float], Field(description="The rating values, lowest first.")]
    low: float
    high: float
    binned: Annotated[bool, Field(description="Whether the values stand for bins of ratings.")]
    like: Annotated[float, Field(description="The lowest rating that counts as liked.")]
    can: Abilities


class FoundItem(Message):
    """An item and what it is called."""

    item: Text
    title: str


class FoundItems(Message):
    """Items whose titles contain all words, the most rated first."""

    items: list[FoundItem]


class Reason(Message):
    """A contribution: to the score of being picked, or (like) to the expected rating."""

    why: Literal["pick", "like"]
    source: Annotated[
        str, Field(description='"all ratings", "this item", "you", "own rating", "others", ...')
    ]
    item: Text | None
    title: str | None
    rating: float | None
    place: Annotated[
        float | None,
        Field(description="Place of an own rating by time, 1 the newest; null if it is unknown."),
    ]
    contribution: float | None


class ItemRow(Message):
    """What the model says of an item; null where it says nothing."""

    item: Text
    title: str
    score: float | None
    p_pick: Annotated[
        Probability | None, Field(description="Probability to be among the next picks.")
    ]
    p_like: Probability | None
    expected: Annotated[float | None, Field(description="The expected rating.")]
    distribution: Annotated[
        list[Probability] | None, Field(description="Probability of each value of the scale.")
    ]
    reasons: list[Reason] | None


class PairRow(Message):
    """A prediction."""

    user: Text
    item: Text
    title: str
    rating: float | None
    score: float | None
    expected: float | None
    distribution: list[Probability] | None
    known_user: bool
    known_item: bool


class Predictions(Message):
    """One row per pair, in the order of the request."""

    scale: list[float]
    pairs: list[PairRow]


class Recommended(Message):
    """The best items for a user."""

    user: Text
    known_user: bool
    ordered_by: str
    items: list[ItemRow]


class Explained(ItemRow):
    """What the model says of an item, and why."""

    user: Text
    known_user: bool


class FoldedIn(Message):
    """What the model says to somebody with these ratings. Nothing is stored."""

    ordered_by: Annotated[
        str, Field(description='"recommended", "pick", "expected" (rating), or "as asked".')
    ]
    items: list[ItemRow]
