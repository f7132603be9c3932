"""`python -m gpu2dra_migrate` is `gpu2dra`."""

from gpu2dra_migrate.cli import main

if __name__ == "__main__":
    main()
