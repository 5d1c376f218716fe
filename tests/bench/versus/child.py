"""One run of one contender in a process of its own: `python -m tests.bench.versus.child TASK.json RESULT.json`."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from tests.bench.versus.contenders import CONTENDERS
from tests.bench.versus.task import Task


def main() -> int:
    """Does the task and writes its result."""
    logging.basicConfig(level=logging.ERROR)
    task = Task(**json.loads(Path(sys.argv[1]).read_text()))
    CONTENDERS[task.contender](task).write(Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
