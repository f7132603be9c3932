"""The baseline for Pod creations: the webhook's server, with a Flask handler that always answers with the same patch.

The API server stores what it would store with the webhook, so that the difference is the webhook's own work.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from flask import Flask, request

from gpu2dra_webhook import cli, logs
from gpu2dra_webhook.server import Server
from gpu2dra_webhook.settings import Settings

PATCH = "GPU2DRA_BENCH_PATCH"
"""The environment variable that holds the JSON Patch, in base64."""


class FixedServer(Server):
    """The webhook's server with another application."""

    def load(self) -> Any:
        """Build all parts, and put the handler in the place of the real one."""
        super().load()
        change = {"allowed": True, "patchType": "JSONPatch", "patch": os.environ[PATCH]}

        def answer() -> dict[str, Any]:
            review = request.get_json()
            response = {"uid": review["request"]["uid"], **change}
            return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

        app = Flask(__name__)
        app.post("/mutate")(answer)
        self.parts = dataclasses.replace(self.parts, app=app)
        return app


def serve(settings: Settings) -> None:
    """Run it until it is told to end."""
    logs.set_up(settings.log_level, settings.log_format)
    FixedServer(settings).run()


if __name__ == "__main__":
    cli.command(serve).main()
