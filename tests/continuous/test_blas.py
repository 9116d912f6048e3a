"""How many threads BLAS has inside and outside of `one_thread`."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from duels.continuous.blas import one_thread


def count_threads():
    """The numbers of threads of all BLAS libraries in this process."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    import scipy.linalg  # noqa: F401  # loads the second BLAS

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def test_blocks_that_overlap_restore_the_threads_after_the_last():
    assert count_threads() == {2}
    entered, leave = threading.Event(), threading.Event()

    def stay():
        with one_thread():
            entered.set()
            assert leave.wait(10)

    other = threading.Thread(target=stay)
    with one_thread():
        other.start()
        assert entered.wait(10)
        assert count_threads() == {1}
    assert count_threads() == {1}  # the other block, which began later, goes on
    leave.set()
    other.join(10)
    assert count_threads() == {2}


def test_an_error_restores_the_threads_too():
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert count_threads() == {2}
