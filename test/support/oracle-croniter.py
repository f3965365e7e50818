"""The instants of recurrences by croniter and zoneinfo: one JSON question on standard input, one JSON answer.

croniter is asked without a zone, for the wall-clock times that an expression names. What they mean in a zone follows
from Python's own reading of the time zone database (PEP 495: fold 0 is the offset before a change, fold 1 the one after
it). Nothing of duestream is used here.
"""

import json
import sys
import zoneinfo
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path

import croniter

EPOCH = datetime(1970, 1, 1)


@lru_cache(maxsize=None)
def named(text, first, last):
    """Wall-clock times from first to last, as seconds of a clock without a zone."""
    times = []
    cron = croniter.croniter(text, EPOCH + timedelta(seconds=first - 1), max_years_between_matches=50)
    while True:
        wall = cron.get_next(datetime)
        if (wall - EPOCH).total_seconds() > last:
            return times
        times.append(int((wall - EPOCH).total_seconds()))


def instants(zone, wall, gap, overlap):
    local = (EPOCH + timedelta(seconds=wall)).replace(tzinfo=zone)
    before = int(local.utcoffset().total_seconds())
    after = int(local.replace(fold=1).utcoffset().total_seconds())
    if before == after:
        return [wall - before]
    if before < after:
        return [wall - before] if gap == "shift" else []
    return {"first": [wall - before], "second": [wall - after], "both": [wall - before, wall - after]}[overlap]


def fires(case):
    zone = zoneinfo.ZoneInfo(case["zone"])
    first, last = case["from"], case["to"]
    walls = named(case["cron"], first - 2 * 86400, last + 2 * 86400)
    found = {at for wall in walls for at in instants(zone, wall, case["gap"], case["overlap"])}
    return sorted(at for at in found if first < at <= last)


def offset(zone, at):
    return int(datetime.fromtimestamp(at, zone).utcoffset().total_seconds())


def changes(question):
    """Every change of the offset: when, and the offset from then on."""
    zone, found = zoneinfo.ZoneInfo(question["zone"]), []
    for start in range(question["from"], question["to"], 86400):
        low, high = start, min(start + 86400, question["to"])
        if offset(zone, low) == offset(zone, high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(zone, middle) == offset(zone, low) else (low, middle)
        found.append([high, offset(zone, high)])
    return found


def version():
    for folder in zoneinfo.TZPATH:
        for name in ("tzdata.zi", "+VERSION"):
            path = Path(folder) / name
            if path.exists():
                return path.read_text().split("\n", 1)[0].replace("# version ", "").strip()
    return "unknown"


asked = json.load(sys.stdin)
json.dump(
    {
        "python": sys.version.split()[0],
        "tz": version(),
        "changes": [changes(question) for question in asked["changes"]],
        "fires": [fires(case) for case in asked["cases"]],
    },
    sys.stdout,
)
