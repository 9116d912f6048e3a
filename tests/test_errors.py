"""What error messages quote."""

from duels.errors import InvalidInput, NotFound, UnknownName, format_count, hundredths, percent, shorten


def test_a_value_that_is_cut_says_so():
    assert shorten("abc") == "'abc'"
    assert shorten("a" * 58) == f"'{'a' * 58}'"  # 60 characters with its quotes
    assert shorten("a" * 59) == f"'{'a' * 58}…"
    assert len(shorten("a" * 1000, 40)) == 40


def test_counts_agree_with_their_nouns():
    assert [format_count(n, "query", "queries") for n in (0, 1, 2000)] == ["0 queries", "1 query", "2,000 queries"]


def test_shares_are_rounded_by_one_rule():
    assert [percent(share) for share in (0.625, 0.375, 0.005, 0.995, 0.5, 0.505, 0.495)] == [63, 37, 0, 100, 50, 51, 49]
    assert percent(0.145) == 14  # the rest is 85.5, which becomes 86, although 100 * 0.855 is a bit less
    for n in range(1, 201):  # a pair's two cells add up to 100, and neither is off by more than a half
        for won in range(n + 1):
            assert percent(won / n) + percent((n - won) / n) == 100
            assert abs(percent(won / n) - 100 * won / n) <= 0.5 + 1e-9
    assert [hundredths(share) for share in (0.625, 0.375, 1.37, -0.1)] == ["0.63", "0.37", "1.37", "-0.10"]
    assert hundredths(float("inf")) == "inf"


def test_an_unknown_name_is_not_found():
    error = UnknownName("study", "cake", ["cakes"])
    assert isinstance(error, NotFound)
    assert isinstance(error, InvalidInput)
    there = UnknownName.from_message(str(error))
    assert (str(there), type(there)) == (str(error), UnknownName)
