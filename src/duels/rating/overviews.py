"""A data frame that says how its numbers are to be read.

Overviews of many ratings: predicted win rates of pairs, ranks by category, and ratings over time.
"""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import polars as pl

from ..errors import InvalidInput, UnknownName
from ..votes.readers import Reading, VoteSource, read_votes
from ..votes.votes import NEVER, Votes
from .counts import Covariate, columns_of, covariate_columns, sigmoid
from .table import HasTally, rate

if TYPE_CHECKING:
    import polars as pl


class NotedFrame(pl.DataFrame):
    """A polars data frame with notes, which are printed below it.

    What is computed from it, such as a filtered frame, has no notes.

    Attributes:
        notes: Sentences on how its numbers are to be read.
    """

    notes: tuple[str, ...] = ()

    @classmethod
    def with_notes(cls, frame: pl.DataFrame, notes: Iterable[str]) -> Self:
        """Return a frame with notes."""
        noted = cls(frame)
        noted.notes = tuple(notes)
        return noted

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.notes])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self, *args: Any, **options: Any) -> str:
        import html

        table = super()._repr_html_(*args, **options)
        return "".join([table, *(f"<p>{html.escape(note)}</p>" for note in self.notes)])


PERIODS = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}
OVERALL = "overall"


def win_rates(
    votes: VoteSource | HasTally, *, covariates: Sequence[Covariate] | None = None, **reading: Unpack[Reading]
) -> "NotedFrame":
    """Predict how often each arm beats each other one, by the Bradley–Terry model, beside what the votes say.

    Args:
        votes: Anything that `read_votes` reads, or a `Study`.
        covariates: As in `ratings`; the prediction is for votes in which they are level.
        **reading: As in `read_votes`: columns, on_error and without.

    Returns:
        A polars data frame with two rows per pair, best arms first: arm, opponent, predicted, the probability that the
        arm wins, a tie being half a win; duels, how many votes there are on the pair; and share, which part of them the
        arm won, a tie being half a win, or null without any. It has `notes`, as in `ratings`.

    Example:
        >>> votes = [("cat", "dog", "left")] * 3 + [("cat", "dog", "right"), ("dog", "fox", "tie")]
        >>> duels.rating.win_rates(votes)["arm", "opponent", "predicted", "duels"].rows()[1]
        ('cat', 'fox', 0.75, 0)
    """
    import polars as pl

    read = _votes_of(votes, columns_of(covariate_columns(covariates)), reading)
    table = _quietly(read, scale="logit", covariates=covariates, cluster=None)
    arms = table["arm"].to_list()
    place = [read.names.index(arm) for arm in arms]
    wins, ties = (counts[np.ix_(place, place)] for counts in read.pair_counts())
    strength = table["rating"].to_numpy()
    first, second = np.nonzero(~np.eye(len(arms), dtype=bool))
    duels = (wins + wins.T + ties)[first, second]
    share = np.divide((wins + ties / 2)[first, second], duels, out=np.full(len(duels), np.nan), where=duels > 0)
    found = pl.DataFrame(
        {
            "arm": [arms[k] for k in first],
            "opponent": [arms[k] for k in second],
            "predicted": sigmoid(strength[first] - strength[second]),
            "duels": duels,
            "share": pl.Series(share).fill_nan(None),
        }
    )
    return _add_notes(found, table.notes)


def category_ranks(
    votes: VoteSource | HasTally, by: str | Iterable[str], *, reading: Reading | None = None, **options: Any
) -> "NotedFrame":
    """Rank the arms overall and in each category.

    Args:
        votes: Anything that `read_votes` reads, or a `Study`.
        by: Columns, such as `["language", "tags"]`; each of their values is a category, see `ratings`.
        reading: How the votes are read, as in `read_votes`, such as `{"columns": {"left": "x"}}`.
        **options: Those of `ratings`, such as `ranks="lmarena"`.

    Returns:
        A polars data frame with one row per arm, the best one overall first: arm, overall, and the rank in each
        category, or null where the arm has no votes. The column of a category is its value, with the name of its column
        if that is needed to tell two apart.

    Raises:
        InvalidInput: As in `ratings`.

    Example:
        >>> rows = [{"left": "cat", "right": "dog", "winner": "left", "language": "en"}]
        >>> rows += [{"left": "cat", "right": "dog", "winner": "right", "language": "de"}]
        >>> duels.rating.category_ranks(rows, "language", cluster=None).rows()
        [('cat', 1, 2, 1), ('dog', 1, 1, 2)]
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns:
        raise InvalidInput("by has no columns: expected at least one, such as 'language'")
    cluster = options.get("cluster")
    further = [] if cluster in (None, "auto", "voter") else [cluster]
    further += columns_of(covariate_columns(options.get("covariates")))
    read = _votes_of(votes, [*columns, *further], reading or {})
    overall = _quietly(read, **options)
    parts = [(column, _quietly(read, by=column, **options)) for column in columns]
    values = [(column, value) for column, part in parts for value in part[column].unique(maintain_order=True)]
    taken = ["arm", OVERALL, *(str(value) for _, value in values)]
    found: Any = overall.select("arm", _rank(OVERALL))
    for column, part in parts:
        for (value,), some in part.group_by(column, maintain_order=True):
            name = str(value) if taken.count(str(value)) == 1 else f"{column} = {value}"
            found = found.join(some.select("arm", _rank(name)), on="arm", how="left", maintain_order="left")
    return _add_notes(found, [*overall.notes, *(note for _, part in parts for note in part.notes)])


def ratings_over_time(
    votes: VoteSource | HasTally,
    every: str = "month",
    *,
    anchor: str | tuple[str, float] | None = None,
    reading: Reading | None = None,
    **options: Any,
) -> "NotedFrame":
    """Rate the arms in each period by its votes, relative to one arm, so that the scale stays as it is when arms join.

    Args:
        votes: Anything that `read_votes` reads and that says when votes were given, or a `Study`.
        every: day, week, month, quarter or year.
        anchor: The arm that is rated 1000 in each period, or that arm and its rating. By default the arm with most
            votes among those that are in every period.
        reading: How the votes are read, as in `read_votes`.
        **options: Those of `ratings`.

    Returns:
        A polars data frame with a row per period and arm: period, the date on which it begins, and the columns of
        `ratings`. Periods without a vote on the anchor are left out. `notes` say what the anchor is.

    Raises:
        InvalidInput: If the votes have no times, or no arm is in every period and there is no anchor.
        UnknownName: If there is no such period.
    """
    import polars as pl

    if every not in PERIODS:
        raise UnknownName("period", every, PERIODS)
    read = _votes_of(votes, columns_of(covariate_columns(options.get("covariates"))), reading or {})
    if read.times is None:
        raise InvalidInput(
            f"{read.source} does not say when votes were given (columns: {read.said}): expected a column such as time "
            "or tstamp; say which: columns={'time': '…'} (--column time=…)"
        )
    moments = pl.Series(read.times.microseconds).replace(NEVER, None).cast(pl.Datetime("us"))
    period = moments.dt.truncate(PERIODS[every]).dt.date().alias("period")
    arm = anchor[0] if isinstance(anchor, tuple) else anchor
    arm = _usual_anchor(read, period) if arm is None else arm
    if arm not in read.names:
        raise UnknownName("arm", arm, read.names)
    number = read.names.index(arm)
    about = pl.DataFrame({"period": period, "is_anchored": (read.left == number) | (read.right == number)})
    is_anchored = about.select(pl.col("is_anchored").any().over("period"))["is_anchored"]
    left_out = about.filter(~is_anchored)["period"].drop_nulls().n_unique()
    dated = replace(read, extra={**read.extra, "period": period.set(~is_anchored, None)})
    table = _quietly(dated, by="period", anchor=anchor if anchor is not None else arm, **options)
    notes = [f"Ratings are relative to {arm}, which has the same rating in every {every}."]
    if left_out:
        notes.append(f"Left out: {left_out:,} of the periods, which have no vote on {arm}.")
    return _add_notes(table, [*notes, *table.notes])


def _usual_anchor(votes: Votes, period: "pl.Series") -> str:
    """The arm with most votes among those that are in every period."""
    import polars as pl

    both = {"period": pl.concat([period, period]), "arm": np.append(votes.left, votes.right)}
    sides = pl.DataFrame(both).drop_nulls()
    by_arm = sides.group_by("arm").agg(pl.col("period").n_unique().alias("periods"), pl.len().alias("votes"))
    best = by_arm.filter(pl.col("periods") == sides["period"].n_unique()).sort("votes", "arm", descending=[True, False])
    if not len(best):
        raise InvalidInput("no arm has votes in every period: expected an anchor, or longer periods")
    return votes.names[int(best["arm"][0])]


def _votes_of(source: Any, extra: Sequence[str], reading: Reading) -> Votes:
    votes = source.votes() if hasattr(source, "tally") else source
    return read_votes(votes, extra=[*dict.fromkeys(extra)], **reading)


def _quietly(votes: Votes, **options: Any) -> "NotedFrame":
    """As `ratings`, whose warnings are among the notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rate(votes, **options)


def _rank(name: str) -> "pl.Expr":
    import polars as pl

    return pl.col("rank").alias(name)


def _add_notes(table: "pl.DataFrame", notes: Iterable[str]) -> "NotedFrame":

    return NotedFrame.with_notes(table, dict.fromkeys(notes))
