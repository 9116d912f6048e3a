"""What `duels` offers: the names that are listed, and the namespaces with everything else."""

import importlib
import subprocess
import sys

import pytest

import duels

MOST = 27  # names that one can take in at a glance


def test_few_names_are_listed():
    assert len(dir(duels)) <= MOST, dir(duels)
    assert dir(duels) == sorted(set(duels.__all__) - {"__version__"})


def test_no_listed_name_is_another_one_with_an_ending():
    endings = ("s", "es", "ed", "er", "ing", "ings")
    lower = {name.lower() for name in dir(duels)}
    assert not {name for name in lower if any(name + ending in lower for ending in endings)}


@pytest.mark.parametrize("module", [*duels._NAMESPACES, *duels._MODULES])
def test_all_names_of_a_namespace_exist(module):
    found = getattr(duels, module)
    assert found is importlib.import_module(f"duels.{module}")
    for name in getattr(found, "__all__", ()):
        assert getattr(found, name) is not None


def test_modules_need_no_import_of_their_own():
    code = "import duels; print(duels.theory.__name__, 'theory' in dir(duels))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "duels.theory False\n"
