"""`python -m batchviz`."""

import sys

if __name__ == "__main__":
    try:
        from batchviz.cli import main
    except ModuleNotFoundError as error:
        if (error.name or "batchviz").partition(".")[0] == "batchviz":
            raise
        sys.exit(
            f"error: the package {error.name} is not installed; run: {sys.executable} -m pip install -r requirements.txt"
        )
    main()
