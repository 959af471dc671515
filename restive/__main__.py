"""`python -m restive` is the command."""

from restive.cli import main

main()
