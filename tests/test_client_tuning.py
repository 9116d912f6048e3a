"""Tuning studies from afar: the client says what a local study on the same storage says."""

import itertools

import pytest
from server.conftest import Live

import duels
from duels.client import RemoteStudy, RemoteTuningStudy, connect
from duels.continuous import Best, TuningDuel
from duels.errors import Conflict, InvalidInput, NotFound, UnknownName
from duels.server.keys import make_key
from duels.storage.storage import open_storage
from duels.study.items import scripts_allowed
from duels.study.judging.ledger import Ledger, activity_of, follow

TOKEN = "a-token-that-was-chosen-for-tests"
SPACE = duels.Space(
    {
        "speed": (0.5, 2.0, "log"),
        "pauses": (0, 10, "int"),
        "tone": ["neutral", "=warm"],
        "mixed": {"choices": [3, 2.5, "3 of them", True]},
    }
)
PAGE = "<p>{{ tone }}, {{ speed }}</p><script>let pauses = {{ pauses | json }}, mixed = {{ mixed | json }}</script>"
numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('client')}/duels.db"
    live = Live(url, environment={"DUELS_TOKEN": TOKEN}, compiled=True)  # the model's kernels are slow otherwise
    yield live
    live.stop()


@pytest.fixture(scope="module")
def client(server):
    with connect(server.url, TOKEN) as made:
        yield made


@pytest.fixture
def pair(client, server):
    """A tuning study, seen from afar and on its storage."""
    name = f"tuning {next(numbers)}"
    remote = client.create_study(space=SPACE, study_name=name, policy="eubo:initial=4", confidence=0.9, seed=5)
    return remote, duels.load_study(name, server.storage)


def same(remote, local):
    """Everything that the two say, compared."""
    for name in ("name", "policy", "space", "confidence", "answers", "retired", "template", "best"):
        assert getattr(remote, name) == getattr(local, name), name
    assert str(remote.best) == str(local.best)
    assert remote.slices() == local.slices()
    assert remote.events() == local.events()
    assert remote.events(3) == local.events(3)
    assert remote.open_duels() == local.open_duels()
    assert remote.votes().equals(local.votes())
    assert remote.votes().schema == local.votes().schema
    assert remote.judges() == activity_of(follow(local, Ledger()))


def test_both_say_the_same(pair, client, server):
    remote, local = pair
    assert type(remote) is RemoteTuningStudy
    assert repr(remote) == f"RemoteTuningStudy('{local.name}', eubo:initial=4, at {server.url})"
    same(remote, local)
    for k in range(8):
        duel = remote.ask(voter=f"v{k % 3}")
        assert type(duel) is TuningDuel
        assert local.duel(duel.id) == duel == remote.duel(duel.id)
        nearer = "left" if abs(duel.left["pauses"] - 4) < abs(duel.right["pauses"] - 4) else "right"
        (remote if k % 2 else local).tell(duel, nearer, voter=f"v{k % 3}", note="heard twice", cost=0.5)
    assert type(remote.best) is Best
    assert remote.best.answers == remote.answers == 8
    same(remote, local)
    several = remote.ask(12)
    assert several == local.open_duels()
    remote.tell(several[0].id, "both_bad")
    remote.tell(several[1], "skip")
    remote.tell(several[2], "tie")
    remote.undo(several[2])
    assert remote.forget("v1") == 3
    assert remote.answers == 6
    remote.retire()
    assert remote.retired
    with pytest.raises(Conflict, match="was retired"):
        remote.ask()
    same(remote, local)
    remote.resume()
    again = client.load_study(remote.name)
    same(again, local)
    assert local.check() == len(remote.events())
    change = next(remote.follow())
    assert (change.answers, change.retired) == (6, False)


def test_past_duels_go_both_ways(pair, client, server):
    remote, local = pair
    one = {"speed": 1.0, "pauses": 3, "tone": "=warm", "mixed": True}
    others = [one | {"mixed": choice} for choice in (3, 2.5, "3 of them")]
    assert remote.import_duels([]) == 0
    assert remote.import_duels((one, other, winner) for other, winner in zip(others, ("left", "tie", "both_bad"))) == 3
    # "Voter 7" of another study is not "Voter 7" of this one, as in every import.
    assert remote.import_duels([(one, others[0], "right", "Voter 7", "2026-01-31T12:00:00Z")]) == 1
    assert [local.duel(k).right["mixed"] for k in range(4)] == [3, 2.5, "3 of them", 3]
    assert [type(local.duel(k).right["mixed"]) for k in range(4)] == [int, float, str, int]
    same(remote, local)
    frame = remote.votes()
    assert frame["winner"].to_list() == ["left", "tie", "both_bad", "right"]
    assert frame["voter"].to_list() == [None, None, None, "Voter 7 (imported)"]
    assert frame["time"][3] == "2026-01-31T12:00:00.000+00:00"
    copy = client.create_study(space=SPACE, study_name=f"{remote.name}, copied")
    assert copy.import_duels(frame) == 4
    assert copy.votes().equals(frame)
    before = len(remote.events())
    for wrong in ([(one, others[0], "left"), (one, one | {"pauses": 99}, "left")], [(one, others[0], "best")]):
        with pytest.raises(InvalidInput) as here:
            local.import_duels(wrong)
        with pytest.raises(InvalidInput) as there:
            remote.import_duels(wrong)
        assert str(there.value) == str(here.value)
    assert len(remote.events()) == before


def test_templates(pair, client, server):
    remote, local = pair
    assert (remote.template, remote.render(remote.ask().left)) == (None, None)
    remote.set_template(PAGE, scripts=True)
    assert remote.template == local.template == PAGE
    assert scripts_allowed(local)
    setting = {"speed": 1.5, "pauses": 4, "tone": "=warm", "mixed": True}
    page = "<p>=warm, 1.5</p><script>let pauses = 4, mixed = true</script>"
    assert remote.render(setting) == local.render(setting) == page
    for wrong in ("<p>{{ sped }}</p>", "<p>none</p>", "", 5):
        with pytest.raises(InvalidInput) as here:
            local.set_template(wrong, scripts=False)
        with pytest.raises(InvalidInput) as there:
            remote.set_template(wrong, scripts=False)
        assert str(there.value) == str(here.value)
    assert (remote.template, scripts_allowed(local)) == (PAGE, True)
    remote.set_template("{{ tone }}", scripts=False)
    assert (local.template, scripts_allowed(local)) == ("{{ tone }}", False)
    remote.set_template(None)
    assert local.template is None
    made = client.create_study(space=SPACE, study_name=f"{remote.name}, shown", template=PAGE)
    assert made.template == PAGE
    kept = client.create_study(space=SPACE, study_name=made.name, template="{{ tone }}", load_if_exists=True)
    assert kept.template == PAGE
    with pytest.raises(InvalidInput, match="sped"):
        client.create_study(space=SPACE, study_name="never created", template="{{ sped }}")
    with pytest.raises(UnknownName):
        client.load_study("never created")
    _, token = make_key(open_storage(server.storage), "api", "program")
    with connect(server.url, token) as program:
        own = program.load_study(remote.name)
        own.tell(own.ask(), "left")
        with pytest.raises(InvalidInput, match="--kind admin"):
            own.set_template("{{ tone }}")
    assert local.template is None


def test_errors_are_those_of_a_study(client, server, pair):
    remote, local = pair
    duel = remote.ask()
    remote.tell(duel, "tie")
    cases = [
        (lambda study: study.tell(duel, "left"), Conflict),
        (lambda study: study.tell(duel, "neutral"), InvalidInput),
        (lambda study: study.tell(999, "left"), InvalidInput),
        (lambda study: study.tell(duel._replace(study="other"), "left"), InvalidInput),
        (lambda study: study.undo(999), InvalidInput),
        (lambda study: study.forget("nobody"), InvalidInput),
        (lambda study: study.duel(999), InvalidInput),
        (lambda study: study.ask(0), InvalidInput),
        (lambda study: study.ask(1001), InvalidInput),
        (lambda study: study.render({"tone": "x"}), InvalidInput),
    ]
    for act, kind in cases:
        with pytest.raises(kind) as here:
            act(local)
        with pytest.raises(kind) as there:
            act(remote)
        assert str(there.value) == str(here.value)
    creations = [
        (SPACE, local.name, {}),
        ({"x": (0.0, 1.0)}, local.name, {"load_if_exists": True}),
        (SPACE, local.name, {"load_if_exists": True, "confidence": 0.5}),
        ({"x": 5}, "fresh", {}),
        ({}, "fresh", {}),
    ]
    for space, name, options in creations:
        with pytest.raises(InvalidInput) as here:
            duels.create_study(space=space, study_name=name, storage=server.storage, **options)
        with pytest.raises(type(here.value)) as there:
            client.create_study(space=space, study_name=name, **options)
        assert str(there.value) == str(here.value)
    with pytest.raises(InvalidInput, match="unknown policy for continuous spaces 'rucb'"):
        client.create_study(space=SPACE, study_name="fresh", policy="rucb")
    loaded = client.create_study(space=SPACE, study_name=local.name, seed=5, load_if_exists=True)
    assert loaded.events() == local.events()
    with pytest.raises(NotFound, match="unknown study"):
        client.load_study("nowhere")
    for name in ("", ".", ".."):
        with pytest.raises(InvalidInput, match="cannot be used here"):
            client.load_study(name)


def test_one_function_creates_and_one_loads_both_kinds(client, server, pair):
    remote, _ = pair
    client.create_study(["a", "b"], "two arms")
    assert [type(client.load_study(name)) for name in (remote.name, "two arms")] == [RemoteTuningStudy, RemoteStudy]
    with pytest.raises(InvalidInput, match="nothing to compare: expected arms, or a space"):
        client.create_study()
    with pytest.raises(InvalidInput, match="margin is for studies that compare arms"):
        client.create_study(space=SPACE, margin=0.1)
    with pytest.raises(InvalidInput, match="a template is for settings"):
        client.create_study(["a", "b"], template="x")
    with pytest.raises(InvalidInput, match="has no arms to compare"):
        client.create_study(["a", "b"], remote.name, load_if_exists=True)
    with pytest.raises(InvalidInput, match="compares arms"):
        client.create_study(space=SPACE, study_name="two arms", load_if_exists=True)


def test_the_list_has_both_kinds(client, server, pair):
    remote, _ = pair
    client.create_study(["a", "b", "c"], "three arms")
    listed = client.list_studies()
    assert listed == duels.study.list_studies(server.storage)
    found = {one.name: (one.arms, one.parameters) for one in listed}
    assert found[remote.name] == (None, 4)
    assert found["three arms"] == (3, None)
    client.delete_study(remote.name)
    assert remote.name not in [one.name for one in client.list_studies()]
