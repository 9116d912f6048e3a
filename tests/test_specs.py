"""Names with parameters."""

from duels import specs


def test_py_in_folder_and_long_values():
    assert specs.split_spec("old.py:1/mine.py:c=1", "policy") == ("old.py:1/mine.py", {"c": "1"})
    assert specs.join("rucb", {"alpha": 0.123456789}, {"alpha": 0.51}) == "rucb:alpha=0.123456789"


def test_a_value_may_look_like_a_file():
    assert specs.split_spec("./mine.py:file=x.py,c=1", "policy") == ("./mine.py", {"file": "x.py", "c": "1"})
