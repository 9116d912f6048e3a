"""The bodies of requests and responses.

The bodies of requests and responses about studies that tune parameters.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...study.stats.about import About

Name = Annotated[str, Field(min_length=1, max_length=200)]
Voter = Annotated[str | None, Field(max_length=200)]
DuelId = Annotated[int, Field(ge=0, le=2**31 - 1)]
Document = Annotated[str, Field(max_length=10_000)] | int
Ranking = Annotated[list[Document], Field(max_length=10_000)]


class RequestBody(BaseModel):
    """A request. Unknown fields are refused, and text is not converted to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ErrorBody(BaseModel):
    kind: str
    message: str


class Problem(BaseModel):
    """The body of every error."""

    error: ErrorBody


class NewStudy(RequestBody):
    name: Name
    arms: Annotated[list[Name], Field(min_length=2, max_length=2000)]
    policy: Annotated[
        str | None,
        Field(max_length=200, description="The policy that chooses the duels, e.g. `rucb:alpha=0.6`; else `verdict`."),
    ] = None
    confidence: Annotated[
        float | None, Field(gt=0, lt=1, description="The probability that no verdict is ever wrong; else 0.95.")
    ] = None
    margin: Annotated[
        float | None,
        Field(ge=0, lt=0.5, description="If above 0, arms this close to the best count as practically tied; else 0."),
    ] = None
    after: Annotated[
        Literal["stop", "rank"] | None,
        Field(description="When the winner is known, stop asking voters, or find the order of the others too."),
    ] = None
    about: Annotated[
        About | None,
        Field(
            description="What the verdict is about: `these-items` (the default) and whoever answers, `new-items`, of "
            "which these are a sample, or `these-answers`, each of which is final."
        ),
    ] = None
    horizon: Annotated[
        int | None, Field(ge=1, le=2**62, description="The number of duels, for policies that need it.")
    ] = None
    seed: Annotated[int, Field(ge=0, le=2**62)] = 0
    lease: Annotated[
        float, Field(gt=0, le=1e9, description="Seconds until an unanswered duel expires; later answers do not count.")
    ] = 3600.0
    load_if_exists: bool = False


class Arm(BaseModel):
    name: str
    active: bool


class GoalOut(BaseModel):
    """What a study is to find out, as it was created."""

    confidence: float
    margin: float
    after: str
    about: About


class StudyOut(BaseModel):
    name: str
    policy: str
    goal: GoalOut
    arms: Annotated[list[Arm], Field(description="Empty in a study that tunes parameters.")]
    space: Annotated[dict[str, Any] | None, Field(description="The parameters of a study that tunes them; else null.")]
    answers: int
    open: int
    items: int
    retired: bool
    created: str
    seq: int


class StudyCreated(StudyOut):
    notices: Annotated[
        dict[Literal["policy", "margin"], str],
        Field(description="What may keep a new study from ending, under the field of the request that is the cause."),
    ]


class StudyListed(BaseModel):
    """A study in the list: like `StudyOut`, with nulls if it is damaged."""

    name: str
    policy: str
    goal: GoalOut
    arms: list[Arm] | None
    space: dict[str, Any] | None
    answers: int | None
    open: int | None
    items: int | None
    retired: bool | None
    created: str
    seq: int | None
    damaged: Annotated[str | None, Field(description="The reason why its log cannot be read, if so.")] = None


class Studies(BaseModel):
    studies: list[StudyListed]


class NewArm(RequestBody):
    name: Name


class Ask(RequestBody):
    n: Annotated[int, Field(ge=1, le=1000)] = 1
    voter: Voter = None
    allow_self: Annotated[
        bool, Field(description="False to exclude duels of an arm with itself, for human voters.")
    ] = True


class OutputOut(BaseModel):
    kind: str
    content: str


class DuelItemOut(BaseModel):
    number: int
    prompt: Annotated[str | None, Field(description="Null if the item was removed since.")]
    left: OutputOut | None
    right: OutputOut | None


class DuelOut(BaseModel):
    id: int
    left: Annotated[
        str | dict[str, Any], Field(description="The arm on the left; in a tuning study the setting, by parameter.")
    ]
    right: str | dict[str, Any]
    study: str
    time: str
    item: Annotated[DuelItemOut | None, Field(description="What it is about, if the study has items.")] = None
    is_self: bool


class Duels(BaseModel):
    duels: list[DuelOut]


class Tell(RequestBody):
    duel: DuelId
    winner: Annotated[
        str, Field(max_length=200, description="left, right, tie, both_bad, skip, or the name of one of the arms")
    ]
    voter: Voter = None
    note: Annotated[str | None, Field(max_length=10_000, description="Why; kept in the log.")] = None
    cost: Annotated[float | None, Field(ge=0, allow_inf_nan=False, description="Of the answer; kept in the log.")] = (
        None
    )


class Told(BaseModel):
    duel: int
    answer: str


class Undo(RequestBody):
    duel: DuelId


class Undone(BaseModel):
    duel: int


class Forget(RequestBody):
    voter: Annotated[str, Field(min_length=1, max_length=200)]


class Forgotten(BaseModel):
    answers: int


class Leaderboard(BaseModel):
    leaderboard: list[dict[str, Any]]
    ranked: Annotated[str, Field(description="By what the arms are ranked.")]


class Preferences(BaseModel):
    preferences: list[dict[str, Any]]
    next: Annotated[int | None, Field(description="Send this as `after` for the next page; null at the end.")]


class OpenQuestion(BaseModel):
    id: int
    left: str
    right: str
    item: Annotated[int | None, Field(description="The number of its item, if the study has items.")]
    time: Annotated[str, Field(description="When it was asked.")]
    waiting: Annotated[bool, Field(description="Whether an answer is expected: its lease has not ended.")]


class Details(BaseModel):
    seq: Annotated[int, Field(description="The last event that is included.")]
    confidence: Annotated[float, Field(description="Of the intervals.")]
    pairs: Annotated[
        list[dict[str, Any]],
        Field(description="As in preferences: those that have met, most duels first, at most 300."),
    ]
    pairs_met: int
    pairs_total: int
    open: Annotated[list[OpenQuestion], Field(description="Newest first, at most 100.")]
    open_total: int
    over_time: Annotated[
        list[tuple[str, int]], Field(description="Times, and how many answers there were; at most 120.")
    ]


class ChanceOut(BaseModel):
    arm: str
    chance: Annotated[float, Field(description="The probability that it is the best, under the model.")]


class JudgePosition(BaseModel):
    judge: Annotated[str | None, Field(description="Null for answers without a voter.")]
    left: int
    right: int
    share: Annotated[float, Field(description="The share of lefts among both.")]
    biased: Annotated[bool, Field(description="Whether the judge prefers a side for certain.")]


class JudgeAgreement(BaseModel):
    first: str | None
    second: str | None
    questions: Annotated[int, Field(description="How many questions both answered.")]
    raw: Annotated[float, Field(description="The share of these with the same answer.")]
    base: Annotated[float, Field(description="The share to expect by chance.")]
    kappa: float | None


class JudgeRepeatability(BaseModel):
    judge: str | None
    repeats: Annotated[int, Field(description="How many of its answers it was asked for again.")]
    same: Annotated[int, Field(description="How often it gave the same answer.")]


class JudgesOut(BaseModel):
    calls: Annotated[int, Field(description="All calls, retries and repeats included; 0 if only people answered.")]
    unstored: Annotated[int, Field(description="Calls without an answer in the log.")]
    cost: float
    bad: Annotated[int, Field(description="Replies without a usable answer.")]
    failed: Annotated[int, Field(description="Questions without a reply.")]
    repeats: Annotated[int, Field(description="Calls that asked a judge the same question again.")]
    second_opinions: Annotated[int, Field(description="Questions that a second judge was asked.")]
    identical: Annotated[int, Field(description="Questions about identical outputs: ties without a call.")]
    positions: list[JudgePosition]
    repeatability: list[JudgeRepeatability]
    agreements: list[JudgeAgreement]


class ForecastOut(BaseModel):
    """Estimates under a model; only the verdict is a promise."""

    chances: list[ChanceOut]
    answers_median: Annotated[
        int | None,
        Field(description="Half of such studies need at most this many more; 0 with a verdict, null without forecast."),
    ]
    answers_90: Annotated[
        int | None, Field(description="Nine in ten need at most this many more; null if that is not in sight.")
    ]
    answers_an_hour: Annotated[float | None, Field(description="How many answers came lately; null if none do.")]
    hours_median: Annotated[float | None, Field(description="How long the median takes at that rate.")]
    hint: Annotated[str, Field(description="What to change if no verdict is in sight.")]
    reason: Annotated[str, Field(description="Why nothing is forecast; empty otherwise.")]
    margin: Annotated[float | None, Field(description="The margin that the hint names; null if it names none.")]
    words: str


class RankOut(BaseModel):
    rank: Annotated[int | None, Field(description="From 1; none for an arm that is not compared with the others.")]
    arm: str
    certain: bool


class AllocationRow(BaseModel):
    left: str
    right: str
    times: int


class AllocationOut(BaseModel):
    allocation: list[AllocationRow]


class RankingOut(BaseModel):
    ranking: list[RankOut]


class LogEntryOut(BaseModel):
    seq: int
    kind: str
    duel: int | None
    left: str | None
    right: str | None
    answer: str | None
    voter: str | None
    time: str
    note: dict[str, Any]


class Events(BaseModel):
    events: list[LogEntryOut]
    next: Annotated[int | None, Field(description="Send this as `after` for the next page; null at the end.")]


class Imported(BaseModel):
    imported: int
    note: Annotated[
        str | None,
        Field(description="Why no promise holds for these votes, if the next pair of voters depends on their answers."),
    ]


class ItemsAdded(BaseModel):
    items: Annotated[int, Field(description="How many are new.")]
    outputs: Annotated[int, Field(description="How many outputs were added to items that were there.")]
    total: int
    missing: Annotated[
        dict[str, int], Field(description="How many items have no output of an active arm, if it lacks any.")
    ]


class ItemOut(BaseModel):
    number: int
    prompt: str
    outputs: dict[str, OutputOut]
    tags: list[str]


class Items(BaseModel):
    items: list[ItemOut]
    next: int | None
    total: Annotated[int, Field(description="How many items there are, of those that were looked for.")]


class Interleave(RequestBody):
    rankings: Annotated[
        dict[Name, Ranking],
        Field(
            min_length=1,
            max_length=2000,
            description="For each arm its documents, best first; empty if it found none.",
        ),
    ]
    duel: Annotated[DuelId | None, Field(description="A duel that was asked for before; by default a new one.")] = None
    method: Annotated[
        str,
        Field(
            max_length=100,
            description="`team-draft`, or `probabilistic`, which has assigned credit here; the others are refused.",
        ),
    ] = "team-draft"
    length: Annotated[int, Field(ge=1, le=1000)] = 10
    missing: Annotated[
        Literal["last", "refuse"],
        Field(description="A document that only one ranking has comes last in the other, or is refused."),
    ] = "last"
    voter: Voter = None


class Impression(BaseModel):
    impression: int
    documents: list[Document]
    duel: int
    left: str
    right: str
    is_self: bool


class Clicks(RequestBody):
    impression: DuelId
    clicks: Annotated[list[Document], Field(max_length=1000, description="The documents that were clicked.")]
    voter: Voter = None


class Scripts(RequestBody):
    scripts: Annotated[bool, Field(description="Whether scripts in HTML outputs run when voters see them.")]


class StudySettings(BaseModel):
    question: str
    instructions: str
    ties: bool
    both_bad: bool
    comments: bool
    votes: int
    after: Literal["stop", "rank"]
    margin: float
    about: About


class Recommendation(BaseModel):
    arm: str


class Checked(BaseModel):
    events: Annotated[int, Field(description="How many events the log has.")]


class NewSettings(RequestBody):
    question: Annotated[
        str | None, Field(max_length=200, description="What voters are asked; empty for “Which is better?”.")
    ] = None
    instructions: Annotated[str | None, Field(max_length=10_000, description="For voters, in Markdown.")] = None
    ties: Annotated[bool | None, Field(description="Whether voters may answer that both are equally good.")] = None
    both_bad: Annotated[bool | None, Field(description="Whether voters may answer that both are bad.")] = None
    comments: Annotated[bool | None, Field(description="Whether voters may say why.")] = None
    votes: Annotated[int | None, Field(ge=1, le=100_000, description="How many votes each voter is asked for.")] = None
    after: Annotated[
        Literal["stop", "rank"] | None, Field(description="When the winner is known: stop, or rank the others.")
    ] = None
    margin: Annotated[
        float | None, Field(ge=0, lt=0.5, description="May be chosen at any time, even after looking at results.")
    ] = None
    about: Annotated[
        About | None, Field(description="What the verdict is about. It can be changed before the first question.")
    ] = None


class ChangeOut(BaseModel):
    id: int
    time: str
    who: Annotated[str, Field(description="The token's name.")]
    what: str


class Changes(BaseModel):
    changes: list[ChangeOut]
    next: Annotated[int | None, Field(description="Send it as `before` to get older ones; null if there are none.")]


class VoterOut(BaseModel):
    voter: str
    answers: Annotated[int, Field(description="Votes that count.")]
    skips: int
    withdrawn: Annotated[int, Field(description="Answers that an admin withdrew.")]
    comments: Annotated[int, Field(description="Answers with a comment.")]
    left: Annotated[int, Field(description="Answers for the left side, where a coin decided the sides.")]
    right: int
    p_side: Annotated[float, Field(description="Of an exact two-sided test of left against right, for one look.")]
    compared: Annotated[int, Field(description="Questions in which this voter and others chose an arm.")]
    share: Annotated[float | None, Field(description="Of these others, how many chose the same arm, on average.")]
    expected: Annotated[float | None, Field(description="What the share is for a voter like the others.")]
    favorite: Annotated[str | None, Field(description="The arm that the voter favors most, if there is a sign of it.")]
    chosen: Annotated[int, Field(description="How many of the voter's votes are for that arm …")]
    of: Annotated[int, Field(description="… of those that chose an arm, on pairs that others voted on too …")]
    by_others: Annotated[float, Field(description="… and how many that would be by the shares of all voters.")]
    seconds: Annotated[float | None, Field(description="The median from question to answer; not of past votes.")]
    per_hour: Annotated[float | None, Field(description="Answers per hour, without pauses over ten minutes.")]
    first: Annotated[str | None, Field(description="When the first answer was given.")]
    last: str | None
    one_sided: Annotated[bool, Field(description="Whether the voter certainly prefers a side.")]
    at_random: Annotated[bool, Field(description="Whether the voter certainly agrees no more than a coin does.")]
    favors_arm: Annotated[bool, Field(description="Whether the voter certainly favors that arm.")]
    fast: Annotated[bool, Field(description="Whether the voter takes less than a quarter of the usual time.")]


class VoterRemark(BaseModel):
    voter: str
    kind: Literal["one_sided", "at_random", "favors_arm", "fast"]
    words: str


class VotersOut(BaseModel):
    total: int
    found: Annotated[int, Field(description="How many have a name that contains what was searched for.")]
    unnamed: Annotated[int, Field(description="Answers without a voter.")]
    questions: Annotated[int, Field(description="Questions for which two voters or more chose an arm.")]
    raw: Annotated[
        float | None,
        Field(description="The share of pairs of answers to the same question that chose the same arm, ties left out."),
    ]
    base: Annotated[float | None, Field(description="The share that would agree by chance.")]
    alpha: Annotated[float | None, Field(description="Krippendorff's α.")]
    usual_seconds: Annotated[float | None, Field(description="The median of the voters' medians; null if too few.")]
    left: Annotated[int, Field(description="Answers for the left side, where a coin decided the sides.")]
    right: int
    sides: Annotated[str | None, Field(description="What is said if all voters together prefer a side for certain.")]
    words: str
    voters: list[VoterOut]
    next: Annotated[int | None, Field(description="Send this as `after` for the next page; null at the end.")]
    remarks: Annotated[list[VoterRemark], Field(description="What stands out, of 20 voters of each kind at most.")]
    notices: Annotated[list[str], Field(description="Links through which too many new voters came from one address.")]


class Withdraw(RequestBody):
    voter: Annotated[str, Field(min_length=1, max_length=200)]


class Withdrawn(BaseModel):
    answers: int
    void: Annotated[str | None, Field(description="Why the verdict's promise does not hold any more.")]


class NewToken(RequestBody):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    kind: Literal["api", "admin"] = "api"


class Token(BaseModel):
    id: int
    kind: str
    name: str
    created: str
    revoked: str | None


class TokenMade(BaseModel):
    id: int
    kind: str
    name: str
    token: str


class Tokens(BaseModel):
    tokens: list[Token]


class Side(BaseModel):
    """One side of a question: safe HTML, or the URL of an image or of a page for a sandboxed frame."""

    kind: str
    html: str | None = None
    src: str | None = None


class Progress(BaseModel):
    title: str
    answered: Annotated[int, Field(description="Votes by this voter.")]
    goal: int
    total: Annotated[int, Field(description="Votes by all voters.")]
    done: Annotated[
        Literal["goal", "winner", "everything", "asked", "retired", "full"] | None,
        Field(
            description="Why there is no question. `everything`: this voter was asked everything there is. `asked`: "
            "others have the last questions. `full`: a cap of the link is reached, in total, for this voter or for "
            "this address."
        ),
    ]
    question: Annotated[str, Field(description="What voters are asked about each two outputs.")]
    ties: Annotated[bool, Field(description="Whether `tie` is a possible answer.")]
    both_bad: Annotated[bool, Field(description="Whether `both_bad` is a possible answer.")]
    comments: Annotated[bool, Field(description="Whether an answer may have a comment.")]
    page: Annotated[str, Field(description="Changes when the instructions do.")]


class Question(Progress):
    duel: int | None
    prompt: str | None
    a: Side | None
    b: Side | None
    comment: Annotated[
        str | None, Field(description="What the voter wrote with the answer that `undo` has just taken back.")
    ] = None


class Vote(RequestBody):
    duel: DuelId
    winner: Literal["a", "b", "tie", "both_bad", "skip"]
    comment: Annotated[str | None, Field(max_length=1_000, description="Why, in the voter's words.")] = None


class MoreVotes(RequestBody):
    more: Annotated[bool, Field(description="Continue after the goal.")] = False


class Health(BaseModel):
    status: str
    version: str


Setting = dict[str, Any]  # a value for each parameter


class NewTuning(RequestBody):
    name: Name
    space: Annotated[
        dict[str, Any] | Annotated[str, Field(max_length=100_000)],
        Field(
            description="The parameters: `[low, high]`, `[low, high, words]` with `log` and `int`, or a list of "
            "choices, by name; or the same as the text of a TOML file.",
            examples=[{"temperature": [0.0, 1.5], "top_k": [1, 100, "log int"], "style": ["terse", "warm"]}],
        ),
    ]
    template: Annotated[
        str | None, Field(max_length=1 << 20, description="See the route `template`; without one, voters see values.")
    ] = None
    policy: Annotated[
        str | None, Field(max_length=200, description="The policy that chooses the duels, e.g. `gp_rucb`; else `eubo`.")
    ] = None
    confidence: Annotated[float | None, Field(gt=0, lt=1, description="Of the intervals; else 0.95.")] = None
    seed: Annotated[int, Field(ge=0, le=2**62)] = 0
    lease: Annotated[float, Field(gt=0, le=1e9, description="Seconds until an unanswered duel expires.")] = 600.0
    load_if_exists: bool = False


class BestOut(BaseModel):
    """The best setting so far. All numbers are statements of the model, not promises."""

    setting: Setting
    share: Annotated[float, Field(description="The predicted share of wins against the runner-up.")]
    lower: float
    upper: float
    confidence: Annotated[float, Field(description="The level of the interval from `lower` to `upper`.")]
    sure: Annotated[
        float | None,
        Field(description="The probability that it is better than the runner-up; null until a preference is found."),
    ]
    runner_up: Annotated[Setting, Field(description="The best setting that is not near it.")]
    answers: int
    evidence: Annotated[
        float, Field(description="The largest evidence that answers are no coin tosses; a preference is found from 20.")
    ]
    words: str


class SlicesOut(BaseModel):
    best: Setting
    confidence: float
    answers: int
    parameters: list[dict[str, Any]]


class Template(RequestBody):
    html: Annotated[
        str | None,
        Field(max_length=1 << 20, description="A page with `{{ name }}` for values; null shows the values themselves."),
    ]


class TemplateOut(BaseModel):
    html: str | None
    unused: Annotated[list[str], Field(description="Parameters that it does not show.")]
    has_script: Annotated[bool, Field(description="Whether it has a script.")]
    scripts: Annotated[bool, Field(description="Whether scripts run; see the route `scripts`.")]
