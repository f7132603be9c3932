"""Certificates for one process."""

from __future__ import annotations

import time

from gpu2dra_webhook.certificates import ephemeral
from gpu2dra_webhook.certificates.ephemeral import Ephemeral
from webhook.certificates.tls import DAY, NAME, Clock, connected, served, serving, trusting


def test_a_client_that_trusts_it_connects_by_name_and_by_address() -> None:
    certificates = ephemeral(["localhost", "127.0.0.1"])
    certificates.start()
    with serving(certificates.ssl_context()) as address:
        for name in ("localhost", "127.0.0.1"):
            with connected(address, trusting(certificates.trust()), name):
                pass
    assert certificates.problems() == ()
    certificates.stop()


def test_a_leaf_of_yesterday_is_renewed() -> None:
    clock = Clock(time.time() - 1.5 * DAY)
    certificates = Ephemeral([NAME], clock=clock)
    assert certificates.expires_at() == int(clock() + DAY)
    clock.now = time.time()
    with serving(certificates.ssl_context()) as address:
        served(address, certificates.trust())
    assert certificates.expires_at() == int(clock() + DAY)
