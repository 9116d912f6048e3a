"""Results of simulations: one table with a row per run and checkpoint, and its provenance."""

import hashlib
import io
import json
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from . import provenance as provenances
from .errors import DuelsError, InvalidInput, UnknownName, format_count, shorten
from .files import atomic_write, html_table, latex_table, markdown_table
from .policies import display_name
from .provenance import TOLD

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

SCHEMA = {
    "problem": pl.String,
    "arms": pl.Int64,
    "policy": pl.String,
    "horizon": pl.Int64,
    "run": pl.Int64,
    "t": pl.Int64,
    "regret": pl.Float64,  # cumulative, of the notion named in the provenance; usually (Δ_i + Δ_j)/2
    "weak_regret": pl.Float64,  # cumulative min(Δ_i, Δ_j)
    "simple_regret": pl.Float64,  # Δ of the recommended arm
    "duels": pl.Int64,  # comparisons of two different arms
    "recommended": pl.Int64,
    "correct": pl.Boolean,
    "explored": pl.Int64,  # when an elimination method had one arm left; null before that, and for other policies
}
PAIRS = {"problem": pl.String, "policy": pl.String, **dict.fromkeys(("run", "t", "first", "second"), pl.Int64)}
PAIRS |= {"duels": pl.Float64, "wins": pl.Float64}
TABLES = {"frame": SCHEMA, "pairs": PAIRS, "intervals": {**PAIRS, "lower": pl.Float64, "upper": pl.Float64}}
MOST_SHOWN = 20  # rows in an HTML table
HEADS = ["problem", "policy", "steps", "runs", "regret", "accuracy"]  # of tables for people
DIGESTS = "sha256"  # in provenance.json: the hash of each table's file


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a simulation or experiment.

    Attributes:
        frame: One row per run and checkpoint, with the columns of `SCHEMA`.
        provenance: What was run: version, policy, problem, seed, machine, time.
        pairs: Duels and wins of every pair at every checkpoint, or None if they were not recorded.
        intervals: Confidence intervals of chosen pairs at every checkpoint, or None if they were not recorded.
    """

    frame: pl.DataFrame
    provenance: dict[str, Any] = field(default_factory=dict)
    pairs: pl.DataFrame | None = None  # problem, policy, run, t, first, second, duels, wins (of the first)
    intervals: pl.DataFrame | None = None  # problem, policy, run, t, first, second, duels, wins, lower, upper

    def summarize(self, *, confidence: float = 0.95, quantiles: Sequence[float] = (0.25, 0.5, 0.75)) -> pl.DataFrame:
        """Compute mean, spread and accuracy over runs, by problem, policy, horizon and time.

        Args:
            confidence: The level of the confidence intervals.
            quantiles: The quantiles of regret to include.

        Returns:
            A frame in which problems and policies keep their order in `frame`. `regret_low` to `regret_high` is the
            confidence interval of the mean (Student's t; null for a single run), `accuracy_low` to `accuracy_high`
            Wilson's interval of the accuracy, and `regret_q25` the 0.25-quantile of the regret.

        Raises:
            InvalidInput: If the confidence or a quantile is out of range.
        """
        if not 0 < confidence < 1:
            raise InvalidInput(f"confidence is {confidence}: expected a number between 0 and 1, such as 0.95")
        wrong = [q for q in quantiles if not 0 <= q <= 1]
        if wrong:
            raise InvalidInput(f"a quantile is {wrong[0]}: expected numbers from 0 to 1")
        regret = pl.col("regret")
        summary = (
            self.frame.group_by("problem", "arms", "policy", "horizon", "t", maintain_order=True)
            .agg(
                runs=pl.len(),
                regret=regret.mean(),
                regret_min=regret.min(),
                regret_max=regret.max(),
                standard_error=regret.std() / pl.len().sqrt(),  # null for a single run
                weak_regret=pl.col("weak_regret").mean(),
                accuracy=pl.col("correct").mean(),
                duels=pl.col("duels").mean(),
                explored=pl.col("explored").median(),
                **{f"regret_q{q * 100:g}": regret.quantile(q, "linear") for q in quantiles},
            )
            .sort(order_rows(self.frame, "problem"), order_rows(self.frame, "policy"), "horizon", "t")
        )
        return summary.with_columns(**_bands(summary, confidence))

    def final(self) -> pl.DataFrame:
        """Return the summary at every requested horizon, by problem and `t`, lowest mean regret first.

        A policy that needs a horizon is represented at `t` by the runs with exactly that horizon. An experiment runs
        the other policies once, to the longest horizon; at shorter ones the same runs count, as they were at that time.
        """
        t, horizon = pl.col("t"), pl.col("horizon")
        summary = self.summarize().with_columns(last=t == t.max().over("problem", "policy", "horizon"))
        asked, line = _shorter_horizons(self.frame, self.provenance), ["problem", "policy", "t"]
        shorter = summary.join(asked, on=[*line, "horizon"], how="semi")
        shorter = shorter.join(summary.filter("last"), on=line, how="anti")  # runs with exactly that horizon come first
        shorter = shorter.filter(horizon == horizon.min().over(line))
        rows = pl.concat([summary.filter("last"), shorter]).drop("last")
        order = [order_rows(self.frame, "problem"), t, pl.col("regret"), order_rows(self.frame, "policy"), horizon]
        return rows.sort(order)

    def notions_of(self, problem: str) -> list[str]:
        """Return the names of the notions of regret on a problem; several if results of several were combined."""
        return sorted(provenances.notions(self.provenance, problem))

    def name_of(self, policy: str) -> str:
        """Return a policy's name as papers print it: the `NAME` of its module, and the parameters in its name."""
        return display_name(policy, provenances.policy_names(self.provenance))

    @property
    def notion(self) -> str:
        """The name of the notion of regret, such as `condorcet`; several are separated by commas."""
        return ", ".join(sorted(provenances.notions(self.provenance))) or "condorcet"

    def save(self, directory: str | Path) -> None:
        """Write the tables as Parquet and the provenance as JSON, each file atomically.

        Args:
            directory: The folder. It is created if needed; results in it are replaced.

        Raises:
            InvalidInput: If the folder cannot be written.
        """
        target = prepare_folder(directory)
        text = json.dumps(self.provenance, ensure_ascii=False)  # fails before anything is written
        digests = {}
        for name in TABLES:
            table, file = getattr(self, name), target / f"{name}.parquet"
            if table is None:
                file.unlink(missing_ok=True)
                continue
            digests[file.name] = write_parquet(table, file)
        text = json.dumps(self.provenance | {DIGESTS: digests}, indent=2, ensure_ascii=False)
        with atomic_write(target / "provenance.json") as unfinished:
            unfinished.write_text(text + "\n", encoding="utf-8")

    def to_pandas(self) -> "pandas.DataFrame":
        """Return `frame` as a pandas data frame; null becomes NaN.

        Raises:
            DuelsError: If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise DuelsError("to_pandas needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame({column.name: column.to_numpy() for column in self.frame})

    def to_latex(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the final summary as a LaTeX table for the package booktabs: mean regret ± standard error, accuracy.

        Of the policies on a problem after as many steps, the lowest mean regret and the highest accuracy are in bold.

        Args:
            labels: Names to print instead of those of policies and problems; by default policies have the names that
                papers print.

        Raises:
            UnknownName: If a label is for a policy or problem that the results do not have.

        Example:
            >>> print(duels.simulate("arxiv-6", "rucb", horizon=10_000, runs=10).to_latex({"rucb": "Ours"}))
        """
        return latex_table(HEADS, *self._paper_rows(labels))

    def to_markdown(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the table of `to_latex` in GitHub's Markdown."""
        return markdown_table(HEADS, *self._paper_rows(labels))

    def _paper_rows(
        self, labels: Mapping[str, str] | None
    ) -> tuple[list[list[str]], Collection[int], list[tuple[int, int]]]:
        """The cells of a table for papers, the columns aligned to the right, and the cells in bold."""
        given, final = labels or {}, self.final()
        known = [*final["policy"].unique(maintain_order=True), *final["problem"].unique(maintain_order=True)]
        for name in given:
            if name not in known:
                raise UnknownName("name in labels", name, known)
        rows = [
            [given.get(row[0], row[0]), given.get(row[1]) or self.name_of(row[1]), *row[2:]] for row in _cells(final)
        ]
        group = ["problem", "t"]
        best = final.select(
            (pl.col("regret") == pl.col("regret").min().over(group)) & (pl.col("regret").n_unique().over(group) > 1),
            (pl.col("accuracy") == pl.col("accuracy").max().over(group))
            & (pl.col("accuracy").n_unique().over(group) > 1),
        )
        columns = [HEADS.index("regret"), HEADS.index("accuracy")]
        bold = [(k, column) for k, flags in enumerate(best.rows()) for column, flag in zip(columns, flags) if flag]
        return rows, range(2, len(HEADS)), bold

    def _repr_html_(self) -> str:
        """The final summary as an HTML table, for notebooks."""
        final = self.final()
        rows = _cells(final.head(MOST_SHOWN))
        note = f"Mean {self.notion} regret ± standard error, lowest first."
        if len(final) > MOST_SHOWN:
            note += f" The first {MOST_SHOWN} of {len(final)} rows; all are in results.final()."
        return html_table(repr(self), HEADS, rows, note)

    def __repr__(self) -> str:
        policies = self.frame["policy"].unique(maintain_order=True).to_list()
        problems = self.frame["problem"].unique(maintain_order=True).to_list()
        size = f"{format_count(self.frame['run'].n_unique(), 'run')}, {len(self.frame)} rows"
        return f"Results({', '.join(policies)} on {', '.join(problems)}: {size})"


def _cells(final: pl.DataFrame) -> list[list[str]]:
    """The final summary as text, with the columns of `HEADS`."""
    rows = []
    for row in final.iter_rows(named=True):
        error = "" if row["standard_error"] is None else f" ± {row['standard_error']:,.1f}"
        regret = f"{row['regret']:,.1f}{error}"
        accuracy = "" if row["accuracy"] is None else f"{row['accuracy']:.2f}"  # continuous spaces have no arms
        rows.append([row["problem"], row["policy"], f"{row['t']:,}", f"{row['runs']:,}", regret, accuracy])
    return rows


def order_rows(frame: pl.DataFrame, column: str) -> pl.Expr:
    """Return the column as an enumeration, which sorts by first appearance in the frame."""
    return pl.col(column).cast(pl.Enum(frame[column].unique(maintain_order=True)))


def _shorter_horizons(frame: pl.DataFrame, provenance: Mapping[str, Any]) -> pl.DataFrame:
    """By problem and policy, the requested horizons of policies that need none: they are run once, to the longest."""
    rows: list[tuple[str, str, int, int]] = []
    runs = frame.group_by("problem", "policy").agg(pl.col("horizon").unique())
    horizons = {(problem, policy): played for problem, policy, played in runs.rows()}
    for leaf in provenances.parts(provenance):
        for key in product(leaf.get("problems", ()), leaf.get("policies", ())):
            asked, played = leaf.get("horizons", [0]), horizons.get(key, ())
            # Without that list, these are complete experiments: a policy that needs a horizon was run with each.
            needs_horizon = key[1] in leaf[TOLD] if TOLD in leaf else set(asked) <= set(played)
            if not needs_horizon and max(asked) in played:
                rows += [(*key, max(asked), t) for t in asked]
    schema = {"problem": pl.String, "policy": pl.String, "horizon": pl.Int64, "t": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _bands(summary: pl.DataFrame, confidence: float) -> dict[str, pl.Series]:
    from scipy import special  # imported on first use: it takes a tenth of a second

    upper = 1 - (1 - confidence) / 2
    runs, accuracy = summary["runs"].to_numpy(), summary["accuracy"].to_numpy()
    width = special.stdtrit(np.maximum(runs - 1, 1), upper) * summary["standard_error"]
    z2 = special.ndtri(upper) ** 2
    center = (accuracy + z2 / (2 * runs)) / (1 + z2 / runs)
    half = np.sqrt(z2) / (1 + z2 / runs) * np.sqrt(accuracy * (1 - accuracy) / runs + z2 / (4 * runs**2))
    return {
        "regret_low": summary["regret"] - width,
        "regret_high": summary["regret"] + width,
        "accuracy_low": pl.Series(np.maximum(center - half, 0)).fill_nan(None),
        "accuracy_high": pl.Series(np.where(accuracy == 1, 1, np.minimum(center + half, 1))).fill_nan(None),
    }


def load_results(directory: str | Path) -> Results:
    """Read results that `Results.save`, or an experiment, wrote.

    Args:
        directory: The folder.

    Raises:
        InvalidInput: If the folder has no results, or a file was changed since it was written.
    """
    source = Path(directory)
    if not (source / "frame.parquet").is_file():
        raise InvalidInput(f"{str(source)!r} {_why_none(source)}")
    try:
        provenance = json.loads((source / "provenance.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{source / 'provenance.json'} cannot be read: {error}") from None
    digests = provenance.pop(DIGESTS, None) if isinstance(provenance, dict) else None
    if not isinstance(digests, dict):
        raise InvalidInput(f"{source / 'provenance.json'} is not a provenance: expected a file as `save` writes it")
    tables = {}
    for name, columns in TABLES.items():
        file = source / f"{name}.parquet"
        if file.is_file():
            tables[name] = read_parquet(file, columns, digests.get(file.name))
    return Results(provenance=provenance, **tables)


def as_results(results: object) -> Results:
    """Return results as they are, or read them from a folder; every figure accepts both."""
    if isinstance(results, Results):
        return results
    if isinstance(results, str | os.PathLike):
        return load_results(os.fspath(results))
    raise InvalidInput(
        f"{shorten(results)} is not results: expected what simulate, run_experiment or load_results returns, or a "
        "folder with results"
    )


def _why_none(folder: Path) -> str:
    if not folder.is_dir():
        return "is not a folder: expected one with results, as `duels run --out` or `save` writes it"
    if (folder / "experiment.json").is_file():
        return (
            "holds an experiment that is not finished: run the command again to continue; shards need "
            "`duels experiment merge`"
        )
    return "holds no results: expected a folder with frame.parquet, as `save` writes it" + look_below(folder)


def look_below(folder: Path) -> str:
    """Suggest the subfolder `results`, where `reproduce` keeps its experiment, as the end of an error message."""
    below = folder / "results"
    found = any((below / name).is_file() for name in ("experiment.json", "frame.parquet"))
    return f"; look in {str(below)!r}" if found else ""


def combine(parts: Sequence[Results]) -> Results:
    """Combine several results into one; the provenance of each is kept.

    Args:
        parts: Results, or folders with results.

    Raises:
        InvalidInput: If the parts could not be distinguished afterwards: the same runs twice, or different problems
            with one name.
    """
    parts = [as_results(part) for part in parts]
    if not parts:
        raise InvalidInput("there is nothing to combine: expected a list of at least one Results")
    keys = ["problem", "policy", "horizon", "run"]
    seen = pl.concat([part.frame.select(keys).unique() for part in parts])
    twice = seen.filter(seen.is_duplicated())
    if len(twice):
        problem, policy, horizon, run = twice.sort(keys).row(0)
        raise InvalidInput(
            f"run {run} of {policy} on {problem} with horizon {horizon} is present twice: give different matrices and "
            "policies different names, and simulate more runs with one seed rather than combining seeds"
        )
    _refuse_namesakes(parts)
    tables = {}
    for name in TABLES:
        present = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        tables[name] = pl.concat(present) if present else None
    return Results(provenance={"parts": [part.provenance for part in parts]}, **tables)  # type: ignore[arg-type]


def _refuse_namesakes(parts: Sequence[Results]) -> None:
    """Raise if different matrices have one name: their rows would count as one problem's."""
    known: dict[str, str] = {}
    for part in parts:
        for problem, digest in provenances.digests(part.provenance):
            if known.setdefault(problem, digest) != digest:
                raise InvalidInput(f"two different matrices are called {problem!r}: give each a different name")


def prepare_folder(directory: str | Path) -> Path:
    """Create a folder if needed, and check that files can be written there."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(prefix=".writable", dir=folder):
            pass
    except OSError as error:
        raise InvalidInput(f"cannot write to the folder {str(folder)!r}: {error.strerror or error}") from None
    return folder


def write_parquet(table: pl.DataFrame, path: Path) -> str:
    """Write a Parquet file atomically and return its sha256."""
    content = io.BytesIO()
    table.write_parquet(content)  # in memory first: polars reports a full disk as a Parquet error
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(content.getbuffer())
    return hashlib.sha256(content.getbuffer()).hexdigest()


def read_parquet(path: Path, columns: Mapping[str, Any] = SCHEMA, digest: str | None = None) -> pl.DataFrame:
    """Read a Parquet file and check it.

    Args:
        path: The file.
        columns: The columns that it must have, and their types.
        digest: The file's sha256 when it was written. Parquet itself does not detect most damage.

    Raises:
        InvalidInput: If the file is missing, damaged, or lacks a column.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    found = hashlib.sha256(content).hexdigest()
    if digest is not None and found != digest:
        raise InvalidInput(
            f"{path} is damaged: its sha256 is {found[:12]}…, expected {digest[:12]}… as when it was written"
        )
    try:
        table = pl.read_parquet(io.BytesIO(content))
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InvalidInput(f"{path} is not a readable Parquet file: {reason}") from None
    for name, kind in columns.items():
        if table.schema.get(name) != kind:
            has = table.schema.get(name, "missing")
            raise InvalidInput(f"{path} does not hold results: its column {name!r} is {has}, expected {kind}")
    return table
