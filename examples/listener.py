"""A judge for `duels tune examples/space.toml --command "python3 examples/listener.py"`: likes a slow, warm voice.

It reads two settings as JSON from standard input, and prints which is better.
"""

import json
import math
import sys


def pleasure(setting):
    return -abs(math.log(setting["speed"] / 0.8)) - abs(setting["pauses"] - 4) / 5 + (setting["tone"] == "warm")


def judge(left, right):
    return "left" if pleasure(left) > pleasure(right) else "right"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    print(judge(question["left"], question["right"]))
