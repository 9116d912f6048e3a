"""Pages and routes of studies with thousands of arms."""

import re
import time
from pathlib import Path

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

import duels
from duels.server.pages.study import ARMS_PER_PAGE

TOKEN = "a-token-that-somebody-chose-for-tests"
ARMS = [f"arm-{k:04d}" for k in range(2000)]


@pytest.fixture
def big(admin, app):
    """A browser that is signed in, with a study of 2,000 arms."""
    assert admin.post("/api/studies", json={"name": "big", "arms": ARMS}).status_code == 201
    rows = [f"{ARMS[k % 2000]},{ARMS[(k * 7 + k // 2000 + 1) % 2000]},left" for k in range(5000)]
    rows = [row for row in rows if len(set(row.split(","))) == 3]
    sent = admin.post("/api/studies/big/import", content="\n".join(["left,right,winner", *rows]).encode())
    assert sent.status_code == 200, sent.text
    with TestClient(app, "http://localhost", follow_redirects=False) as client:
        client.post("/signin", data={"token": admin.token})
        yield client


def rows_of(text):
    body = text.partition('<table class="arms" id="arms"')[2]
    return re.findall(r"arm-\d{4}", body.partition("<tbody>")[2].partition("</tbody>")[0])


@pytest.mark.deep
def test_a_study_of_two_thousand_arms(big, admin):
    began = time.process_time()
    results = big.get("/studies/big")
    assert time.process_time() - began < 2.0
    assert len(results.content) < 500_000
    settings = big.get("/studies/big/settings?page=3").text
    assert list(dict.fromkeys(rows_of(settings))) == ARMS[400:600]
    assert f"Page 3 of 10, with up to {ARMS_PER_PAGE} of 2,000 arms each." in settings
    assert {'href="?page=2#arms-panel"', 'href="?page=4#arms-panel"'} <= set(re.findall(r'href="[^"]*"', settings))
    for wrong in ("99", "0", "x", "-1", "²"):
        assert big.get("/studies/big/settings", params={"page": wrong}).status_code == 200
    assert rows_of(big.get("/studies/big/settings?page=99").text)[-1] == ARMS[-1]
    began = time.process_time()
    details = admin.get("/api/studies/big/details")
    assert time.process_time() - began < 2.0
    assert len(details.content) < 100_000
    assert (len(details.json()["pairs"]), details.json()["pairs_total"]) == (300, 1_999_000)
    began = time.process_time()
    assert big.get("/").status_code == 200
    assert admin.get("/api/studies").status_code == 200
    assert time.process_time() - began < 2.0
    first = admin.get("/api/studies/big/preferences").json()
    assert len(first["preferences"]) == 10_000
    second = admin.get("/api/studies/big/preferences", params={"after": first["next"], "limit": 3}).json()
    found = [(row["first"], row["second"]) for row in second["preferences"]]
    last = first["preferences"][-1]
    assert last["first"] == found[0][0]
    assert ARMS.index(found[0][1]) == ARMS.index(last["second"]) + 1


def test_a_study_with_few_arms_has_no_pages(admin, app, study):
    with TestClient(app, "http://localhost") as client:
        client.post("/signin", data={"token": admin.token})
        for tab in ("", "/settings"):
            assert "Page 1 of" not in client.get(f"/studies/search{tab}").text


def test_preferences_in_pages(admin, study):
    everything = admin.get(f"{study}/preferences").json()
    assert everything["next"] is None
    rows, after = [], 0
    while after is not None:
        page = admin.get(f"{study}/preferences", params={"after": after, "limit": 2}).json()
        rows, after = rows + page["preferences"], page["next"]
    assert rows == everything["preferences"]
    assert len(rows) == 3
    for wrong in ({"limit": 0}, {"limit": 10_001}, {"after": -1}, {"after": 2**64}):
        assert admin.get(f"{study}/preferences", params=wrong).status_code == 422


def test_the_client_gets_all_pages(serve):
    live = serve()
    with duels.connect(live.url, live.token) as client:
        study = client.create_study(ARMS[:150], "many")
        local = duels.load_study("many", live.storage)
        assert study.preferences() == local.preferences()
        assert len(study.preferences()) == 11_175


@pytest.mark.deep
def test_twelve_studies_of_two_thousand_arms_stay_below_a_gibibyte(serve):
    """Each is asked, told and looked at; the server's memory is what the system says it was at most."""
    live = serve(None, environment={"DUELS_TOKEN": TOKEN}, compiled=True)
    with httpx.Client(
        verify=False, base_url=live.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=300
    ) as client:
        for n in range(12):
            study = f"/api/studies/big-{n}"
            assert client.post("/api/studies", json={"name": f"big-{n}", "arms": ARMS}).status_code == 201
            for _ in range(5):
                (duel,) = client.post(f"{study}/ask", json={}).json()["duels"]
                assert client.post(f"{study}/tell", json={"duel": duel["id"], "winner": "left"}).status_code == 200
            for look in ("leaderboard", "verdict", "preferences", "details"):
                assert client.get(f"{study}/{look}").status_code == 200
        assert len(client.get("/api/studies").json()["studies"]) == 12
        for n in range(12):  # those that have left memory come back
            assert client.post(f"/api/studies/big-{n}/ask", json={}).json()["duels"][0]["id"] == 5
        status = Path(f"/proc/{live.process.pid}/status").read_text()
        most = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 2**20
        assert most < 1.0, f"{most:.2f} GiB"
