"""What people type for an endpoint, made into the base URL that Hermes uses verbatim."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, quote, urlsplit

from orchestrator.errors import UsageError
from orchestrator.health.http import is_loopback

_ROUTES = ("/chat/completions", "/completions", "/responses", "/models", "/embeddings")
_VERSION = re.compile(r"/v\d+[a-z0-9]*$")


def normalise_url(url: str) -> tuple[str, tuple[str, ...]]:
    """Return the base URL without trailing slash, and what was changed, in words.

    Whether `/v1` belongs to it only the server can say: see `bases`. Raises UsageError for what is no
    HTTP URL, and for one with a password or a query in it, which it does not repeat.
    """
    text, changes = _with_scheme(url.strip())
    parts = _split(text)
    host = parts.hostname or ""
    if host == "0.0.0.0":
        changes.append("0.0.0.0 became 127.0.0.1")
        host = "127.0.0.1"
    netloc = _host(host) + (f":{parts.port}" if parts.port else "")
    path, cut = _path(parts.path)
    changes += cut
    return f"{parts.scheme}://{netloc}{path}", tuple(changes)


def bases(url: str) -> list[str]:
    """Return the base URLs that a normalised URL may mean, likeliest first."""
    path = urlsplit(url).path
    if not path:
        return [f"{url}/v1", url]
    if match := _VERSION.search(url):
        return [url, url[: match.start()]]
    return [url, f"{url}/v1"]


def server_root(base: str) -> str:
    """Return the address that an engine's own routes are below: the base without `/v1`."""
    return _VERSION.sub("", base)


def _with_scheme(text: str) -> tuple[str, list[str]]:
    if not text or re.search(r"[\s\x00-\x1f\x7f\\]", text):
        raise UsageError("the endpoint URL is empty or has blanks in it", hint=_EXAMPLE)
    if "://" in text:
        return text, []
    host = urlsplit(f"//{text}").netloc.rpartition("@")[2]
    name = host.partition(":")[0].lower()
    local = is_loopback(name) or ":" in host or _is_address(name)
    scheme = "http" if local else "https"
    return f"{scheme}://{text}", [f"{scheme}:// added"]


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"the endpoint URL is not valid: {_bare(str(error))}", hint=_EXAMPLE) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the endpoint URL has a name or password in it",
            hint="leave it out, put the key into a variable and name that: --key-env MY_KEY",
        )
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"the endpoint URL begins with {parts.scheme}://", hint=_EXAMPLE)
    if parts.query or parts.fragment:
        raise UsageError(
            "the endpoint URL has a '?' or '#' part, which Hermes would put before its own path",
            hint="leave it out; a key belongs into a variable: --key-env MY_KEY",
        )
    if not parts.hostname or port == 0:
        raise UsageError("the endpoint URL names no host or no port", hint=_EXAMPLE)
    return parts


def _path(path: str) -> tuple[str, list[str]]:
    changes = []
    bare = re.sub(r"/{2,}", "/", path).rstrip("/")
    for route in _ROUTES:
        if bare.endswith(route):
            bare = bare.removesuffix(route).rstrip("/")
            changes.append(f"{route} removed")
            break
    once = re.sub(r"(/v\d+)(?:\1)+$", r"\1", bare)
    if once != bare:
        changes.append(f"{once[once.rfind('/') :]} was there twice")
    return quote(once, safe="/%:@~!$&'()*+,;=-._"), changes


def _host(host: str) -> str:
    if ":" in host:
        return f"[{host}]"
    try:
        return host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError:
        raise UsageError("the endpoint URL's host is not a valid name", hint=_EXAMPLE) from None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _bare(message: str) -> str:
    """Return an error of urllib without what it quotes from the URL."""
    return message.partition(":")[0].partition("'")[0].strip()


_EXAMPLE = "for example http://127.0.0.1:8000/v1"
