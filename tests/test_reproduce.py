"""The paper in one command: what it writes, what it says, and its main claim on real matrices."""

import json
import re
import sys

import numpy as np
import pytest

import duels
from duels import reproduce as command
from duels.errors import InvalidInput, NoCondorcetWinner
from duels.gallery import misleading_problem

module = sys.modules["duels.reproduce"]
TINY = module.Scale(comparisons=50, runs=3, horizons=(100, 1000), endings=(".png",))


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(module, "QUICK", TINY)


@pytest.fixture
def without_figures(monkeypatch):
    """They take most of the time, and one test looks at them."""
    monkeypatch.setattr(module, "results_pictures", lambda *arguments: {})
    monkeypatch.setattr(module, "proof_pictures", lambda *arguments, **more: {})
    monkeypatch.setattr(module, "write_report", lambda path, *arguments, **more: path)


@pytest.fixture(scope="module")
def pool():
    return duels.problem("bradley-terry:arms=20,spread=0.5")


def test_it_writes_matrix_results_figures_and_report(tiny, pool, tmp_path):
    said = []
    done = command(tmp_path, matrix=pool, quick=True, policies=["random"], say=said.append)
    assert np.array_equal(duels.load_matrix(tmp_path / "matrix.csv").array, pool.array)
    assert list(done.matrices) == ["16 arms", "20 arms"]
    saved = duels.load_results(tmp_path / "results")
    assert saved.frame.equals(done.results.frame)
    policies = saved.frame["policy"].unique(maintain_order=True).to_list()
    assert policies == ["rucb", "savage", "btm:gamma=own", "random"]
    assert set(saved.frame.filter(policy="savage")["horizon"]) == {100, 1000}
    assert set(saved.frame.filter(policy="rucb")["horizon"]) == {1000}
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names >= {f"{name}.png" for name in ("regret", "accuracy", "bounds", "assumptions", "preferences")}
    proofs = ("lemma-1", "lemma-1-tails", "theorem-2", "theorem-3", "gamma", "horizons")
    assert names >= {f"{name}.png" for name in proofs}
    page = (tmp_path / "report.html").read_text()
    assert "RUCB" in page
    assert not re.search(r'(src|href)="https?://', page)
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["key"] for claim in claims] == [claim.key for claim in done.claims]
    printed = "\n".join(said)
    for claim in done.claims:
        assert claim.verdict in printed
    assert "report.html" in printed


def test_each_problem_has_its_own_gamma(tiny, without_figures, pool, tmp_path):
    done = command(tmp_path, matrix=pool, quick=True)
    given = done.results.provenance["policies"]["btm:gamma=own"]["parameters"]
    assert given == {name: {"gamma": matrix.gamma} for name, matrix in done.matrices.items()}


def test_called_again_it_goes_on_and_called_otherwise_it_refuses(tiny, without_figures, pool, tmp_path, monkeypatch):
    first = command(tmp_path, matrix=pool, quick=True)
    monkeypatch.setattr(sys.modules["duels.experiment"], "on_threads", None)
    again = command(tmp_path, matrix=pool, quick=True)
    assert again.results.frame.equals(first.results.frame)
    before = (tmp_path / "matrix.csv").read_bytes()
    with pytest.raises(InvalidInput, match="was written by another experiment"):
        command(tmp_path, matrix=pool.shuffle(1), quick=True)
    assert (tmp_path / "matrix.csv").read_bytes() == before


def test_draws_without_a_winner_are_counted_aloud(tiny, without_figures, tmp_path):
    said = []
    wheel = duels.problem("cycle-with-winner:arms=21")
    seed = next(seed for seed in range(20) if duels.draw_subset(wheel, 16, seed).refused)
    drawn = duels.draw_subset(wheel, 16, seed)
    command(tmp_path, matrix=wheel, quick=True, seed=seed, say=said.append)
    assert any(f"K = 16: drawn after {drawn.refused} without a Condorcet winner were refused" in line for line in said)


def test_sizes_without_a_winner_are_left_out_aloud(tiny, tmp_path):
    """In a circle of 17 arms, each ahead of the next 8, no sixteen have a winner."""
    circle = np.full((17, 17), 0.5)
    for k in range(17):
        for ahead in range(1, 9):
            circle[k, (k + ahead) % 17], circle[(k + ahead) % 17, k] = 0.6, 0.4
    with pytest.raises(NoCondorcetWinner, match="no subset of the 17 arms has a Condorcet winner"):
        command(tmp_path, matrix=duels.PreferenceMatrix(circle), quick=True)


def test_letor_files_are_used(tiny, without_figures, shared_data, tmp_path):
    said = []
    done = command(tmp_path, letor=shared_data("letor/MQ2008-Fold1"), quick=True, say=said.append)
    assert done.pool.arms == 46
    assert next(iter(done.matrices)) == "16 arms"
    assert "50 interleaved comparisons of each pair" in said[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"letor": "x", "matrix": "arxiv-6"}, "letor and matrix were both given"),
        ({"policies": ["rucd"]}, "unknown policy 'rucd'"),
        ({"runs": 0}, "runs is 0"),
        ({"matrix": "nothing.csv"}, "nothing.csv"),
    ],
)
def test_bad_input_is_refused_before_anything_is_run(tmp_path, arguments, said):
    with pytest.raises(InvalidInput) as caught:
        command(tmp_path / "out", quick=True, **arguments)
    assert said in str(caught.value)
    assert not (tmp_path / "out" / "results").exists()


def test_the_paper_s_scale():
    assert module.FULL.comparisons == 4000
    assert module.FULL.runs == 100
    assert (module.FULL.horizons[0], module.FULL.horizons[-1]) == (1000, 4_500_000)
    assert module.SIZES == (16, 32, 64)
    assert str(duels.policy("rucb:alpha=0.51")) == "rucb"


def test_the_misleading_problem_is_as_said():
    matrix = misleading_problem()
    assert (matrix.condorcet_winner, matrix.borda_winner) == (0, 1)
    assert matrix.gamma == pytest.approx(3)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["feature-rankers-64", "mslr-navigational-136", "mslr-perfect-136"])
def test_rucb_has_a_third_of_savage_s_regret_on_real_matrices(shared_data, name):
    """At 4.5 million, on a draw of each size whose smallest gap is at least 0.005; accuracy reaches 1 for both."""
    pool = duels.load_matrix(shared_data(f"matrices/{name}.csv"))
    problems = {f"{size} arms": duels.draw_subset(pool, size, seed=4).matrix for size in (16, 32, 64)}
    assert all(np.sort(matrix.gaps)[1] > 0.005 for matrix in problems.values())
    final = duels.run_experiment(problems, ["rucb", "savage"], 4_500_000, runs=20, checkpoints=[]).final()
    for problem in problems:
        rows = final.filter(problem=problem).rows_by_key("policy", named=True, unique=True)
        rucb, savage = rows["rucb"], rows["savage"]
        assert savage["regret"] >= 3 * rucb["regret"], problem
        assert (rucb["accuracy"], savage["accuracy"]) == (1.0, 1.0), problem
