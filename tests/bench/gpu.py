"""What only a GPU can show: `python -m tests.bench.gpu --model-folder FOLDER`.

Whole jobs beside the contenders of `tests.bench.versus`, in bfloat16 on one GPU, then the masks.  Without a folder the
model has the shape of one with 4 billion parameters and random weights; its tokenizer is SmolLM2's.  Where there is no
GPU it says so and ends with code 2.

It needs what `infra/requirements-gpu.lock` and `infra/requirements-bench-gpu.lock` hold.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from demo.models import default_cache, smollm2_folder

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja")
SHAPE_4B = {
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
}
"""Of Qwen3-4B, as its configuration has it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all of it, one command after the other, also after one that failed; the code is the first that is not 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu", description=__doc__)
    parser.add_argument("--model-folder", type=Path, help="a model of 4 to 8 billion parameters, in safetensors")
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args(arguments)
    if not _has_gpu():
        print("no GPU here: PyTorch sees no CUDA device; nothing was measured", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="recordmill-gpu-") as scratch:
        folder = chosen.model_folder or shaped_model(Path(scratch) / "random-4b", SHAPE_4B)
        model = ["--gpu", "--model-folder", str(folder)]
        if chosen.model_folder is None:
            model += ["--load-format", "dummy"]
        versus = ["tests.bench.versus", *model, "--repeats", str(chosen.repeats)]
        commands = [
            [*versus, "--workload", "notes", "--documents", str(chosen.documents)],
            [*versus, "--workload", "receipts", "--documents", "308"],
            ["tests.bench.masks", "--vocabularies", str(folder)],
        ]
        codes = [subprocess.run([sys.executable, "-m", *command], check=False).returncode for command in commands]
    return next(filter(None, codes), 0)


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def shaped_model(folder: Path, shape: dict[str, int]) -> Path:
    """A model folder without weights: SmolLM2's configuration and tokenizer, in another shape.

    vLLM makes the weights up (`load_format: dummy`).
    """
    source = smollm2_folder(default_cache())
    folder.mkdir(parents=True)
    for name in _TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    config = json.loads((source / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **shape}, indent=2))
    return folder


if __name__ == "__main__":
    sys.exit(main())
