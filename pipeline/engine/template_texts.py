"""Owns what a prompt's template may do with the texts that are put in: print them.

A template is rendered before any document is read, so a filter or a test would see what stands for a text, and the
document would go past it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jinja2 import nodes

from pipeline.core.errors import SpecError

__all__ = ["check_texts"]

_OF_DOCUMENT = (
    "`text` can be printed and nothing else, since a template is rendered before any document is read; "
    "truncation.long_documents cuts long documents, and other changes belong into the input"
)
_OF_EXAMPLE = (
    "the `text` of an example can be printed and nothing else; write it in prompt.examples as it should be read"
)


def check_texts(tree: nodes.Template) -> None:
    """Looks for a text in a filter, a test, a condition, a call, or a block whose output is kept.

    Args:
        tree: the template, with the variables `text` and `examples`.

    Raises:
        SpecError: there is one; the message names the line, and what to do instead.
    """
    examples = _example_names(tree)
    printed = {id(part) for output in _outputs(tree) for node in output.nodes for part in _parts(node)}
    for node in tree.find_all((nodes.Name, nodes.Getattr, nodes.Getitem)):
        if id(node) not in printed and (refusal := _refusal(node, examples)) is not None:
            raise SpecError(f"prompt.template, line {node.lineno}: {refusal}")


def _refusal(node: nodes.Node, examples: Collection[str]) -> str | None:
    """Why a text may not stand here; None where this is none."""
    match node:
        case nodes.Name(name="text", ctx="load"):
            return _OF_DOCUMENT
        case nodes.Getattr() | nodes.Getitem() if _member(node) == "text" and _is_of_examples(node.node, examples):
            return _OF_EXAMPLE
    return None


def _outputs(tree: nodes.Template) -> Iterator[nodes.Output]:
    """What is printed, but for blocks whose output goes through a filter or into a variable."""
    kept = {
        id(output)
        for block in tree.find_all((nodes.FilterBlock, nodes.AssignBlock, nodes.CallBlock))
        for output in block.find_all(nodes.Output)
    }
    return (output for output in tree.find_all(nodes.Output) if id(output) not in kept)


def _parts(node: nodes.Expr) -> Iterator[nodes.Expr]:
    """What an expression prints unaltered: the operands of `~`, and either side of an `if`."""
    match node:
        case nodes.Concat():
            yield from (part for operand in node.nodes for part in _parts(operand))
        case nodes.CondExpr():
            yield from (part for side in (node.expr1, node.expr2) if side is not None for part in _parts(side))
        case _:
            yield node


def _example_names(tree: nodes.Template) -> frozenset[str]:
    """`examples`, and the variables that stand for some of them."""
    names = {"examples"}
    for node in tree.find_all((nodes.For, nodes.Assign)):
        match node:
            case (
                nodes.For(target=nodes.Name(name=name), iter=source)
                | nodes.Assign(target=nodes.Name(name=name), node=source)
            ) if _is_of_examples(source, names):
                names.add(name)
    return frozenset(names)


def _is_of_examples(node: nodes.Node, examples: Collection[str]) -> bool:
    """Whether this is one or several of the examples, and not within a record."""
    while isinstance(node, nodes.Getattr | nodes.Getitem | nodes.Filter) and node.node is not None:
        if not isinstance(node, nodes.Filter) and _member(node) == "record":
            return False
        node = node.node
    return isinstance(node, nodes.Name) and node.name in examples


def _member(node: nodes.Getattr | nodes.Getitem) -> object:
    if isinstance(node, nodes.Getattr):
        return node.attr
    return node.arg.value if isinstance(node.arg, nodes.Const) else None
