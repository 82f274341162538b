"""``python -m deixis`` is the ``deixis`` command."""

from deixis.cli import main

if __name__ == "__main__":  # worker processes import this module again
    main()
