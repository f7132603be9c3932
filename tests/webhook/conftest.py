"""What tests of the webhook share, whatever part they look at."""

from __future__ import annotations

import ssl
from typing import Any

import pytest
import urllib3.connection


@pytest.fixture
def strict_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clients be as strict about certificates as Python 3.13 makes them by default, whichever runs the test."""

    def strict(make: Any) -> Any:
        def made(*arguments: Any, **options: Any) -> ssl.SSLContext:
            context: ssl.SSLContext = make(*arguments, **options)
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            return context

        return made

    monkeypatch.setattr(ssl, "create_default_context", strict(ssl.create_default_context))
    made_by_urllib3 = "create_urllib3_context"
    monkeypatch.setattr(urllib3.connection, made_by_urllib3, strict(getattr(urllib3.connection, made_by_urllib3)))
