"""The files that pages load: compressed once, and cached by browsers for ever, since their address has a digest."""

import asyncio
import gzip
import hashlib
import importlib.util
import mimetypes
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from fastapi import Request
from fastapi.responses import Response

from ...errors import NotFound

FOLDER = Path(__file__).parents[1] / "static"
SWAGGER = ("swagger-ui.css", "swagger-ui-bundle.js")  # the files of fastapi-offline that are served
FOREVER = "public, max-age=31536000, immutable"
SMALL = 1000  # bytes: a shorter answer is not compressed


class PageFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    packed: bytes
    kind: str


@cache
def digest() -> str:
    """Return a digest of all files that pages load."""
    found = hashlib.blake2b(version("fastapi-offline").encode(), digest_size=8)
    for path in sorted(FOLDER.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def place() -> str:
    """Return where pages find their files."""
    return f"/static/{digest()}"


@cache
def _paths() -> dict[str, Path]:
    """The files by name: our own, and the two of Swagger UI that fastapi-offline carries."""
    # Its wheel needs nothing but FastAPI, and nothing is imported from it. On PyPI the alternatives are not fewer:
    # fastapi-swagger is one package too, and swagger-ui-bundle has Swagger UI 4, which does not show OpenAPI 3.1.
    package = importlib.util.find_spec("fastapi_offline")
    assert package is not None
    assert package.origin is not None
    theirs = Path(package.origin).parent / "static"
    return {path.name: path for path in FOLDER.iterdir()} | {name: theirs / name for name in SWAGGER}


@cache
def _file(name: str) -> PageFile:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return pack_file(_paths()[name].read_bytes(), kind)


def pack_file(content: bytes, kind: str) -> PageFile:
    """Return a file that is compressed once, and sent many times."""
    return PageFile(content, gzip.compress(content, 9, mtime=0), kind)


async def page_file(request: Request, asked: str, name: str) -> Response:
    """Serve a file. Pages of another version of the server get the present files, uncached.

    Raises:
        NotFound: If there is no such file.
    """
    if name not in _paths():
        raise NotFound(f"there is no file {name!r}")
    found = await asyncio.to_thread(_file, name)
    headers = {"Cache-Control": FOREVER if asked == digest() else "no-store", "Vary": "Accept-Encoding"}
    return choose_packed(request, found.content, found.packed, found.kind, headers)


def compress(request: Request, content: bytes, kind: str) -> Response:
    """Return an answer without secrets, compressed if it is long and the client understands that.

    Compressing a secret together with what somebody else chose shows the secret to those who see the length.
    """
    packed = gzip.compress(content, 5, mtime=0) if len(content) > SMALL and takes_gzip(request) else content
    return choose_packed(request, content, packed, kind, {"Cache-Control": "no-store", "Vary": "Accept-Encoding"})


def choose_packed(request: Request, content: bytes, packed: bytes, kind: str, headers: dict[str, str]) -> Response:
    """Return whichever is shorter and understood."""
    if takes_gzip(request) and len(packed) < len(content):
        return Response(packed, media_type=kind, headers=headers | {"Content-Encoding": "gzip"})
    return Response(content, media_type=kind, headers=headers)


def takes_gzip(request: Request) -> bool:
    """Return whether the client understands gzip."""
    accepted = (one.strip().split(";") for one in request.headers.get("accept-encoding", "").lower().split(","))
    return any(one[0] == "gzip" and "q=0" not in [part.strip() for part in one[1:]] for one in accepted)
