"""The bodies of responses about single items and about tags."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from .schemas import ItemOut

Share = Annotated[
    float | None,
    Field(description="The share of comparable pairs of answers that contradict each other; null if there are none."),
]


Comments = Annotated[int, Field(description="How many answers about it have a comment.")]


class ItemSummary(BaseModel):
    """An item, and what the answers say about it. This describes the answers; it is not a verdict."""

    number: int
    prompt: Annotated[str, Field(description="The first 400 characters of it.")]
    tags: list[str]
    answers: int
    leader: Annotated[str | None, Field(description="The arm with the most wins minus losses, if it is one arm.")]
    level: Annotated[bool, Field(description="Whether several arms are level at the top.")]
    disagreement: Share
    contradictions: Annotated[int, Field(description="Pairs of answers that decide for different arms …")]
    compared: Annotated[
        int, Field(description="… of how many pairs of answers of different voters about the same two arms.")
    ]
    comment_count: Comments


class RemovedItemsOut(BaseModel):
    items: int
    answers: int


class ItemResults(BaseModel):
    items: list[ItemSummary]
    total: Annotated[int, Field(description="How many items were found.")]
    page: int
    pages: int
    removed: Annotated[
        RemovedItemsOut, Field(description="All items with answers that were removed or replaced, and these answers.")
    ]


class ArmOnItem(BaseModel):
    arm: str
    wins: int
    losses: int
    ties: int


class CommentOut(BaseModel):
    """What somebody wrote with an answer. Who it was is not said."""

    first: Annotated[str, Field(description="The arm that was preferred, if one was.")]
    second: str
    answer: Literal["first", "tie", "both_bad"]
    comment: str


class ItemDetails(ItemOut):
    """An item with everything that is known about it."""

    answers: int
    leader: str | None
    level: bool
    disagreement: Share
    contradictions: int
    compared: int
    comment_count: Comments
    arms: Annotated[list[ArmOnItem], Field(description="The arms with answers about this item.")]
    comments: Annotated[list[CommentOut], Field(description="The newest 100 of them.")]
    previous: int | None
    next: int | None


class ItemReplaced(BaseModel):
    number: Annotated[
        int,
        Field(
            description="Of the replacement: another one if somebody was shown the old item and more than its tags "
            "changes, else the same."
        ),
    ]


class TagScoreOut(BaseModel):
    arm: str
    answers: int
    score: Annotated[float, Field(description="Wins and half of the ties, divided by the answers.")]
    lower: Annotated[float, Field(description="The lower end of Wilson's interval of 95 % for the score.")]
    upper: float


class TagOut(BaseModel):
    """What the answers say about the items of a tag. This describes the answers; it is not a verdict."""

    tag: str
    items: int
    answers: int
    winner: Annotated[
        str | None, Field(description="The arm whose interval is above all others; null if there is none.")
    ]
    close: Annotated[
        bool,
        Field(
            description="Whether the intervals of the two arms with the best scores overlap, though both have at least "
            "20 answers. Without this and a winner, the answers are too few."
        ),
    ]
    scores: list[TagScoreOut]


class TagResults(BaseModel):
    tags: Annotated[list[TagOut], Field(description="Those with the most answers first.")]
