"""The entry of a Ray job: `ray job submit --working-dir . -- python jobs/extract.py jobs/receipts.yaml`.

It is `recordmill run` under another name, for clusters whose image lacks the command; options of `run` may follow.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts this file's folder first; the job's own modules (`schemas`) lie one above it.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

    from pipeline.cli import main

    sys.exit(main(["run", *sys.argv[1:]]))
