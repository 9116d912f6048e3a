"""The server's log: one line of JSON per event, or plain text on a terminal.

Runs the application on a socket, from start to graceful shutdown.
"""

import contextlib
import ctypes
import gc
import ipaddress
import json
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from ..errors import InvalidInput, shorten
from ..storage.database_errors import without_password
from ..storage.storage import Storage, find_storage, open_storage
from .app import LOOPBACK, Application, create_app
from .child_process import compile_policy
from .demo import Demo
from .http.limits import Limits
from .http.protocol import Protocol
from .keys import list_keys, load_signing_key, make_key


class Lines(logging.Formatter):
    """Formats a record as one line of JSON, with its `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class Words(logging.Formatter):
    """Formats a record for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        text = f"{datetime.now():%H:%M:%S} {record.getMessage()}"
        text += "".join(f" {key}={value}" for key, value in fields.items())
        return text + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def set_up(form: str, verbose: bool) -> None:
    """Send the log to standard error.

    Args:
        form: json or words.
        verbose: Whether to log requests with `words`; `json` always has them.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines() if form == "json" else Words())
    warnings.showwarning = _log_warning
    for name in ("duels", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("duels.server.access").setLevel(logging.INFO if verbose or form == "json" else logging.WARNING)


def _log_warning(message: object, *where: object, **more: object) -> None:
    logging.getLogger("duels.server").warning("%s", message)


logger = logging.getLogger("duels.server")
SWITCH_INTERVAL = 0.0002  # seconds: the writing thread must not wait long for the event loop
M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
BACKLOG = 2048  # connections that wait to be accepted
SHUTDOWN_SECONDS = 5  # for requests that are in progress …
STUCK_SECONDS = 3  # … and for threads after that; acknowledged votes are on disk
LOCK_TIMEOUT = 2  # seconds to wait for other writers; two commits fit into SHUTDOWN_SECONDS


class Server(uvicorn.Server):
    """uvicorn's server, which ends open streams when it shuts down instead of waiting for them."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Shut down gracefully, and at once after a second Ctrl-C.

        Unlike uvicorn, it does not raise the signal again: the exit code of a graceful shutdown is 0.
        """
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        if not self.should_exit:
            end = threading.Timer(SHUTDOWN_SECONDS + STUCK_SECONDS, _end)
            end.daemon = True
            end.start()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the server."""
        app = self.config.app
        assert isinstance(app, Application)
        app.service.close()
        await super().shutdown(sockets)


def _end() -> None:
    """End the process, though a thread is busy: Python would wait for it."""
    logger.warning("some work did not end in time and was dropped")
    os._exit(0)


def serve(
    storage: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    public_url: str = "",
    token: str | None = None,
    demo: bool = False,
    open_to_all: bool = False,
    log_form: str | None = None,
    verbose: bool = False,
    limits: Limits | None = None,
    trusted_proxies: Sequence[str] = (),
    policy_files: bool = False,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        storage: The URL of the database, such as `sqlite:///duels.db`.
        host: The address to listen on.
        port: The port; 0 for any free one.
        public_url: The address that people use, if there is a proxy.
        token: An admin's token that the user chose; created if it does not exist.
        demo: Whether to serve an example study with simulated voters.
        open_to_all: Whether no sign-in is needed; refused if other machines can reach the server.
        log_form: json or words; by default words on a terminal.
        verbose: Whether to log every request.
        limits: Sizes and rates of requests.
        trusted_proxies: Addresses or networks of proxies whose `X-Forwarded-For` is used; by default this machine and
            the variable FORWARDED_ALLOW_IPS.
        policy_files: Whether to run policies that are in Python files which the database names, if these are unchanged.

    Raises:
        InvalidInput: If the options would leave the server open or locked, or the address cannot be used.
        StorageError: If the database cannot be opened.
    """
    local = is_loopback(host)
    trusted = networks_of(trusted_proxies)
    if open_to_all and not local:
        raise InvalidInput(f"--open on {host} would give everybody access: use it with --host 127.0.0.1 only")
    if open_to_all and public_url and not is_loopback(urlsplit(public_url).hostname or ""):
        raise InvalidInput(
            f"--open with --public-url {shorten(public_url, 100)} would give access to everybody who can reach that "
            "address: leave one of them out"
        )
    found = find_storage(storage)  # a refused start must not create a database
    fresh = found is None or not any(key.revoked is None for key in list_keys(found, ("admin",)))
    if fresh and not local and not token:
        raise InvalidInput(
            f"there is no admin token yet, and {host} can be reached from other machines: create one first "
            f"with `duels token create NAME --kind admin --storage {without_password(storage)}`, or set DUELS_TOKEN"
        )
    store = open_storage(storage)
    store.set_lock_timeout(LOCK_TIMEOUT)
    store.policy_files = "unchanged" if policy_files else "none"
    if token:
        make_key(store, "admin", "DUELS_TOKEN", secret=token)
    form = log_form or ("words" if sys.stderr.isatty() else "json")
    set_up(form, verbose)
    sys.setswitchinterval(SWITCH_INTERVAL)
    listening = _socket(host, port)
    address = f"http://{_in_url(host)}:{listening.getsockname()[1]}"
    hosts = [*LOOPBACK] if local else []
    options: dict[str, Any] = {"limits": limits, "signing": load_signing_key(token) if token else ""}
    app = create_app(store, public_url=public_url, hosts=hosts, open_to_all=open_to_all, **options)
    store.compile = compile_policy
    app.service.background.prepare_all()
    app.service.shared_url = "" if local else address
    running_demo = Demo(store) if demo else None
    _print_addresses(store, public_url or address, fresh and not token, open_to_all, running_demo)
    config = configuration(app, trusted)
    _return_memory()
    gc.collect()
    gc.freeze()  # else each collection scans the libraries' million objects, which takes 0.15 s
    gc.set_threshold(50_000, 50, 100)
    try:
        Server(config).run([listening])
    finally:
        if running_demo is not None:
            running_demo.stop()
        store.close()


def configuration(app: Application, trusted_proxies: list[str] | None = None) -> uvicorn.Config:
    """Return uvicorn's configuration for the application."""
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=trusted_proxies,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        backlog=BACKLOG,
    )


def networks_of(addresses: Sequence[str]) -> list[str] | None:
    """Check the addresses of proxies and return them in a standard form; None if there are none."""
    found = []
    for address in addresses:
        try:
            network = ipaddress.ip_network(address.strip(), strict=False)
        except ValueError:
            expected = "an address such as 10.0.0.7, or a network such as 10.0.0.0/24"
            raise InvalidInput(f"--trusted-proxy is {shorten(address, 100)}: expected {expected}") from None
        found.append(str(network.network_address if network.num_addresses == 1 else network))
    return found or None


def _return_memory() -> None:
    """Make glibc return large arrays to the system when they are freed; by default it keeps those below 32 MiB."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)


def _print_addresses(store: Storage, address: str, first: bool, open_to_all: bool, demo: Demo | None) -> None:
    """Print the address of the server and how to sign in."""
    print(f"Duels is at {address}", flush=True)
    if first and not open_to_all:
        _, secret = make_key(store, "admin", "first start")
        print(f"Open this link to sign in (keep it, it is shown only once): {address}/signin#{secret}", flush=True)
    elif not open_to_all:
        print(f"Sign in at {address}/signin; to get another token: duels token create NAME --kind admin", flush=True)
    if demo is not None:
        print(f"Demo study: {address}/studies/{demo.study.name}", flush=True)
        if demo.link is not None:
            print(f"Vote in it: {address}/vote/{demo.link}", flush=True)
        demo.start()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    shown = _own_address() if host in ("0.0.0.0", "::") else host
    return f"[{shown}]" if ":" in shown else shown


def _own_address() -> str:
    """Return an address of this machine on its network. Nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation; a datagram socket only looks up the route
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)  # before the address is printed, so that early connections wait and are not refused
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot serve on {host}:{port}: {reason}. Choose another port with --port") from None
    listening.set_inheritable(True)
    return listening
