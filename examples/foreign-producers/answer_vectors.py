#!/usr/bin/env python3
"""Answers what duestream asks of the golden vectors: duestream conformance --producer "python3 answer_vectors.py" """
import json
import sys

import wire as p


def is_allowed(what, text):
    try:
        p.checked(what, text)
        return True
    except ValueError:
        return False


def keys_named(keys, names):
    return {name: keys[name] for name in names}


def layout(value):
    try:
        partitions, generation = p.read_layout(value)
    except (ValueError, KeyError, TypeError):
        partitions, generation = None, None
    return {"partitions": partitions, "generation": generation}


def record(dueMs, **job):
    return p.encode_record(dueMs, **job).decode()


ANSWERS = {
    "keys": lambda namespace, queue, partition, names: keys_named(p.partition_keys(namespace, queue, partition), names),
    "control": lambda namespace, names: keys_named(p.control_keys(namespace), names),
    "allowed": lambda what, text: is_allowed(what, text),
    "member": lambda id, bare: p.member_of(id, bare),
    "group": lambda member: p.group_of(member),
    "partition": lambda id, partitions: p.partition_of(id, partitions),
    "record": record,
    "layout": layout,
    "nudge": lambda wake, dueMs: p.nudge_for(wake, dueMs),
}

for line in sys.stdin:
    question = json.loads(line)
    answer = ANSWERS.get(question["ask"])
    said = {"knows": False} if answer is None else {"says": answer(**question["given"])}
    print(json.dumps(said), flush=True)
