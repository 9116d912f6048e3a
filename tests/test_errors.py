"""What error messages quote."""

from duels.errors import counted, cut


def test_a_value_that_is_cut_says_so():
    assert cut("abc") == "'abc'"
    assert cut("a" * 58) == f"'{'a' * 58}'"  # 60 characters with its quotes
    assert cut("a" * 59) == f"'{'a' * 58}…"
    assert len(cut("a" * 1000, 40)) == 40


def test_counts_agree_with_their_nouns():
    assert [counted(n, "query", "queries") for n in (0, 1, 2000)] == ["0 queries", "1 query", "2,000 queries"]
