"""Voting by a link: blind, fair, one's own questions only, and nothing after the link is revoked."""

import json
import re
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from scipy.stats import binom
from starlette.testclient import TestClient

from duels.server.app import create_app
from duels.server.http.limits import Limits, Rate
from duels.server.keys import load_signing_key, make_key, revoke_key
from duels.server.pages import vote as voting
from duels.server.tickets import Ticket, sign_ticket
from duels.storage.tables import metadata
from duels.study import base, link_voting
from duels.study.create import create_study, delete_study, load_study
from duels.study.items import Output, add_items, add_output, clear_items
from duels.study.voter_settings import change_voter_settings

ARMS = ["aardvark", "baboon", "cheetah"]
SAYS = {"aardvark": "first words", "baboon": "second words", "cheetah": "third words"}
PNG = "data:image/png;base64,iVBORw0KGgo="
PAGE = "<script>document.title = 1</script>"
SETTINGS = {"question": "Which is better?", "ties": True, "both_bad": True, "comments": False}


@pytest.fixture
def patient(app):
    """No voter is too quick here."""
    app.service.limits = Limits(voter=Rate(1e6, 10**6), address=Rate(1e6, 10**6))


@pytest.fixture
def zoo(storage, patient):
    return create_study(ARMS, "zoo", storage)


class Visitor:
    """A voter with a link, in a browser of their own."""

    def __init__(self, client, link, key=None):
        self.client, self.link, self.key, self.seen = client, link, key, ""

    def _taken(self, response):
        self.seen += response.text
        assert response.status_code == 200, response.text
        assert response.headers["cache-control"] == "no-store"
        return response.json()

    def send(self, action, **body):
        return self.client.post(f"/api/vote/{self.link}/{action}", json=body)

    def ask(self, **body):
        return self._taken(self.send("ask", **body))

    def tell(self, duel, winner):
        return self._taken(self.send("tell", duel=duel, winner=winner))

    def undo(self):
        return self._taken(self.client.post(f"/api/vote/{self.link}/undo"))

    def progress(self):
        return self._taken(self.client.get(f"/api/vote/{self.link}"))

    @staticmethod
    def counts(progress):
        """Progress without the settings, which are as usual."""
        assert {name: progress.pop(name) for name in SETTINGS} == SETTINGS
        assert re.fullmatch("[0-9a-f]{12}", progress.pop("page"))
        return progress

    def output(self, question, side):
        return self.client.get(question[side]["src"])


@pytest.fixture
def browser(app):
    """Opens browsers, each with cookies of its own."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(TestClient(app, "http://localhost"))


@pytest.fixture
def visitor(browser, storage, zoo):
    """Makes voters of the zoo: by one link, or by another one with a goal."""

    def link(votes):
        return make_key(storage, "vote", "Which animal?", study_id=zoo._log.id, settings={"votes": votes})

    shared = link(1000)

    def make(votes=None):
        key, secret = shared if votes is None else link(votes)
        return Visitor(browser(), secret, key)

    return make


def words(prompt="What do you say?", **said):
    return {"prompt": prompt, "outputs": said or SAYS}


def refused(response, status, kind, *words):
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error"}
    assert body["error"]["kind"] == kind
    for word in words:
        assert word in body["error"]["message"]
    return body["error"]["message"]


def arm_on(question, side):
    """Which arm's words are on that side, by what was uploaded."""
    text = re.sub("<[^>]*>", "", question[side]["html"])
    return next(arm for arm, said in SAYS.items() if said == text)


def test_a_question_and_its_answer(zoo, visitor):
    add_items(zoo, [words()])
    ann = visitor(votes=3)
    assert ann.counts(ann.progress()) == {"title": "Which animal?", "goal": 3, "answered": 0, "total": 0, "done": None}
    first = ann.ask()
    assert set(ann.counts(dict(first))) == {
        *("title", "goal", "answered", "total", "done", "duel", "prompt", "a", "b", "comment")
    }
    assert (first["prompt"], first["duel"], first["a"]["kind"], first["a"]["src"]) == (
        "What do you say?",
        0,
        "text",
        None,
    )
    assert arm_on(first, "a") != arm_on(first, "b")
    told = ann.tell(0, "a")
    assert ann.counts(dict(told)) == {"title": "Which animal?", "goal": 3, "answered": 1, "total": 1, "done": None}
    assert ann.tell(0, "a") == told  # harmless
    refused(ann.send("tell", duel=0, winner="b"), 409, "conflict", "already")
    (vote,) = zoo.votes()
    assert (vote.winner, vote.left) == ("left", arm_on(first, "a"))


@pytest.mark.parametrize("questions", [60, pytest.param(120, marks=pytest.mark.deep)])
def test_names_are_hidden_and_sides_shuffled(zoo, visitor, questions):
    """Over all questions each pair's alphabetically first arm is on the left as often as a fair coin says.

    The bounds are the exact binomial ones of a false alarm in a million; the study's seed makes the run repeatable.
    """
    add_items(zoo, [words(f"prompt {k}") for k in range(20)])
    ann, on_left, answers = visitor(), 0, ("tie", "both_bad", "skip")
    for k in range(questions):
        question = ann.ask()
        a, b = arm_on(question, "a"), arm_on(question, "b")
        assert a != b
        on_left += a < b
        ann.tell(question["duel"], answers[k % 3])
        if k % 10 == 0:
            ann.undo()
            ann.tell(question["duel"], "tie")
    low, high = binom.ppf([5e-7, 1 - 5e-7], questions, 0.5)
    assert low <= on_left <= high
    assert not any(name in ann.seen for name in [*ARMS, "zoo"])
    assert zoo.check() > 2 * questions


def test_an_answer_that_is_undone_gives_its_comment_back(zoo, visitor, admin):
    add_items(zoo, [words()])
    assert admin.patch("/api/studies/zoo/settings", json={"comments": True}).status_code == 200
    ann, bob = visitor(), visitor()
    duel = ann.ask()["duel"]
    assert ann.send("tell", duel=duel, winner="a", comment="It is <loud>.").status_code == 200
    theirs = bob.ask()
    bob.tell(theirs["duel"], "b")
    assert bob.undo()["comment"] is None  # only one's own
    assert ann.ask()["comment"] is None
    again = ann.undo()
    assert (again["duel"], again["comment"]) == (duel, "It is <loud>.")
    assert ann.ask()["comment"] is None
    ann.tell(duel, "b")  # now without
    assert ann.undo()["comment"] is None


def test_comments_are_kept_without_what_could_disguise_them(zoo, visitor):
    """Terminals obey control characters, and signs for the direction of writing let text look like another one."""
    change_voter_settings(zoo, comments=True)
    ann = visitor()
    duel = ann.ask()["duel"]
    kept = "\ttab \U0001f468\u200d\U0001f469 \u0645\u06cc\u200c\u062e\u0648"  # what emoji and scripts need
    said = f"\x1b[31mred\x07\u202eevil\u2066 line\r\nnext{kept}"
    assert ann.send("tell", duel=duel, winner="a", comment=said).status_code == 200
    (told,) = (event for event in zoo.events() if event.kind == "tell")
    assert told.note["note"] == f"[31mredevil line\nnext{kept}"
    duel = ann.ask()["duel"]
    assert ann.send("tell", duel=duel, winner="a", comment="\x1b\u202e").status_code == 200
    assert "note" not in zoo.events()[-1].note


def test_an_answer_is_for_the_output_that_was_on_its_side(zoo, visitor):
    add_items(zoo, [words(f"prompt {k}") for k in range(15)])
    ann, wins = visitor(), dict.fromkeys(ARMS, 0)
    for _ in range(15):
        question = ann.ask()
        better = min("ab", key=lambda side: arm_on(question, side))
        wins[arm_on(question, better)] += 1
        ann.tell(question["duel"], better)
    assert {row.arm: row.wins for row in zoo.leaderboard()} == wins
    assert wins["cheetah"] == 0


def test_the_same_question_until_it_is_answered_or_old(zoo, visitor, monkeypatch):
    ann, bob = visitor(), visitor()
    first = ann.ask()
    assert [ann.ask() for _ in range(3)] == [first] * 3
    assert bob.ask()["duel"] == 1
    assert len(zoo.open_duels()) == 2
    now = base.clock()
    monkeypatch.setattr(base, "clock", lambda: now + 3599)
    assert ann.ask()["duel"] == first["duel"]
    monkeypatch.setattr(base, "clock", lambda: now + 3601)
    later = ann.ask()
    assert later["duel"] == 2
    assert ann.ask() == later
    told = ann.tell(first["duel"], "tie")
    assert (told["answered"], told["total"]) == (1, 0)  # a late answer is stored, and does not count
    assert (zoo.verdict().duels, zoo.events()[-1].answer) == (0, "tie")


def test_only_ones_own_questions(zoo, visitor, browser):
    add_items(zoo, [{"prompt": "q", "outputs": {arm: {"kind": "image", "content": PNG} for arm in ARMS}}])
    ann, bob, program = visitor(), visitor(), zoo.ask(voter="program")
    question = ann.ask()
    mine = question["duel"]
    bob.ask()
    for duel in (mine, program.id, 99):
        refused(bob.send("tell", duel=duel, winner="a"), 404, "not_found", "not asked of you")
    ann.tell(mine, "a")
    refused(bob.client.post(f"/api/vote/{bob.link}/undo"), 400, "invalid", "no answer of yours")
    assert len(zoo.votes()) == 1
    assert ann.output(question, "a").status_code == 200


def test_a_vote_never_reads_the_whole_log(zoo, visitor, storage):
    """Each statement of a vote finds the voter's own events by an index: SQLite would rather read all in order."""
    add_items(zoo, [words()])
    ann, statements = visitor(), []
    ann.ask()
    with storage.lock:
        storage.connection().connection.driver_connection.set_trace_callback(statements.append)
    ann.ask(), ann.tell(0, "a"), ann.undo(), ann.tell(0, "b"), ann.ask(), ann.progress()
    with storage.lock:
        driver = storage.connection().connection.driver_connection
        driver.set_trace_callback(None)
        about = [one for one in statements if one.startswith("SELECT") and "events" in one and "max(seq)" not in one]
        assert len(about) > 5
        for one in about:
            for *_, how in driver.execute(f"EXPLAIN QUERY PLAN {one}"):
                assert not how.startswith("SCAN events"), one
                assert "(study_id=?)" not in how, one  # nothing but the study narrows it down


def test_undo_shows_the_same_question_and_keeps_the_promise(zoo, visitor, admin):
    """It is blind: a voter has seen no results. The same by the API, which shows them, voids the verdict."""
    add_items(zoo, [words(f"prompt {k}") for k in range(5)])
    ann = visitor()
    asked = [ann.ask()]
    ann.tell(asked[0]["duel"], "skip")
    asked.append(ann.ask())
    ann.tell(asked[1]["duel"], "a")
    for question in asked[::-1]:
        again = ann.undo()
        assert {key: again[key] for key in ("duel", "prompt", "a", "b")} == {
            key: question[key] for key in ("duel", "prompt", "a", "b")
        }
    refused(ann.client.post(f"/api/vote/{ann.link}/undo"), 400, "invalid")
    assert ann.progress()["answered"] == 0
    assert len(zoo.votes()) == 0
    assert ann.ask()["duel"] == asked[1]["duel"]  # open again
    assert ann.tell(asked[1]["duel"], "b")["answered"] == 1
    assert "void" not in str(zoo.verdict())
    assert admin.get("/api/studies/zoo/verdict").json()["void"] is None
    admin.post("/api/studies/zoo/undo", json={"duel": asked[1]["duel"]})
    assert admin.get("/api/studies/zoo/verdict").json()["void"]


def test_the_goal_is_reached_and_one_may_go_on(zoo, visitor):
    ann = visitor(votes=2)
    ann.tell(ann.ask()["duel"], "skip")
    assert ann.progress()["answered"] == 0  # skipping is no answer
    for count in (1, 2):
        assert ann.tell(ann.ask()["duel"], "tie")["answered"] == count
    over = ann.ask()
    assert (over["done"], over["duel"], over["a"], over["b"], over["prompt"]) == ("goal", None, None, None, None)
    assert ann.progress()["done"] == "goal"
    before = zoo._log.history().seq
    ann.ask()
    assert zoo._log.history().seq == before
    more = ann.ask(more=True)
    assert (more["done"], more["answered"], more["goal"]) == (None, 2, 2)
    assert ann.tell(more["duel"], "tie")["answered"] == 3
    ann.undo()
    ann.undo()
    assert ann.counts(ann.progress()) == {"title": "Which animal?", "goal": 2, "answered": 1, "total": 1, "done": None}
    bob = visitor()
    assert (bob.progress()["answered"], bob.progress()["total"]) == (0, 1)


def test_a_study_with_a_winner_needs_no_more_votes(storage, browser, patient):
    study = create_study(["x", "y"], "pair", storage)
    _, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 1000})
    ann = Visitor(browser(), secret)
    for _ in range(200):
        question = ann.ask()
        if question["done"]:
            break
        ann.tell(question["duel"], "a" if question["a"]["html"] == "x" else "b")
    assert (question["done"], question["duel"]) == ("winner", None)
    assert study.verdict().winner == "x"
    assert ann.ask(more=True)["duel"] is None


def test_a_study_that_ranks_goes_on_until_every_rank_is_certain(storage, browser, patient):
    study = create_study(["x", "y", "z"], "order", storage, after="rank")
    _, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 1000})
    ann, after_the_winner = Visitor(browser(), secret), 0
    for _ in range(200):
        question = ann.ask()
        if question["done"]:
            break
        after_the_winner += study.verdict().kind == "winner"
        ann.tell(question["duel"], "a" if question["a"]["html"] < question["b"]["html"] else "b")
    assert (question["done"], question["duel"]) == ("winner", None)
    assert after_the_winner >= 8
    assert [tuple(row) for row in study.ranking()] == [(1, "x", True), (2, "y", True), (3, "z", True)]


def test_a_study_that_is_practically_tied_is_over(storage, browser, patient):
    """Also with `after="rank"`: there is no winner, below whom others could be ranked."""
    for after in ("stop", "rank"):
        study = create_study(["x", "y"], after, storage, margin=0.1, after=after)
        study.import_votes([("x", "y"), ("y", "x")] * 400)
        assert study.verdict().kind == "practically tied"
        _, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 5})
        assert Visitor(browser(), secret).ask()["done"] == "winner"


def test_a_study_without_a_winner_for_certain_is_over(storage, browser, patient):
    """Everybody loses to somebody: no vote can change that, and there is no winner to speak of."""
    study = create_study(list("xyz"), "cycle", storage)
    study.import_votes([tuple(pair) for pair in ("xy", "yz", "zx") for _ in range(40)])
    assert study.verdict().kind == "no condorcet winner"
    _, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 5})
    assert Visitor(browser(), secret).ask()["done"] == "retired"


def test_a_retired_study_thanks_its_voters(zoo, visitor):
    ann = visitor()
    question = ann.ask()
    zoo.retire()
    assert (ann.ask()["done"], ann.ask(more=True)["duel"]) == ("retired", None)
    assert ann.counts(ann.tell(question["duel"], "a")) == {
        **{"title": "Which animal?", "goal": 1000, "answered": 1, "total": 1, "done": "retired"}
    }
    zoo.resume()
    assert ann.ask()["done"] is None


def small(storage, name, prompts, **goal):
    """A study of two arms with so many items, and a link to it."""
    study = create_study(["x", "y"], name, storage, **goal)
    add_items(study, [{"prompt": f"p{k}", "outputs": {"x": "yes", "y": "no"}} for k in range(prompts)])
    return study, make_key(storage, "vote", study_id=study._log.id, settings={"votes": 100})[1]


def test_a_voter_who_has_seen_everything_is_told_so(storage, browser, patient, monkeypatch):
    study, secret = small(storage, "exactly these", 3)
    ann, bob = Visitor(browser(), secret), Visitor(browser(), secret)
    for answer in ("a", "skip", "tie"):
        ann.tell(ann.ask()["duel"], answer)
    assert (ann.progress()["done"], ann.ask()["duel"], ann.ask(more=True)["duel"]) == ("everything", None, None)
    assert ann.progress()["answered"] == 2
    assert bob.ask()["done"] is None  # others go on
    again = ann.undo()
    assert (again["done"], again["prompt"] is None) == (None, False)
    ann.tell(again["duel"], "b")
    assert ann.progress()["done"] == "everything"
    monkeypatch.setattr(base, "clock", lambda: 2e9)  # a question that was left open comes back to others only
    assert bob.ask()["done"] is None
    add_items(study, [{"prompt": "one more", "outputs": {"x": "yes", "y": "no"}}])
    assert ann.ask()["prompt"] == "one more"


def test_where_each_question_is_asked_once_somebody_else_may_have_the_last(storage, browser, patient, monkeypatch):
    _, secret = small(storage, "once", 2, about="new-items")
    ann, bob, cid = (Visitor(browser(), secret) for _ in range(3))
    first, last = ann.ask(), bob.ask()
    assert (cid.ask()["done"], cid.ask()["duel"]) == ("asked", None)
    ann.tell(first["duel"], "a")
    assert ann.ask()["done"] == "asked"
    bob.tell(last["duel"], "b")
    for voter in (ann, bob, cid):
        assert voter.progress()["done"] == "retired"  # nothing will be asked again


def test_the_last_question_that_another_gets_first(storage, browser, patient, monkeypatch):
    """The voter's progress, which is looked at first, need not say so."""
    _, secret = small(storage, "once", 1, about="new-items")
    ann, bob = Visitor(browser(), secret), Visitor(browser(), secret)
    bob.ask()
    looked = link_voting.progress_in
    monkeypatch.setattr(link_voting, "progress_in", lambda *about: looked(*about)._replace(done=None))
    assert (ann.ask()["done"], "p0" in bob.seen) == ("asked", True)


def test_a_new_arm_does_not_stop_voting(storage, browser, patient):
    """It is not asked about until each item has its output."""
    study, secret = small(storage, "grows", 5)
    ann = Visitor(browser(), secret)
    ann.tell(ann.ask()["duel"], "a")
    study.add_arm("z")
    for _ in range(2):
        question = ann.ask()
        assert question["done"] is None
        ann.tell(question["duel"], "a")
    for number in range(1, 6):
        add_output(study, number, "z", Output("text", "maybe"))
    while (question := ann.ask())["done"] is None:
        ann.tell(question["duel"], "a")
    assert (question["done"], question["answered"]) == ("everything", 15)
    assert {row.answers for row in study.leaderboard()} == {10}


def test_while_outputs_are_missing_voting_is_not_over(storage, browser, patient):
    study, secret = small(storage, "grows", 2)
    ann = Visitor(browser(), secret)
    ann.tell(ann.ask()["duel"], "a")
    study.add_arm("z")
    add_items(study, [{"prompt": "half", "outputs": {"x": "yes", "z": "no"}}])
    assert ann.progress()["done"] is None
    refused(ann.send("ask"), 409, "conflict", "nothing to show yet")
    add_output(study, 3, "y", Output("text", "no"))
    assert ann.ask()["done"] is None


def test_without_items_the_names_are_compared(storage, browser, patient):
    study = create_study(["<b>x</b>", "y & z"], "names", storage)
    _, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 10})
    question = Visitor(browser(), secret).ask()
    sides = [question["a"], question["b"]]
    assert question["prompt"] is None
    assert all(side["kind"] == "name" and side["src"] is None for side in sides)
    assert {side["html"] for side in sides} == {"&lt;b&gt;x&lt;/b&gt;", "y &amp; z"}


@pytest.mark.parametrize(
    ("kind", "content", "shown"),
    [
        ("text", PAGE, '<div class="text">&lt;script&gt;document.title = 1&lt;/script&gt;</div>'),
        ("code", PAGE, '<pre tabindex="0"><code>&lt;script&gt;document.title = 1&lt;/script&gt;</code></pre>'),
        ("markdown", "*x*", '<div class="markdown"><p><em>x</em></p>\n</div>'),
    ],
)
def test_words_are_safe_html(zoo, visitor, storage, kind, content, shown):
    add_items(zoo, [{"prompt": PAGE, "outputs": {arm: {"kind": kind, "content": content} for arm in ARMS}}])
    ann = visitor()
    question = ann.ask()
    assert question["a"] == question["b"] == {"kind": kind, "html": shown, "src": None}
    assert question["prompt"] == PAGE  # text, which the page writes as text
    refused(ann.client.get(address_of(ann.client, ann.key, question["duel"])), 404, "not_found", "neither an image nor")


@pytest.mark.parametrize(
    ("kind", "content", "media", "policy", "body"),
    [
        ("image", PNG, "image/png", voting.IMAGE, b"\x89PNG\r\n\x1a\n"),
        ("image", "data:image/svg+xml;base64,PHN2Zy8+", "image/svg+xml", voting.IMAGE, b"<svg/>"),
        ("html", PAGE, "text/html; charset=utf-8", voting.FRAME, PAGE.encode()),
    ],
)
def test_images_and_pages_have_an_address_of_their_own(zoo, visitor, kind, content, media, policy, body):
    add_items(zoo, [{"prompt": "q", "outputs": {arm: {"kind": kind, "content": content} for arm in ARMS}}])
    ann = visitor()
    question = ann.ask()
    for side in "ab":
        assert question[side] == {"kind": kind, "html": None, "src": question[side]["src"]}
        assert re.fullmatch(r"/output/[\w-]+\.[\w-]{64}", question[side]["src"])
        assert ann.link not in question[side]["src"]
        sent = ann.client.get(question[side]["src"])
        assert (sent.status_code, sent.headers["content-type"], sent.content) == (200, media, body)
        assert sent.headers.get_list("content-security-policy") == [policy]
        assert sent.headers["x-content-type-options"] == "nosniff"
        assert "private" in sent.headers["cache-control"]
    assert question["a"]["src"] != question["b"]["src"]
    assert "set-cookie" not in sent.headers


def address_of(client, key, duel, side=0, lasts=300):
    """The address of an output as the server signs it."""
    ticket = Ticket(key.id, duel, side, int(base.clock()) + lasts)
    return f"/output/{sign_ticket(client.app.service.signing, ticket)}"


def test_an_address_of_an_output_is_for_that_alone_and_expires(zoo, visitor, storage, browser, monkeypatch):
    """It is signed: for one side of one duel, by one link, for ten minutes. Loading the question again renews it."""
    outputs = {arm: {"kind": "html", "content": f"page of {arm}"} for arm in ARMS}
    add_items(zoo, [{"prompt": "q", "outputs": outputs}])
    now = base.clock()
    monkeypatch.setattr(base, "clock", lambda: now)  # it stands still, however slow the machine is
    ann = visitor()
    question = ann.ask()
    address = question["a"]["src"]
    assert browser().get(address).status_code == 200  # without a cookie: a frame sends none
    assert {ann.output(question, side).text for side in "ab"} < {f"page of {arm}" for arm in ARMS}
    assert ann.client.get(address_of(ann.client, ann.key, question["duel"])).text == ann.output(question, "a").text
    bits = address.removeprefix("/output/")
    for at in range(len(bits)):
        changed = f"/output/{bits[:at]}{'A' if bits[at] != 'A' else 'B'}{bits[at + 1 :]}"
        refused(ann.client.get(changed), 404, "not_found", "expired")
    for wrong in (bits[:-4], bits + "AAAA", "A" * 44, "x", "%00", ann.link):
        refused(ann.client.get(f"/output/{wrong}"), 404, "not_found", "expired")
    refused(ann.client.get(f"/vote/{ann.link}/output/{question['duel']}/a"), 404, "not_found")
    for path in (f"/api/vote/{bits}", f"/vote/{bits}"):
        assert ann.client.get(path).status_code == 404
    monkeypatch.setattr(base, "clock", lambda: now + 601)
    refused(ann.client.get(address), 404, "not_found", "expired", "reload the voting page")
    shown = ann.client.get(address, headers={"Accept": "text/html,*/*"})
    assert (shown.status_code, shown.headers["content-security-policy"]) == (404, voting.FRAME)
    assert "<p>This link to an output has expired: reload the voting page.</p>" in shown.text
    monkeypatch.setattr(base, "clock", lambda: now + 599)
    again = ann.ask()
    assert again["duel"] == question["duel"]
    monkeypatch.setattr(base, "clock", lambda: now + 900)
    assert ann.output(again, "a").status_code == 200


def test_a_copy_of_the_database_opens_no_outputs(zoo, visitor, storage, tmp_path):
    """What signs their addresses is not in it, and nothing in it is what signs them; nor do they last for long."""
    outputs = {arm: {"kind": "html", "content": f"page of {arm}"} for arm in ARMS}
    add_items(zoo, [{"prompt": "q", "outputs": outputs}])
    ann = visitor()
    question = ann.ask()
    signing = ann.client.app.service.signing
    with storage.lock:
        connection = storage.connection()
        rows = [row for table in metadata.tables.values() for row in connection.execute(sa.select(table))]
    texts = {
        value if isinstance(value, str) else value.hex() for row in rows for value in row if type(value) in (str, bytes)
    }
    assert len(texts) > 20
    assert not any(signing in text for text in texts)
    for text in {*texts, load_signing_key(""), *map(load_signing_key, texts)}:
        ticket = Ticket(ann.key.id, question["duel"], 0, int(base.clock()) + 300)
        refused(ann.client.get(f"/output/{sign_ticket(text, ticket)}"), 404, "not_found", "expired")
    for_ever = address_of(ann.client, ann.key, question["duel"], lasts=30 * 365 * 86400)
    refused(ann.client.get(for_ever), 404, "not_found", "expired")
    assert create_app(storage).service.signing != signing
    same = [create_app(storage, signing=load_signing_key("a token of at least 20 characters")) for _ in range(2)]
    assert same[0].service.signing == same[1].service.signing != load_signing_key("another token of 20 characters")


def test_scripts_in_outputs_run_only_if_an_admin_says_so(zoo, visitor, admin, storage):
    add_items(zoo, [{"prompt": "q", "outputs": {arm: {"kind": "html", "content": PAGE} for arm in ARMS}}])
    ann, at = visitor(), "/api/studies/zoo/scripts"
    question = ann.ask()

    def policy():
        sent = ann.output(question, "a")
        return sent.headers["content-security-policy"]

    assert admin.get(at).json() == {"scripts": False}
    assert "script" not in policy()
    assert "data-scripts" not in ann.client.get(f"/vote/{ann.link}").text
    _, token = make_key(storage, "api", "program")
    by_program = {"Authorization": f"Bearer {token}"}
    refused(admin.post(at, json={"scripts": True}, headers=by_program), 403, "forbidden")
    assert admin.get(at, headers=by_program).json() == {"scripts": False}
    assert admin.post(at, json={"scripts": True}).json() == {"scripts": True}
    assert policy() == voting.SCRIPTED
    assert "data-scripts" in ann.client.get(f"/vote/{ann.link}").text
    assert load_study("zoo", storage).check() > 0
    assert admin.post(at, json={"scripts": False}).json() == {"scripts": False}
    assert "script" not in policy()
    for wrong in ({}, {"scripts": "yes"}, {"scripts": 1}, {"scripts": True, "more": 1}):
        refused(admin.post(at, json=wrong), 422, "invalid")


def test_an_arm_that_retires_is_not_asked_about_again(zoo, visitor):
    add_items(zoo, [words()])
    ann = visitor()
    question = ann.ask()
    gone = arm_on(question, "a")
    zoo.retire_arm(gone)
    later = ann.ask()
    assert later["duel"] != question["duel"]
    assert gone not in (arm_on(later, "a"), arm_on(later, "b"))
    assert ann.tell(question["duel"], "tie")["answered"] == 1
    ann.tell(later["duel"], "tie")
    assert {arm_on(ann.undo(), side) for side in "ab"}.isdisjoint({gone})


def test_removed_items_do_not_unmask_arms(zoo, visitor):
    """What was asked about an item is never shown by its arms' names: the next question is another one."""
    outputs = {arm: {"kind": "image", "content": PNG} for arm in ARMS}
    add_items(zoo, [{"prompt": "q", "outputs": outputs}])
    ann = visitor()
    answered = ann.ask()["duel"]
    ann.tell(answered, "tie")
    question = ann.ask()
    clear_items(zoo)
    refused(ann.output(question, "a"), 404, "not_found", "removed")
    refused(ann.client.post(f"/api/vote/{ann.link}/undo"), 409, "conflict", "your answer stays")
    assert len(zoo.votes()) == 1
    add_items(zoo, [words()])
    later = ann.ask()
    assert later["duel"] > question["duel"]
    assert later["prompt"] == "What do you say?"
    assert not any(name in ann.seen for name in ARMS)
    clear_items(zoo)
    refused(ann.send("ask"), 409, "conflict", "nothing to show")
    assert visitor().progress()["done"] is None  # it goes on when there are items again
    add_items(zoo, [words("And now?")])
    assert ann.ask()["prompt"] == "And now?"
    assert not any(name in ann.seen for name in ARMS)
    assert zoo.check() > 0


def test_removing_items_where_there_are_none_hides_no_names(zoo, visitor):
    clear_items(zoo)
    assert visitor().ask()["a"]["kind"] == "name"


def test_items_that_were_removed_before_anybody_was_asked_hide_the_names_too(zoo, visitor):
    add_items(zoo, [words()])
    clear_items(zoo)
    said = refused(visitor().send("ask"), 409, "conflict", "nothing to show")
    assert not any(name in said for name in ARMS)
    assert len(zoo._log.history().left) == 0


SECRETS = ("hush-study", "hush-arm-a", "hush-arm-b")


def test_errors_behind_a_link_name_neither_the_study_nor_its_arms(storage, browser, patient, monkeypatch):
    study = create_study(SECRETS[1:], SECRETS[0], storage, about="new-items")
    add_items(study, [{"prompt": "p", "outputs": {SECRETS[1]: "x", SECRETS[2]: "y"}}])
    key, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 100})
    ann, bob = Visitor(browser(), secret, key), Visitor(browser(), secret, key)
    duel = ann.ask()["duel"]
    said = [bob.send("ask"), bob.send("tell", duel=duel, winner="a"), bob.send("undo"), ann.send("undo")]
    ann.tell(duel, "a")
    said += [ann.send("tell", duel=duel, winner="b"), ann.send("tell", duel=99, winner="b")]
    # As if the voter's progress, which is looked at first, did not say that the last question is asked.
    looked = link_voting.progress_in
    monkeypatch.setattr(link_voting, "progress_in", lambda *about: looked(*about)._replace(done=None))
    said.append(bob.send("ask"))
    study.retire()
    said.append(bob.send("ask"))
    monkeypatch.undo()
    study.forget("Voter 1")
    said.append(ann.send("tell", duel=duel, winner="b"))
    delete_study(study.name, storage)
    said += everything(ann, storage, duel)
    for answer in said:
        assert answer.status_code < 500, answer.text
        assert not any(name in answer.text for name in SECRETS), answer.text
    assert [answer.status_code for answer in said[:8]] == [200, 404, 400, 400, 409, 404, 200, 409]
    assert said[6].json()["done"] == "asked"


def test_items_that_come_later_hide_the_names(zoo, visitor):
    ann = visitor()
    assert ann.ask()["a"]["kind"] == "name"
    add_items(zoo, [words()])
    ann.seen = ""
    assert ann.ask()["a"]["kind"] == "text"
    assert not any(name in ann.seen for name in ARMS)


def test_arms_without_a_common_item_are_not_unmasked(zoo, visitor):
    """A study with items shows outputs or nothing; it goes on when there is something to show."""
    zoo.retire_arm("cheetah")
    add_items(zoo, [words(aardvark="x", cheetah="z")])
    ann = visitor()
    said = refused(ann.send("ask"), 409, "conflict", "nothing to show")
    assert not any(name in said for name in ARMS)
    assert zoo.open_duels() == []
    add_output(zoo, 1, "baboon", Output("text", "y"))
    assert ann.ask()["a"]["kind"] == "text"
    assert zoo.check() > 0


def everything(visitor, storage, duel=0):
    """An attempt at each route of a link."""
    at = f"/api/vote/{visitor.link}"
    return [
        visitor.client.get(at),
        visitor.client.post(f"{at}/ask"),
        visitor.client.post(f"{at}/tell", json={"duel": duel, "winner": "a"}),
        visitor.client.post(f"{at}/undo"),
        visitor.client.get(address_of(visitor.client, visitor.key, duel)),
        visitor.client.get(f"/vote/{visitor.link}"),
    ]


def test_a_revoked_link_opens_nothing_at_once(zoo, visitor, storage):
    ann, bob = visitor(), visitor(votes=7)
    duel = ann.ask()["duel"]
    bob.ask()
    revoke_key(storage, ann.key.id, ("vote",))  # as another process would
    before = zoo._log.history().seq
    for answer in everything(ann, storage, duel)[:-1]:
        refused(answer, 404, "not_found", "does not work")
    assert everything(ann, storage, duel)[-1].status_code == 404
    assert zoo._log.history().seq == before
    assert bob.ask()["duel"] == 1  # another link is not affected


def test_a_deleted_study_takes_its_links_along(zoo, visitor, storage):
    ann = visitor()
    duel = ann.ask()["duel"]
    delete_study("zoo", storage)
    create_study(ARMS, "zoo", storage)
    assert [answer.status_code for answer in everything(ann, storage, duel)] == [404] * 6
    assert load_study("zoo", storage)._log.history().seq == 1


def test_a_link_is_for_its_own_study(zoo, visitor, storage):
    """The same person with two links: what was asked by one is not there by the other."""
    outputs = {arm: {"kind": "html", "content": PAGE} for arm in ARMS}
    add_items(zoo, [{"prompt": "q", "outputs": outputs}])
    other = create_study(["x", "y"], "other", storage)
    _, secret = make_key(storage, "vote", study_id=other._log.id, settings={"votes": 10})
    ann = visitor()
    duel = ann.ask()["duel"]
    ann.tell(duel, "a")
    stranger = Visitor(ann.client, secret)
    assert stranger.progress()["total"] == 0
    refused(stranger.send("tell", duel=duel, winner="a"), 404, "not_found")
    other_link, _ = make_key(storage, "vote", study_id=other._log.id, settings={"votes": 10})
    assert stranger.client.get(address_of(ann.client, other_link, duel)).status_code in (400, 404)
    refused(stranger.client.post(f"/api/vote/{secret}/undo"), 400, "invalid")
    assert other._log.history().seq == 1
    assert (len(zoo.votes()), "zoo" in stranger.seen) == (1, False)


def test_what_is_no_answer_is_refused(zoo, visitor):
    ann = visitor()
    duel = ann.ask()["duel"]
    for winner in ("left", "aardvark", "A", "", None, 1, ["a"]):
        refused(ann.send("tell", duel=duel, winner=winner), 422, "invalid")
    for wrong in (-1, 2**31, "0", 0.5, None):
        refused(ann.send("tell", duel=wrong, winner="a"), 422, "invalid")
    refused(ann.send("tell", duel=duel, winner="a", voter="bob"), 422, "invalid")
    assert len(zoo.votes()) == 0
    assert json.loads(ann.client.post(f"/api/vote/{ann.link}/ask").text)["duel"] == duel


def test_a_vote_through_a_link_builds_no_statements(storage, browser, patient, monkeypatch):
    """They took most of the time; and nothing is read from the log."""
    study = create_study(["x", "y", "z"], "quick", storage)
    key, secret = make_key(storage, "vote", study_id=study._log.id, settings={"votes": 100})
    ann = Visitor(browser(), secret, key)
    ann.tell(ann.ask()["duel"], "a")
    built, execute = [], sa.Connection.execute
    monkeypatch.setattr(sa.Connection, "execute", lambda self, *given: built.append(given[0]) or execute(self, *given))
    ann.tell(ann.ask()["duel"], "b")
    assert list(map(str, built)) == []
