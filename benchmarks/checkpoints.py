"""What checkpoints cost: the share of a study's time, and its time with and without them, side by side in one run.

    python benchmarks/checkpoints.py [--pairs 3] [--every 0]

Two spirals with the paper's networks, three seeds, `--every` seconds between checkpoints (0: as often as 5 % of the time
allows, the worst case; the usual 300 costs less than can be measured here). Medians of pairs that take turns.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from meristem.cache import keep_programs
from meristem.experiments.study_training import Trainer, run, study_config
from meristem.experiments.two_spirals import STUDY, SpiralsOptions
from meristem.folders.run_folder import RunFolder
from meristem.show.progress import Progress
from meristem.xla_flags import fuse_small_loops


def measured(options: SpiralsOptions, every: float | None) -> dict[str, float]:
    """Seconds of a study, and those that checkpoints took; `every` of None: nothing is kept."""
    plan = STUDY.plan(options)
    with tempfile.TemporaryDirectory() as place, RunFolder.take(Path(place)) as folder:
        folder.begin(study_config(options, plan.tasks), "benchmark", resume=False)
        checkpoints = folder.checkpoints(seconds=every or 0.0)
        progress = Progress(live=False)
        trainer = Trainer(progress) if every is None else Trainer(progress, folder, checkpoints)
        begin = time.perf_counter()
        run(STUDY, options, plan, trainer)
        return {"seconds": time.perf_counter() - begin, "spent": checkpoints.spent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--every", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=150)
    args = parser.parse_args()
    fuse_small_loops()
    keep_programs()
    options = SpiralsOptions(models=("tunnel", "budding"), task=("medium",), seeds=3, max_epochs=args.epochs)
    measured(options, None)  # compiles
    pairs = [(measured(options, None), measured(options, args.every)) for _ in range(args.pairs)]
    without, with_them = (statistics.median(pair[n]["seconds"] for pair in pairs) for n in (0, 1))
    share = statistics.median(pair[1]["spent"] / pair[1]["seconds"] for pair in pairs)
    said = {
        "study": f"two-spirals medium, tunnel and budding, 3 seeds, {args.epochs} epochs",
        "every_seconds": args.every,
        "pairs": args.pairs,
        "seconds_without": round(without, 2),
        "seconds_with": round(with_them, 2),
        "slower": round(statistics.median(pair[1]["seconds"] / pair[0]["seconds"] for pair in pairs) - 1, 4),
        "share_spent": round(share, 4),
    }
    print(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()
