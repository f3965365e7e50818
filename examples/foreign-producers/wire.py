"""Names, partitions and records of duestream's wire protocol, version 1. Pure: nothing here talks to Redis."""
import binascii
import hashlib
import json
import re
from urllib.parse import urlencode

HORIZON_MS = 315_360_000_000
DATA_BYTES_MAX = 262_144
RECORD_BYTES_MAX = DATA_BYTES_MAX + 16384
DONE_WINDOW_MS = 600_000
EARLIEST_MS = 100_000_000_000
#: Scores of jobs that wait in line: the due and 2^52.
WAITS, WAITS_END = 2**52, 2**52 + 2**50

#: Tells a job without data from one whose data is null.
NO_DATA = object()

GROUP = r"(?!schedule:)[!-+\--:<-z~]{1,64}"
#: Jobs that follow from an ungrouped one have these ids.
DERIVED = r"(?:abandoned:[0-9]+|then:[0-9]+\.[0-9]+)\Z"
GROUPED = re.compile(rf"(?:j:)?\{{({GROUP})\}}(?!{DERIVED}).", re.DOTALL)

GRAMMAR = {
    "queue": re.compile(r"[a-z0-9][a-z0-9._-]{0,63}"),
    "jobName": re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}"),
    "id": re.compile(rf"(?=.{{1,128}}\Z)(?:\{{{GROUP}\}}(?!{DERIVED}))?[!-z|~]+"),
    "bareId": re.compile(r"(?!j:)[!-~]{1,130}"),
    "group": re.compile(GROUP),
}


def checked(what, text):
    if not GRAMMAR[what].fullmatch(text):
        raise ValueError(f"{what} is {text!r}; allowed: {GRAMMAR[what].pattern}")
    return text


def partition_keys(namespace, queue, partition):
    return {name: f"{namespace}:v1:{{{queue}:{partition}}}:{name}"
            for name in ("scheduled", "jobs", "runs", "done", "meta", "wake", "stale", "tags", "ready", "line",
                         "lanes", "holds")}


def control_keys(namespace):
    return {name: f"{namespace}:v1:{{control}}:{name}" for name in ("queues", "wake")}


def routing_text(job_id):
    start = job_id.find("{")
    end = job_id.find("}", start + 1) if start >= 0 else -1
    return job_id[start + 1:end] if end > start + 1 else job_id


def partition_of(job_id, partitions):
    return binascii.crc_hqx(routing_text(job_id).encode(), 0) % partitions


def base36(number):
    text = ""
    while number or not text:
        number, digit = divmod(number, 36)
        text = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + text
    return text


def member_of(job_id, bare=False):
    return job_id if bare else f"j:{job_id}"


def group_of(member):
    """The tenant, account or lock that a job of a gated queue belongs to; None: it has none."""
    found = GROUPED.match(member)
    return found and found[1]


def tags_value(priority="normal", tags=()):
    """The value of the letter t: a priority stands in front of the tags, as the tag =high or =low."""
    words = ([] if priority == "normal" else [f"={priority}"]) + sorted(set(tags))
    return ",".join(words).replace("=", " ")


def encode_record(due_ms, name="default", data=NO_DATA, options=None, header=None, headers=None, counts=False):
    """counts: the job counts in its group, where the pending jobs of each group are limited."""
    body = {}
    if name != "default":
        body["n"] = checked("jobName", name)
    if data is not NO_DATA:
        body["d"] = data
    if options:
        body["o"] = options
    letters = "".join(f";{letter}={value}" for letter, value in (header or {}).items())
    # Python would write NaN, which is no JSON.
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    asked = base36(due_ms)
    record = f"1{asked}{letters}|{text}".encode()
    if not headers and not counts:
        return record
    # By its mark it is the same call as with other headers, or with none, whether it counts or not.
    mark = f"{asked}.{hashlib.sha1(record).hexdigest()[:16]}"
    if counts:
        words = (header or {}).get("t")
        counted = {**(header or {}), "t": f"{words}, group" if words else " group"}
        letters = "".join(f";{letter}={value}" for letter, value in counted.items())
    sorted_headers = sorted((key.lower(), value) for key, value in (headers or {}).items())
    told = f";h={urlencode(sorted_headers)}" if headers else ""
    return f"1{asked}{letters}{told};m={mark}|{text}".encode()


def read_layout(value):
    """What the registry says of a queue: partitions and generation."""
    layout = json.loads(value)
    partitions, generation = layout["partitions"], layout["generation"]
    if type(partitions) is not int or not 1 <= partitions <= 1024 or type(generation) is not int:
        raise ValueError(f"the registry says {value!r}")
    return partitions, generation


def read_limit(setting, value):
    """What a limit of a queue says: 0 is no limit, None cannot be read and limits nothing."""
    if setting in ("fair", "costs"):
        return True
    if setting == "limits":
        names = [] if value == "-" else value.split(",")
        return names if len(names) <= 2 and all(GRAMMAR["queue"].fullmatch(name) for name in names) else None
    if setting != "rate":
        return int(value) if re.fullmatch(r"[0-9]{1,7}", value) else None
    found = re.fullmatch(r"([1-9][0-9]{0,8}) ([1-9][0-9]{0,8}) ([1-9][0-9]{0,6})", value)
    if found is None:
        return 0 if value == "0" else None
    return dict(zip(("limit", "perMs", "burst"), map(int, found.groups())))


def due_of(score):
    """The due of a job as scheduled has it, and whether the job is due and waits in line."""
    number = float(score)
    waits = WAITS <= number < WAITS_END
    return int(number - WAITS if waits else number), waits


def nudge_for(wake, due_ms):
    """What to publish for a job due then, when the leader will look at `wake`; None: nothing."""
    return str(due_ms) if wake is not None and due_ms < int(wake) else None


def check_due(due_ms, full=False):
    """0 means now for a bare job; whatever else is that small was meant in seconds."""
    if due_ms < EARLIEST_MS and (full or due_ms != 0):
        raise ValueError(f"due is {due_ms}; allowed: milliseconds since 1970, from {EARLIEST_MS}")
