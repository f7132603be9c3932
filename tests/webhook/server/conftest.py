"""One webhook with the settings that it comes with, for all tests that only talk to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from webhook.server.running import Webhook, Webhooks


@pytest.fixture(scope="session")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    """Start webhooks with settings of their own."""
    with Webhooks(tmp_path_factory.mktemp("webhooks")) as started:
        yield started


@pytest.fixture(scope="session")
def webhook(webhooks: Webhooks) -> Iterator[Webhook]:
    """Return a webhook that all tests share: whatever one does to it, the others must still be answered."""
    with webhooks.running() as running:
        yield running
