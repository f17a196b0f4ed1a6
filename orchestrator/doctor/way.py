"""The way to a server, step by step: name, proxy, connection, TLS. Each step's failure has a name of its own."""

from __future__ import annotations

import base64
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from orchestrator.doctor.check import Trouble
from orchestrator.fleet.proxy import PROXIES, is_loopback, without_login
from orchestrator.health.http import proxy_for, within

STEP = 5.0
"""Seconds for each step."""
_PORTS = {"http": 80, "https": 443}
_SELF_SIGNED = (18, 19)
_NO_ISSUER = (2, 20, 21)
_EXPIRED = (9, 10)
_WRONG_NAME = (62, 64)
"""X509_V_ERR_… of OpenSSL (x509_vfy.h)."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that the environment names for a URL."""

    host: str
    port: int
    variable: str
    shown: str
    """Host and port, without name and password."""
    login: str = field(default="", repr=False)
    """`user:password`, decoded."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a server is reached."""

    host: str
    port: int
    tls: bool
    proxy: Proxy | None = None
    notes: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def plan(url: str, env: Mapping[str, str]) -> Way:
    """Return the way that a worker's requests to `url` take; raises Trouble for a proxy that is no address."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)
    tls = parts.scheme == "https"
    if variable := proxy_for(url, env):
        return Way(host, port, tls, _proxy(env[variable], variable))
    eats = next((name for name in PROXIES if env.get(name, "").strip()), "")
    if eats and is_loopback(host):
        return Way(host, port, tls, notes=(f"past {eats}: this machine is asked directly",))
    return Way(host, port, tls, notes=(f"past {eats}, as NO_PROXY says",) if eats else ())


def walk(way: Way, *, timeout: float = STEP) -> str:
    """Go the way and return what was seen in a line; raises Trouble for the first step that fails."""
    if way.proxy is None:
        address = connect(way.host, way.port, timeout=timeout)
        if way.tls:
            handshake(way, address, timeout=timeout)
        return f"{way.where} answers at {address[0]}" + (", TLS is trusted" if way.tls else "")
    proxy = way.proxy
    name = f"the proxy {proxy.shown} ({proxy.variable})"
    try:
        address = connect(proxy.host, proxy.port, timeout=timeout)
    except Trouble as trouble:
        raise Trouble(
            f"{name} cannot be used: {trouble}",
            hint=f"unset {proxy.variable}, or go past it: export NO_PROXY={way.host}",
        ) from None
    if way.tls:
        _tunnel(way, proxy, address, timeout)
    return f"{way.where} through {name}"


def connect(host: str, port: int, *, timeout: float = STEP) -> tuple[str, int]:
    """Return the address that takes a connection; raises Trouble: unknown name, refused, no route, no answer."""
    where = f"{host}:{port}"
    found = _resolve(host, port, timeout)
    last: OSError = OSError("no address")
    for address in found:
        try:
            with closing(socket.create_connection((address, port), timeout)):
                return address, port
        except OSError as error:
            last = error
    if isinstance(last, ConnectionRefusedError):
        local = f"start the server; to see what listens: ss -ltn 'sport = :{port}'"
        away = "check the port and the firewall there, or name another: hermux endpoint set URL -m MODEL"
        raise Trouble(f"nothing listens on {where}: refused", hint=local if is_loopback(host) else away)
    if isinstance(last, TimeoutError):
        raise Trouble(
            f"{where} does not answer within {timeout:g} s: timeout",
            hint=f"a firewall or a wrong address? try: curl -v --max-time 5 http://{where}/",
        )
    raise Trouble(
        f"{where} cannot be reached: {last.strerror or last}",
        hint="check the network and the URL: hermux endpoint show",
    )


def handshake(way: Way, address: tuple[str, int], *, timeout: float = STEP) -> None:
    """Speak TLS with the server; raises Trouble naming what is wrong with it or its certificate."""
    try:
        with (
            closing(socket.create_connection(address, timeout)) as bare,
            ssl.create_default_context().wrap_socket(bare, server_hostname=way.host),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        raise _untrusted(way, error) from None
    except (ssl.SSLError, ConnectionError, EOFError) as error:
        raise Trouble(
            f"{way.where} does not speak TLS ({getattr(error, 'reason', None) or 'it hung up'}): plain HTTP?",
            hint="use http:// in place of https://: hermux endpoint set http://… -m MODEL",
        ) from None
    except TimeoutError:
        raise Trouble(
            f"{way.where} takes the connection, but does not finish the TLS handshake within {timeout:g} s",
            hint="is it an https port? try http:// in place of https://",
        ) from None


def speaks_tls(host: str, port: int, *, timeout: float = 2.0) -> bool:
    """Whether a TLS handshake, with any certificate, succeeds there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            closing(socket.create_connection((host, port), timeout)) as bare,
            context.wrap_socket(bare, server_hostname=host),
        ):
            return True
    except (OSError, EOFError):
        return False


def direct_status(url: str, key: str = "", *, timeout: float = STEP) -> int:
    """Return the status that a GET past every proxy gets, 0 where none comes."""
    request = urllib.request.Request(url, headers={"Accept": "application/json", "User-Agent": "hermux"})
    if key:
        request.add_unredirected_header("Authorization", f"Bearer {key}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except (OSError, ValueError):
        return 0


def _resolve(host: str, port: int, timeout: float) -> list[str]:
    try:
        found = within(timeout, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return list(dict.fromkeys(str(each[4][0]) for each in found))
    except TimeoutError:
        raise Trouble(
            f"the name {host} was not resolved within {timeout:g} s: the DNS server is silent",
            hint=f"check the network and /etc/resolv.conf: getent hosts {host}",
        ) from None
    except (socket.gaierror, UnicodeError) as error:
        said = getattr(error, "strerror", None) or "no valid name"
        raise Trouble(
            f"the host name {host} is not known: DNS ({said})",
            hint=f"check its spelling: getent hosts {host}",
        ) from None


def _tunnel(way: Way, proxy: Proxy, address: tuple[str, int], timeout: float) -> None:
    """Ask the proxy for a tunnel, as TLS through it needs; raises Trouble when it gives none."""
    name = f"the proxy {proxy.shown} ({proxy.variable})"
    past = f"go past it: export NO_PROXY={way.host}"
    try:
        with closing(socket.create_connection(address, timeout)) as link:
            link.settimeout(timeout)
            told = base64.b64encode(proxy.login.encode()).decode()
            login = f"Proxy-Authorization: Basic {told}\r\n" if proxy.login else ""
            link.sendall(f"CONNECT {way.where} HTTP/1.1\r\nHost: {way.where}\r\n{login}\r\n".encode())
            line = link.recv(200).decode("latin-1").partition("\r\n")[0]
    except OSError as error:
        line = "" if not isinstance(error, TimeoutError) else f"nothing within {timeout:g} s"
    match = re.match(r"HTTP/\d\.\d (\d{3})", line)
    if match and match[1].startswith("2"):
        return
    if match and match[1] == "407":
        raise Trouble(f"{name} wants a login (HTTP 407)", hint=f"put it into {proxy.variable}, or {past}")
    said = f"HTTP {match[1]}" if match else (line or "it hung up")
    raise Trouble(f"{name} gives no way to {way.where}: {said}", hint=f"{past}, or unset {proxy.variable}")


def _untrusted(way: Way, error: ssl.SSLCertVerificationError) -> Trouble:
    code, said = error.verify_code, error.verify_message
    if code in _WRONG_NAME:
        return Trouble(
            f"the certificate of {way.where} is for another host: {said}",
            hint="use the host name that stands in the certificate: hermux endpoint set https://NAME/v1 -m MODEL",
        )
    if code in _EXPIRED:
        return Trouble(
            f"the certificate of {way.where} is out of date: {said}",
            hint="renew it there, and check this machine's clock: date",
        )
    kind = "self-signed" if code in _SELF_SIGNED else "not signed by an authority known here"
    if code not in (*_SELF_SIGNED, *_NO_ISSUER):
        kind = "not trusted"
    return Trouble(
        f"the certificate of {way.where} is {kind}: {said}",
        hint="name the authority's file, for this shell and for workers: export SSL_CERT_FILE=/path/ca.pem",
    )


def _proxy(value: str, variable: str) -> Proxy:
    parts = urlsplit(value.strip() if "://" in value else f"http://{value.strip()}")
    try:
        host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 1080)
    except ValueError:
        host, port = "", 0
    if not host:
        raise Trouble(
            f"{variable} holds no proxy's address",
            hint=f"unset {variable}, or: export {variable}=http://HOST:PORT",
        )
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    return Proxy(host, port, variable, without_login(value.strip()), login)
