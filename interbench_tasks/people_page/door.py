"""Who may come in: one-time links, cookies, the address that the page is asked for, and what a browser may do."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
COOKIE = "interbench_people"
COOKIE_S = 30 * 24 * 3600
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send `Origin: null` with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(slots=True)
class Door:
    """Hands out links that let one browser in, each once; several threads may use it.

    Args: hosts = names and addresses that the page may be asked for, without port.
    """

    hosts: frozenset[str]
    _links: set[str] = field(default_factory=set)
    _used: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new_token(self) -> str:
        """A token for a link."""
        token = secrets.token_urlsafe(24)
        with self._lock:
            self._links.add(_digest(token))
        return token

    def lets_in(self, token: str) -> bool:
        """Whether the token is one of ours and new; it is used up now."""
        digest = _digest(token)
        with self._lock:
            if digest not in self._links:
                return False
            self._links.discard(digest)
            self._used.add(digest)
            return True

    def was_used(self, token: str) -> bool:
        """Whether it was one of ours."""
        return _digest(token) in self._used

    def answers_to(self, host: str) -> bool:
        """Whether the page may be asked for under this Host header; the port does not matter (tunnels change it).

        A page of a stranger whose name leads to this machine could else ask in the name of who looks at it.
        """
        return host_of(host) in self.hosts


def allowed_hosts(host: str, further: Iterable[str] = ()) -> frozenset[str]:
    """The names that a page at `host` answers to."""
    return frozenset(name.strip("[]").lower() for name in (*LOCAL_HOSTS, host, *further))


def host_of(header: str) -> str:
    """The name in a Host header.

    >>> host_of("LOCALHOST:8420"), host_of("[::1]:8420"), host_of("a.b")
    ('localhost', '::1', 'a.b')
    """
    try:
        return (urlsplit(f"//{header.strip()}").hostname or "").lower()
    except ValueError:
        return ""


def same_origin(origin: str | None, host: str) -> bool:
    """Whether a request that changes something comes from our own page; browsers say so, other programs need not."""
    return origin is None or urlsplit(origin).netloc.lower() == host.strip().lower()


def new_secret() -> str:
    """What a cookie holds."""
    return secrets.token_urlsafe(32)


def csrf_token(secret: str) -> str:
    """What each form of a session holds beside the cookie, so that no other page can send it."""
    return hashlib.sha256(f"csrf:{secret}".encode()).hexdigest()[:32]


def is_csrf_token(given: str, secret: str) -> bool:
    """Whether a form holds it."""
    return hmac.compare_digest(given.encode(), csrf_token(secret).encode())


def cookie_name(port: int) -> str:
    """Cookies do not know ports: two pages on one machine need two names."""
    return f"{COOKIE}_{port}"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
