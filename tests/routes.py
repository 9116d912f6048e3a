"""A study with something of everything, and requests to every route about it."""

import json
import re

from duels.continuous.tuning.create import create_tuning
from duels.server.keys import csrf_token, make_key
from duels.storage.storage import Write
from duels.study.create import create_study
from duels.study.invitations import invite
from duels.study.items import add_items

ARMS = ["bm25", "dense", "hybrid"]
ITEM = {"prompt": "q", "outputs": {arm: f"what {arm} said" for arm in ARMS}}
BODIES = {
    "/api/studies": {"name": "another", "arms": ["a", "b"]},
    "/api/tunings": {"name": "another one", "space": {"x": [0.5, 1.5]}},
    "/api/studies/{study}/template": {"html": "{{ x }}"},
    "/api/studies/{study}/arms": {"name": "another"},
    "/api/studies/{study}/ask": {},
    "/api/studies/{study}/tell": {"duel": 1, "winner": "left"},
    "/api/studies/{study}/undo": {"duel": 0},
    "/api/studies/{study}/forget": {"voter": "ann"},
    "/api/studies/{study}/voters/withdraw": {"voter": "ann"},
    "/api/studies/{study}/import": "left,right,winner\nbm25,dense,left\n",
    "/api/studies/{study}/items": json.dumps(ITEM),
    "/api/studies/{study}/items/{number}": json.dumps(ITEM),
    "/api/studies/{study}/interleave": {"rankings": {arm: [1, 2] for arm in ARMS}},
    "/api/studies/{study}/clicks": {"impression": 2, "clicks": [1]},
    "/api/studies/{study}/links": {},
    "/api/studies/{study}/links/{link}": {"name": "another"},
    "/api/studies/{study}/invitations": {"voters": ["Zoe"]},
    "/api/studies/{study}/results-links": {},
    "/api/studies/{study}/preview/ask": {},
    "/api/studies/{study}/preview/tell": {"duel": 1, "winner": "a"},
    "/api/studies/{study}/preview/undo": {},
    "/api/studies/{study}/settings": {"comments": True},
    "/api/studies/{study}/scripts": {"scripts": True},
    "/api/tokens": {"name": "another"},
}

TUNING = tuple(f"/api/studies/{{study}}/{part}" for part in ("best", "slices", "template"))


def routes_of(router):
    """Every method and path of an application, those of the routers in it too."""
    for route in router.routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes_of(inner)
        else:
            yield from ((method, route.path) for method in sorted(getattr(route, "methods", None) or {"GET"}))


class Place:
    """A study with something of everything, and how to send a request to any route about it."""

    def __init__(self, storage, name="search"):
        self.study = create_study(ARMS, name, storage)
        self.tuning = create_tuning({"x": (0.0, 1.0)}, f"{name} tuned", storage)
        self.admin, self.admin_token = make_key(storage, "admin", "boss")
        self.link, self.link_secret = make_key(storage, "vote", study_id=self.study._log.id, settings={"votes": 5})
        self.token, _ = make_key(storage, "api", "spare")
        invited, _ = make_key(storage, "vote", study_id=self.study._log.id, settings={"votes": 5, "invited": True})
        self.invited = invited.id
        storage.write(Write(lambda connection: invite(connection, self.study._log, "Ursula", invited.id)))
        self.study.tell(self.study.ask(voter="ann"), "left", voter="ann")
        self.study.ask()
        add_items(self.study, [ITEM])

    def address(self, path):
        link = str(self.link.id) if path.startswith("/api/studies") else self.link_secret
        link = str(self.invited) if "/invitations/" in path else link
        values = {"study": self.study.name, "arm": "bm25", "duel": 0, "side": "a", "link": link, "token": self.token.id}
        values |= {"ticket": "ticket", "digest": "x", "name": "ui.js", "number": 1, "place": 0}
        values |= {"number_of_study": self.study._log.id, "results": "made-up"}
        values |= {"study": self.tuning.name} if path in TUNING else {}
        return re.sub(r"\{(\w+)(:\w+)?\}", lambda found: str(values[found[1]]), path)

    def send(self, client, method, path, **more):
        body = BODIES.get(path) if method in ("POST", "PATCH", "PUT") else None
        sent = {"content": body} if isinstance(body, str) else {"json": body} if body is not None else {}
        return client.request(method, self.address(path), **sent, **more)


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def by_cookie(secret):
    return {"Cookie": f"duels_session={secret}", "X-CSRF-Token": csrf_token(secret)}
