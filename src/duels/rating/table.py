"""`ratings`: a table of ratings, from anything that has votes."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack

import numpy as np

from ..checks import check_int
from ..errors import InvalidInput, UnknownName, format_count, shorten
from ..votes.readers import Reading, VoteSource, count_votes, read_votes
from ..votes.votes import Votes
from . import bradley_terry, rao_kupper
from .clusters import FEW, VOTER, Clusters, clusters_of
from .counts import (
    LOST,
    MEAN,
    POINTS,
    WON,
    Bools,
    Cells,
    Covariate,
    Floats,
    Ints,
    cells_of_pairs,
    cells_of_votes,
    columns_of,
    covariate_columns,
    features,
)
from .estimates import Estimates, Intervals, estimate, half_widths
from .fitting import Fit, Model, fit, sandwich

if TYPE_CHECKING:
    import polars as pl

    from .overviews import NotedFrame

MODELS: dict[str, Model] = {"bradley-terry": bradley_terry, "rao-kupper": rao_kupper}
SCALES = {"elo": (POINTS, MEAN), "logit": (1.0, 0.0)}  # rating = factor · strength + value of the anchor
INTERVALS = ("sandwich", "bootstrap")
RANKS = ("ratings", "lmarena")
AUTO = "auto"  # as a cluster: by voter, if that is known, matters and is possible
MOST_BOARDS = 1_000  # tables, one for each value of a column
ENOUGH = 50  # duels of an arm: with fewer, the bootstrap is too narrow
CHOSEN = (
    "The study chose its pairs by earlier votes, so the intervals are longer than those of finished votes, and hold "
    "whenever it is looked at."
)
MOST_ARMS = 5_000  # the fit takes the cube of their number


class Counted(Protocol):
    """A `Tally`: votes that are counted already."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def wins(self) -> Ints: ...
    @property
    def ties(self) -> Ints: ...


class HasTally(Protocol):
    """A `Study`."""

    @property
    def chooses_pairs(self) -> bool: ...
    def tally(self) -> Counted: ...
    def votes(self) -> Votes: ...


RatedSource = VoteSource | Counted | HasTally


def rate(
    votes: RatedSource,
    *,
    model: str = "bradley-terry",
    scale: str = "elo",
    anchor: str | tuple[str, float] | None = None,
    confidence: float = 0.95,
    interval: str | None = None,
    covariates: Sequence[Covariate] | None = None,
    by: str | None = None,
    cluster: str | None = AUTO,
    ranks: str = "ratings",
    rounds: int = 100,
    seed: int = 0,
    **reading: Unpack[Reading],
) -> "NotedFrame":
    """Rate the arms of finished votes.

    The intervals are for votes that are complete, looked at once; those of a `Study` that chose its own pairs are
    longer, and hold whenever it is looked at. To stop a study by them would be wrong; its verdict is made for that.

    Args:
        votes: Anything that `read_votes` reads, a `Tally`, or a `Study`.
        model: `bradley-terry`, in which a tie is half a win each way; or `rao-kupper`, in which it is an outcome of
            its own.
        scale: `elo` is 400 · log10 of the odds, plus 1000; `logit` is the natural logarithm of the odds; `probability`
            is the chance to beat an arm of average rating, or the anchor; a tie is half a win.
        anchor: The arm that is rated 1000 (0 on the scale `logit`), or that arm and its rating. By default the mean
            rating is 1000 (0).
        confidence: Of each interval by itself; and of each arm's range of ranks.
        interval: `sandwich`, the default, from the likelihood, robust against a wrong model; or `bootstrap`.
        covariates: What else moved the votes, for `bradley-terry`: numeric columns that are left minus right, or pairs
            of columns, one of the left arm and one of the right.
        by: A column, such as a language: one table of ratings for each of its values. If its cells are lists, such as
            tags, a vote counts for each value in its list; if they are objects of flags, for each that is true.
        cluster: Whose votes may depend on one another, so that each counts as one observation in the intervals:
            `voter`, or a column, such as `item`; None if all votes are independent. By default, `auto`, that is by
            voter if the votes say who voted, some voted more than once, and there are at least 10 voters.
        ranks: What `rank` is: the place by rating, `ratings`; or by LMArena's rule, `lmarena`, 1 plus the number of
            arms whose lower limit is above the arm's upper limit. Rows are in the order of ratings in both cases.
        rounds: How many rounds the bootstrap has.
        seed: Of the bootstrap.
        **reading: As in `read_votes`: columns, on_error and without.

    Returns:
        A polars data frame with one row per arm, best first: arm, rating, lower, upper, rank, best_rank, worst_rank and
        duels. Arms without duels are left out. With `by`, its column comes first. A limit is infinite if the votes do
        not give one. Its `notes` say what the intervals take for granted, and what is doubtful.

    Raises:
        InvalidInput: If the votes cannot be read, or an option does not fit.
        UnknownName: If the model, the scale, the kind of interval, a column or the anchor is unknown.

    Warns:
        UserWarning: If there is no finite maximum of the likelihood: some arms only won, only lost, or were never
            compared with the others. Then every arm has half a win and half a loss more, against an average arm. Also
            if an arm has nothing but ties, whose interval is too narrow then; and if there are few clusters.

    Example:
        >>> votes = [("cat", "dog", "left")] * 3 + [("cat", "dog", "right"), ("dog", "fox", "tie")]
        >>> [(arm, round(rating), rank) for arm, rating, rank in duels.rate(votes)["arm", "rating", "rank"].rows()]
        [('cat', 1127, 1), ('dog', 936, 2), ('fox', 936, 2)]
    """
    options = _options(model, scale, interval, confidence, rounds, seed, ranks)
    if not isinstance(by, str | None):
        raise InvalidInput(f"by is {by!r}: expected the name of one column, such as 'language'")
    wanted = covariate_columns(covariates)
    if wanted and model != "bradley-terry":
        raise InvalidInput(f"covariates with model {model!r}: expected 'bradley-terry', the only one that has them")
    boards, notes = _boards(votes, wanted, by, _check_cluster(cluster), reading)
    if getattr(votes, "_chooses_pairs", False):
        options = options._replace(intervals=options.intervals._replace(always=True))
        notes.append(CHOSEN)
    tables = []
    for value, board in boards:
        table, remarks, doubts = _rate_board(board, options, anchor)
        before = "" if by is None else f"{by} = {value}: "
        if doubts:
            warnings.warn(before + "; ".join(doubts), stacklevel=2)
        notes += [before + note for note in (*remarks, *doubts)]
        tables.append((value, table))
    return _add_notes(_stack_tables(tables, by), notes)


def effects(
    votes: VoteSource,
    covariates: Sequence[Covariate],
    *,
    confidence: float = 0.95,
    cluster: str | None = AUTO,
    **reading: Unpack[Reading],
) -> "NotedFrame":
    """Estimate how much covariates moved the votes.

    Args:
        votes: Anything that `read_votes` reads.
        covariates: As in `ratings`.
        confidence: Of each interval by itself.
        cluster: As in `ratings`.
        **reading: As in `read_votes`: columns, on_error and without.

    Returns:
        A polars data frame with one row per covariate: covariate, effect, lower and upper, by how many logits a vote
        moves towards left if the covariate grows by its root mean square. It has `notes`, as in `ratings`.

    Raises:
        InvalidInput: If the votes cannot be read, or a covariate is not numeric.
        UnknownName: If a column is unknown.
    """
    import polars as pl

    wanted = covariate_columns(covariates)
    ((_, board),), notes = _boards(votes, wanted, None, _check_cluster(cluster), reading)
    fitted = fit(bradley_terry, board.cells)
    doubts = [*filter(None, [describe_unlimited(fitted, board.names), few_clusters(board.clusters)])]
    if doubts:
        warnings.warn("; ".join(doubts), stacklevel=2)
    spread, effect = sandwich(fitted, board.clusters), fitted.x[fitted.arms :]
    variance, clusters = np.diag(spread.covariance)[fitted.arms :], spread.effective[fitted.arms :]
    half = half_widths(variance, _check_number(confidence), clusters)
    names = [one if isinstance(one, str) else ", ".join(one) for one in wanted]
    found = pl.DataFrame({"covariate": names, "effect": effect, "lower": effect - half, "upper": effect + half})
    return _add_notes(found, [*notes, *doubts])


class _Options(NamedTuple):
    model: Model
    scale: str
    intervals: Intervals
    ranks: str


class _Board(NamedTuple):
    """The votes of one table."""

    names: Sequence[str]
    cells: Cells
    clusters: Clusters | None = None  # None if all votes are independent


def _options(
    model: str, scale: str, interval: str | None, confidence: float, rounds: int, seed: int, ranks: str
) -> _Options:
    if model not in MODELS:
        raise UnknownName("model of ratings", model, MODELS)
    if scale not in (*SCALES, "probability"):
        raise UnknownName("scale of ratings", scale, (*SCALES, "probability"))
    if interval is not None and interval not in INTERVALS:
        raise UnknownName("kind of interval", interval, INTERVALS)
    if ranks not in RANKS:
        raise UnknownName("rule of ranks", ranks, RANKS)
    kind, rounds, seed = interval or "sandwich", check_int("rounds", rounds, 10), check_int("seed", seed, 0)
    intervals = Intervals(kind, _check_number(confidence), rounds, seed)
    return _Options(MODELS[model], scale, intervals, ranks)


def _check_number(confidence: object) -> float:
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidInput(f"confidence is {confidence!r}: expected a number above 0 and below 1, such as 0.95")
    return float(confidence)


def _check_cluster(cluster: object) -> str | None:
    if cluster is not None and (not isinstance(cluster, str) or not cluster):
        raise InvalidInput(f"cluster is {cluster!r}: expected 'voter', a column such as 'item', or None")
    return cluster


def _boards(
    source: RatedSource,
    covariates: Sequence[Covariate],
    by: str | None,
    cluster: str | None,
    reading: Reading,
) -> tuple[list[tuple[object, _Board]], list[str]]:
    """The votes of each table, with the value of its column, and what is to be said about their dependence."""
    wanted = [*columns_of(covariates), *([] if by is None else [by])]
    found: Any = source
    if hasattr(found, "tally"):  # counts are quicker, but they do not say who voted
        found = found.votes() if cluster or wanted or reading else found.tally()
    if all(hasattr(found, field) for field in ("names", "wins", "ties")):
        if covariates or by is not None or cluster not in (None, AUTO) or reading:
            what = "covariates" if covariates else "by" if by is not None else next(iter(reading), "cluster")
            raise InvalidInput(f"{what} needs single votes, but these are counts")
        return [(None, _board_of_counts(found))], []
    votes = read_rated(found, wanted, cluster, single=bool(covariates), **reading)
    cluster, notes = choose_cluster(votes, cluster)
    boards = [(value, _board_of(part, covariates, cluster)) for value, part in _parts(votes, by)]
    return boards, [*votes.notes, *notes]


def read_rated(
    votes: VoteSource,
    extra: Sequence[str] = (),
    cluster: str | None = None,
    single: bool = False,
    **reading: Unpack[Reading],
) -> Votes:
    """Read votes for `ratings`, without what it does not need.

    Args:
        votes: Anything that `read_votes` reads.
        extra: Further columns.
        cluster: As in `ratings`.
        single: Whether each row must be one vote, in the order of the source.
        **reading: As in `read_votes`.

    Returns:
        The votes. Equal ones are one row with a count, if their clusters do not matter.
    """
    names = [*extra, *([cluster] if cluster not in (None, AUTO, VOTER) else [])]
    if single:
        return read_votes(votes, extra=names, **reading)
    return count_votes(votes, extra=names, voters=cluster is not None, **reading)


def choose_cluster(votes: Votes, cluster: str | None) -> tuple[str | None, list[str]]:
    """Return what the clusters of votes are, and what is to be said about their dependence.

    Args:
        votes: The votes.
        cluster: As in `ratings`.
    """
    if cluster != AUTO:
        return cluster, []
    if votes.voters is None:
        if votes.first is None or votes.first.voters is None:
            return None, []
        return None, ["The intervals take votes to be independent: they were read without voters."]
    counts = np.bincount(votes.voters.codes + 1, votes.count, len(votes.voters.names) + 1)[1:]
    if counts.max() <= 1:
        return None, []
    if len(counts) >= FEW:
        return VOTER, []
    each = f"{format_count(len(counts), 'voter')} with {counts.mean():,.0f} votes each on average"
    return None, [
        f"The intervals take votes to be independent, and are about these voters: {each} do not show how much voters "
        "differ."
    ]


def _board_of_counts(tally: Counted) -> _Board:
    """Those of a tally; arms without duels are left out."""
    met = np.flatnonzero((tally.wins + tally.wins.T + tally.ties).any(axis=1))
    those, names = np.ix_(met, met), [tally.names[arm] for arm in met]
    return _board(names, cells_of_pairs(tally.wins[those], tally.ties[those]), "the tally")


def _board_of(votes: Votes, covariates: Sequence[Covariate], cluster: str | None) -> _Board:
    if covariates:
        cells = cells_of_votes(votes, features(votes, covariates))
    else:
        cells = cells_of_pairs(*votes.pair_counts())
    board = _board(votes.names, cells, votes.source)
    return board if cluster is None else board._replace(clusters=clusters_of(votes, cells, cluster))


def _board(names: Sequence[str], cells: Cells, source: str) -> _Board:
    if not 2 <= len(names) <= MOST_ARMS:
        raise InvalidInput(f"{source} has {format_count(len(names), 'arm')} with duels, expected 2 to {MOST_ARMS:,}")
    return _Board(names, cells)


def _parts(votes: Votes, by: str | None) -> Iterator[tuple[object, Votes]]:
    """The votes for each value of a column, in the order of the values; empty cells and empty lists are left out."""
    import polars as pl

    if by is None:
        yield None, votes
        return
    rows = pl.DataFrame({"value": _lists(votes.extra[by])}).with_row_index("row")
    if rows["value"].dtype.base_type() in (pl.List, pl.Array):
        rows = rows.explode("value")
    rows = rows.drop_nulls()
    if rows["value"].dtype.base_type() == pl.Struct or rows["value"].n_unique() > MOST_BOARDS:
        found = f"{rows['value'].n_unique():,} different values" if len(rows) else "objects"
        raise InvalidInput(
            f"column {by!r} has {found}, such as {shorten(rows['value'][0], 60)}: expected at most {MOST_BOARDS:,} "
            "values, such as languages, each of which gets a table"
        )
    for value in rows["value"].unique().sort().to_list():
        kept = np.zeros(len(votes), dtype=bool)
        kept[rows.filter(pl.col("value") == value)["row"].to_numpy()] = True
        yield value, _those(votes, kept)


def _lists(column: "pl.Series") -> "pl.Series":
    """A column of flags by name, such as {"math": true, "code": false}, as lists of the names that are true."""
    import polars as pl

    if not isinstance(column.dtype, pl.Struct) or any(field.dtype != pl.Boolean for field in column.dtype.fields):
        return column
    return pl.Series([[name for name, is_true in (flags or {}).items() if is_true] for flags in column.to_list()])


def _those(votes: Votes, kept: Bools) -> Votes:
    """Some of the votes, with the arms that they are about."""
    some = votes.only(kept)
    sides = np.stack([some.left, some.right])
    arms, codes = np.unique(sides, return_inverse=True)
    left, right = codes.reshape(sides.shape)
    return replace(some, names=tuple(votes.names[arm] for arm in arms), left=left, right=right)


def _rate_board(board: _Board, options: _Options, anchor: object) -> "tuple[pl.DataFrame, list[str], list[str]]":
    """The table, remarks on its intervals, and what is doubtful about them."""
    import polars as pl

    arm, worth = _anchor(anchor, options.scale, board.names)
    found = estimate(options.model, board.cells, arm, options.intervals, board.clusters)
    rank, best, worst = _ranks(found)
    scaled = [_scale_strengths(found, x, options.scale, worth) for x in (found.strength, found.lower, found.upper)]
    order, duels = np.lexsort([np.arange(len(rank)), rank]), _duels(board.cells)
    if options.ranks == "lmarena":
        rank = 1 + (found.lower > found.upper[:, None]).sum(axis=1)
    columns = {"rating": scaled[0], "lower": scaled[1], "upper": scaled[2], "rank": rank, "best_rank": best}
    columns |= {"worst_rank": worst, "duels": duels}
    arms = {"arm": [board.names[k] for k in order]}
    table = pl.DataFrame(arms | {name: column[order] for name, column in columns.items()})
    remarks = [describe_clusters(board.clusters), _few_per_arm(found, board)]
    if options.intervals.kind == "bootstrap":
        remarks.append(_few_duels(duels, board.names))
    doubts = [
        describe_unlimited(found.fitted, board.names, arm is not None),
        only_tied(board.cells, board.names),
        few_clusters(board.clusters),
    ]
    return table, [*filter(None, remarks)], [*filter(None, doubts)]


def _anchor(anchor: object, scale: str, names: Sequence[str]) -> tuple[int | None, float]:
    """The anchor's index, if there is one, and its rating, or else the mean."""
    usual = SCALES[scale][1] if scale in SCALES else 0.0
    if anchor is None:
        return None, usual
    arm, worth = anchor if isinstance(anchor, tuple) and len(anchor) == 2 else (anchor, usual)
    if not isinstance(arm, str) or isinstance(worth, bool) or not isinstance(worth, int | float) or worth - worth != 0:
        raise InvalidInput(f"anchor is {anchor!r}: expected an arm, or an arm and its rating, such as ('gpt-4', 1200)")
    if isinstance(anchor, tuple) and scale == "probability":
        raise InvalidInput(f"anchor is {anchor!r} on the scale 'probability': expected only an arm, whose rating is ½")
    if arm not in names:
        raise UnknownName("arm", arm, names)
    return list(names).index(arm), float(worth)


def _scale_strengths(found: Estimates, strength: Floats, scale: str, worth: float) -> Floats:
    return found.chance(strength) if scale == "probability" else SCALES[scale][0] * strength + worth


def _ranks(found: Estimates) -> tuple[Ints, Ints, Ints]:
    """(K,) each: the rank by rating, equal arms sharing it, and the best and the worst that it may be."""
    larger = found.strength[:, None] > found.strength + 1e-9
    return 1 + larger.sum(axis=0), 1 + found.above.sum(axis=0), len(larger) - found.above.sum(axis=1)


def _duels(cells: Cells) -> Ints:
    per_cell = np.tile(cells.counts.sum(axis=0), 2)
    return np.bincount(np.append(cells.first, cells.second), per_cell, cells.arms).astype(np.int64)


def describe_clusters(clusters: Clusters | None) -> str:
    """Return what the intervals take to depend on one another; empty if nothing."""
    if clusters is None:
        return ""
    each = f"{clusters.total / clusters.size:,.1f}".removesuffix(".0")
    name = clusters.name
    return (
        f"Each {name} counts as one observation in the intervals: {format_count(clusters.size, name)} with {each} "
        "votes each on average."
    )


def few_clusters(clusters: Clusters | None) -> str:
    """Return that there are few clusters; empty if there are enough."""
    if clusters is None or clusters.size >= FEW:
        return ""
    return (
        f"{format_count(clusters.size, clusters.name)} hardly show how much they differ: below {FEW}, such intervals "
        "are rough, and usually long"
    )


def _few_per_arm(found: Estimates, board: _Board) -> str:
    """That some arms have most of their votes from few clusters, although there are enough; else empty."""
    few = np.flatnonzero(found.effective < FEW - 1e-9)
    if board.clusters is None or board.clusters.size < FEW or not len(few):
        return ""
    names = _join_names([board.names[int(arm)] for arm in few])
    return f"Fewer than {FEW} {board.clusters.name}s have nearly all votes on {names}: these intervals are rough."


def _few_duels(duels: Ints, names: Sequence[str]) -> str:
    """That the bootstrap is too narrow for some arms; else empty."""
    few = np.flatnonzero(duels < ENOUGH)
    if not len(few):
        return ""
    listed = _join_names([names[int(arm)] for arm in few])
    return f"The bootstrap is too narrow for fewer than {ENOUGH} duels, which {listed} had; the sandwich is not."


def describe_unlimited(fitted: Fit, names: Sequence[str], has_anchor: bool = False) -> str:
    """Return why a fit needed the average arm; empty if it did not."""
    if not fitted.regularized:
        return ""
    above = ~fitted.reach[fitted.reference].all(axis=0)
    below = ~fitted.reach[:, fitted.reference].all(axis=1)
    groups = (
        ("from above", above & ~below),
        ("from below", below & ~above),
        ("from either side", above & below),
    )
    listed = [
        f"of {_join_names([names[int(k)] for k in np.flatnonzero(arms)])} {side}" for side, arms in groups if arms.any()
    ]
    reason = f"the votes do not limit the rating {', '.join(listed)}" if listed else "all votes are ties"
    text = f"{reason}: for finite ratings, every arm was given half a win and half a loss against an average arm"
    others = int(fitted.reference.sum())
    if has_anchor or others == fitted.arms:
        return text
    return f"{text}; ratings are relative to the mean of the other {others} arms, so give an anchor to compare tables"


def only_tied(cells: Cells, names: Sequence[str]) -> str:
    """Return which arms have nothing but ties, and what that means; empty if there are none."""
    per_cell = np.tile(cells.counts[[WON, LOST]].sum(axis=0), 2)
    decided = np.bincount(np.append(cells.first, cells.second), per_cell, cells.arms)
    tied = [names[int(arm)] for arm in np.flatnonzero(decided == 0)]
    if not tied:
        return ""
    named = _join_names(tied)
    return f"{named} only tied, and ties do not show by how much ratings may be off: such intervals are too narrow"


def _join_names(names: list[str], most: int = 3) -> str:
    return " and ".join(names[:most] if len(names) <= most else [", ".join(names[:most]), f"{len(names) - most} more"])


def _add_notes(table: "pl.DataFrame", notes: Sequence[str]) -> "NotedFrame":
    from .overviews import NotedFrame

    return NotedFrame.with_notes(table, notes)


def _stack_tables(tables: "list[tuple[object, pl.DataFrame]]", by: str | None) -> "pl.DataFrame":
    import polars as pl

    if by is None:
        return tables[0][1]
    if not tables:
        raise InvalidInput(f"column {by!r} is empty in all votes: expected a value in some")
    return pl.concat([table.select(pl.lit(value).alias(by), pl.all()) for value, table in tables])
