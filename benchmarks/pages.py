"""How light and fast the pages are: a table, and benchmarks/out/pages.json. Exit code 1 if a bar is missed.

    python benchmarks/pages.py

A real browser opens the results of a study with 5 and with 200 arms, and the voting page, each for the first time: what
came over the wire, and when the page was ready. Then what a viewer gets after a vote, and how long the server works
for it. Then the tabs of a study with a million answers of 200 voters about 500 items: how long the server takes for
each, the first time, when its log is read, and after that.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
from playwright.sync_api import sync_playwright
from study import grow
from table import report

import duels
from duels.server.results_tab import glance
from duels.study.items import add_items

SIZES = {5: (350.0, 1.0, 5.0, 30.0), 200: (500.0, 2.0, None, 100.0)}  # arms: kB, seconds, kB and ms after a vote
TRIES = 5
TABS = {"results": "", "items": "/items", "an item": "/items/7", "voters": "/voters", "share": "/share"}


def make_study(url, arms):
    """A study with answers, of which no arm is the winner yet."""
    names = [f"model-{k}" for k in range(arms)]
    study = duels.create_study(names, f"{arms} arms", url)
    dice = np.random.default_rng(0)
    strength = dice.normal(0, 0.3, arms)
    left = dice.integers(arms, size=200 * arms)
    right = (left + 1 + dice.integers(arms - 1, size=len(left))) % arms
    won = dice.random(len(left)) < 1 / (1 + np.exp(strength[right] - strength[left]))
    rows = zip(left.tolist(), right.tolist(), won.tolist())
    study.import_votes([(names[i], names[j], "left" if one else "right") for i, j, one in rows])
    return study


def opened(browser, address, ready):
    """Kilobytes over the wire, and seconds until an element is there, of the first visit."""
    context = browser.new_context()
    page = context.new_page()
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    sizes = []
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    started = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(ready)
    taken = time.perf_counter() - started
    page.wait_for_timeout(300)
    context.close()
    return sum(sizes) / 1000, taken


def pages(server, studies):
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for arms in studies:
            found = [opened(browser, f"{server}/studies/{arms}%20arms", "#map button") for _ in range(TRIES)]
            yield (
                f"results of {arms} arms, first visit: over the wire",
                max(size for size, _ in found),
                "kB",
                SIZES[arms][0],
            )
            yield (
                f"results of {arms} arms, first visit: ready",
                sorted(t for _, t in found)[TRIES // 2],
                "s",
                SIZES[arms][1],
            )
        body = json.dumps({"name": "Which?"}).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{server}/api/studies/5%20arms/links", body, headers)
        link = json.loads(urllib.request.urlopen(asked).read())["secret"]
        found = [opened(browser, f"{server}/vote/{link}", "#question:not([hidden])") for _ in range(TRIES)]
        yield "voting page, first visit: over the wire", max(size for size, _ in found), "kB", 60.0
        yield "voting page, first visit: ready", sorted(t for _, t in found)[TRIES // 2], "s", None
        browser.close()


def changes(server, studies):
    """What a viewer gets after a vote, and the time of the processor for it."""
    for arms, study in studies.items():
        asked = urllib.request.Request(
            f"{server}/api/studies/{arms}%20arms/results", headers={"Accept-Encoding": "gzip"}
        )
        size = len(urllib.request.urlopen(asked).read())
        yield f"after a vote, {arms} arms: over the wire", size / 1000, "kB", SIZES[arms][2]
        taken = []
        for _ in range(TRIES):
            study.tell(study.ask(), "left")
            started = time.process_time()
            json.dumps(glance(study))
            taken.append(1000 * (time.process_time() - started))
        yield f"after a vote, {arms} arms: work of the server", sorted(taken)[TRIES // 2], "ms", SIZES[arms][3]


def make_million(url, answers=1_000_000, arms=5, items=500):
    names = [f"model-{k}" for k in range(arms)]
    study = duels.create_study(names, "a million", url)
    tags = ["code", "mail", "food", "law"]
    add_items(
        study,
        [
            {
                "prompt": f"question {k}",
                "tags": [tags[k % 4]],
                "outputs": {name: f"answer {k} of {name}" for name in names},
            }
            for k in range(items)
        ],
    )
    grow(study, answers, arms, voters=200, items=items)


def tabs(server):
    """How long the server takes for each tab of a study with a million answers."""

    def seconds(path):
        started = time.perf_counter()
        urllib.request.urlopen(f"{server}/studies/a%20million{path}").read()
        return time.perf_counter() - started

    yield "a million answers: first tab after the start, the log is read", seconds("/voters"), "s", None
    for name, path in TABS.items():
        yield f"a million answers: {name}", min(seconds(path) for _ in range(TRIES)), "s", 1.0


def main():
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/duels.db"
        studies = {arms: make_study(url, arms) for arms in SIZES}
        make_million(url)
        command = [sys.executable, "-m", "duels", "serve", url, "--port", "8791", "--open"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
        try:
            for _ in range(100):
                try:
                    urllib.request.urlopen("http://127.0.0.1:8791/healthz")
                    break
                except OSError:
                    time.sleep(0.1)
            yield from pages("http://127.0.0.1:8791", studies)
            yield from changes("http://127.0.0.1:8791", studies)
            yield from tabs("http://127.0.0.1:8791")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    report("pages", main())
