"""The commands in Dockerfile and compose.yaml work as plain commands; there is no Docker here to run them in."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import duels

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
SERVICES = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
TOKEN = "a-token-of-at-least-20-characters"


def instructions(name):
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)


def entry_command():
    return json.loads(instructions("CMD")[0])


def health_command():
    return json.loads(instructions("HEALTHCHECK")[0].partition("CMD")[2])


def here(command, port):
    """The command with this Python instead of the image's, and on that port."""
    programs = {"duels": [sys.executable, "-m", "duels"], "python": [sys.executable]}
    return [*programs[command[0]], *(word.replace("8080", str(port)) for word in command[1:])]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(storage, folder, **more):
    """The image's entry command; yields its port."""
    port = free_port()
    environment = os.environ | {"DUELS_STORAGE": storage, "DUELS_TOKEN": TOKEN} | more
    environment["PYTHONPATH"] = str(Path(duels.__file__).parents[1])
    server = subprocess.Popen(
        here(entry_command(), port), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert b"Duels is at" in server.stdout.readline()
        yield port
    finally:
        server.terminate()
        assert server.wait(30) == 0
        server.stdout.close()


def healthy(port):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if subprocess.run(here(health_command(), port), stderr=subprocess.DEVNULL).returncode == 0:
            return True
        time.sleep(0.2)
    return False


def test_the_entry_command_serves_sqlite_from_the_volume(tmp_path):
    (storage,) = re.findall(r"DUELS_STORAGE=(\S+)", "".join(instructions("ENV")))
    (volume,) = instructions("VOLUME")
    assert storage.startswith(f"sqlite:///{volume}/")
    with running(storage.replace(f"//{volume}/", f"//{tmp_path}/"), tmp_path) as port:
        assert healthy(port)
        with duels.connect(f"http://127.0.0.1:{port}", TOKEN) as client:
            client.create_study(["a", "b"], "drinks")
    assert (tmp_path / Path(storage).name).is_file()


def test_the_health_check_fails_without_a_server():
    assert subprocess.run(here(health_command(), free_port()), stderr=subprocess.DEVNULL).returncode == 1


def test_the_settings_are_those_of_the_server():
    settings = SERVICES["duels"]["environment"]
    assert set(settings) == {"DUELS_STORAGE", "DUELS_TOKEN", "DUELS_PUBLIC_URL", "DUELS_TRUSTED_PROXY"}
    assert settings["DUELS_STORAGE"].startswith("postgresql://duels:")
    assert settings["DUELS_PUBLIC_URL"] == "${DUELS_PUBLIC_URL:-}"  # empty unless it is set


@pytest.mark.deep
def test_the_entry_command_serves_postgresql(postgres, tmp_path):
    with running(postgres, tmp_path, DUELS_PUBLIC_URL="") as port:
        assert healthy(port)


def test_compose_waits_for_postgresql(postgres_server):
    assert SERVICES["duels"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    kind, program, *options = SERVICES["db"]["healthcheck"]["test"]
    assert kind == "CMD"
    binary = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))[-1]
    assert subprocess.run([binary, *options, "--host", postgres_server], stdout=subprocess.DEVNULL).returncode == 0
    assert subprocess.run([binary, *options, "--host", "/nowhere"], stdout=subprocess.DEVNULL).returncode == 2


def test_the_image_s_server_is_not_root():
    user = [line for line in DOCKERFILE.splitlines() if line.startswith(("USER", "CMD"))]
    assert user[0] == "USER duels"
    assert user[-1].startswith("CMD")


def constraints(folder):
    (command,) = (line for line in instructions("RUN") if line.startswith("sed"))
    subprocess.run(command.replace("requirements.lock", str(ROOT / "requirements.lock")), shell=True, cwd=folder)
    return (folder / "constraints.txt").read_text().splitlines()


def test_the_image_has_the_locked_versions(tmp_path):
    lock = (ROOT / "requirements.lock").read_text()
    assert [line.partition(" ")[0] for line in constraints(tmp_path)] == re.findall(r"^[a-z]\S*==\S+", lock, re.M)


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_the_image_s_install_command_works(tmp_path):
    (command,) = (line for line in instructions("RUN") if line.startswith("pip install"))
    constraints(tmp_path)
    install = command.replace("pip install", f"{tmp_path}/venv/bin/python -m pip install --quiet")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run(install.replace("'.[", f"'{ROOT}["), shell=True, cwd=tmp_path, check=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    script = "import duels.server.serving, psycopg"
    subprocess.run([tmp_path / "venv" / "bin" / "python", "-c", script], cwd=tmp_path, env=environment, check=True)
