"""The webhook on a machine whose clock is behind, and jumps to what is right when the file CLOCK_IS_RIGHT appears.

So it is after a suspension: timers stood still, and all at once it is later. Stopping a process alone lets them run on.
"""

from __future__ import annotations

import os
import time

BEHIND, RIGHT = "CLOCK_IS_BEHIND", "CLOCK_IS_RIGHT"
"""Variables: by how many seconds, and the path of the file."""


def main() -> None:
    """Run the webhook."""
    real, behind, right = time.time, float(os.environ[BEHIND]), os.environ[RIGHT]
    time.time = lambda: real() - (0.0 if os.path.exists(right) else behind)  # noqa: PTH110 - asked all the time
    # Clocks are taken when its modules are imported.
    from gpu2dra_webhook import cli  # noqa: PLC0415

    cli.main()


if __name__ == "__main__":
    main()
