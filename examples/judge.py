"""A judge for `duels judge --command "python3 examples/judge.py"`: no filler, then the shorter output.

It reads a question as JSON from standard input, and prints which output is better.
"""

import json
import sys

FILLER = ("Great question", "Let me know", "It depends", "There are many ways")


def filler(output):
    return sum(output.count(words) for words in FILLER)


def judge(prompt, left, right):
    costs = [(filler(output), len(output)) for output in (left, right)]
    if costs[0] == costs[1]:
        return "tie"
    return "left" if costs[0] < costs[1] else "right"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(judge(question["prompt"], question["left"], question["right"]))
