"""Provenance that older versions wrote is read like today's."""

from duels import provenance

OLD = {
    "duels": "0.1.0",
    "problem": "cyclic-4",
    "matrix": "d41d8cd9",
    "arms": ["a", "b", "c", "d"],
    "policy": "rucb:alpha=0.6",
    "parameters": {"alpha": 0.6},
    "regret": "copeland",
    "horizon": 1000,
    "runs": 3,
    "jobs": 1,
}


def test_a_simulation_of_0_1_0_has_today_s_shape():
    found = provenance.upgrade(OLD)
    assert found == {
        "duels": "0.1.0",
        "problems": {"cyclic-4": {"matrix": "d41d8cd9", "regret": "copeland", "arms": 4, "names": OLD["arms"]}},
        "policies": {"rucb:alpha=0.6": {"parameters": {"cyclic-4": {"alpha": 0.6}}}},
        "horizons": [1000],
        "runs": 3,
        "executor": "1 thread",
    }
    assert provenance.upgrade(found) == found


def test_the_readers_look_into_all_parts():
    combined = provenance.upgrade(
        {"parts": [OLD, {"parts": [OLD | {"problem": "other", "regret": "borda", "jobs": 2}]}]}
    )
    assert list(provenance.digests(combined)) == [("cyclic-4", "d41d8cd9"), ("other", "d41d8cd9")]
    assert provenance.notions(combined) == {"copeland", "borda"}
    assert provenance.parameters(combined, "rucb:alpha=0.6") == {"cyclic-4": {"alpha": 0.6}, "other": {"alpha": 0.6}}
    assert provenance.values(combined, "executor") == ["1 thread", "2 threads"]
