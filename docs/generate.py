"""Writes the tables of commands and of HTTP routes into the pages, from the commands and the routes themselves.

    python docs/generate.py          rewrites docs/cli.md and docs/server/api.md
    python docs/generate.py --check  only says which of them would change; exit code 1 if one would

A page says what goes where, by comments. Everything between them is written here, everything else by hand:

    <!-- commands -->           all commands, with links to their sections
    <!-- options run, merge --> arguments and options of these commands
    <!-- common -->             options of many commands, which `options` leaves out
    <!-- routes -->             all routes of the API
    <!-- end -->
"""

import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer.main
from fastapi.routing import APIRoute

import duels.cli
from duels.server import auth
from duels.server.app import create_app

DOCS = Path(__file__).parent
PAGES = (DOCS / "cli.md", DOCS / "server" / "api.md")
BLOCK = re.compile(r"^<!-- (?P<what>\w+)(?P<names>[^\n]*?) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
# Options of many commands, which are explained once, and a command that has each.
COMMON = {
    "format": "run",
    "quiet": "run",
    "jobs": "run",
    "seed": "race",
    "storage": "study ask",
    "roles": "study import",
    "without": "study import",
    "on_error": "study import",
}
STUDY = "/api/studies/{study}"


def write_page(text: str) -> str:
    """Return the page with what is between its comments written again."""
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    writers = {
        "commands": lambda _: write_commands(headings),
        "options": write_options,
        "common": lambda _: write_common(),
        "routes": lambda _: write_routes(),
    }

    def write_block(found: re.Match[str]) -> str:
        start = found[0].partition("\n")[0]
        return f"{start}\n{writers[found['what']](found['names'].strip())}\n<!-- end -->"

    return BLOCK.sub(write_block, text)


def find_commands(group: Any = None, path: str = "") -> dict[str, Any]:
    """Every command of the program by its words, such as `matrix count`."""
    group = typer.main.get_command(duels.cli.app) if group is None else group
    if not hasattr(group, "commands"):
        return {path: group}
    found: dict[str, Any] = {}
    for name, one in group.commands.items():
        found |= find_commands(one, f"{path} {name}".strip())
    return found


def write_commands(headings: list[str]) -> str:
    """A table of all commands, each with a link to the section that explains it."""
    sections = {name.removeprefix("duels "): heading for heading in headings for name in heading.split(", ")}
    rows = ["| command | |", "| --- | --- |"]
    for name, command in find_commands().items():
        if name not in sections:
            raise KeyError(f"the page has no section for `duels {name}`")
        rows.append(f"| [`duels {name}`](#{write_anchor(sections[name])}) | {mark_options(first_line(command.help))} |")
    return "\n".join(rows)


def write_anchor(heading: str) -> str:
    """The anchor that Markdown gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def write_options(names: str) -> str:
    """Each of the commands with its arguments, what it does, and its options."""
    known = find_commands()
    wanted = [name.strip() for name in names.split(",")]
    return "\n\n".join(write_command(name, known[name]) for name in wanted)


def write_common() -> str:
    """A table of the options of many commands."""
    known = find_commands()
    options = [next(one for one in known[command].params if one.name == name) for name, command in COMMON.items()]
    return write_table([(write_names(one), one) for one in options])


def write_table(rows: list[tuple[str, Any]]) -> str:
    lines = ["| | | default |", "| --- | --- | --- |"]
    return "\n".join(
        [*lines, *(f"| {names} | {mark_options(one.help or '')} | {write_default(one)} |" for names, one in rows)]
    )


def write_command(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    explained = [one for one in arguments if one.help and one.name != "study"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name not in COMMON]
    usage = " ".join(["duels", name, *map(write_argument, arguments)])
    lines = [f"`{usage}`: {mark_options(' '.join((command.help or '').split()))}"]
    rows = [(f"`{write_argument(one)}`", one) for one in explained]
    rows += [(write_names(one), one) for one in options]
    if rows:
        lines += ["", write_table(rows)]
    return "\n".join(lines)


def write_argument(one: Any) -> str:
    text = (one.metavar or one.name).upper().strip("[]").removesuffix("...")
    text += " …" if one.nargs == -1 else ""
    return text if one.required else f"[{text}]"


def write_names(one: Any) -> str:
    """The names of an option; of a flag that is on by default, the one that turns it off."""
    names = one.secondary_opts if one.secondary_opts and one.default else one.opts
    if one.secondary_opts and one.default is None:
        names = [*one.opts, *one.secondary_opts]
    metavar = f" {one.metavar}" if one.metavar else ""
    return ", ".join(f"`{name}{metavar if name[:2] == '--' else ''}`" for name in sorted(names, key=len))


def write_default(one: Any) -> str:
    shown = one.show_default if isinstance(one.show_default, str) else one.default
    shown = shown.value if isinstance(shown, Enum) else shown
    if shown is None or isinstance(shown, bool) or shown in ("", [], ()):
        return ""
    return f"`{shown:g}`" if isinstance(shown, float) else f"`{shown}`"


def first_line(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


def mark_options(text: str) -> str:
    """Options as code, and bars escaped."""
    text = re.sub(r"(?<![\w`-])(--?[a-z][\w-]*)", r"`\1`", text.replace("|", r"\|"))
    return re.sub(r"(\{\{ \w+ \}\})", r"`\1`", text)


def write_routes() -> str:
    """A table of the routes for each of their tags, in the order of the server."""
    app = create_app("sqlite://").fastapi
    parts: dict[str, list[str]] = {}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            parts.setdefault(str(route.tags[0]), []).append(write_route(route))
    head = "| request | what it does | who |\n| --- | --- | --- |\n"
    return "\n\n".join(f"### {tag.capitalize()}\n{head}{chr(10).join(rows)}" for tag, rows in parts.items())


def write_route(route: APIRoute) -> str:
    path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path).replace(STUDY, "S")
    queries = [one.alias for one in route.dependant.query_params]
    more = f" `?{'=&'.join(queries)}=`" if queries else ""
    (method,) = route.methods - {"HEAD"}
    return f"| `{method} {path}` | {route.summary}{more} | {find_who(route)} |"


def find_who(route: APIRoute) -> str:
    """Who may send it: admins, programs with a token, or anyone."""
    calls = {one.call for one in walk_dependencies(route.dependant)}
    if auth.admin in calls:
        return "admin"
    return "token" if calls & {auth.caller, auth.fast_dependency} else "anyone"


def walk_dependencies(dependant: Any) -> Iterator[Any]:
    for one in dependant.dependencies:
        yield one
        yield from walk_dependencies(one)


def main() -> None:
    changed = [page for page in PAGES if write_page(page.read_text()) != page.read_text()]
    for page in changed:
        print(page.relative_to(DOCS.parent))
        if "--check" not in sys.argv:
            page.write_text(write_page(page.read_text()))
    sys.exit(bool(changed) and "--check" in sys.argv)


if __name__ == "__main__":
    main()
