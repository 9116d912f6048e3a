"""The paper's experiment, from rankers to claims: matrix, races, figures, report (Zoghi et al. 2014, section 6)."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from ..checks import check_int
from ..engine.progress import bar
from ..errors import InvalidInput, NoCondorcetWinner, format_count
from ..experiments.folder import Folder, folder_matrices
from ..experiments.running import Experiment, plan_experiment, run_experiment
from ..experiments.subsets import draw_subset
from ..figures import save
from ..figures.listing import Figure
from ..files import atomic_write
from ..policies import PolicyLike
from ..preference import PreferenceMatrix
from ..problems import as_matrix, load_matrix, load_problem, save_matrix
from ..provenance import version
from ..results import Results, combine, load_results, prepare_folder
from ..simulation import ProblemLike
from .claims import Claim, claims_text, paper_claims
from .gallery import experiment_figures, proof_figures
from .report import write_report

if TYPE_CHECKING:
    from distributed import Client

POLICIES = ("rucb", "savage", "btm:gamma=own")  # α = 0.51 is rucb's default; γ each problem's own
SIZES = (16, 32, 64)
INTERLEAVED, CLICKS = "probabilistic", "navigational"  # method and click model
RECORD = "reproduction.json"  # what was asked for, and how the preferences were found
MATRIX, RESULTS = "matrix.csv", "results"  # beside it: the matrix of all rankers, the experiment's folder
DRAWS = ("draws/rucb-savage", "draws/btm")  # the folders of the further draws' experiments
DRAW_COUNT = 12  # draws of each size, by which the claims are judged; the first one is in the figures
DRAWN = 0.4  # of the time for figures goes into drawing them, the rest into writing their files
DEEP_HORIZONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4500)  # thousands, up to the paper's 4.5 million


Letor = str | Path | Sequence[str | Path]  # LETOR files, or the folder of a fold


class ReportOptions(TypedDict, total=False):
    """Arguments of `write_report`."""

    pool: PreferenceMatrix
    claims: list[Claim]
    title: str
    facts: dict[str, str]


class Scale(NamedTuple):
    """The size of the experiment."""

    comparisons: int  # per pair of rankers
    runs: int
    horizons: tuple[int, ...]
    endings: tuple[str, ...]  # of the figures' files
    draw_runs: tuple[int, int]  # on each further draw: of RUCB and SAVAGE, and of BTM, whose runs are almost equal


FULL = Scale(4000, 100, tuple(1000 * k for k in DEEP_HORIZONS), (".png", ".svg", ".pdf"), (20, 2))
QUICK = Scale(1000, 20, tuple(1000 * k for k in DEEP_HORIZONS if k <= 500), (".png",), (5, 2))


class Reproduction(NamedTuple):
    """The results of `reproduce`."""

    pool: PreferenceMatrix  # all rankers
    matrices: dict[str, PreferenceMatrix]  # the problems drawn from it
    results: Results
    claims: list[Claim]
    report: Path


def reproduce(
    out: str | Path,
    *,
    letor: Letor | None = None,
    matrix: ProblemLike | None = None,
    policies: Sequence[PolicyLike] = (),
    quick: bool = False,
    runs: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: "Client | str | None" = None,
    progress: bool | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """Repeat the paper's experiment and write matrix, results, figures and report to a folder.

    If it was interrupted, calling it again with the same arguments resumes it.

    Args:
        out: The folder. One that holds another reproduction is refused at once.
        letor: LETOR files, or the folder of a fold, to take the rankers from; by default a generated collection with
            the shape of the paper's.
        matrix: A preference matrix to use instead of an estimated one.
        policies: Policies to run beside RUCB, Condorcet SAVAGE and Beat the Mean.
        quick: Whether to use fewer comparisons, runs and steps.
        runs: The number of runs of each policy; by default 100, or 20 if `quick`.
        seed: The seed of everything.
        jobs: The number of threads; by default one per core.
        executor: A Dask client or the address of a scheduler; by default threads.
        progress: Whether to show progress bars; by default on a terminal only.
        say: Called with each line about what happens.

    Raises:
        InvalidInput: If an argument is wrong, or the folder holds something else.
        NoCondorcetWinner: If no subset of the arms has a Condorcet winner.
    """
    scale = QUICK if quick else FULL
    if runs is not None:
        scale = scale._replace(runs=check_int("runs", runs, 1))
    if letor and matrix is not None:
        raise InvalidInput("letor and matrix were both given: the preferences come from one of them")
    seed, jobs = check_int("seed", seed, 0), None if jobs is None else check_int("jobs", jobs, 1)
    raced = _list_policies(policies)
    given = None if matrix is None else as_matrix(matrix)
    asked = {
        "duels": version(),
        "scale": "quick" if quick else "full",
        "preferences": _source(letor, given, scale.comparisons),
        "runs": scale.runs,
        "policies": ", ".join(map(str, raced)),
        "seed": seed,
    }
    target = prepare_folder(out)
    _refuse_other(target, asked)
    clock = _Clock(say)
    with clock.step("preferences"):
        pool, origin = (
            _load_estimate(letor, scale.comparisons, seed, jobs, progress, say)
            if given is None
            else (given, f"{given.name}, a matrix with the digest {given.digest}")
        )
        say(f"{pool.arms} arms, {_winner(pool)}")
        matrices, drawn = _subsets(pool, seed, say)
        further, draws = _further_draws(pool, matrices, seed)
    facts = {"Preferences": origin, **{f"Subset of {size}": how for size, how in drawn.items()}}
    facts |= {f"Draws of {kind}": _describe_draws(scale, len(problems)) for kind, problems in draws.items()}
    planned = plan_experiment(matrices, raced, scale.horizons, runs=scale.runs, seed=seed)
    folder = Folder(target / RESULTS)
    folder.claim(planned.identity, planned.matrices)
    _write_json(target / RECORD, {"asked": asked, "facts": facts, "pool": pool.name, "draws": draws})
    save_matrix(pool, target / MATRIX)
    with clock.step("experiment"):
        say(f"{planned}, {format_count(scale.runs, 'run')}, horizons {scale.horizons[0]:,} to {scale.horizons[-1]:,}")
        results = run_experiment(planned, executor=executor, jobs=jobs, out=folder.path, progress=progress)
    judged = [results]
    if further:
        with clock.step("draws"):
            for kind, problems in draws.items():
                say(f"{kind}, {_describe_draws(scale, len(problems))}")
            for place, part in zip(DRAWS, _draw_experiments(further, scale, seed)):
                judged.append(run_experiment(part, executor=executor, jobs=jobs, out=target / place, progress=progress))
    claims = paper_claims(combine(judged), planned.matrices | further, pool, draws)
    with clock.step("figures"), bar(progress, "figures") as show:
        drawn_figures = experiment_figures(results, planned.matrices, pool)
        show(DRAWN / 4)
        proofs = proof_figures(results, planned.matrices, runs=scale.runs, seed=seed, jobs=jobs, pool=pool)
        show(DRAWN)
        _write_figures(
            target / "figures",
            [*drawn_figures, *proofs],
            scale.endings,
            lambda share: show(DRAWN + (1 - DRAWN) * share),
        )
    with clock.step("report"):
        page = write_report(
            target / "report.html",
            results,
            planned.matrices,
            pool=pool,
            claims=claims,
            title=_title(pool),
            more=proofs,
            facts=facts,
            progress=progress,
        )
    _write_json(target / "claims.json", [claim._asdict() for claim in claims])
    say(f"\n{claims_text(claims)}\n")
    say(f"The report is {page}: open it in a browser. {clock.total()}")
    return Reproduction(pool, planned.matrices, results, claims, page)


def find_report_options(
    folder: str | Path, results: Results, matrices: Mapping[str, PreferenceMatrix]
) -> ReportOptions:
    """Return the arguments of `write_report` for the experiment in a reproduction's folder; none for another one."""
    target = Path(folder).resolve().parent
    if Path(folder).resolve().name != RESULTS or not (target / RECORD).is_file():
        return {}
    record = _record(target)
    matrix = load_matrix(target / MATRIX)
    pool = PreferenceMatrix(matrix.array, matrix.names, record.get("pool", matrix.name))
    draws = record.get("draws", {})
    places = [target / place for place in DRAWS] if draws else []
    further = folder_matrices(places[0]) if draws else {}
    judged = combine([results, *(load_results(place) for place in places)])
    claims = paper_claims(judged, {**matrices, **further}, pool, draws)
    return {"pool": pool, "claims": claims, "title": _title(pool), "facts": record.get("facts", {})}


def _title(pool: PreferenceMatrix) -> str:
    return f"The paper's experiment on {pool.name}"


def _list_policies(policies: Sequence[PolicyLike]) -> list[PolicyLike]:
    """List the paper's policies and further ones, each once; wrong ones are refused at once."""
    small = load_problem("arxiv-6")
    others = [one for one in policies if next(iter(plan_experiment(small, [one]).policies)) not in POLICIES]
    plan_experiment(small, [*POLICIES, *others])
    return [*POLICIES, *others]


def _source(letor: Letor | None, matrix: PreferenceMatrix | None, comparisons: int) -> str:
    """Describe where the preferences come from; different sources have different descriptions."""
    if matrix is not None:
        return f"the matrix {matrix.digest}"
    paths = [letor] if isinstance(letor, str | Path) else list(letor or ())
    files = ", ".join(str(Path(path).resolve()) for path in paths)
    return f"{comparisons:,} comparisons of each pair of rankers of {files or 'a generated collection'}"


def _refuse_other(target: Path, asked: Mapping[str, object]) -> None:
    """Raise if the folder holds another reproduction."""
    if not (target / RECORD).exists():
        return
    held = _record(target)["asked"]
    for key, wanted in asked.items():
        if held.get(key) != wanted:
            raise InvalidInput(
                f"the folder {str(target)!r} holds another reproduction ({key}: {held.get(key)}; asked for: {wanted}). "
                "Choose another folder with out (on the command line, --out), or remove that one"
            )


def _record(target: Path) -> dict[str, Any]:
    """Read the description in a reproduction's folder."""
    try:
        record: dict[str, Any] = json.loads((target / RECORD).read_text(encoding="utf-8"))
        if isinstance(record["asked"], dict) and isinstance(record.get("facts", {}), dict):
            return record
        why = "it does not describe a reproduction"
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = str(error)
    raise InvalidInput(f"{target / RECORD} cannot be read: {why}; choose another folder")


def _write_json(path: Path, value: object) -> None:
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


class _Clock:
    """Measures how long each step takes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say, self.started = say, time.perf_counter()
        self.took: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        before = time.perf_counter()
        yield
        self.took[name] = time.perf_counter() - before

    def total(self) -> str:
        parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self.took.items())
        return f"It took {time.perf_counter() - self.started:.0f} s ({parts})."


def _load_estimate(
    letor: Letor | None,
    comparisons: int,
    seed: int,
    jobs: int | None,
    progress: bool | None,
    say: Callable[[str], None],
) -> tuple[PreferenceMatrix, str]:
    """Estimate the preferences among a collection's rankers, and describe how."""
    from ..rankers.collection import load as load_collection
    from ..rankers.estimate import estimate_preferences
    from ..rankers.synthetic import synthetic_collection

    if letor:
        paths = [letor] if isinstance(letor, str | Path) else list(letor)
        collection = load_collection(paths if len(paths) > 1 else paths[0], progress=progress)
    else:
        with bar(progress, "collection"):
            collection = synthetic_collection(seed=seed)
    how = f"{collection}: {comparisons:,} {INTERLEAVED} interleavings of each pair, {CLICKS} clicks"
    say(how)
    pool = estimate_preferences(
        collection,
        clicks=CLICKS,
        interleave=INTERLEAVED,
        comparisons=comparisons,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    return pool, how


def _subsets(
    pool: PreferenceMatrix, seed: int, say: Callable[[str], None]
) -> tuple[dict[str, PreferenceMatrix], dict[int, str]]:
    """Draw problems of the paper's sizes, and describe how; a size without a Condorcet winner is left out."""
    sizes = [size for size in SIZES if size < pool.arms] + ([pool.arms] if pool.arms <= SIZES[-1] else [])
    found, notes = {}, {}
    for size in sizes:
        try:
            drawn = draw_subset(pool, size, seed)
        except NoCondorcetWinner as error:
            notes[size] = f"left out: {error}"
            say(f"K = {size} is {notes[size]}")
            continue
        count = (
            f"after {drawn.refused} without a Condorcet winner were refused" if drawn.refused else "at the first draw"
        )
        notes[size] = "all arms" if size == pool.arms else f"drawn {count}"
        found[f"{size} arms"] = drawn.matrix
        say(f"K = {size}: {notes[size]}; {_winner(drawn.matrix)}, smallest gap {sorted(drawn.matrix.gaps)[1]:.4g}")
    if not found:
        raise NoCondorcetWinner(
            f"no subset of the {pool.arms} arms has a Condorcet winner, so there is nothing to race"
        )
    return found, notes


def _further_draws(
    pool: PreferenceMatrix, matrices: Mapping[str, PreferenceMatrix], seed: int
) -> tuple[dict[str, PreferenceMatrix], dict[str, list[str]]]:
    """Draw further problems of each size below the pool's.

    Returns:
        The problems by name, and the names of all draws of each size, the first one included.
    """
    found: dict[str, PreferenceMatrix] = {}
    draws: dict[str, list[str]] = {}
    for kind, first in matrices.items():
        if first.arms == pool.arms:  # there is only one such draw
            continue
        draws[kind] = [kind]
        for place in range(1, DRAW_COUNT):
            with suppress(NoCondorcetWinner):
                drawn = draw_subset(pool, first.arms, seed + place).matrix
                draws[kind].append(f"{kind}, draw {place + 1}")
                found[draws[kind][-1]] = drawn
    return found, draws


def _draw_experiments(further: Mapping[str, PreferenceMatrix], scale: Scale, seed: int) -> list[Experiment]:
    """Plan RUCB and SAVAGE on further draws; and Beat the Mean, which takes most of the time, to the end only."""
    both, few = (min(runs, scale.runs) for runs in scale.draw_runs)
    return [
        plan_experiment(further, POLICIES[:2], scale.horizons, runs=both, seed=seed),
        plan_experiment(further, POLICIES[2:], scale.horizons[-1], runs=few, seed=seed, checkpoints=[]),
    ]


def _describe_draws(scale: Scale, count: int) -> str:
    runs, few = (min(runs, scale.runs) for runs in scale.draw_runs)
    return f"{count} draws, by which the claims are judged; after the first, {runs} runs ({few} of Beat the Mean)"


def _write_figures(
    folder: Path, drawn: Sequence[Figure], endings: Sequence[str], show: Callable[[float], None]
) -> None:
    for done, figure in enumerate(drawn, 1):
        for ending in endings:
            save(figure.chart, folder / f"{figure.name}{ending}")
        show(done / len(drawn))


def _winner(matrix: PreferenceMatrix) -> str:
    winner = matrix.condorcet_winner
    if winner is None:
        return "no Condorcet winner"
    return f"Condorcet winner {matrix.names[winner]}, γ = {matrix.gamma:.3g}"
