"""Tests of `demo.models`: what is converted loads, speaks, and is whole or absent."""

from pathlib import Path

import pytest

import demo.models
from demo.models import ModelSourceError, tiny_llama_folder

pytestmark = pytest.mark.slow

NASTY = '{"a":"café 日本 \x00\U0001f642"}'


def test_a_seed_fixes_the_tiny_model(tmp_path: Path) -> None:
    first, again = tiny_llama_folder(tmp_path / "a", seed=3), tiny_llama_folder(tmp_path / "b", seed=3)
    other = tiny_llama_folder(tmp_path / "a", seed=4)
    assert {path.name: path.read_bytes() for path in first.iterdir()} == {
        path.name: path.read_bytes() for path in again.iterdir()
    }
    assert other != first
    assert (other / "model.safetensors").read_bytes() != (first / "model.safetensors").read_bytes()


def test_the_tiny_tokenizer_has_every_byte_and_its_specials_are_never_text(tiny_llama: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_llama)
    assert len(tokenizer) == 512
    alphabet = tokenizer.convert_tokens_to_ids(list(_byte_alphabet()))
    assert len(set(alphabet)) == 256
    assert tokenizer.unk_token_id not in alphabet
    assert sorted(tokenizer.all_special_ids) == [0, 1, 2, 3]
    assert tokenizer.decode(tokenizer.encode(NASTY)) == NASTY


def _byte_alphabet() -> list[str]:
    from tokenizers.pre_tokenizers import ByteLevel

    return list(ByteLevel.alphabet())


def test_smollm2_knows_the_capital_of_france(smollm2: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    model = AutoModelForCausalLM.from_pretrained(smollm2)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert tokenizer.decode(tokenizer.encode(NASTY)) == NASTY
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(answer)


def test_gemma_has_a_large_vocabulary_and_no_chat_template(gemma: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gemma)
    assert len(tokenizer) == 262_144
    assert tokenizer.chat_template is None
    assert tokenizer.decode(tokenizer.encode(NASTY, add_special_tokens=False)) == NASTY


def test_a_conversion_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        demo.models._made_once(tmp_path / "model", build)
    assert list(tmp_path.iterdir()) == []


def test_the_one_who_finishes_second_takes_what_is_there(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        (folder / "mine").write_text("x")
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "theirs").write_text("y")

    folder = demo.models._made_once(tmp_path / "model", build)
    assert [path.name for path in folder.iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_distribution_that_is_not_installed_is_named() -> None:
    with pytest.raises(ModelSourceError, match="no-such-distribution"):
        demo.models._one_file("no-such-distribution", ".gguf")
