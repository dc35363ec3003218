"""Propose rules that would have spared a person the most questions, and would have allowed nothing that was denied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from llm_do._startup.frozen import frozen
from llm_do.linker.proofs.policy_replay import Replayed
from llm_do.policy.matcher import PreparedCall, matches, prepare_call
from llm_do.policy.pattern import Pattern, parse_pattern
from llm_do.policy.proofs import check_examples, is_overly_broad
from llm_do.policy.proposals import proposed_rules
from llm_do.policy.rules import Rule
from llm_do.policy.values import ToolCallInfo
from llm_do.text.canonical_json import canonical_json

__all__ = ["RuleProposal", "propose_rules"]

_MOST = 5
"""The most rules to propose."""

_EXAMPLES = 3
"""The most examples of each kind beside a rule."""

_MOST_CALLS = 1_000
"""The most different calls to derive rules from, the most frequent first."""

_MOST_CANDIDATES = 20
"""The most rules to compare, those for most calls first."""


@frozen
class RuleProposal:
    """A rule with its test cases.

    Args:
        rule: The rule.
        spared: The questions that it would have spared, in addition to the rules before it.
        allows: Arguments that it allows, for its test cases.
        refuses: Arguments that were denied and that it doesn't allow.
    """

    rule: str
    spared: int
    allows: Sequence[str] = ()
    refuses: Sequence[str] = ()

    def entry(self) -> dict[str, Any]:
        """Return the entry for `approvals.allow` in the manifest."""
        entry: dict[str, Any] = {"rule": self.rule, "why": f"would have spared {self.spared} recorded questions"}
        if self.allows:
            entry["allows"] = list(self.allows)
        if self.refuses:
            entry["refuses"] = list(self.refuses)
        return entry


def propose_rules(calls: Iterable[Replayed]) -> list[RuleProposal]:
    """Propose rules for calls that a person allowed and would be asked about again, the most useful first."""
    asked: dict[str, tuple[Replayed, int]] = {}
    denied: list[Replayed] = []
    for each in calls:
        if each.call.then in ("denied", "rejected"):
            denied.append(each)
        elif each.call.then == "approved" and each.now == "ask" and each.info is not None:
            key = f"{each.call.path} {each.call.tool} {canonical_json(each.call.args)}"
            count = asked[key][1] if key in asked else 0
            asked[key] = each, count + 1
    left: dict[str, tuple[Replayed, int]] = dict(asked)
    candidates: dict[str, Pattern] = dict(_candidates(sorted(asked.values(), key=lambda found: -found[1]), denied))
    prepared = {key: prepare_call(each.info) for key, (each, _) in asked.items() if each.info is not None}
    covers = {text: _covered(pattern, prepared) for text, pattern in candidates.items()}
    found: list[RuleProposal] = []
    while left and covers and len(found) < _MOST:
        gains = {text: sum(left[key][1] for key in keys if key in left) for text, keys in covers.items()}
        # Of rules that spare as many, the narrower one covers fewer other calls: the one that was proposed first.
        best = max(gains, key=lambda text: gains[text])
        if gains[best] < 2:
            break
        examples = [left[key][0] for key in covers[best] if key in left]
        found.append(_with_examples(best, candidates[best], gains[best], examples, denied))
        covered = frozenset(covers.pop(best))
        left = {key: value for key, value in left.items() if key not in covered}
    return found


def _candidates(asked: Sequence[tuple[Replayed, int]], denied: Sequence[Replayed]) -> Iterator[tuple[str, Pattern]]:
    """Yield the rules that are proposed for most of the calls, and allow none that was denied."""
    counts: Counter[str] = Counter()
    made_for: dict[str, Replayed] = {}
    for each, count in asked[:_MOST_CALLS]:
        for text in proposed_rules(each.info) if each.info is not None else ():
            made_for.setdefault(text, each)
            counts[text] += count
    kept = 0
    for text, _ in counts.most_common():
        pattern, each = parse_pattern(text), made_for[text]
        info, tool = each.info, each.tool
        bare = pattern.primary is None and not pattern.named
        if info is None or tool is None or (bare and (info.resolved or info.kind != "function")):
            continue
        if is_overly_broad(Rule("allow", pattern, text), [tool.facts]):
            continue
        if any(_may_allow(pattern, other) for other in denied):
            continue
        yield text, pattern
        kept += 1
        if kept == _MOST_CANDIDATES:
            return


def _may_allow(pattern: Pattern, denied: Replayed) -> bool:
    """Whether a rule would allow a call that was denied, or may, since the call isn't known whole."""
    if denied.info is not None:
        return matches(pattern, denied.info)
    return pattern.tool.matches(denied.call.tool)


def _covered(pattern: Pattern, prepared: Mapping[str, PreparedCall]) -> list[str]:
    """Return the keys of the calls that a rule allows."""
    return [key for key, call in prepared.items() if matches(pattern, call)]


def _with_examples(
    text: str, pattern: Pattern, spared: int, calls: Sequence[Replayed], denied: Sequence[Replayed]
) -> RuleProposal:
    """Add test cases to a rule: the ones that come out as they should."""
    refused = [each for each in denied if pattern.tool.matches(each.call.tool)]
    tool = next(each.tool for each in calls)
    facts = [tool.facts] if tool is not None else []
    allows: list[str] = []
    refuses: list[str] = []
    for key, found, examples in (("allows", calls, allows), ("refuses", refused, refuses)):
        for each in found:
            example = _example(pattern, each.info)
            if example is None or example in examples or len(examples) == _EXAMPLES:
                continue
            rule = Rule("allow", pattern, text, **{key: (example,)})  # pyright: ignore[reportArgumentType]
            if not check_examples(rule, facts):
                examples.append(example)
    return RuleProposal(text, spared, allows, refuses)


def _example(pattern: Pattern, info: ToolCallInfo | None) -> str | None:
    """Return a call as an example of a rule: the text of the argument that the rule is about."""
    if info is None:
        return None
    if pattern.primary is not None and isinstance(info.primary, str):
        value = info.args.get(info.primary)
    elif len(pattern.named) == 1:
        value = info.args.get(pattern.named[0][0])
    else:
        return None
    return value if isinstance(value, str) and value and len(value) <= 200 and "\n" not in value else None
