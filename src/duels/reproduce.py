"""The paper's experiment, from rankers to claims: matrix, races, figures, report (Zoghi et al. 2014, section 6)."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .charts import save_chart
from .claims import Claim, claims_text, paper_claims
from .errors import InvalidInput, NoCondorcetWinner
from .experiment import experiment, run_experiment
from .files import whole_file
from .folder import Folder
from .gallery import Picture, proof_pictures, results_pictures
from .policies import policy as find_policy
from .preference import PreferenceMatrix
from .problems import as_matrix, save_matrix
from .progress import bar
from .report import write_report
from .results import Results, prepare_folder
from .specs import whole
from .subsets import draw_subset

POLICIES = ("rucb", "savage", "btm:gamma=own")  # α = 0.51 is rucb's default; γ each problem's own
SIZES = (16, 32, 64)
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
    Beat the Mean. Killed and called again with the same arguments, it goes on where it was.
    """
    scale = QUICK if quick else FULL
    if runs is not None:
        scale = scale._replace(runs=whole("runs", runs, 1))
    if letor and matrix is not None:
        raise InvalidInput("letor and matrix were both given: the preferences come from one of them")
    raced = [*POLICIES, *(one for one in policies if str(find_policy(one)) not in ("rucb", "savage"))]
    target = prepare_folder(out)
    clock = _Clock(say)
    with clock.step("preferences"):
        pool = (
            as_matrix(matrix) if matrix is not None else _estimated(letor, scale.comparisons, seed, jobs, progress, say)
        )
        say(f"{pool.arms} arms, {_winner(pool)}")
        matrices = _subsets(pool, seed, say)
    planned = experiment(matrices, raced, scale.horizons, runs=scale.runs, seed=seed)
    folder = Folder(target / "results")
    folder.claim(planned.identity, planned.matrices)
    save_matrix(pool, target / "matrix.csv")
    with clock.step("experiment"):
        say(f"{planned}, {scale.runs} runs, horizons {scale.horizons[0]:,} to {scale.horizons[-1]:,}")
        results = run_experiment(planned, executor=executor, jobs=jobs, out=folder.path, progress=progress)
    claims = paper_claims(results, planned.matrices, pool)
    with clock.step("figures"):
        pictures = results_pictures(results, planned.matrices, pool)
        proofs = proof_pictures(results, planned.matrices, runs=scale.runs, seed=seed, jobs=jobs)
        _write_figures(target / "figures", pictures | proofs, scale.endings, progress)
    with clock.step("report"):
        title = f"The paper's experiment on {pool.name}"
        shown: dict[str, Any] = {"pool": pool, "claims": claims, "more": proofs, "title": title}
        page = write_report(target / "report.html", results, planned.matrices, **shown)
    with whole_file(target / "claims.json") as unfinished:
        text = json.dumps([claim._asdict() for claim in claims], indent=2, ensure_ascii=False)
        unfinished.write_text(text + "\n", encoding="utf-8")
    say(f"\n{claims_text(claims)}\n")
    say(f"The report is {page}: open it in a browser. {clock.total()}")
    return Reproduction(pool, planned.matrices, results, claims, page)


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
) -> PreferenceMatrix:
    from .ranking.collection import load_collection
    from .ranking.estimate import estimate_preferences
    from .ranking.synthetic import synthetic_letor

    if letor:
        paths = [letor] if isinstance(letor, str | Path) else list(letor)
        collection = load_collection(paths if len(paths) > 1 else paths[0], progress=progress)
    else:
        with tempfile.TemporaryDirectory() as folder:
            collection = synthetic_letor(Path(folder) / "synthetic.txt", seed=seed)
    say(f"{collection}: {comparisons:,} interleaved comparisons of each pair, navigational clicks")
    return estimate_preferences(
        collection, clicks="navigational", comparisons=comparisons, seed=seed, jobs=jobs, progress=progress
    )


def _subsets(pool: PreferenceMatrix, seed: int, say: Callable[[str], None]) -> dict[str, PreferenceMatrix]:
    """Problems of the paper's sizes; what has no Condorcet winner is refused aloud."""
    sizes = [size for size in SIZES if size < pool.arms] + ([pool.arms] if pool.arms <= SIZES[-1] else [])
    found = {}
    for size in sizes:
        try:
            drawn = draw_subset(pool, size, seed)
        except NoCondorcetWinner as error:
            say(f"K = {size} is left out: {error}")
            continue
        count = (
            f"after {drawn.refused} without a Condorcet winner were refused" if drawn.refused else "at the first draw"
        )
        how = "all arms" if size == pool.arms else f"drawn {count}"
        found[f"{size} arms"] = drawn.matrix
        say(f"K = {size}: {how}; {_winner(drawn.matrix)}, smallest gap {sorted(drawn.matrix.gaps)[1]:.4g}")
    if not found:
        raise NoCondorcetWinner(
            f"no subset of the {pool.arms} arms has a Condorcet winner, so there is nothing to race"
        )
    return found


def _write_figures(folder: Path, pictures: dict[str, Picture], endings: Sequence[str], progress: bool | None) -> None:
    with bar(progress, "figures") as show:
        for done, (name, picture) in enumerate(pictures.items(), 1):
            for ending in endings:
                save_chart(picture.chart, folder / f"{name}{ending}")
            show(done / len(pictures))


def _winner(matrix: PreferenceMatrix) -> str:
    winner = matrix.condorcet_winner
    if winner is None:
        return "no Condorcet winner"
    return f"Condorcet winner {matrix.names[winner]}, γ = {matrix.gamma:.3g}"
