"""The names of downloads: safe on every system, and in every language."""

from urllib.parse import unquote

import pytest

from duels.server.downloads import attachment, file_name


@pytest.mark.parametrize(
    ("title", "plain", "full"),
    [
        ("search", "search-votes.csv", None),
        ("Tone of voice", "Tone-of-voice-votes.csv", None),
        ("für alle", "fur-alle-votes.csv", "für-alle-votes.csv"),
        ("犬と猫", "study-votes.csv", "犬と猫-votes.csv"),
        ('../../etc/"x"\r\nSet-Cookie: a=b', "etc-x-Set-Cookie-a-b-votes.csv", None),
        ("...", "study-votes.csv", None),
        ("", "study-votes.csv", None),
        ("a" * 200, f"{'a' * 80}-votes.csv", None),
    ],
)
def test_names_of_files(title, plain, full):
    header = attachment(title, "votes.csv")["Content-Disposition"]
    first, _, other = header.partition("; filename*=UTF-8''")
    assert first == f'attachment; filename="{plain}"'
    assert unquote(other) == (full or "")
    assert header.isascii()
    assert header.isprintable()


def test_a_title_of_which_nothing_is_left():
    assert file_name("///", "results") == "results"
    assert attachment("", "beats.svg", "results")["Content-Disposition"].endswith('filename="results-beats.svg"')
