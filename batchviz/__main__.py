"""`python -m batchviz`."""

from batchviz.cli import main

if __name__ == "__main__":
    main()
