"""Prints as many receipts as you like, each as an input of `extractor` on a line: `python many.py 1000 > many.jsonl`.

They are made of the twelve in `receipts`, with other days, amounts and numbers.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path


def receipts(count: int) -> Iterator[str]:
    """The texts, the same each time."""
    originals = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("receipts/*.txt"))]
    chance = random.Random(count)
    for number in range(count):
        text = originals[number % len(originals)].strip()
        day, cents = f"{chance.randrange(1, 29):02}", f"{chance.randrange(100):02}"
        text = re.sub(r"\b\d{2}(?=[./]11[./]2026)", day, text)
        text = re.sub(r"(?<=\d[.,])\d{2}$", cents, text, flags=re.MULTILINE)
        yield f"{text}\n\nNo. {number + 1:06}"


if __name__ == "__main__":
    for each in receipts(int(sys.argv[1])):
        print(json.dumps({"input": each}, ensure_ascii=False))
