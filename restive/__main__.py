"""The entry point of the command `restive`."""


def main() -> None:
    """Run the command, or name the extra that it needs."""
    try:
        from restive.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in ("rich", "typer"):
            raise
        raise SystemExit('restive: the command needs more packages: pip install "restive[cli]".') from None
    run()


if __name__ == "__main__":
    main()
