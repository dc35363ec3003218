"""A project's graph in languages that other programs draw: Mermaid and DOT."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from llm_do.project.title import title
from llm_do.text.sanitizer import sanitize

__all__ = ["OUTCOMES", "dot", "mermaid", "tools_besides"]

_EDGES = {"allow": "-->", "ask": "-.->", "deny": "--x", "runs": "-->", "at run time": "-.->", "unknown": "-.->"}
_STYLES = {
    "allow": "solid",
    "ask": "dashed",
    "deny": "dotted",
    "runs": "solid",
    "at run time": "dashed",
    "unknown": "dashed",
}

OUTCOMES: Mapping[str, str] = {"holds": "proved  ", "unproved": "unproved", "broken": "broken  "}
"""What is said of an assertion."""


def tools_besides(agent: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What an agent has besides tools that are known: its name, the effect, and why no more is known."""
    yield from ((name, "ask", "tools are only known at run time") for name in agent["open"])
    yield from ((name, "allow", "run by the provider") for name in agent["server_side"])
    yield from ((name, "unknown", "its file was not imported") for name in agent.get("unread", ()))


def mermaid(data: Mapping[str, Any], *, assertions: bool = False) -> str:
    """Draw the agents and tools as a Mermaid flowchart: a solid line is allowed, a dashed one needs approval.

    With `assertions`, they are listed beside it.
    """
    ids, edges = _number_nodes(data)
    text = title(data["name"], data["description"])
    lines = [*(["---", f"title: {json.dumps(text)}", "---"] if text is not None else []), "flowchart LR"]
    for (kind, name), number in ids.items():
        text = _mermaid_text(name)
        shape = {
            "agent": f"[{text}]",
            "entry": f"[[{text}]]",
            "flow": f"{{{{{text}}}}}",
            "tool": f"({text})",
            "open": f"([{text}])",
        }[kind]
        lines.append(f"  {number}{shape}")
    lines += [
        f"  {start} {_EDGES[effect]}|{_mermaid_text(effect + star) if len(star) > 1 else effect + star}| {end}"
        for start, end, effect, star in edges
    ]
    if assertions and (proofs := data["assertions"]):
        texts = [f"{OUTCOMES[proof['outcome']].strip()}: {proof['assert']}" for proof in proofs]
        lines += ["  subgraph assertions"]
        lines += [f"    a{number}[{_mermaid_text(text)}]" for number, text in enumerate(texts)]
        lines += ["  end"]
    return "".join(f"{line}\n" for line in lines)


def dot(data: Mapping[str, Any], *, assertions: bool = False) -> str:
    """Draw the agents and tools as DOT, for Graphviz; with `assertions`, they are listed beside it."""
    ids, edges = _number_nodes(data)
    shapes = {"agent": "box", "entry": "box, peripheries=2", "flow": "hexagon", "tool": "ellipse", "open": "component"}
    text = title(data["name"], data["description"])
    lines = ["digraph project {", "  rankdir=LR;", *([f"  label={_quote(text)};"] if text is not None else [])]
    lines += [f"  {number} [label={_quote(name)}, shape={shapes[kind]}];" for (kind, name), number in ids.items()]
    lines += [
        f"  {start} -> {end} [label={_quote(effect + star)}, style={_STYLES[effect]}];"
        for start, end, effect, star in edges
    ]
    if assertions:
        texts = [f"{OUTCOMES[proof['outcome']].strip()}: {proof['assert']}" for proof in data["assertions"]]
        lines += [f"  a{number} [label={_quote(text)}, shape=note];" for number, text in enumerate(texts)]
    return "".join(f"{line}\n" for line in (*lines, "}"))


def _number_nodes(data: Mapping[str, Any]) -> tuple[dict[tuple[str, str], str], list[tuple[str, str, str, str]]]:
    """Nodes with ids that any language takes, and edges: from, to, effect, and a star where arguments change it.

    A flow's edge has its condition instead of the star.
    """
    ids: dict[tuple[str, str], str] = {}
    edges: list[tuple[str, str, str, str]] = []

    def number(kind: str, name: str) -> str:
        return ids.setdefault((kind, name), f"n{len(ids)}")

    entry = data["entry"]
    kinds = {agent["name"]: "agent" for agent in data["agents"]} | {flow["name"]: "flow" for flow in data["flows"]}
    if entry["kind"] == "function":
        start = number("entry", f"{entry['name']}()")
        edges += [(start, number(kinds[root], root), "at run time", "") for root in data["roots"]]
    else:
        kinds[entry["name"]] = "entry"
    for flow in data["flows"]:
        start = number(kinds[flow["name"]], flow["name"])
        for member in flow["members"]:
            condition = f" {member['condition']}" if member["condition"] is not None else ""
            edges.append((start, number(kinds.get(member["name"], "tool"), member["name"]), "runs", condition))
    for agent in data["agents"]:
        start = number(kinds[agent["name"]], agent["name"])
        for tool in agent["tools"]:
            callee = tool["agent"] or tool["flow"]
            owner = f"{tool['toolset']}: " if tool["toolset"] else ""
            end = number(kinds[callee], callee) if callee in kinds else number("tool", owner + tool["name"])
            edges.append((start, end, tool["effect"], "*" if tool["rules"] else ""))
        edges += [(start, number("open", name), effect, "") for name, effect, _ in tools_besides(agent)]
        edges += [(start, number(kinds.get(name, "agent"), name), "runs", "") for name in agent["handoffs"]]
    return ids, list(dict.fromkeys(edges))


def _mermaid_text(text: str) -> str:
    escaped = "".join(char if char.isalnum() or char in " _-.:()" else f"#{ord(char)};" for char in sanitize(text))
    return f'"{escaped}"'


def _quote(text: str) -> str:
    return json.dumps(sanitize(text), ensure_ascii=False)
