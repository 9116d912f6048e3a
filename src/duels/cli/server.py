"""`duels serve` and `duels token`: the server from the command line."""

import sys
from typing import Annotated

import typer

from ..errors import InvalidInput, needs_extra
from .live import STORAGE, StorageOption
from .printing import Format, FormatOption, column, print_rows

token_app = typer.Typer(help="Tokens for the admins of a server and for programs.", no_args_is_help=True)


def serve(
    storage: Annotated[
        str, typer.Argument(envvar="DUELS_STORAGE", help="The database: sqlite:///file.db or postgresql://…")
    ] = STORAGE,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for all networks, which needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for any free one.", min=0, max=65535)] = 8080,
    public_url: Annotated[
        str, typer.Option(envvar="DUELS_PUBLIC_URL", help="The address that people use, if there is a proxy.")
    ] = "",
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            envvar="DUELS_TRUSTED_PROXY",
            help="Address or network of a proxy whose X-Forwarded-For is trusted; repeatable.",
        ),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve an example study with simulated voters.")] = False,
    open_to_all: Annotated[
        bool, typer.Option("--open", help="No sign-in; only on this machine (--host 127.0.0.1).")
    ] = False,
    policy_files: Annotated[
        bool,
        typer.Option(
            "--policy-files",
            help="Run policies from the Python files that studies name, if the files have not changed since.",
        ),
    ] = False,
    log: Annotated[
        str | None, typer.Option(help="Log format: words on a terminal, else json, unless you choose one.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every request.")] = False,
) -> None:
    """Serve studies to people and programs: API, dashboard and voting pages."""
    import os

    with needs_extra("server", "`duels serve`"):
        from ..server.serving import serve as run

    if log not in (None, "words", "json"):
        raise InvalidInput(f"--log is {log!r}: expected words or json")
    run(
        storage,
        host=host,
        port=port,
        public_url=public_url,
        token=os.environ.get("DUELS_TOKEN"),
        demo=demo,
        open_to_all=open_to_all,
        log_form=log,
        verbose=verbose,
        trusted_proxies=trusted_proxy or (),
        policy_files=policy_files,
    )


@token_app.command("create")
def create_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person or program that will use it.")],
    kind: Annotated[str, typer.Option(help="api: run studies. admin: everything, and sign in.")] = "api",
    storage: StorageOption = STORAGE,
) -> None:
    """Create a token. It is shown only once."""
    from ..server.keys import make_key
    from ..storage.changes import COMMAND_LINE, note_change
    from ..storage.storage import open_storage

    if kind not in ("api", "admin"):
        raise InvalidInput(f"--kind is {kind!r}: expected api or admin")
    with note_change(None, COMMAND_LINE, f"Created the {kind} token “{name}”."):
        token = make_key(open_storage(storage), kind, name)[1]
    print(token)
    if kind == "admin":
        print("To sign in, paste it on the server's page /signin, or open /signin#TOKEN", file=sys.stderr)


@token_app.command("list")
def list_tokens(storage: StorageOption = STORAGE, format: FormatOption = Format.table) -> None:
    """List the tokens, without their secrets."""
    from ..server.keys import list_keys
    from ..storage.storage import find_storage
    from ..study.duels import iso_time

    store = find_storage(storage)
    found = [] if store is None else list_keys(store, ("admin", "api"))
    rows = [
        {
            "id": key.id,
            "kind": key.kind,
            "name": key.name,
            "created": iso_time(key.created),
            "revoked": "" if key.revoked is None else iso_time(key.revoked),
        }
        for key in found
    ]
    print_rows(rows, format, TOKEN_COLUMNS, "no tokens yet. Create one: duels token create NAME")


TOKEN_COLUMNS = (
    column("id"),
    column("kind"),
    column("name"),
    column("created", spare=2),
    column("revoked", spare=1),
)


@token_app.command("revoke")
def revoke_token(
    number: Annotated[int, typer.Argument(metavar="ID", help="The token's id, see `duels token list`.")],
    storage: StorageOption = STORAGE,
) -> None:
    """Revoke a token and the sessions that were opened with it."""
    from ..server.keys import list_keys, revoke_key
    from ..storage.changes import COMMAND_LINE, note_change
    from ..storage.storage import find_storage

    kinds = ("admin", "api")
    store = find_storage(storage)
    known = {} if store is None else {key.id: key for key in list_keys(store, kinds)}
    if store is None or number not in known:
        raise InvalidInput(f"there is no token {number}: see `duels token list`")
    with note_change(None, COMMAND_LINE, f"Revoked the {known[number].kind} token “{known[number].name}”."):
        revoke_key(store, number, kinds)
