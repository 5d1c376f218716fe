"""The structured-output backend, against a replay of the same ids by a fresh cursor."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("vllm")

from vllm.v1.structured_output.backend_types import StructuredOutputOptions  # noqa: E402

from pipeline.core.errors import EngineStartError, RequestRefusedError  # noqa: E402
from pipeline.decoding.guide import Guide  # noqa: E402
from pipeline.engine.backend import CursorGrammar, GuideBackend  # noqa: E402
from pipeline.engine.scheduler import bind_request, install_backend  # noqa: E402
from pipeline.engine.wire import Binding, guide_literal  # noqa: E402
from tests.unit.engine.guides import LIST, OTHER, RECORD, copying_guide, document_of, guide_of, saved, word_vocabulary  # noqa: E402

pytestmark = pytest.mark.slow

PADDED = 320  # ids of the model's logits: more than a whole mask word beyond the guide's 275
EOS = 1
CONTEXT = 64


def backend_of(vocab_size: int = PADDED) -> GuideBackend:
    config = SimpleNamespace(model_config=SimpleNamespace(max_model_len=CONTEXT))
    return GuideBackend(config, tokenizer=None, vocab_size=vocab_size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guides")


@pytest.fixture(scope="module")
def guide(folder: Path) -> Guide:
    built = guide_of(RECORD, word_vocabulary())
    saved(built, folder)
    return built


@pytest.fixture(scope="module")
def binding(folder: Path) -> Callable[..., Binding]:
    def bind(guide: Guide, **rest: Any) -> Binding:
        return Binding(guide.fingerprint, str(folder / f"guide-{guide.fingerprint}.bin"), **rest)

    return bind


def legal(backend: GuideBackend, grammar: CursorGrammar, row: int = 0, rows: int = 3) -> set[int]:
    """The ids that a mask row allows, read as vLLM reads it; the rows beside it must stay as they were."""
    bitmask = backend.allocate_token_bitmask(rows)
    grammar.fill_bitmask(bitmask, row)
    others = [index for index in range(rows) if index != row]
    assert bool((bitmask[others] == -1).all())
    words = bitmask[row].tolist()
    return {bit for bit in range(PADDED) if words[bit // 32] >> (bit % 32) & 1}


def expected(guide: Guide, history: list[int], budget: int | None) -> set[int]:
    cursor = guide.cursor(budget)
    assert all(cursor.advance(token_id) for token_id in history)
    return {token_id for token_id in range(guide.vocab_size) if cursor.validate([token_id])}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), budget=st.one_of(st.none(), st.integers(8, 30)))
def test_any_order_of_calls_agrees_with_a_replay(
    seed: int, budget: int | None, guide: Guide, binding: Callable[..., Binding]
) -> None:
    rng = random.Random(seed)
    backend = backend_of()
    grammar = backend.bind(binding(guide, budget_tokens=budget), [])
    history: list[int] = []
    for _ in range(25):
        allowed = expected(guide, history, budget) if not grammar.is_terminated() else set()
        match rng.randrange(4):
            case 0 if allowed:
                drafts = [rng.choice(sorted(allowed)), *rng.choices(range(PADDED), k=rng.randrange(3))]
                fits = grammar.accept_tokens("r", drafts)
                cursor = guide.cursor(budget)
                assert all(cursor.advance(token_id) for token_id in history)
                taken = cursor.validate(drafts)
                ended = EOS in taken
                assert fits == (taken == drafts or ended)
                history += taken if fits else []
            case 1 if not grammar.is_terminated():
                drafts = rng.choices(sorted(allowed | {3}), k=3)
                cursor = guide.cursor(budget)
                assert all(cursor.advance(token_id) for token_id in history)
                assert grammar.validate_tokens(drafts) == cursor.validate(drafts)
            case 2 if history:
                count = rng.randint(1, len(history))
                grammar.rollback(count)
                del history[-count:]
            case _ if not grammar.is_terminated():
                assert legal(backend, grammar, row=rng.randrange(3)) == allowed


def test_no_id_beyond_the_guides_vocabulary_is_legal_even_in_a_used_row(
    guide: Guide, binding: Callable[..., Binding]
) -> None:
    backend = backend_of()
    bitmask = backend.allocate_token_bitmask(1)
    bitmask.fill_(-1)
    backend.bind(binding(guide), []).fill_bitmask(bitmask, 0)
    assert bitmask[0].tolist()[(guide.vocab_size + 31) // 32 :] == [0]


def test_the_masks_of_a_batch_are_those_of_its_rows_and_all_ids_where_a_request_is_over(
    guide: Guide, binding: Callable[..., Binding]
) -> None:
    """Fails when a row is written beside its place, or the rest of a used row is left as it was."""
    backend = backend_of()
    grammars = [backend.bind(binding(guide), ()) for _ in range(3)]
    grammars[1].accept_tokens("r", [next(iter(legal(backend, grammars[1])))])
    ended = backend.bind(binding(guide), ())
    while not ended.is_terminated():
        ended.accept_tokens("r", [max(legal(backend, ended))])
    for batch in ([*grammars, ended], [ended, *grammars], grammars[1:2]):
        masks = backend.masks(batch, 4)
        assert masks.shape == (len(batch), PADDED // 32)
        for row, grammar in zip(masks, batch, strict=True):
            wanted = set(range(PADDED)) if grammar is ended else legal(backend, grammar)
            assert {bit for bit in range(PADDED) if row[bit // 32] >> (bit % 32) & 1} == wanted


def test_a_new_bitmask_is_noticed(guide: Guide, binding: Callable[..., Binding]) -> None:
    backend = backend_of()
    grammar = backend.bind(binding(guide), [])
    for rows in (1, 4, 2):
        assert legal(backend, grammar, row=rows - 1, rows=rows) == expected(guide, [], None)


def test_ids_after_the_end_token_are_ignored_and_can_be_given_back(
    guide: Guide, binding: Callable[..., Binding]
) -> None:
    grammar = backend_of().bind(binding(guide), [])
    record = [byte + 2 for byte in b'{"name":"ab","total":7}']
    assert grammar.accept_tokens("r", [*record, EOS, 5, 6])
    assert grammar.is_terminated()
    assert grammar.accept_tokens("r", [5])
    assert grammar.validate_tokens([5]) == []
    grammar.rollback(1)
    assert not grammar.is_terminated()
    assert grammar.validate_tokens([EOS]) == [EOS]


def test_a_rejected_batch_leaves_nothing_behind(guide: Guide, binding: Callable[..., Binding]) -> None:
    backend = backend_of()
    grammar = backend.bind(binding(guide), [])
    assert not grammar.accept_tokens("r", [ord("{") + 2, ord("x") + 2])
    assert legal(backend, grammar) == expected(guide, [], None)


def test_a_continuation_starts_after_its_prefix_and_returns_there(
    guide: Guide, binding: Callable[..., Binding]
) -> None:
    backend = backend_of()
    prefix = [byte + 2 for byte in b'{"name":"a']
    grammar = backend.bind(binding(guide, budget_tokens=25, prefix_tokens=len(prefix)), [9, 9, 9, *prefix])
    assert legal(backend, grammar) == expected(guide, prefix, 25)
    assert grammar.accept_tokens("r", [ord("b") + 2])
    grammar.reset()
    assert legal(backend, grammar) == expected(guide, prefix, 25)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"prefix_tokens": 2}, "prefix"),
        ({"budget_tokens": 2}, "budget of 2 tokens"),
        ({"path": "/nowhere/guide.bin"}, "cannot be opened"),
        ({"fingerprint": "0" * 16}, "holds guide"),
    ],
)
def test_what_cannot_be_bound_is_refused_alone(
    change: dict[str, Any], reason: str, guide: Guide, binding: Callable[..., Binding]
) -> None:
    values = {"fingerprint": guide.fingerprint, "path": binding(guide).path} | change
    with pytest.raises(RequestRefusedError, match=reason):
        backend_of().bind(Binding(**values), [ord("{") + 2, ord("x") + 2])


def test_a_guide_for_a_larger_vocabulary_is_refused_before_it_can_write_past_a_row(
    guide: Guide, binding: Callable[..., Binding]
) -> None:
    with pytest.raises(RequestRefusedError, match="made for 275"):
        backend_of(vocab_size=256).bind(binding(guide), [])


def test_a_file_that_is_no_guide_is_refused(tmp_path: Path) -> None:
    (tmp_path / "guide-x.bin").write_bytes(b"not a guide, and not empty either")
    with pytest.raises(RequestRefusedError, match="cannot be opened"):
        backend_of().bind(Binding("x", str(tmp_path / "guide-x.bin")), [])


def test_several_guides_serve_side_by_side(guide: Guide, folder: Path, binding: Callable[..., Binding]) -> None:
    backend = backend_of()
    guides = [guide, *(guide_of(pattern, word_vocabulary()) for pattern in (OTHER, LIST))]
    for other in guides[1:]:
        saved(other, folder)
    grammars = [backend.bind(binding(each), []) for each in guides]
    prefixes = [b'{"name":"', b'{"day":"', b'{"items":[']
    for each, grammar, prefix in zip(guides, grammars, prefixes, strict=True):
        ids = [byte + 2 for byte in prefix]
        assert grammar.accept_tokens("r", ids)
        assert legal(backend, grammar) == expected(each, ids, None)


def test_a_document_decides_what_an_extractive_field_may_say(folder: Path, binding: Callable[..., Binding]) -> None:
    guide = copying_guide(word_vocabulary())
    saved(guide, folder)
    backend = backend_of()
    asked = binding(guide, budget_tokens=30, document=document_of("abc", "a b").to_bytes())
    for grammar in (backend.bind(asked, []), backend.bind_soon(asked, []).result()):
        assert grammar.accept_tokens("r", [byte + 2 for byte in b'{"name":"a'])
        after = {chr(token_id - 2) for token_id in legal(backend, grammar) if token_id < 258}
        assert after == {"b", " "}
    with pytest.raises(RequestRefusedError, match="needs the document"):
        backend.bind(binding(guide), [])
    with pytest.raises(RequestRefusedError, match="no value"):
        backend.bind_soon(binding(guide, document=document_of().to_bytes()), []).result()


def request_of(binding: Binding | None, max_tokens: int = 30, **attributes: Any) -> Any:
    extra_args = None if binding is None else binding.extra_args()
    structured = SimpleNamespace(grammar="vLLM's own")
    params = SimpleNamespace(extra_args=extra_args, max_tokens=max_tokens)
    return SimpleNamespace(
        request_id="r", structured_output_request=structured, sampling_params=params, prompt_token_ids=[5], **attributes
    )


def test_the_scheduler_binds_what_is_ours_and_leaves_the_rest(guide: Guide, binding: Callable[..., Binding]) -> None:
    backend = backend_of()
    ours, other, bad = request_of(binding(guide)), request_of(None), request_of(binding(guide, budget_tokens=1))
    for request in (ours, other, bad):
        bind_request(backend, request)
    assert isinstance(ours.structured_output_request.grammar, CursorGrammar)
    assert other.structured_output_request.grammar == "vLLM's own"
    with pytest.raises(RequestRefusedError):
        bad.structured_output_request.grammar.result()


def test_a_bound_request_goes_on_without_its_binding(guide: Guide, binding: Callable[..., Binding]) -> None:
    """Fails when vLLM sends the document on to every worker; what the client holds stays as it was."""
    asked = binding(guide).extra_args()
    for theirs, left in (({}, None), ({"theirs": 1}, {"theirs": 1})):
        request = request_of(binding(guide))
        request.sampling_params.extra_args = given = {**asked, **theirs}
        bind_request(backend_of(), request)
        assert request.sampling_params.extra_args == left
        assert given == {**asked, **theirs}
    other = request_of(None)
    other.sampling_params.extra_args = {"theirs": 1}
    bind_request(backend_of(), other)
    assert other.sampling_params.extra_args == {"theirs": 1}


def test_a_request_that_the_context_would_cut_off_is_refused(guide: Guide, binding: Callable[..., Binding]) -> None:
    """Fails when only the budget is looked at: vLLM ends a request where its context ends."""
    backend = backend_of()
    fits, too_long = (request_of(binding(guide, budget_tokens=30), max_tokens) for max_tokens in (CONTEXT - 1, CONTEXT))
    for request in (fits, too_long):
        bind_request(backend, request)
    assert isinstance(fits.structured_output_request.grammar, CursorGrammar)
    with pytest.raises(RequestRefusedError, match="do not fit into max_model_len 64"):
        too_long.structured_output_request.grammar.result()


def test_our_literal_gives_a_grammar_that_serves_nobody_until_it_is_bound() -> None:
    unbound = backend_of().compile_grammar(StructuredOutputOptions.REGEX, guide_literal("abc"))
    with pytest.raises(RequestRefusedError):
        unbound.accept_tokens("r", [1])


def manager_of(**attributes: Any) -> SimpleNamespace:
    """As much of vLLM's manager as is relied on."""
    config = SimpleNamespace(model_config=SimpleNamespace(get_vocab_size=lambda: PADDED))
    return SimpleNamespace(tokenizer=None, vllm_config=config, **attributes)


def test_the_backend_is_installed_where_there_is_none() -> None:
    manager = manager_of(backend=None)
    assert install_backend(manager) is manager.backend
    assert not hasattr(manager, "backend_name")


def test_a_manager_that_names_its_backend_is_told_the_name() -> None:
    manager = manager_of(backend=None, backend_name=None)
    install_backend(manager)
    assert manager.backend_name == "outlines"


@pytest.mark.parametrize("attributes", [{}, {"backend": "another"}])
def test_a_manager_of_another_vllm_stops_the_start_and_names_the_tested_versions(attributes: dict[str, Any]) -> None:
    with pytest.raises(EngineStartError, match=r"0\.32 tested"):
        install_backend(manager_of(**attributes))
