"""A program that finds the best of three candidates, to be interrupted or killed.

    python judging_program.py DATABASE JUDGE [CALLS]

JUDGE is the address of a server that speaks the OpenAI protocol, or how many seconds a function in a thread takes. At
the end it prints why it ended, the winner and the number of calls.
"""

import sys
import time

import duels

ARMS, PROMPTS = ("terse", "plain", "wordy"), [f"Question {n}?" for n in range(100)]
CONCURRENCY = 4


def judge_of(text):
    if text.startswith("http"):
        return duels.judges.openai(text, "fake", price=(1.0, 1.0))
    seconds = float(text)

    def slow(prompt, left, right):
        sys.stdout.write("asked\n")  # in one piece: there are several threads
        sys.stdout.flush()
        time.sleep(seconds)
        return duels.judges.Answer("tie", cost=1.0)

    return slow


def main(database, judge, calls=None):
    result = duels.find_best(
        {arm: [f"{arm} answer to {prompt}" for prompt in PROMPTS] for arm in ARMS},
        judge_of(judge),
        prompts=PROMPTS,
        about="new-items",
        storage=database,
        study_name="killed",
        concurrency=CONCURRENCY,
        max_calls=int(calls) if calls else None,
        progress=False,
    )
    print(result.ended, result.winner, result.calls, result.spent.unstored, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
