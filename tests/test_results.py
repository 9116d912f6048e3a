"""Results: summaries by hand, a round trip through files, combination, damaged files."""

import dataclasses
import hashlib
import json
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import duels
from duels import simulate
from duels.errors import DuelsError, InvalidInput
from duels.results import SCHEMA, Results, combine, load_results, prepare_folder


def frame(regrets, policy="p", t=10):
    rows = len(regrets)
    return pl.DataFrame(
        {
            "problem": ["m"] * rows,
            "arms": [3] * rows,
            "policy": [policy] * rows,
            "horizon": [10] * rows,
            "run": list(range(rows)),
            "t": [t] * rows,
            "regret": regrets,
            "weak_regret": [0.0] * rows,
            "simple_regret": [0.0] * rows,
            "duels": [4] * rows,
            "recommended": [0] * rows,
            "correct": [k > 0 for k in range(rows)],
            "explored": [None] * rows,
        },
        schema=SCHEMA,
    )


def test_summary_by_hand():
    # Regrets 1, 2, 6: mean 3, sample standard deviation √((4 + 1 + 9)/2) = √7, standard error √(7/3).
    row = Results(frame([1.0, 2.0, 6.0])).summarize().to_dicts()[0]
    assert (row["runs"], row["regret"], row["regret_min"], row["regret_max"]) == (3, 3.0, 1.0, 6.0)
    assert row["standard_error"] == pytest.approx(math.sqrt(7 / 3))
    assert row["accuracy"] == pytest.approx(2 / 3)
    assert row["explored"] is None
    assert Results(frame([1.0])).summarize()["standard_error"].to_list() == [None]


def test_final_takes_the_last_time_and_ranks():
    early_and_late = pl.concat([frame([5.0], t=1), frame([9.0])])
    results = combine([Results(early_and_late), Results(frame([2.0], "q"))])
    final = results.final()
    assert final["policy"].to_list() == ["q", "p"]
    assert final["regret"].to_list() == [2.0, 9.0]


def test_round_trip(tmp_path):
    results = duels.simulate("cyclic-4", "rucb", horizon=100, runs=2, record=["pairs", (0, 1)])
    results.save(tmp_path / "out")
    back = duels.load_results(tmp_path / "out")
    assert back.provenance == results.provenance | {"command": results.provenance["command"]}
    for name in ("frame", "pairs", "intervals"):
        assert_frame_equal(getattr(back, name), getattr(results, name))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "frame.parquet",
        "intervals.parquet",
        "pairs.parquet",
        "provenance.json",
    ]


def test_combining_keeps_every_provenance():
    parts = [duels.simulate("cyclic-4", policy, horizon=20) for policy in ("rucb", "random")]
    both = duels.results.combine(parts)
    assert [list(part["policies"]) for part in both.provenance["parts"]] == [["rucb"], ["random"]]
    assert len(both.frame) == sum(len(part.frame) for part in parts)
    assert repr(both).startswith("Results(rucb, random on cyclic-4: 1 run, ")


def test_what_cannot_be_told_apart_is_not_combined():
    once = Results(frame([1.0, 2.0]))
    with pytest.raises(InvalidInput, match="run 0 of p on m with horizon 10 is present twice"):
        combine([once, once])
    with pytest.raises(InvalidInput, match="nothing to combine"):
        combine([])


def test_different_matrices_of_one_name_are_not_combined():
    one, two = (
        duels.simulate(duels.PreferenceMatrix([[0.5, p], [1 - p, 0.5]], name="p"), policy, horizon=10)
        for p, policy in ((0.6, "rucb"), (0.9, "random"))
    )
    with pytest.raises(InvalidInput, match="two different matrices are called 'p'"):
        combine([one, two])
    with pytest.raises(InvalidInput, match="two different matrices are called 'p'"):
        combine([combine([one]), two])
    same = duels.simulate(duels.PreferenceMatrix([[0.5, 0.6], [0.4, 0.5]], name="p"), "random", horizon=10)
    assert len(combine([combine([one]), same]).frame) == len(one.frame) + len(same.frame)


def test_saving_replaces_what_was_there(tmp_path):
    duels.simulate("cyclic-4", "rucb", horizon=20, record=["pairs", (0, 1)]).save(tmp_path)
    duels.simulate("cyclic-4", "random", horizon=20).save(tmp_path)
    back = load_results(tmp_path)
    assert back.frame["policy"][0] == "random"
    assert back.pairs is None
    assert back.intervals is None


def test_an_unusable_folder(tmp_path):
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidInput, match="cannot write to the folder"):
            Results(frame([1.0])).save(folder)


def test_results_compare_by_identity():
    results = Results(frame([1.0]))
    assert results == results
    assert results != Results(frame([1.0]))


def test_damaged_results(tmp_path):
    with pytest.raises(InvalidInput, match="holds no results"):
        load_results(tmp_path)
    Results(frame([1.0])).save(tmp_path)
    said = (tmp_path / "provenance.json").read_text()
    for text, why in (
        ("{", "cannot be read"),
        ("[1]", "is not a provenance"),
        ("{}", "is not a provenance"),
        ('{"sha256": 3}', "is not a provenance"),
    ):
        (tmp_path / "provenance.json").write_text(text)
        with pytest.raises(InvalidInput, match=rf"provenance\.json {why}"):
            load_results(tmp_path)
    (tmp_path / "frame.parquet").write_bytes(b"PAR1 no more")
    (tmp_path / "provenance.json").write_text(said)
    with pytest.raises(InvalidInput, match=r"frame\.parquet is damaged: its sha256 is [0-9a-f]{12}…, expected"):
        load_results(tmp_path)


def test_any_changed_byte_is_noticed(tmp_path):
    """Parquet itself reads about a third of such files as if nothing had happened."""
    results = duels.simulate("cyclic-4", "rucb", horizon=100, runs=2, record=["pairs"])
    results.save(tmp_path)
    for name in ("frame", "pairs"):
        file = tmp_path / f"{name}.parquet"
        whole = file.read_bytes()
        for place in range(0, len(whole), len(whole) // 60):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(InvalidInput, match=f"{name}.parquet is damaged"):
                load_results(tmp_path)
        file.write_bytes(whole)
    assert_frame_equal(load_results(tmp_path).frame, results.frame)


def test_provenance_has_the_checksum_of_each_table(tmp_path):
    results = Results(frame([1.0, 2.0]), {"seed": 3})
    results.save(tmp_path)
    said = json.loads((tmp_path / "provenance.json").read_text())
    content = (tmp_path / "frame.parquet").read_bytes()
    assert said == {"seed": 3, "sha256": {"frame.parquet": hashlib.sha256(content).hexdigest()}}
    back = load_results(tmp_path)
    assert_frame_equal(back.frame, results.frame)
    assert back.provenance == {"seed": 3}


def test_other_tables_are_not_results(tmp_path):
    Results(frame([1.0])).save(tmp_path)
    (tmp_path / "provenance.json").write_text('{"sha256": {}}')
    frame([1.0]).drop("regret").write_parquet(tmp_path / "frame.parquet")
    with pytest.raises(InvalidInput, match="its column 'regret' is missing, expected Float64"):
        load_results(tmp_path)
    frame([1.0]).cast({"run": pl.String}).write_parquet(tmp_path / "frame.parquet")
    with pytest.raises(InvalidInput, match="its column 'run' is String, expected Int64"):
        load_results(tmp_path)
    frame([1.0]).with_columns(mine=pl.lit(1)).write_parquet(tmp_path / "frame.parquet")
    assert load_results(tmp_path).frame["mine"].to_list() == [1]
    frame([1.0]).write_parquet(tmp_path / "pairs.parquet")
    with pytest.raises(InvalidInput, match=r"pairs.parquet does not hold results: its column 'first' is missing"):
        load_results(tmp_path)


def test_a_panic_of_the_reader_is_an_error_in_words(tmp_path, monkeypatch):
    Results(frame([1.0])).save(tmp_path)

    def panic(source):
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr(pl, "read_parquet", panic)
    with pytest.raises(InvalidInput, match=r"frame\.parquet is not a readable Parquet file: index out of bounds"):
        load_results(tmp_path)


def test_where_else_results_may_be(tmp_path):
    Results(frame([1.0])).save(tmp_path / "results")
    with pytest.raises(InvalidInput, match=r"holds no results: .*; look in '.*/results'$"):
        load_results(tmp_path)


def test_two_may_prepare_one_folder(tmp_path):
    def often(_):
        for _ in range(300):
            prepare_folder(tmp_path / "out")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(often, range(4)))
    assert list((tmp_path / "out").iterdir()) == []


def test_summary_all_columns():
    from duels.results import SCHEMA, Results

    def frame(policy, horizon, t, regret, weak, n, explored):
        k = len(regret)
        return pl.DataFrame(
            {
                "problem": ["m"] * k,
                "arms": [3] * k,
                "policy": [policy] * k,
                "horizon": [horizon] * k,
                "run": list(range(k)),
                "t": [t] * k,
                "regret": regret,
                "weak_regret": weak,
                "simple_regret": [0.0] * k,
                "duels": n,
                "recommended": [0] * k,
                "correct": [True] * k,
                "explored": explored,
            },
            schema=SCHEMA,
        )

    row = Results(frame("p", 10, 10, [1.0, 2.0, 6.0], [0.0, 1.0, 5.0], [3, 4, 8], [2, 3, 10])).summarize().to_dicts()[0]
    assert (row["weak_regret"], row["duels"], row["explored"]) == (2.0, 5.0, 3.0)
    one = ([1.0], [0.0], [1], [None])
    both = Results(
        pl.concat(
            [
                frame("q", 20, 20, *one),
                frame("q", 20, 5, *one),
                frame("p", 20, 20, *one),
                frame("p", 10, 10, *one),
                frame("p", 10, 5, *one),
            ]
        )
    )
    assert both.summarize().select("policy", "horizon", "t").rows() == [  # q comes first, as in the frame
        ("q", 20, 5),
        ("q", 20, 20),
        ("p", 10, 5),
        ("p", 10, 10),
        ("p", 20, 20),
    ]
    assert both.final().select("policy", "horizon", "t").rows() == [
        ("p", 10, 10),
        ("q", 20, 20),
        ("p", 20, 20),
    ]


@settings(max_examples=settings.default.max_examples // 12, deadline=None)
@given(
    policies=st.permutations(["rucb", "savage", "random", "rmed2fh"]).flatmap(
        lambda names: st.integers(1, 4).map(lambda count: names[:count])
    ),
    horizons=st.lists(st.integers(2, 300), min_size=1, max_size=4, unique=True),
    problems=st.permutations(["zebra", "ant"]),
)
def test_every_horizon_of_an_experiment_is_a_row(policies, horizons, problems):
    """A row per problem, horizon and policy, each as if the policy had been simulated for that horizon alone."""
    matrices = dict(zip(problems, ("cyclic-4", "arxiv-6")))
    final = duels.run_experiment(matrices, policies, horizons, runs=2).final()
    ranked = sorted(
        (problems.index(problem), t, one["regret"], policies.index(policy), problem, policy)
        for problem in problems
        for t in horizons
        for policy in policies
        for one in [duels.simulate(matrices[problem], policy, horizon=t, runs=2).final().row(0, named=True)]
    )
    expected = [(problem, policy, t, regret) for _, t, regret, _, problem, policy in ranked]
    assert final.select("problem", "policy", "t", "regret").rows() == expected


def test_horizons_are_not_ranked_against_each_other():
    """A short run has less regret than a long one; it must not stand above it as if it were better."""
    short = duels.simulate("arxiv-6", "savage", horizon=100, runs=2)
    long = duels.run_experiment("arxiv-6", ["rucb", "random"], [200, 1_000], runs=2)
    both = combine([long, short]).final()
    assert both["t"].to_list() == [100, 200, 200, 1000, 1000]
    for (_,), rows in both.group_by("t"):
        assert rows["regret"].is_sorted()


def test_a_combination_has_the_rows_of_its_parts():
    """A horizon is asked of the policies of one part, not of those of another."""
    parts = [
        duels.run_experiment("arxiv-6", ["rucb", "savage"], [50, 400], runs=2),
        duels.simulate("arxiv-6", "rucb", horizon=120, runs=2),
        duels.simulate("arxiv-6", "random", horizon=400, runs=2),
    ]
    rows = [row for part in parts for row in part.final().rows()]
    assert sorted(combine(parts).final().rows(), key=str) == sorted(rows, key=str)
    assert sorted(combine([combine(parts[:2]), parts[2]]).final().rows(), key=str) == sorted(rows, key=str)


def test_a_shard_does_not_count_a_policy_at_a_horizon_it_was_not_told(tmp_path):
    """A shard may hold savage's runs of the longer horizon alone, with a checkpoint at the shorter one."""
    planned = duels.experiments.plan_experiment("arxiv-6", ["savage", "rucb"], [50, 400], runs=2, checkpoints=[50])
    shards = [duels.run_experiment(planned, out=tmp_path, shard=f"{k}/3") for k in (1, 2, 3)]
    rows = [part.final().select("policy", "horizon", "t").rows() for part in shards]
    assert rows == [[("savage", 50, 50)], [("savage", 400, 400)], [("rucb", 400, 50), ("rucb", 400, 400)]]
    whole = duels.experiments.merge([tmp_path]).final()
    assert sorted(whole.select("policy", "t").rows()) == [(p, t) for p in ("rucb", "savage") for t in (50, 400)]


def test_older_results_have_every_horizon_too(tmp_path):
    """What was saved before still opens, and has the same rows."""
    results = duels.run_experiment("arxiv-6", ["rucb", "savage"], [50, 400], runs=2)
    results.save(tmp_path)
    assert_frame_equal(load_results(tmp_path).final(), results.final())
    assert len(results.final()) == 4


def test_results_without_rows_have_an_empty_summary():
    empty = Results(frame([]))
    assert (len(empty.summarize()), len(empty.final())) == (0, 0)


def test_bands_and_quantiles_by_hand():
    """Regrets 1, 2, 6: mean 3, standard deviation √7, error √(7/3); t₀.₉₇₅ with 2 degrees of freedom is 4.302653."""
    row = Results(frame([1.0, 2.0, 6.0])).summarize().to_dicts()[0]
    assert row["regret_low"] == pytest.approx(3 - 4.302653 * (7 / 3) ** 0.5, abs=1e-5)
    assert row["regret_high"] == pytest.approx(3 + 4.302653 * (7 / 3) ** 0.5, abs=1e-5)
    assert (row["regret_q25"], row["regret_q50"], row["regret_q75"]) == (1.5, 2.0, 4.0)
    # Wilson's interval of 2 in 3, z = 1.959964: the roots of (2/3 − p)² = z² p (1 − p)/3.
    z2 = 1.959964**2
    for bound in (row["accuracy_low"], row["accuracy_high"]):
        assert (2 / 3 - bound) ** 2 == pytest.approx(z2 * bound * (1 - bound) / 3, rel=1e-5)
    assert row["accuracy_low"] < 2 / 3 < row["accuracy_high"]


def test_bands_of_a_single_run_and_of_other_levels():
    one = Results(frame([1.0])).summarize(quantiles=[0.05, 1]).to_dicts()[0]
    assert (one["regret_low"], one["regret_high"], one["regret_q5"], one["regret_q100"]) == (None, None, 1.0, 1.0)
    assert one["accuracy_low"] == 0 < one["accuracy_high"] < 1  # the run was not correct
    results = Results(frame([1.0, 2.0, 6.0]))
    wide, narrow = results.summarize(confidence=0.99).to_dicts()[0], results.summarize(confidence=0.5).to_dicts()[0]
    assert wide["regret_low"] < narrow["regret_low"] < 3 < narrow["regret_high"] < wide["regret_high"]
    for wrong in ({"confidence": 95}, {"quantiles": [25]}):
        with pytest.raises(InvalidInput, match="expected"):
            results.summarize(**wrong)


def test_saved_results_open_in_pandas_and_duckdb(tmp_path):
    import duckdb
    import pandas as pd

    results = duels.simulate("arxiv-6", "rucb", horizon=100, runs=3)
    results.save(tmp_path)
    file = str(tmp_path / "frame.parquet")
    assert pd.read_parquet(file)["regret"].to_list() == results.frame["regret"].to_list()
    mean = duckdb.sql(f"select avg(regret) from '{file}' where t = 100").fetchall()[0][0]
    assert mean == pytest.approx(results.final()["regret"].item())


def test_html_for_notebooks():
    results = simulate("cyclic-4", "rucb", horizon=100, runs=3)
    shown = dataclasses.replace(results, frame=results.frame.with_columns(problem=pl.lit("<i>")))._repr_html_()
    assert "rucb" in shown
    assert "<i>" not in shown
    assert "&lt;i&gt;" in shown
    assert "Mean condorcet regret ± standard error" in shown
    assert shown.count("<tr>") == 2


def test_pandas():
    results = simulate("cyclic-4", "savage", horizon=2000, runs=2)
    table = results.to_pandas()
    assert list(table.columns) == results.frame.columns
    assert table["regret"].tolist() == results.frame["regret"].to_list()
    assert table["policy"].tolist() == results.frame["policy"].to_list()
    assert table["explored"].isna().tolist() == results.frame["explored"].is_null().to_list()


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DuelsError, match="pip install pandas"):
        simulate("cyclic-4", "random", horizon=10).to_pandas()
