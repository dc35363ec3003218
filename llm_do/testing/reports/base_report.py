"""An earlier report as the base that results are compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import cast, get_args

from llm_do._startup.frozen import frozen
from llm_do.errors import UsageError
from llm_do.testing.cases.results import CaseResult, CaseStatus
from llm_do.testing.reports.json_report import VERSION

__all__ = ["Base", "BaseCase", "describe_change", "read_base"]

_AGAIN = "Write one with `llm-do test --format json --output FILE`."


@frozen
class BaseCase:
    """What is compared of a case: counts and amounts of one repeat, on average.

    Args:
        name: The case's name.
        status: How it ended.
        rate: The share of repeats that passed.
        steps: Model responses.
        tokens: Tokens.
        cost: US dollars; None if it isn't known.
    """

    name: str
    status: CaseStatus
    rate: float
    steps: float
    tokens: float
    cost: Decimal | None

    @classmethod
    def of(cls, case: CaseResult) -> BaseCase:
        """What is compared of a result."""
        repeats = max(case.repeats, 1)
        cost = None if case.cost is None else case.cost / repeats
        rate, steps, tokens = case.passed_repeats, case.steps, case.usage.total_tokens
        return cls(case.name, case.status, rate / repeats, steps / repeats, tokens / repeats, cost)


@frozen
class Base:
    """An earlier report's cases, by id and column."""

    cases: Mapping[tuple[str, str | None], BaseCase]


def describe_change(case: CaseResult, base: Base) -> str:
    """What has changed of a case, in a few words; none if nothing has.

    Example:
        >>> case = CaseResult("t::a", "a", Path("t"), 1, None, "passed", passed_repeats=1, steps=4)
        >>> describe_change(case, Base({("t::a", None): BaseCase("a", "failed", 0.0, 2.0, 0.0, None)}))
        'failed before, steps +100%'
        >>> describe_change(case, Base({}))
        'new'
    """
    before = base.cases.get((case.id, case.column))
    if before is None:
        return "new"
    if "skipped" in (case.status, before.status):
        return "" if case.status == before.status else f"{before.status} before"
    now = BaseCase.of(case)
    words: list[str] = []
    if now.status != before.status:
        words.append(f"{before.status} before")
    elif now.rate != before.rate:
        words.append(f"{before.rate:.0%} passed before")
    words += _amount("steps", before.steps, now.steps) + _amount("tokens", before.tokens, now.tokens)
    if before.cost is not None and now.cost is not None:
        words += _amount("cost", float(before.cost), float(now.cost))
    return ", ".join(words)


def _amount(noun: str, before: float, now: float) -> list[str]:
    if before == now:
        return []
    if not before:
        return [f"{noun} from 0"]
    percent = round((now - before) / before * 100)
    return [f"{noun} {percent:+,}%"] if percent else []


def read_base(path: Path) -> Base:
    """Read a report.

    Raises:
        UsageError: There is none, or it isn't a report of this version.
    """
    data = _read(path)
    version = data.get("report")
    if version != VERSION:
        raise UsageError(
            f"{path} is a report of version {json.dumps(version)}, and this llm-do reads version {VERSION}"
            if "report" in data
            else f"{path} is not a report of llm-do test",
            hint=_AGAIN,
            file=str(path),
            line=1,
        )
    try:
        cases = cast("list[Mapping[str, object]]", data["cases"])
        return Base({(_text(each["id"]), _column(each["column"])): _case(each) for each in cases})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(f"the report {path} is damaged: {reason}", hint=_AGAIN, file=str(path)) from error


def _read(path: Path) -> Mapping[str, object]:
    try:
        data: object = json.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(f"there is no report {path}", hint=_AGAIN, file=str(path)) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the report {path} can't be read: {error}", hint=_AGAIN, file=str(path)) from error
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}", hint=_AGAIN, file=str(path), line=1) from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} is not a report of llm-do test", hint=_AGAIN, file=str(path), line=1)
    return cast("dict[str, object]", data)


def _case(data: Mapping[str, object]) -> BaseCase:
    status = data["status"]
    if status not in get_args(CaseStatus):
        raise ValueError(f"a status {json.dumps(status)}")
    repeats = max(_number(data["repeats"]), 1)
    cost = data["cost_usd"]
    usage = cast("Mapping[str, object]", data["usage"])
    return BaseCase(
        _text(data["name"]),
        cast("CaseStatus", status),
        _number(data["passed_repeats"]) / repeats,
        _number(data["steps"]) / repeats,
        _number(usage["total_tokens"]) / repeats,
        None if cost is None else Decimal(str(_number(cost))) / Decimal(str(repeats)),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise ValueError(f"{json.dumps(value)} where a number should be")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{json.dumps(value)} where a text should be")
    return value


def _column(value: object) -> str | None:
    return None if value is None else _text(value)
