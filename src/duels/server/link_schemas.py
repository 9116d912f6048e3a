"""The bodies of requests and responses about links: for voting, for one person, and for results."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from .schemas import RequestBody

Cap = Annotated[int, Field(ge=1, le=10_000_000)] | None
Title = Annotated[str, Field(max_length=200, description="The title that voters see.")]
Wanted = Annotated[
    Annotated[int, Field(ge=1, le=100_000)] | None,
    Field(description="How many votes each voter is asked for; null for what the study's settings say."),
]
Total = Annotated[Cap, Field(description="The most votes that the link accepts; null for any number.")]
PerVoter = Annotated[
    Cap, Field(description="The most votes that the link accepts from one voter; no fewer than they are asked for.")
]
PerAddress = Annotated[Cap, Field(description="The most votes from one IPv4 address or one /64 network of IPv6.")]
Expires = Annotated[
    Annotated[str, Field(max_length=40)] | None,
    Field(description="When it stops to work, such as `2030-01-31T18:00:00+01:00`; null for never."),
]
State = Annotated[
    Literal["active", "off", "expired", "full", "revoked"],
    Field(description="`off`: switched off, and can be switched on again. `revoked`: for good."),
]
Qr = Annotated[str, Field(description="A QR code of the URL, as SVG.")]


class NewLink(RequestBody):
    name: Title = ""
    votes: Wanted = None
    max_votes: Total = None
    max_votes_per_voter: PerVoter = None
    max_votes_per_address: PerAddress = None
    expires: Expires = None


class LinkChange(RequestBody):
    """What is left out stays as it is."""

    name: Annotated[str, Field(max_length=200, description="The title; voters see that of a voting link.")] = ""
    on: Annotated[bool, Field(description="False switches the link off, true on again.")] = True
    votes: Wanted = None
    max_votes: Total = None
    max_votes_per_voter: PerVoter = None
    max_votes_per_address: PerAddress = None
    expires: Expires = None


class Used(BaseModel):
    state: State
    answers: Annotated[int, Field(description="Votes through the link so far, without those that were taken back.")]
    last_used: Annotated[str | None, Field(description="When the last of these votes was given.")]
    expires: str | None
    created: str
    revoked: Annotated[str | None, Field(description="When it was switched off or revoked.")]


class Link(Used):
    id: int
    name: str
    votes: Wanted
    max_votes: int | None
    max_votes_per_voter: int | None
    max_votes_per_address: int | None
    votes_taken: Annotated[int | None, Field(description="Votes that count against the caps; null without caps.")]
    voters: Annotated[int, Field(description="Who has given at least one vote.")]


class LinkMade(BaseModel):
    id: int
    name: str
    votes: Wanted
    max_votes: int | None
    max_votes_per_voter: int | None
    max_votes_per_address: int | None
    expires: str | None
    url: str
    secret: str
    qr: Qr


class Links(BaseModel):
    links: list[Link]


class NewInvitations(RequestBody):
    voters: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200)]],
        Field(min_length=1, max_length=200, description="Names of people. Their votes have these names."),
    ]
    name: Title = ""
    votes: Wanted = None
    max_votes_per_voter: PerVoter = None
    expires: Expires = None


class Invitation(Used):
    id: int
    voter: str
    name: str
    votes: Wanted
    max_votes_per_voter: int | None


class Invitations(BaseModel):
    invitations: list[Invitation]


class InvitationMade(BaseModel):
    id: int
    voter: str
    url: str
    secret: str


class InvitationsMade(BaseModel):
    invitations: list[InvitationMade]


class NewResultsLink(RequestBody):
    name: Annotated[str, Field(max_length=200, description="The title of the page; else the study's name.")] = ""
    expires: Expires = None


class ResultsLink(BaseModel):
    id: int
    name: str
    state: State
    expires: str | None
    created: str
    revoked: str | None


class ResultsLinks(BaseModel):
    links: list[ResultsLink]


class ResultsLinkMade(BaseModel):
    id: int
    name: str
    expires: str | None
    url: str
    secret: str
    qr: Qr


class PreviewAsk(RequestBody):
    number: Annotated[int, Field(ge=0, le=1_000_000, description="How many questions were answered before.")] = 0
    more: Annotated[bool, Field(description="Whether to continue after the goal.")] = False
