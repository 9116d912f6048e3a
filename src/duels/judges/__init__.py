"""Functions that answer a question: which of two outputs is better?

Asking language models, programs and people belongs here, as do their failures and retries. It knows nothing of
studies: what is asked next, and what the answers show, is in `study`.
"""

import importlib
from typing import Any

# Not lazily, as elsewhere: `openai`, `command` and `terminal` would be hidden by the files of the same name.
from .command import command
from .openai import openai
from .questions import Answer, Image, Judge, JudgeError, Question, Undo
from .terminal import terminal

__all__ = [
    "Answer",
    "Image",
    "JudgeError",
    "Question",
    "assert_not_worse",
    "command",
    "find_best_async",
    "openai",
    "terminal",
]


def __getattr__(name: str) -> Any:
    if name in ("assert_not_worse", "find_best_async"):  # found here, though they need a study
        return getattr(importlib.import_module("duels.study.judging.find_best"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
