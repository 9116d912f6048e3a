"""The paper's experiment, from rankers to claims: matrix, races, figures, report (Zoghi et al. 2014, section 6)."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..checks import check_int
from ..engine.progress import bar
from ..errors import InvalidInput, NoCondorcetWinner, counted
from ..experiments.folder import Folder
from ..experiments.running import experiment, run_experiment
from ..experiments.subsets import draw_subset
from ..figures import save
from ..files import atomic_write
from ..preference import PreferenceMatrix
from ..problems import as_matrix, load_matrix, problem, save_matrix
from ..provenance import version
from ..results import Results, prepare_folder
from .claims import Claim, claims_text, paper_claims
from .gallery import Picture, proof_pictures, results_pictures
from .report import write_report

POLICIES = ("rucb", "savage", "btm:gamma=own")  # α = 0.51 is rucb's default; γ each problem's own
SIZES = (16, 32, 64)
INTERLEAVED, CLICKS = "probabilistic", "navigational"  # method and click model
RECORD = "reproduction.json"  # what was asked for, and how the preferences were found
MATRIX, RESULTS = "matrix.csv", "results"  # beside it: the matrix of all rankers, the experiment's folder
DRAWN = 0.4  # of the time for figures goes into drawing them, the rest into writing their files
DEEP_HORIZONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4500)  # thousands, up to the paper's 4.5 million


class Scale(NamedTuple):
    """How large the experiment is."""

    comparisons: int  # of each pair of rankers
    runs: int
    horizons: tuple[int, ...]
    endings: tuple[str, ...]  # of the figures' files


FULL = Scale(4000, 100, tuple(1000 * k for k in DEEP_HORIZONS), (".png", ".svg", ".pdf"))
QUICK = Scale(1000, 20, tuple(1000 * k for k in DEEP_HORIZONS if k <= 500), (".png",))


class Reproduction(NamedTuple):
    """What came of it."""

    pool: PreferenceMatrix  # all rankers
    matrices: dict[str, PreferenceMatrix]  # the problems drawn from it
    results: Results
    claims: list[Claim]
    report: Path


def reproduce(
    out: str | Path,
    *,
    letor: Any = None,
    matrix: Any = None,
    policies: Sequence[Any] = (),
    quick: bool = False,
    runs: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    executor: Any = None,
    progress: bool | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """Redo the paper's experiment and write matrix, results, figures and report to the folder `out`.

    By default the rankers are those of a generated collection of the paper's shape; `letor` names LETOR files or a
    fold's folder, `matrix` a preference matrix to use instead. `policies` are raced beside RUCB, Condorcet SAVAGE and
    Beat the Mean. Killed and called again with the same arguments, it goes on where it was; a folder that holds another
    reproduction is refused before anything is done.
    """
    scale = QUICK if quick else FULL
    if runs is not None:
        scale = scale._replace(runs=check_int("runs", runs, 1))
    if letor and matrix is not None:
        raise InvalidInput("letor and matrix were both given: the preferences come from one of them")
    seed, jobs = check_int("seed", seed, 0), None if jobs is None else check_int("jobs", jobs, 1)
    raced = _raced(policies)
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
            _estimated(letor, scale.comparisons, seed, jobs, progress, say)
            if given is None
            else (given, f"{given.name}, a matrix with the digest {given.digest}")
        )
        say(f"{pool.arms} arms, {_winner(pool)}")
        matrices, drawn = _subsets(pool, seed, say)
    facts = {"Preferences": origin, **{f"Subset of {size}": how for size, how in drawn.items()}}
    planned = experiment(matrices, raced, scale.horizons, runs=scale.runs, seed=seed)
    folder = Folder(target / RESULTS)
    folder.claim(planned.identity, planned.matrices)
    _write_json(target / RECORD, {"asked": asked, "facts": facts, "pool": pool.name})
    save_matrix(pool, target / MATRIX)
    with clock.step("experiment"):
        say(f"{planned}, {counted(scale.runs, 'run')}, horizons {scale.horizons[0]:,} to {scale.horizons[-1]:,}")
        results = run_experiment(planned, executor=executor, jobs=jobs, out=folder.path, progress=progress)
    claims = paper_claims(results, planned.matrices, pool)
    with clock.step("figures"), bar(progress, "figures") as show:
        pictures = results_pictures(results, planned.matrices, pool)
        show(DRAWN / 4)
        proofs = proof_pictures(results, planned.matrices, runs=scale.runs, seed=seed, jobs=jobs, pool=pool)
        show(DRAWN)
        _write_figures(
            target / "figures", pictures | proofs, scale.endings, lambda share: show(DRAWN + (1 - DRAWN) * share)
        )
    with clock.step("report"):
        shown: dict[str, Any] = {"pool": pool, "claims": claims, "more": proofs, "title": _title(pool), "facts": facts}
        page = write_report(target / "report.html", results, planned.matrices, progress=progress, **shown)
    _write_json(target / "claims.json", [claim._asdict() for claim in claims])
    say(f"\n{claims_text(claims)}\n")
    say(f"The report is {page}: open it in a browser. {clock.total()}")
    return Reproduction(pool, planned.matrices, results, claims, page)


def reported(folder: str | Path, results: Results, matrices: Mapping[str, PreferenceMatrix]) -> dict[str, Any]:
    """What `write_report` is told of the experiment in a reproduction's folder; nothing of any other experiment."""
    target = Path(folder).resolve().parent
    if Path(folder).resolve().name != RESULTS or not (target / RECORD).is_file():
        return {}
    record = _record(target)
    matrix = load_matrix(target / MATRIX)
    pool = PreferenceMatrix(matrix.array, matrix.names, record.get("pool", matrix.name))
    claims = paper_claims(results, matrices, pool)
    return {"pool": pool, "claims": claims, "title": _title(pool), "facts": record.get("facts", {})}


def _title(pool: PreferenceMatrix) -> str:
    return f"The paper's experiment on {pool.name}"


def _raced(policies: Sequence[Any]) -> list[Any]:
    """The paper's policies and those asked for beside them, each once; tried on a small problem, so refused at once."""
    small = problem("arxiv-6")
    others = [one for one in policies if next(iter(experiment(small, [one]).policies)) not in POLICIES]
    experiment(small, [*POLICIES, *others])
    return [*POLICIES, *others]


def _source(letor: Any, matrix: PreferenceMatrix | None, comparisons: int) -> str:
    """Where the preferences come from, in words that differ where they do."""
    if matrix is not None:
        return f"the matrix {matrix.digest}"
    paths = [letor] if isinstance(letor, str | Path) else list(letor or ())
    files = ", ".join(str(Path(path).resolve()) for path in paths)
    return f"{comparisons:,} comparisons of each pair of rankers of {files or 'a generated collection'}"


def _refuse_other(target: Path, asked: Mapping[str, Any]) -> None:
    """An error in words if the folder holds a reproduction of something else."""
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
    """What a reproduction's folder says of itself."""
    try:
        record = json.loads((target / RECORD).read_text(encoding="utf-8"))
        if isinstance(record["asked"], dict) and isinstance(record.get("facts", {}), dict):
            return record
        why = "it does not say what was asked for"
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = str(error)
    raise InvalidInput(f"{target / RECORD} cannot be read: {why}; choose another folder")


def _write_json(path: Path, value: Any) -> None:
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


class _Clock:
    """Says how long each step took."""

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


def _estimated(
    letor: Any, comparisons: int, seed: int, jobs: int | None, progress: bool | None, say: Callable[[str], None]
) -> tuple[PreferenceMatrix, str]:
    """The preferences among a collection's rankers, and how they were found."""
    from ..ranking.collection import load as load_collection
    from ..ranking.estimate import estimate_preferences
    from ..ranking.synthetic import synthetic_letor

    if letor:
        paths = [letor] if isinstance(letor, str | Path) else list(letor)
        collection = load_collection(paths if len(paths) > 1 else paths[0], progress=progress)
    else:
        with tempfile.TemporaryDirectory() as folder, bar(progress, "collection"):
            collection = synthetic_letor(Path(folder) / "synthetic.txt", seed=seed)
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
    """Problems of the paper's sizes, and how each was drawn; what has no Condorcet winner is refused aloud."""
    sizes = [size for size in SIZES if size < pool.arms] + ([pool.arms] if pool.arms <= SIZES[-1] else [])
    found, told = {}, {}
    for size in sizes:
        try:
            drawn = draw_subset(pool, size, seed)
        except NoCondorcetWinner as error:
            told[size] = f"left out: {error}"
            say(f"K = {size} is {told[size]}")
            continue
        count = (
            f"after {drawn.refused} without a Condorcet winner were refused" if drawn.refused else "at the first draw"
        )
        told[size] = "all arms" if size == pool.arms else f"drawn {count}"
        found[f"{size} arms"] = drawn.matrix
        say(f"K = {size}: {told[size]}; {_winner(drawn.matrix)}, smallest gap {sorted(drawn.matrix.gaps)[1]:.4g}")
    if not found:
        raise NoCondorcetWinner(
            f"no subset of the {pool.arms} arms has a Condorcet winner, so there is nothing to race"
        )
    return found, told


def _write_figures(
    folder: Path, pictures: dict[str, Picture], endings: Sequence[str], show: Callable[[float], None]
) -> None:
    for done, (name, picture) in enumerate(pictures.items(), 1):
        for ending in endings:
            save(picture.chart, folder / f"{name}{ending}")
        show(done / len(pictures))


def _winner(matrix: PreferenceMatrix) -> str:
    winner = matrix.condorcet_winner
    if winner is None:
        return "no Condorcet winner"
    return f"Condorcet winner {matrix.names[winner]}, γ = {matrix.gamma:.3g}"
