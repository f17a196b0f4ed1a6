"""Which proxy a request goes through, by the rules of Hermes 0.22, and what a worker is told of it. Pure.

The first of HTTPS_PROXY, HTTP_PROXY, ALL_PROXY (then in lower case) that is set serves every request,
whatever its scheme. NO_PROXY and no_proxy name who is asked directly: hosts, domains with all below
them, `host:port`, addresses, networks (`10.0.0.0/8`), `*`. This machine is always asked directly.
Hermes 0.19 knows no networks and no ports there, so a worker is told the endpoint's host by name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from orchestrator.fleet.spec import Endpoint

PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")
"""In the order in which they count."""
BYPASS = ("NO_PROXY", "no_proxy")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HERMES_CA_BUNDLE")
"""Files of authorities that a proxy or an own server needs; Hermes reads them too."""


def proxy_variable(url: str, env: Mapping[str, str]) -> str:
    """Return the name of the variable whose proxy serves this URL, "" = it is asked directly."""
    name = next((name for name in PROXIES if env.get(name, "").strip()), "")
    return "" if not name or bypassed(url, env) else name


def bypassed(url: str, env: Mapping[str, str]) -> bool:
    """Whether this URL's host is asked directly, whatever proxies are set."""
    host, port = _host_and_port(url)
    return is_loopback(host) or any(_matches(entry, host, port) for entry in _entries(env))


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine, by its form alone."""
    bare = host.lower().rstrip(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    address = _address(bare)
    mapped = getattr(address, "ipv4_mapped", None)
    return address is not None and (address.is_loopback or (mapped is not None and mapped.is_loopback))


def worker_network(
    given: Mapping[str, str], caller: Mapping[str, str], direct: Iterable[str] = ()
) -> dict[str, str]:
    """Return the variables by which a worker gets out, from the command that makes it; `given` ones count first.

    These are proxies, who is asked without one (`direct` are hosts beside those of NO_PROXY), and
    certificates. Both spellings of NO_PROXY are set, since programs read one or the other.
    """
    own = {name.lower() for name in given}
    found = {
        name: caller[name]
        for name in (*PROXIES, *CERTIFICATES)
        if caller.get(name, "").strip() and name.lower() not in own
    }
    if not any((found | dict(given)).get(name, "").strip() for name in PROXIES):
        return found
    entries = _entries(given if "no_proxy" in own else caller)
    listed = "*" if "*" in entries else ",".join(dict.fromkeys((*LOOPBACK, *entries, *direct)))
    return {**found, **dict.fromkeys(BYPASS, listed)}


def always_direct(endpoints: Iterable[Endpoint]) -> str:
    """Return what a worker's NO_PROXY begins with: this machine, also as its endpoints call it."""
    hosts = [urlsplit(each.base_url).hostname or "" for each in endpoints]
    return ",".join(dict.fromkeys((*LOOPBACK, *(host for host in hosts if is_loopback(host)))))


def without_login(proxy: str) -> str:
    """Return a proxy's host and port, for people: no user and no password."""
    bare = proxy.strip().partition("://")[2] if "://" in proxy else proxy.strip()
    return re.split(r"[/?#]", bare.rpartition("@")[2])[0]


def passwords(variables: Mapping[str, str]) -> set[str]:
    """Return the logins in proxy variables, as they stand there and decoded."""
    found = set[str]()
    for name in PROXIES:
        match = re.match(r"\s*(?:[A-Za-z][\w+.-]*://)?(.*)@", variables.get(name, ""), re.DOTALL)
        login = match[1] if match else ""
        password = login.partition(":")[2]
        found |= {login, password, unquote(password)}
    return found - {""}


def _entries(env: Mapping[str, str]) -> list[str]:
    return [word for name in BYPASS for word in re.split(r"[\s,]+", env.get(name, "")) if word]


def _matches(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    wanted, wanted_port = _host_and_port(entry)
    if wanted_port and wanted_port != port:
        return False
    address = _address(host)
    try:
        network = ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        domain = wanted.removeprefix("*").removeprefix(".")
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))
    return address is not None and address in network


def _host_and_port(text: str) -> tuple[str, int]:
    """Return host in lower case and port (0 = none is named) of a URL or of an entry of NO_PROXY."""
    bare = text.lower()
    if "/" in bare and "://" not in bare:
        return bare, 0  # a network
    if bare.count(":") > 1 and "://" not in bare and not bare.startswith("["):
        return bare, 0  # an IPv6 address
    try:
        parts = urlsplit(bare if "://" in bare else f"//{bare}")
        usual = {"http": 80, "https": 443}.get(parts.scheme, 0)
        return (parts.hostname or "").rstrip("."), parts.port or usual
    except ValueError:
        return "", 0


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
