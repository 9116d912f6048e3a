"""`duels serve`: the application on a socket, from the first start to a graceful end."""

import contextlib
import ctypes
import gc
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

import uvicorn

from ..errors import InvalidInput, cut
from ..storage.database_errors import without_password
from ..storage.registry import existing_storage, open_storage
from ..storage.storage import Storage
from ..study.worker import compile_policy
from . import logs
from .app import LOOPBACK, Application, create_app
from .demo import Demo
from .keys import list_keys, make_key
from .limits import Limits
from .protocol import Protocol

logger = logging.getLogger("duels.server")
SWITCH = 0.0002  # seconds: the thread that writes must not wait long for the one that reads requests
M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
BACKLOG = 2048  # connections that wait to be taken
PATIENCE = 5  # seconds that requests under way have at the end
LOCKED = 2  # seconds to wait for another process that writes: one commit under way and the next fit into PATIENCE


class Server(uvicorn.Server):
    """Streams are told to end as soon as the server is: else it would wait for them."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End gracefully, and at a second Ctrl-C at once. The signal is not sent again: that the server ended well is
        exit code 0."""
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        assert isinstance(app, Application)
        app.service.hub.close()
        await super().shutdown(sockets)


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
) -> None:
    """Serve until SIGINT or SIGTERM.

    token: an admin's token that somebody chose, kept as one if it is not yet.
    demo: serve an example study that voters of its own keep voting on.
    open_to_all: no sign-in; refused where others could reach the server.
    trusted_proxies: addresses or networks of proxies, which are believed what they say of a visitor's address; by
        default those of this machine, and what the variable FORWARDED_ALLOW_IPS says.
    """
    alone = is_loopback(host)
    trusted = networks_of(trusted_proxies)
    if open_to_all and not alone:
        raise InvalidInput(f"--open on {host} would let everybody in: use it with --host 127.0.0.1 only")
    found = existing_storage(storage)  # refusing must not make a database
    fresh = found is None or not any(key.revoked is None for key in list_keys(found, ("admin",)))
    if fresh and not alone and not token:
        raise InvalidInput(
            f"serving on {host} without a token would leave the first visitor outside or everybody in: make one first "
            f"with `duels token create NAME --kind admin --storage {without_password(storage)}`, or set DUELS_TOKEN"
        )
    store = open_storage(storage)
    store.set_lock_timeout(LOCKED)
    if token:
        make_key(store, "admin", "DUELS_TOKEN", secret=token)
    form = log_form or ("words" if sys.stderr.isatty() else "json")
    logs.set_up(form, verbose)
    sys.setswitchinterval(SWITCH)
    listening = _socket(host, port)
    address = f"http://{_in_url(host)}:{listening.getsockname()[1]}"
    hosts = [*LOOPBACK] if alone else []
    app = create_app(store, public_url=public_url, hosts=hosts, open_to_all=open_to_all, limits=limits)
    store.compile = compile_policy
    app.service.hub.prepare_all()
    app.service.shared_url = "" if alone else address
    player = Demo(store) if demo else None
    _say_hello(store, public_url or address, fresh and not token, open_to_all, player)
    config = configuration(app, trusted)
    _return_memory()
    gc.collect()
    gc.freeze()  # else the libraries' million objects are looked through every second, which takes 0.15 s
    gc.set_threshold(50_000, 50, 100)
    try:
        Server(config).run([listening])
    finally:
        if player is not None:
            player.stop()
        store.close()


def configuration(app: Application, trusted_proxies: list[str] | None = None) -> uvicorn.Config:
    """How uvicorn serves the application."""
    return uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        forwarded_allow_ips=trusted_proxies,
        timeout_graceful_shutdown=PATIENCE,
        backlog=BACKLOG,
    )


def networks_of(addresses: Sequence[str]) -> list[str] | None:
    """Proxies' addresses, checked; None if there are none."""
    found = []
    for address in addresses:
        try:
            network = ipaddress.ip_network(address.strip(), strict=False)
        except ValueError:
            expected = "an address such as 10.0.0.7, or a network such as 10.0.0.0/24"
            raise InvalidInput(f"--trusted-proxy is {cut(address, 100)}: expected {expected}") from None
        found.append(str(network.network_address if network.num_addresses == 1 else network))
    return found or None


def _return_memory() -> None:
    """Have large arrays go back to the system when they are freed: left to itself glibc keeps those below 32 MiB."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**20)


def _say_hello(store: Storage, address: str, first: bool, open_to_all: bool, demo: Demo | None) -> None:
    """Where the server is, and how to get in. To standard output: it is for whoever started it."""
    print(f"Duels is at {address}", flush=True)
    if first and not open_to_all:
        _, secret = make_key(store, "admin", "first start")
        print(f"Open this to sign in (keep it, it is shown only once): {address}/signin#{secret}", flush=True)
    elif not open_to_all:
        print(f"Sign in at {address}/signin; another token: duels token create NAME --kind admin", flush=True)
    if demo is not None:
        print(f"The demo study: {address}/studies/{demo.study.name}", flush=True)
        demo.start()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server there."""
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
    """An address of this machine that others may know it by. Nothing is sent to find out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation; a datagram socket only looks up the way
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)  # from when the address is said, whoever comes waits and is not refused
    except (OSError, OverflowError) as error:
        listening.close()
        said = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot serve on {host}:{port}: {said}. Choose another one with --port") from None
    listening.set_inheritable(True)
    return listening
