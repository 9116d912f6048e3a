"""The readers of provenance look into all parts."""

from duels import provenance


def described(problem, regret, executor):
    return {
        "problems": {problem: {"matrix": "d41d8cd9", "regret": regret, "arms": 4}},
        "policies": {"rucb:alpha=0.6": {"parameters": {problem: {"alpha": 0.6}}}},
        "horizons": [1000],
        "runs": 3,
        "executor": executor,
    }


def test_the_readers_look_into_all_parts():
    one, other = described("cyclic-4", "copeland", "1 thread"), described("other", "borda", "2 threads")
    combined = {"parts": [one, {"parts": [other]}]}
    assert list(provenance.digests(combined)) == [("cyclic-4", "d41d8cd9"), ("other", "d41d8cd9")]
    assert provenance.notions(combined) == {"copeland", "borda"}
    assert provenance.parameters(combined, "rucb:alpha=0.6") == {"cyclic-4": {"alpha": 0.6}, "other": {"alpha": 0.6}}
    assert provenance.values(combined, "executor") == ["1 thread", "2 threads"]
