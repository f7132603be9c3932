"""The baseline of the webhook's bench: the same server, with a Flask handler that allows everything unread."""

from __future__ import annotations

import dataclasses
from typing import Any

from flask import Flask, Response

from gpu2dra_webhook import cli, logs
from gpu2dra_webhook.server import Server
from gpu2dra_webhook.settings import Settings

ANSWER = b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"","allowed":true}}'


class EmptyServer(Server):
    """The webhook's server with another application."""

    def load(self) -> Any:
        """Build all parts, and put the empty handler in the place of the real one."""
        super().load()
        app = Flask(__name__)
        app.post("/mutate")(lambda: Response(ANSWER, mimetype="application/json"))
        self.parts = dataclasses.replace(self.parts, app=app)
        return app


def serve(settings: Settings) -> None:
    """Run it until it is told to end."""
    logs.set_up(settings.log_level, settings.log_format)
    EmptyServer(settings).run()


if __name__ == "__main__":
    cli.command(serve).main()
