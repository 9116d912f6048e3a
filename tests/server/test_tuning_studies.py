"""Tuning studies on a server: what is about arms refuses them, and writes wait for choices outside all locks."""

import asyncio

import duels
from duels.server.background import Background


def test_requests_about_arms_refuse_a_tuning_study(admin, study, storage):
    duels.create_tuning({"x": (0.0, 1.0)}, "voice", storage)
    listed = admin.get("/api/studies")
    assert (listed.status_code, [one["name"] for one in listed.json()["studies"]]) == (200, ["search"])
    assert admin.get("/").status_code == 200
    for address in ("/api/studies/voice", "/api/studies/voice/leaderboard", "/api/studies/voice/verdict"):
        answer = admin.get(address)
        assert answer.status_code == 400
        assert "'voice' tunes 1 parameter and has no arms to compare" in answer.text
    assert admin.post("/api/studies/voice/ask", json={}).status_code == 400


def test_a_server_s_writes_ask_and_tell(storage):
    """As the queue of a server does it: the loop goes on while a duel is chosen."""
    study = duels.create_tuning({"x": (0.0, 1.0)}, "voice", storage, "eubo:initial=2")
    background = Background(storage)

    async def one():
        (duel,) = await background.write(study.asking(voter="ann"))
        return await background.write(study.telling(duel, "left", voter="ann"))

    async def many():
        return await asyncio.gather(*(one() for _ in range(6)))

    try:
        assert asyncio.run(many()) == ["left"] * 6
    finally:
        background.close()
    assert (study.answers, study.check()) == (6, 13)
