"""What we accept of a server whose certificate we verify: what Go's and OpenSSL's own clients accept, and no less."""

from __future__ import annotations

import ssl


def client_context() -> ssl.SSLContext:
    """Return a context that verifies certificates and names, and trusts nobody yet.

    Not `ssl.create_default_context`: from Python 3.13 on it asks each certificate for key identifiers and key usages
    (VERIFY_X509_STRICT), which many authorities of clusters have never written, and no other client asks for.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # A certificate that is trusted needs no other above it: of a chain, only a part may be known.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
