#!/usr/bin/env python3
"""Checks wire.py against the golden vectors: ./check_vectors.py ../../test/golden/wire-v1.json

The cases `stories` and `dues` are about Redis and the daemon, not about what a producer encodes; the test of duestream plays them.
"""
import hashlib
import json
import sys

import wire as p

vectors = json.load(open(sys.argv[1], encoding="utf-8"))
checked = 0


def same(got, wanted, what):
    global checked
    checked += 1
    if got != wanted:
        sys.exit(f"{what}: got {got!r}, the vectors say {wanted!r}")


def allows(what, text):
    try:
        p.checked(what, text)
        return True
    except ValueError:
        return False


def layout_or_none(value):
    try:
        return p.read_layout(value)
    except (ValueError, KeyError, TypeError):
        return (None, None)


for one in vectors["keys"]:
    keys = p.partition_keys(one["namespace"], one["queue"], one["partition"])
    same({name: keys[name] for name in one["keys"]}, one["keys"], "keys")
    same(p.control_keys(one["namespace"]), one["control"], "control keys")
for what, lists in vectors["names"].items():
    for valid in (True, False):
        for text in lists["valid" if valid else "invalid"]:
            same(allows(what, text), valid, f"{what} {text!r}")
for one in vectors["members"]:
    same(p.member_of(one["id"], one["bare"]), one["member"], "member")
for one in vectors["groups"]:
    same(p.group_of(one["member"]), one["group"], f"group of {one['member']!r}")
for one in vectors["partitions"]:
    same(p.routing_text(one["id"]), one["text"], "routing text")
    for partitions, partition in one["of"].items():
        same(p.partition_of(one["id"], int(partitions)), partition, f"partition of {one['id']} among {partitions}")
for one in vectors["base36"]:
    same(p.base36(one["number"]), one["text"], "base 36")
for one in vectors["records"]:
    job = {key: one[key] for key in ("name", "data", "options", "header", "headers", "counts") if key in one}
    record = p.encode_record(one["dueMs"], **job)
    same(record.decode(), one["record"], "record")
    same(len(record), one["bytes"], "bytes of the record")
    same(hashlib.sha1(record).hexdigest()[:16], one["digest"], "digest of the record")
    words = one.get("header", {}).get("t", "").replace(" ", "=").split(",")
    priority = next((word[1:] for word in words if word.startswith("=")), "normal")
    tags = [word for word in words if word and not word.startswith("=")]
    same(p.tags_value(priority, tags), one.get("header", {}).get("t", ""), "tags of the record")
for one in vectors["registry"]:
    same(layout_or_none(one["value"]), (one["partitions"], one["generation"]), f"registry {one['value']!r}")
for one in vectors["limits"]:
    same(p.read_limit(one["setting"], one["value"]), one["means"], f"limit {one['setting']} {one['value']!r}")
for one in vectors["scores"]:
    same(p.due_of(one["score"]), (one["dueMs"], one["isWaiting"]), f"score {one['score']}")
for one in vectors["nudges"]:
    same(p.nudge_for(one["wake"], one["dueMs"]), one["publish"], f"nudge for {one}")

print(f"{checked} checks passed")
