"""What the tests of the wire share: both ways to a provider, and servers that write bytes as a test
says.
"""

import ssl
from pathlib import Path

import pytest

TLS = Path(__file__).parents[3] / "fixtures" / "tls"


@pytest.fixture
def certificate() -> Path:
    """Of `localhost` and 127.0.0.1, signed by itself."""
    return TLS / "certificate.pem"


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, TLS / "key.pem")
    return context


@pytest.fixture
def said_by():
    """All that an error says, and what caused it."""

    def walk(error):
        while error is not None:
            yield f"{error} {error!r}"
            error = error.__cause__

    return lambda error: "\n".join(walk(error))
