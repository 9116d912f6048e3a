"""Named and generated problems, and matrix files."""

import math
import os

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tallies import refused

from duels.errors import InvalidInput, UnknownName
from duels.preference import PreferenceMatrix
from duels.problems import as_matrix, list_problems, load_matrix, load_problem, save_matrix

GENERATED = [
    "bradley-terry",
    "linear",
    "hard-condorcet",
    "borda-not-condorcet",
    "cycle-with-winner",
    "random-condorcet",
]
CYCLIC = ["cycle", "top-cycle", "borda-not-copeland", "random-tournament"]  # without a Condorcet winner
SHUFFLED = [name for name in GENERATED if name != "bradley-terry"]


def others(matrix):
    """The gaps of all arms but the winner, ascending."""
    return sorted(np.delete(matrix.gaps, matrix.condorcet_winner))


def test_listing():
    infos = {info.name: info for info in list_problems()}
    assert list(infos) == ["arxiv-6", "arithmetic-8", "cyclic-4", "mslr-5", "mslr-5-cycle", *GENERATED, *CYCLIC]
    assert infos["bradley-terry"].parameters == {"arms": 16, "spread": 1.0, "seed": 0}
    assert infos["arxiv-6"].parameters == {}
    assert "Yue & Joachims" in infos["arxiv-6"].reference
    assert all(info.summary.endswith(".") for info in infos.values())


def test_parameters_in_the_string_and_as_keywords():
    expected = load_problem("bradley-terry", arms=5, spread=0.5, seed=3)
    assert load_problem("bradley-terry:arms=5,spread=0.5,seed=3") == expected
    assert load_problem(" bradley-terry : arms = 5, spread = 0.5, seed=3") == expected
    assert load_problem("bradley-terry:arms=9,spread=0.5", arms=np.int64(5), seed="3") == expected
    assert load_problem("linear:shuffle=false") == load_problem("linear", shuffle=False)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "bradley-tery",
            "unknown problem 'bradley-tery'. Did you mean 'bradley-terry'? See: duels experiment problems",
        ),
        ("zebra", "unknown problem 'zebra'. Known: arxiv-6, arithmetic-8, "),
        ("", "unknown problem ''. Known: "),
        ("linear:armz=3", "unknown parameter of linear 'armz'. Did you mean 'arms'? See: duels experiment problems"),
        ("arxiv-6:arms=3", "unknown parameter of arxiv-6 'arms'. Known: none."),
        ("linear:arms=abc", "'abc': expected a whole number"),
        ("linear:arms=3.5", "'3.5': expected a whole number"),
        ("linear:largest_gap=big", "'big': expected a number"),
        ("linear:shuffle=maybe", "'maybe': expected true or false"),
        ("linear:arms", "'arms' in problem 'linear:arms' is not a parameter"),
        ("linear:", "'' in problem 'linear:' is not a parameter"),
        ("linear:arms=3,arms=4", "sets arms twice"),
        ("linear:arms=1", "linear: arms = 1, expected 2 to 10000"),
        ("linear:arms=1000000", "linear: arms = 1000000, expected 2 to 10000"),
        ("cycle-with-winner:arms=3", "cycle-with-winner: arms = 3, expected 4 to 10000"),
        ("borda-not-condorcet:arms=2", "borda-not-condorcet: arms = 2, expected 3 to 10000"),
        ("linear:seed=-1", "linear: seed = -1, expected 0 or more"),
        ("linear:largest_gap=0", "linear: largest_gap = 0, expected above 0 and at most 0.5"),
        ("hard-condorcet:gap=0.6", "hard-condorcet: gap = 0.6, expected above 0 and at most 0.5"),
        ("hard-condorcet:gap=nan", "hard-condorcet: gap = nan, expected above 0 and at most 0.5"),
        ("bradley-terry:spread=0", "bradley-terry: spread = 0, expected a finite number above 0"),
        ("bradley-terry:spread=inf", "bradley-terry: spread = inf, expected a finite number above 0"),
        # 4/(4 − 2)·0.2 = 0.4: at margin 0.4 the two Borda scores are equal.
        ("borda-not-condorcet:arms=4,gap=0.2,margin=0.4", "expected more than arms/(arms − 2)·gap = 0.4"),
    ],
)
def test_bad_specs(spec, message):
    with refused(message):
        load_problem(spec)


def test_bad_spec_types():
    with refused("7 is not a problem's name: expected a string such as 'linear:arms=8'"):
        load_problem(7)
    with refused("None: expected a whole number"):
        load_problem("linear", arms=None)
    assert issubclass(UnknownName, InvalidInput)


@pytest.mark.parametrize("name", ["arxiv-6", "arithmetic-8", "cyclic-4"])
def test_literature(shared_data, name):
    assert load_problem(name) == load_matrix(shared_data(f"matrices/{name}.csv"))


def test_literature_as_members_of_families():
    linear = load_problem("linear:arms=8,largest_gap=0.35,shuffle=false")
    assert linear.array == pytest.approx(load_problem("arithmetic-8").array)
    cycle = load_problem("cycle-with-winner:arms=4,shuffle=false")
    assert cycle.array == pytest.approx(load_problem("cyclic-4").array)


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("arms", [4, 5, 16, 33])
def test_every_family_has_a_winner_and_repeats(name, arms):
    for seed in range(5):
        matrix = load_problem(name, arms=arms, seed=seed)
        assert matrix.arms == arms
        assert matrix.condorcet_winner is not None
        assert matrix == load_problem(name, arms=arms, seed=seed)
    assert load_problem(name, arms=arms, seed=0) != load_problem(name, arms=arms, seed=1)


@pytest.mark.parametrize("name", CYCLIC)
@pytest.mark.parametrize("arms", [5, 8, 16, 33])
def test_families_without_a_condorcet_winner_never_have_one(name, arms):
    for seed in range(5):
        matrix = load_problem(name, arms=arms, seed=seed)
        assert matrix.arms == arms
        assert matrix.condorcet_winner is None
        assert matrix == load_problem(name, arms=arms, seed=seed)
        assert len(matrix.smith_set) >= 3
    if name != "random-tournament":
        plain, shuffled = load_problem(name, arms=arms, shuffle=False), load_problem(name, arms=arms)
        assert np.sort(plain.array, axis=None) == pytest.approx(np.sort(shuffled.array, axis=None), abs=0)


def test_mslr():
    winner, cycle = load_problem("mslr-5"), load_problem("mslr-5-cycle")
    assert (winner.order, winner.is_strongly_transitive) == ((0, 1, 2, 3, 4), True)
    assert (cycle.condorcet_winner, cycle.smith_set) == (None, (0, 1, 2))
    assert cycle.copeland_winners == (0, 1, 2)
    assert (cycle["0", "2"], cycle["1", "0"], cycle["2", "1"]) == (0.519, 0.516, 0.519)


def test_cycle():
    """Five arms: each beats the next two. Six: also the two next, and is even with the one across."""
    assert load_problem("cycle:arms=3,gap=0.5,shuffle=false").array.tolist() == [[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]]
    five, six = load_problem("cycle:shuffle=false"), load_problem("cycle:arms=6,shuffle=false")
    assert five.array[0] == pytest.approx([0.5, 0.7, 0.7, 0.3, 0.3])
    assert six.array[0] == pytest.approx([0.5, 0.7, 0.7, 0.5, 0.3, 0.3])
    for matrix in (five, six):
        assert len(matrix.borda_winners) == len(matrix.copeland_winners) == len(matrix.smith_set) == matrix.arms


def test_top_cycle():
    matrix = load_problem("top-cycle:arms=6,top=3,gap=0.2,cycle_gap=0.1,shuffle=false")
    assert matrix.array[0] == pytest.approx([0.5, 0.6, 0.4, 0.7, 0.7, 0.7])
    assert matrix.smith_set == matrix.copeland_winners == (0, 1, 2)
    assert matrix.array[3] == pytest.approx([0.3, 0.3, 0.3, 0.5, 0.7, 0.7])
    with refused("top-cycle: top = 6, expected 3 to 5, fewer than there are arms"):
        load_problem("top-cycle:arms=6,top=6")


def test_borda_not_copeland():
    matrix = load_problem("borda-not-copeland:arms=5,gap=0.05,margin=0.3,shuffle=false")
    assert matrix.array[2] == pytest.approx([0.55, 0.45, 0.5, 0.45, 0.8])
    assert (matrix.copeland_winners, matrix.borda_winners) == ((0, 1), (2,))
    # With 7 arms the third's Borda lead is 3·margin − gap against 4·gap: even at margin = 5/3·gap.
    assert load_problem("borda-not-copeland:gap=0.06,margin=0.101,shuffle=false").borda_winners == (2,)
    with refused("borda-not-copeland: margin = 0.1 leaves the Copeland winners ahead in Borda score too"):
        load_problem("borda-not-copeland:gap=0.06,margin=0.1")


def test_random_tournaments_are_uniform_among_those_without_a_winner():
    """Of the 8 tournaments of three arms, 2 are cycles: each in half of 400 draws, within 5 deviations (50)."""
    drawn = [load_problem("random-tournament:arms=3", seed=seed) for seed in range(400)]
    assert abs(sum(bool(matrix.beats[0, 1]) for matrix in drawn) - 200) < 50
    margins = np.abs(np.concatenate([matrix.array[np.triu_indices(3, 1)] for matrix in drawn]) - 0.5)
    assert 0.02 <= margins.min() < 0.03
    assert 0.49 < margins.max() <= 0.5


@pytest.mark.parametrize("name", GENERATED)
def test_low_indices_are_not_the_good_arms(name):
    """The winner's index over 300 seeds, uniform on 0..3: each count is 75 ± 7.5, and 38 is 5 deviations off."""
    counts = np.bincount([load_problem(name, arms=4, seed=seed).condorcet_winner for seed in range(300)], minlength=4)
    assert counts.min() > 38


@pytest.mark.parametrize("name", SHUFFLED)
def test_unshuffled_families_put_the_winner_first(name):
    ordered, shuffled = load_problem(name, arms=9, seed=2, shuffle=False), load_problem(name, arms=9, seed=2)
    assert ordered.condorcet_winner == 0
    assert np.sort(ordered.array, axis=None) == pytest.approx(np.sort(shuffled.array, axis=None), abs=0)


def test_bradley_terry():
    p = load_problem("bradley-terry:arms=12,spread=0.7,seed=1")
    odds = np.log(p.array / (1 - p.array))  # u_i − u_j
    assert odds[:, :1] + odds[:1] == pytest.approx(odds)
    assert p.is_strongly_transitive
    # 1,000 utilities of deviation 0.7 have a sample deviation of 0.7 ± 0.016; 0.08 is five of those.
    array = load_problem("bradley-terry:arms=1000,spread=0.7").array
    utilities = np.log(array[:, 0] / array[0])
    assert utilities.std() == pytest.approx(0.7, abs=0.08)


def test_extreme_spread_is_still_a_matrix():
    assert load_problem("bradley-terry:spread=1e6").condorcet_winner is not None


def test_linear():
    p = load_problem("linear:arms=5,largest_gap=0.2,seed=4")
    assert others(p) == pytest.approx([0.05, 0.1, 0.15, 0.2])
    assert p.is_strongly_transitive


def test_hard_condorcet():
    p = load_problem("hard-condorcet:arms=6,gap=0.03,seed=1")
    assert others(p) == pytest.approx([0.03] * 5)
    rest = [k for k in range(6) if k != p.condorcet_winner]
    assert (p.array[np.ix_(rest, rest)] == 0.5).all()
    assert p.gamma == 1


@pytest.mark.parametrize(("arms", "gap", "margin"), [(3, 0.05, 0.2), (8, 0.05, 0.3), (30, 0.01, 0.02)])
def test_borda_not_condorcet(arms, gap, margin):
    p = load_problem("borda-not-condorcet", arms=arms, gap=gap, margin=margin, seed=5)
    assert p.condorcet_winner not in p.borda_winners
    assert p.is_total_order
    assert p.order[1] == p.borda_winner
    assert p.gamma == pytest.approx(margin / gap)
    assert others(p) == pytest.approx([gap] * (arms - 1))


@pytest.mark.parametrize(("arms", "beaten"), [(4, 1), (5, 1), (6, 2), (7, 2), (8, 3)])
def test_cycle_with_winner(arms, beaten):
    """n = K − 1 arms on a circle beat the (n − 1)//2 that follow; with n even the facing arm is a tie."""
    p = load_problem("cycle-with-winner", arms=arms, gap=0.05, cycle_gap=0.3, seed=1)
    rest = p.subset([k for k in range(arms) if k != p.condorcet_winner])
    assert others(p) == pytest.approx([0.05] * (arms - 1))
    assert rest.copeland_scores.tolist() == [beaten] * (arms - 1)
    assert rest.smith_set == tuple(range(arms - 1))
    assert p.gamma == pytest.approx(0.3 / 0.05)


def test_random_condorcet():
    p = load_problem("random-condorcet:arms=40,gap=0.07,seed=3")
    assert others(p)[0] == pytest.approx(0.07)
    assert others(p)[1] > 0.07
    assert p.three_cycles > 0


def test_as_matrix(tmp_path, monkeypatch):
    matrix = load_problem("cyclic-4")
    save_matrix(matrix, tmp_path / "mine.csv")
    assert as_matrix("cyclic-4") == matrix
    assert as_matrix("cyclic-4").name == "cyclic-4"
    assert as_matrix("linear:arms=8,seed=3").name == "linear:seed=3"  # what stands at its default is left out
    assert as_matrix(tmp_path / "mine.csv") == as_matrix(str(tmp_path / "mine.csv")) == matrix
    assert as_matrix(tmp_path / "mine.csv").name == "mine"
    assert as_matrix(matrix) is matrix
    assert as_matrix(matrix.array).name == f"matrix-{matrix.digest[:8]}"
    monkeypatch.chdir(tmp_path)
    assert as_matrix("mine.csv") == matrix
    (tmp_path / "cyclic-4").write_text("a file of a problem's name")
    assert as_matrix("cyclic-4") == matrix


def test_as_matrix_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("hello")
    with refused("absent.csv cannot be read: No such file or directory"):
        as_matrix("absent.csv")
    with refused("unknown kind of file '.dat'"):
        as_matrix("some/p.dat")
    with refused("notes: unknown kind of file ''"):
        as_matrix("notes")
    with refused("unknown problem 'cyclic4'. Did you mean 'cyclic-4'?"):
        as_matrix("cyclic4")
    with refused("the matrix has shape (2,)"):
        as_matrix([1, 2])


NAMED = PreferenceMatrix([[0.5, 0.1 + 0.2, 1 / 3], [0.7, 0.5, 0.25], [2 / 3, 0.75, 0.5]], ["bm25", "a b", '#1,"x"'])


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".npy", ".npz", ".CSV"])
def test_round_trip(tmp_path, suffix):
    for matrix in (load_problem("bradley-terry:arms=30"), load_problem("arxiv-6")):
        save_matrix(matrix, tmp_path / f"p{suffix}")
        assert load_matrix(str(tmp_path / f"p{suffix}")) == matrix
    assert [path.name for path in tmp_path.iterdir()] == [f"p{suffix}"]


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".npz"])
def test_round_trip_with_names(tmp_path, suffix):
    save_matrix(NAMED, tmp_path / f"p{suffix}")
    assert load_matrix(tmp_path / f"p{suffix}") == NAMED


@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1), min_size=2, unique=True
    ),
    suffix=st.sampled_from([".csv", ".txt", ".npz"]),
    seed=st.integers(0, 100),
)
@example(names=["=x", "-O2", "'=x", "'", "-1.5", "@a"], suffix=".csv", seed=0)
@settings(deadline=None)
def test_any_names_round_trip(tmp_path_factory, names, suffix, seed):
    path = tmp_path_factory.mktemp("names") / f"p{suffix}"
    matrix = PreferenceMatrix(load_problem("random-condorcet", arms=len(names), seed=seed).array, names)
    save_matrix(matrix, path)
    assert load_matrix(path) == matrix


def test_names_that_a_spreadsheet_would_run(tmp_path):
    matrix = PreferenceMatrix([[0.5, 0.6], [0.4, 0.5]], ["=x", "-O2"])
    save_matrix(matrix, tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == '"","\'=x","\'-O2"\n"\'=x",0.5,0.6\n"\'-O2",0.4,0.5\n'
    assert load_matrix(tmp_path / "p.csv") == matrix


def test_saves_arrays_too(tmp_path):
    save_matrix([[0.5, 0.6], [0.4, 0.5]], tmp_path / "p.csv")
    assert (tmp_path / "p.csv").read_text() == "0.5,0.6\n0.4,0.5\n"


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("bare.csv", "0.5,0.6\n0.4,0.5", ("0", "1")),
        ("spaces-and-blank-lines.csv", "\n0.5, 0.6\r\n\r\n 0.4 ,0.5\r\n\n", ("0", "1")),
        ("byte-order-mark.csv", "\ufeff0.5,0.6\n0.4,0.5", ("0", "1")),
        ("header.csv", "bm25, dense\n0.5,0.6\n0.4,0.5", ("bm25", "dense")),
        ("corner.csv", ",1,2\n1,0.5,0.6\n2,0.4,0.5", ("1", "2")),
        ("labeled-corner.csv", "ranker,a,b\na,0.5,0.6\nb,0.4,0.5", ("a", "b")),
        ("header-one-shorter.csv", "a,b\na,0.5,0.6\nb,0.4,0.5", ("a", "b")),
        ("first-column.csv", "a,0.5,0.6\nb,0.4,0.5", ("a", "b")),
        ("comments.txt", "# made by hand\n0.5 0.6 # first\n\n0.4\t0.5\n", ("0", "1")),
        ("header.txt", "bm25 dense\n0.5 0.6\n0.4 0.5\n", ("bm25", "dense")),
        ("names.txt", '# names: ["the first", "b"]\n0.5 0.6\n0.4 0.5\n', ("the first", "b")),
    ],
)
def test_tables_people_write(tmp_path, name, text, names):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    assert load_matrix(tmp_path / name) == PreferenceMatrix([[0.5, 0.6], [0.4, 0.5]], names)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.csv", "0.5,0.6\n0.4,0.5\n0.1,abc", "p.csv, line 3, entry 2: 'abc' is not a number"),
        ("p.csv", "\n\n0.5,0.6\n0.4,", "p.csv, line 4, entry 2: '' is not a number"),
        ("p.csv", "0.5,abc\n0.4,0.5", "p.csv, line 1, entry 2: 'abc' is not a number"),
        ("p.csv", "abc,0.6\n0.4,0.5", "p.csv, line 1, entry 1: 'abc' is not a number"),
        ("p.csv", ",a,b\na,0.5,0.6\nb,oops,0.5", "p.csv, line 3, entry 2: 'oops' is not a number"),
        ("p.csv", "0.5,0.6\n0.4,0.5,0.6", "p.csv, line 2: 3 entries, expected 2 as in line 1"),
        ("p.csv", "a,b,c\n0.5,0.6\n0.4,0.5", "p.csv, line 1: 3 names over rows of 2 numbers"),
        ("p.csv", ",a,b\na,0.5,0.6\nc,0.4,0.5", "p.csv, line 3 is called 'c', expected 'b' as in the header"),
        ("p.csv", ",a,b,c\na,0.5,0.6,0.7\nb,0.4,0.5,0.6", "p.csv: the matrix has shape (2, 3), expected square"),
        ("p.csv", "0.5,0.6\n0.4,0.5\n,", "p.csv, line 3, entry 1: '' is not a number"),
        ("p.csv", ",1,2,3\n1,0.5,0.6,0.7\n2,0.4,0.5,0.6", "p.csv: the matrix has shape (2, 3), expected square"),
        ("p.csv", "", "p.csv is empty, expected a row of numbers per arm"),
        ("p.csv", "\n \n", "p.csv is empty"),
        ("p.csv", "a,b\n", "p.csv has no numbers below its header"),
        ("p.csv", '"0.5,0.6\n0.4,0.5', "p.csv is not a table in UTF-8 text: unexpected end of data"),
        ("p.csv", "0.5,0.6\n0.5,0.5", "p.csv: P[0, 1] + P[1, 0] = 0.6 + 0.5 = 1.1, expected 1"),
        ("p.csv", "0.5,nan\n0.5,0.5", "p.csv, line 1, entry 2: 'nan', expected a finite probability"),
        ("p.csv", "a,a\n0.5,0.6\n0.4,0.5", "p.csv: two arms are called 'a'"),
        ("p.txt", "0.5 0.6\n# names\n0.4 0,5", "p.txt, line 3, entry 2: '0,5' is not a number"),
        ("p.txt", "# only a comment", "p.txt is empty"),
        ("p.txt", "# names: a b\n0.5 0.6\n0.4 0.5", 'p.txt, line 1: expected names as # names: ["a", "b"]'),
        ("p.txt", '# names: ["a"]\n0.5 0.6\n0.4 0.5', "p.txt: 1 names were given for 2 arms"),
        ("p.dat", "0.5 0.6", "p.dat: unknown kind of file '.dat', expected one of .csv, .txt, .npy, .npz"),
        ("p.npy", "0.5 0.6", "p.npy is damaged, or not an array of plain numbers"),
        ("p.npz", "", "p.npz is damaged, or not an array of plain numbers"),
    ],
)
def test_bad_files(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with refused(str(tmp_path / message)):
        load_matrix(tmp_path / name)


def test_unreadable_files(tmp_path):
    (tmp_path / "latin.csv").write_bytes(b"caf\xe9,b\n0.5,0.6\n0.4,0.5")
    with refused("latin.csv is not a table in UTF-8 text"):
        load_matrix(tmp_path / "latin.csv")
    with refused("absent.npz cannot be read: No such file or directory"):
        load_matrix(tmp_path / "absent.npz")
    (tmp_path / "folder.csv").mkdir()
    with refused("folder.csv cannot be read: Is a directory"):
        load_matrix(tmp_path / "folder.csv")


def test_pickles_are_refused(tmp_path):
    """Loading an object array would run whatever code its maker chose."""

    class Harmful:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    harmful = np.array([[Harmful(), 1], [0, 1]], dtype=object)
    np.save(tmp_path / "p.npy", harmful, allow_pickle=True)
    np.savez(tmp_path / "p.npz", array=harmful)
    for name in ("p.npy", "p.npz"):
        with refused(f"{name} is damaged, or not an array of plain numbers"):
            load_matrix(tmp_path / name)
    assert not (tmp_path / "harm").exists()


def test_other_arrays(tmp_path):
    good = np.array([[0.5, 0.6], [0.4, 0.5]])
    np.savez(tmp_path / "unnamed.npz", good)
    assert load_matrix(tmp_path / "unnamed.npz") == PreferenceMatrix(good)
    np.savez(tmp_path / "two.npz", good, good)
    with refused("two.npz holds 2 arrays, expected one matrix, and 'names' if they are known"):
        load_matrix(tmp_path / "two.npz")
    np.save(tmp_path / "long.npy", np.ones(3))
    with refused("long.npy: the matrix has shape (3,), expected square"):
        load_matrix(tmp_path / "long.npy")
    np.save(tmp_path / "text.npy", np.array([["a", "b"], ["c", "d"]]))
    with refused("text.npy: a preference matrix must be a square table of numbers"):
        load_matrix(tmp_path / "text.npy")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_damaged_binaries(tmp_path, suffix):
    """Cut short or with one byte changed, a file is refused or still read; nothing else escapes."""
    path = tmp_path / f"p{suffix}"
    save_matrix(load_problem("arxiv-6"), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refusals = 0
    for trial in range(300):
        damaged = bytearray(whole[: rng.integers(len(whole))] if trial % 2 else whole)
        if trial % 2 == 0:
            damaged[rng.integers(len(whole))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            load_matrix(path)
        except InvalidInput as error:
            refusals += str(path) in str(error)
    assert refusals > 150


def test_npy_refuses_to_lose_names(tmp_path):
    with refused("p.npy: an .npy file cannot hold the arms' names; save as .npz, .csv or .txt"):
        save_matrix(NAMED, tmp_path / "p.npy")
    assert not list(tmp_path.iterdir())


def test_saves_are_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "p.csv"
    save_matrix(NAMED, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with refused("p.csv cannot be written: No space left on device"):
        save_matrix(load_problem("arxiv-6"), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["p.csv"]


def test_unwritable_places(tmp_path):
    with refused("cannot be written: No such file or directory"):
        save_matrix(NAMED, tmp_path / "absent" / "p.csv")
    (tmp_path / "file").touch()
    with refused("cannot be written: Not a directory"):
        save_matrix(NAMED, tmp_path / "file" / "p.csv")
    with refused("unknown kind of file '.parquet'"):
        save_matrix(NAMED, tmp_path / "p.parquet")


@pytest.mark.deep
def test_two_thousand_arms(tmp_path):
    matrix = load_problem("bradley-terry:arms=2000,spread=0.5,seed=1")
    save_matrix(matrix, tmp_path / "p.npz")
    assert load_matrix(tmp_path / "p.npz") == matrix
    assert math.isfinite(matrix.gamma)
