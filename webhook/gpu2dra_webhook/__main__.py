"""`python -m gpu2dra_webhook` is the same as `gpu2dra-webhook`."""

from gpu2dra_webhook.cli import main

if __name__ == "__main__":
    main()
