"""The studies in memory: how many, and what it costs to add one."""

from duels.storage.histories import Histories


class Loaded:
    """A study of some size, which counts how often it is measured."""

    measured = 0
    is_busy = False
    seq = 1

    def __init__(self, size=1):
        self._size = size

    @property
    def size(self):
        Loaded.measured += 1
        return self._size


def test_adding_thousands_of_studies_measures_each_a_few_times():
    histories, number = Histories(), 3_000
    Loaded.measured = 0
    for key in range(number):
        histories.add(key, Loaded(), ())
    assert (len(histories), histories._total) == (number, number)
    assert Loaded.measured < 6 * number


def test_the_least_recently_used_are_dropped():
    histories = Histories()
    histories.memory = 100
    big = Loaded(10)
    for key in range(20):
        histories.add(key, big if key == 12 else Loaded(10), {0})
    assert list(histories) == [0, *range(11, 20)]
    big._size = 60  # it has grown since
    for key in range(20, 40):
        histories.add(key, Loaded(10), {12, 39})
    assert 12 in histories
    assert sum(one.size for one in histories.values()) <= 150
    del histories[12]
    for key in range(40, 60):
        histories.add(key, Loaded(10), ())
    assert sum(one.size for one in histories.values()) == 100


def test_one_that_is_too_large_stays_alone():
    histories = Histories()
    histories.memory = 100
    for key in range(5):
        histories.add(key, Loaded(10), ())
    histories.add(9, Loaded(1000), ())
    assert list(histories) == [9]
