"""`python -m artifact_inspector` is `inspect-kernel`."""

from artifact_inspector.cli import main

if __name__ == "__main__":
    main()
