"""The API is what its OpenAPI says: no request makes it fail, and whatever it answers is documented."""

import itertools
import json
from collections import Counter
from typing import NamedTuple

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from duels.server.http.limits import Limits, Rate

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
ARMS = ["bm25", "dense", "hybrid"]
PNG = "data:image/png;base64,iVBORw0KGgo="
ITEM = {"prompt": "q", "outputs": {arm: {"kind": "image", "content": PNG} for arm in ARMS}}
VOTES = "left,right,winner\nbm25,dense,left\n"
OFTEN = [True] * 7 + [False]
SPACE = {"gap": [4, 40, "int"], "style": ["terse", "warm"]}
TUNED = ("/best", "/slices", "/template")  # operations of studies that tune parameters
RANKINGS = {arm: [1, 2, 3] for arm in ARMS}


class World(NamedTuple):
    """A study with something of everything: its path parameters, a list that was shown, a duel that was answered."""

    parameters: dict
    impression: int
    answered: int


def build(client, number):
    """A study that has arms, items, open and answered duels, a list that was shown, a link and a token."""
    name = f"study {number}"
    at = f"/api/studies/{name}"

    def made(path, **sent):
        response = client.post(path, **sent)
        assert response.is_success, response.text
        return response.json()

    made("/api/studies", json={"name": name, "arms": ARMS})
    made("/api/tunings", json={"name": f"tuned {number}", "space": SPACE})
    made(f"{at}/items", content=json.dumps(ITEM))
    answered = made(f"{at}/ask", json={"voter": "ann"})["duels"][0]["id"]
    made(f"{at}/tell", json={"duel": answered, "winner": "left", "voter": "ann"})
    impression = made(f"{at}/interleave", json={"rankings": RANKINGS})["impression"]
    link = made(f"{at}/links", json={"votes": 3})
    invited = made(f"{at}/invitations", json={"voters": ["Ursula"]})["invitations"][0]["id"]
    results = made(f"{at}/results-links", json={})["secret"]
    previewed = made(f"{at}/preview/ask", json={})["a"]["src"].removeprefix("/preview-output/")
    token = made("/api/tokens", json={"name": "x"})
    question = made(f"/api/vote/{link['secret']}/ask")
    ticket = question["a"]["src"].removeprefix("/output/")
    parameters = {
        "study": name,
        "arm": "bm25",
        "duel": question["duel"],
        "ticket": ticket,
        "token": token["id"],
        "number": 1,
    }
    parameters |= {"tuned": f"tuned {number}", "results": results, "invited": invited, "previewed": previewed}
    return World(parameters | {"link": link["secret"], "link id": link["id"]}, impression, answered)


def parameters_of(operation, world):
    """Real values of an operation's path parameters. A link is a number where it is managed, else its secret."""
    names = [name for name in world.parameters if f"{{{name}}}" in operation.path]
    found = {name: world.parameters[name] for name in names}
    if operation.path.endswith(TUNED):
        found["study"] = world.parameters["tuned"]
    if "link" in found and operation.path.startswith("/api/studies/"):
        found["link"] = world.parameters["invited" if "/invitations/" in operation.path else "link id"]
    if operation.path.startswith("/preview-output/"):
        found["ticket"] = world.parameters["previewed"]
    return found


def right_body(operation, world):
    """A body that is taken, for each operation that needs one."""
    duel = world.parameters["duel"]
    return {
        "POST /api/studies": {"name": f"another {world.parameters['study']}", "arms": ["a", "b"]},
        "POST /api/studies/{study}/arms": {"name": "another"},
        "POST /api/tunings": {"name": f"another of {world.parameters['tuned']}", "space": SPACE},
        "PUT /api/studies/{study}/template": {"html": "<p>{{ gap }} {{ style }}</p>"},
        "POST /api/studies/{study}/ask": {"n": 2},
        "POST /api/studies/{study}/tell": {"duel": duel, "winner": "left"},
        "POST /api/studies/{study}/undo": {"duel": world.answered},
        "POST /api/studies/{study}/forget": {"voter": "ann"},
        "POST /api/studies/{study}/voters/withdraw": {"voter": "ann"},
        "POST /api/studies/{study}/import": VOTES,
        "POST /api/studies/{study}/items": json.dumps(ITEM),
        "PUT /api/studies/{study}/items/{number}": json.dumps(ITEM),
        "POST /api/studies/{study}/links": {"votes": 2},
        "PATCH /api/studies/{study}/links/{link}": {"votes": 2, "on": False},
        "POST /api/studies/{study}/invitations": {"voters": ["Zoe"], "votes": 2},
        "POST /api/studies/{study}/results-links": {"name": "for the board"},
        "POST /api/studies/{study}/preview/ask": {"number": 3},
        "POST /api/studies/{study}/preview/undo": {"number": 3},
        "POST /api/studies/{study}/preview/tell": {"duel": 3, "winner": "a"},
        "POST /api/studies/{study}/scripts": {"scripts": True},
        "POST /api/studies/{study}/interleave": {"rankings": RANKINGS},
        "POST /api/studies/{study}/clicks": {"impression": world.impression, "clicks": [1]},
        "POST /api/tokens": {"name": "another"},
        "POST /api/vote/{link}/ask": {"more": True},
        "POST /api/vote/{link}/tell": {"duel": duel, "winner": "a"},
    }.get(operation.label)


def is_wrong(case):
    """Whether a request must be refused for its body or its address.

    Not for its headers, since the token takes the place of a wrong one; nor for its query, where an empty list is
    nothing at all and of a repeated value the last counts.
    """
    if case.meta is None:
        return False
    wrong = {place for place, part in case.meta.components.items() if part.mode == GenerationMode.NEGATIVE}
    return bool(wrong & {ParameterLocation.BODY, ParameterLocation.PATH})


class Caller:
    """Sends cases to the application, checks what comes back, and counts what each operation has answered."""

    def __init__(self, client, app):
        self.client, self.app, self.answers = client, app, {}

    def send(self, case, with_token=True):
        sent = case.as_transport_kwargs(base_url="http://localhost")
        content = {"json": sent["json"]} if "json" in sent else {"content": sent.get("data")}
        token = {"Authorization": f"Bearer {self.client.token}"}
        headers = {**sent["headers"], **token} if with_token else {**token, **sent["headers"]}
        closing = self.app.service.streams.closing
        if case.operation.path.endswith("/stream"):
            closing.set()  # a stream that is told to end does
        try:
            response = self.client.request(
                sent["method"], sent["url"], params=sent.get("params"), headers=headers, **content
            )
        finally:
            closing.clear()
        case.validate_response(response, [*CHECKS, checks.negative_data_rejection] if is_wrong(case) else CHECKS)
        if not response.is_success:
            body = response.json()
            assert set(body) == {"error"}
            assert set(body["error"]) == {"kind", "message"}
        self.answers.setdefault(case.operation.label, Counter())[response.status_code] += 1
        return response


def operations_of(app):
    schema = schemathesis.openapi.from_dict(app.fastapi.openapi())
    found = [one.ok() for one in schema.get_all_operations()]
    return sorted(found, key=lambda one: one.label == "DELETE /api/tokens/{token}")  # last: it may revoke our own


def answer_each(caller, operations, numbers):
    """Every operation once, as it is meant."""
    for operation in operations:
        world = build(caller.client, next(numbers))
        sent = {"path_parameters": parameters_of(operation, world)}
        body = right_body(operation, world)
        if body is not None:
            sent |= {"body": body, "media_type": operation.get_request_payload_content_types()[0]}
        if operation.label in ("GET /api/studies/{study}/pair", "GET /api/results/{results}/pair"):
            sent |= {"query": {"first": "bm25", "second": "dense"}}
        if operation.label == "POST /api/vote/{link}/undo":
            caller.client.post(
                f"/api/vote/{world.parameters['link']}/tell", json={"duel": world.parameters["duel"], "winner": "a"}
            )
        caller.send(operation.Case(**sent))


def fuzz(caller, operation, examples, numbers):
    """Right and wrong requests of one operation: at something real, and at anything."""
    world = build(caller.client, next(numbers))
    real = parameters_of(operation, world)
    right, wrong = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
    cases = [operation.as_strategy(mode, path_parameters=at) for mode in (right, wrong) for at in (real, real, None)]
    known = {"duel": world.parameters["duel"], "impression": world.impression}

    @seed(6)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(*cases), steer=st.sampled_from(OFTEN), with_token=st.sampled_from(OFTEN))
    def run(case, steer, with_token):
        if steer and isinstance(case.body, dict) and case.meta.generation.mode == right:
            case.body = {key: known.get(key, value) for key, value in case.body.items()}
        caller.send(case, with_token)

    run()


@pytest.fixture
def caller(admin, app):
    app.service.limits = Limits(voter=Rate(1e6, 10**6), address=Rate(1e6, 10**6))
    return Caller(admin, app)


def check_all(caller, app, examples):
    operations, numbers = operations_of(app), itertools.count()
    assert len(operations) >= 40
    answer_each(caller, operations, numbers)
    for operation in operations:
        fuzz(caller, operation, examples, numbers)
    missed = [one.label for one in operations if not any(200 <= status < 300 for status in caller.answers[one.label])]
    assert not missed


@pytest.mark.deep
def test_every_operation_answers_and_none_fails(caller, app):
    check_all(caller, app, 1)


@pytest.mark.deep
def test_every_operation_answers_and_none_fails_at_length(caller, app):
    check_all(caller, app, 100)
