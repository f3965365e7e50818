#!/usr/bin/env python3
"""A producer for duestream in Python, written from docs/wire-protocol.md alone. Copy it, and the two Lua files.

    ./producer.py put      emails order-1042 --in 60000
    ./producer.py schedule emails order-1042 --in 60000 --name welcome --data '{"to": "ada@example.org"}'
    ./producer.py cancel   emails order-1042 [--bare]

What must always hold: a due is worked out once, before the first try, and a record is encoded once, so that every
repetition is the same call, byte for byte.
"""
import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import redis
from redis.exceptions import (AuthenticationError, ConnectionError, NoScriptError, ReadOnlyError, RedisError,
                              ResponseError, TimeoutError)

from wire import (DONE_WINDOW_MS, HORIZON_MS, NO_DATA, RECORD_BYTES_MAX, base36, check_due, checked, control_keys,
                  encode_record, member_of, nudge_for, partition_keys, partition_of, read_layout, tags_value)

JOBS_PER_CALL, BYTES_PER_CALL = 250, 512 * 1024
RETRY_SECONDS = 10
WAIT_AND_REPEAT = ("LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MISCONF")


class Indeterminate(Exception):
    """No reply: it may have been carried out. Repeat with the same id and due."""


class Moved(Exception):
    """The queue was resized, and the registry does not say how."""


class Producer:
    def __init__(self, client, namespace="duestream", lua="lua"):
        self.redis = client
        self.namespace = checked("queue", namespace)
        self.control = control_keys(namespace)
        self.lua, self.scripts = Path(lua), {}
        self.layouts = {}

    def now_ms(self):
        seconds, micros = self._repeated(self.redis.time)
        return seconds * 1000 + micros // 1000

    def layout(self, queue, partitions=1):
        """Partitions and generation of a queue, remembered for 30 seconds; declares it if nobody has."""
        known = self.layouts.get(queue)
        if known and time.monotonic() - known[0] < 30:
            return known[1]
        checked("queue", queue)
        key = self.control["queues"]
        value = self._repeated(lambda: self.redis.hget(key, queue))
        if value is None:
            new = json.dumps({"partitions": partitions, "generation": 0})
            if self._repeated(lambda: self.redis.hsetnx(key, queue, new)):
                self.redis.execute_command("SPUBLISH", self.control["wake"], f"queue {queue}")
            value = self._repeated(lambda: self.redis.hget(key, queue))
        self.layouts[queue] = time.monotonic(), read_layout(value)
        return self.layouts[queue][1]

    def put(self, queue, job_id, due_ms, nudge=True):
        """Level 1: a bare job. A repetition after a lost reply may make it run twice."""
        checked("bareId", job_id)
        check_due(due_ms)
        partitions, _ = self.layout(queue)
        keys = partition_keys(self.namespace, queue, partition_of(job_id, partitions))
        self._repeated(lambda: self.redis.zadd(keys["scheduled"], {job_id: due_ms}))
        if nudge:
            self._nudge(keys, due_ms)

    def _nudge(self, keys, due_ms):
        """After the ZADD: asked before, the answer could be out of date. One that is lost costs at most a second."""
        try:
            message = nudge_for(self.redis.hget(keys["meta"], "wake"), due_ms)
            if message is not None:
                self.redis.execute_command("SPUBLISH", keys["wake"], message)
        except RedisError:
            pass

    def schedule(self, queue, jobs, mode="keep"):
        """Level 2: jobs as dicts with id and due_ms, perhaps name, data, options, header, headers. A reply for each."""
        calls = []
        for job in jobs:
            fields = {key: job[key] for key in ("name", "data", "options", "header", "headers") if key in job}
            check_due(job["due_ms"], full=True)
            record = encode_record(job["due_ms"], **fields)
            if len(record) > RECORD_BYTES_MAX:
                raise ValueError(f"the record of {job['id']} has {len(record)} bytes; allowed: {RECORD_BYTES_MAX}")
            calls.append((checked("id", job["id"]), [member_of(job["id"]), record, str(job["due_ms"])]))
        return self._everywhere("schedule", queue, calls, (mode, HORIZON_MS, RECORD_BYTES_MAX))

    def cancel(self, queue, ids, bare=False):
        calls = [(checked("bareId" if bare else "id", one), [member_of(one, bare)]) for one in ids]
        return self._everywhere("cancel", queue, calls, (DONE_WINDOW_MS,))

    def _everywhere(self, verb, queue, calls, args):
        """Sends each call to its partition, in chunks; again where the queue has moved meanwhile."""
        replies, left = [None] * len(calls), list(range(len(calls)))
        for tries in range(6):
            partitions, generation = self.layout(queue)
            moved = []
            for partition, chunk in self._chunks(calls, left, partitions):
                while chunk:
                    each = [part for index in chunk for part in calls[index][1]]
                    reply = self._script(verb, queue, partition, [b"", str(generation), *args, *each])
                    if reply[0] == "moved":
                        moved += chunk
                        break
                    for index, one in zip(chunk, reply):
                        replies[index] = one
                    # A call that had read its share: the first of it is always looked at, so this comes to an end.
                    chunk = [index for index, one in zip(chunk, reply) if one == "later"]
            if not moved:
                return replies
            left = moved
            self.layouts.pop(queue, None)
            time.sleep(0.05 * tries)
        raise Moved(f"queue {queue} was resized again and again; {len(left)} of {len(calls)} were not sent")

    @staticmethod
    def _chunks(calls, indexes, partitions):
        chunks = {}
        for index in indexes:
            job_id, parts = calls[index]
            size = sum(len(part) for part in parts)
            several = chunks.setdefault(partition_of(job_id, partitions), [])
            if not several or len(several[-1][0]) == JOBS_PER_CALL or several[-1][1] + size > BYTES_PER_CALL:
                several.append([[], 0])
            several[-1][0].append(index)
            several[-1][1] += size
        return [(partition, chunk) for partition, several in chunks.items() for chunk, _ in several]

    def text(self, verb):
        """The script, read when it is first used: a bare job needs none."""
        if verb not in self.scripts:
            self.scripts[verb] = (self.lua / f"{verb}.lua").read_bytes()
        return self.scripts[verb]

    def _script(self, verb, queue, partition, args):
        text = self.text(verb)
        sha = hashlib.sha1(text).hexdigest()
        keys = partition_keys(self.namespace, queue, partition)
        names = ["scheduled", "jobs", "runs", "done", "meta", *(["wake"] if verb == "schedule" else []), "stale", "tags",
                 *(["ready"] if verb == "schedule" else []), "line"]

        def call():
            try:
                return self.redis.evalsha(sha, len(names), *(keys[name] for name in names), *args)
            except NoScriptError:
                self.redis.script_load(text)
                return self.redis.evalsha(sha, len(names), *(keys[name] for name in names), *args)

        return [one.decode() if isinstance(one, bytes) else one for one in self._repeated(call)]

    def _repeated(self, call):
        """The same call until it is answered, for ten seconds."""
        deadline, wait, unknown = time.monotonic() + RETRY_SECONDS, 0.025, False
        while True:
            try:
                return call()
            except AuthenticationError:
                raise
            except (ConnectionError, TimeoutError) as error:
                unknown, last = True, error
            except ReadOnlyError as error:
                self.redis.connection_pool.disconnect()
                last = error
            except ResponseError as error:
                if not str(error).startswith(WAIT_AND_REPEAT):
                    raise
                last = error
            if time.monotonic() + wait > deadline:
                raise (Indeterminate(str(last)) if unknown else last)
            time.sleep(wait)
            wait = min(1, wait * 2)


def lua_folder():
    here = Path(__file__).resolve().parent
    return here if (here / "schedule.lua").exists() else here.parents[1] / "lua"


def main():
    parser = argparse.ArgumentParser(description="schedules jobs in duestream")
    parser.add_argument("--redis", default=os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"))
    parser.add_argument("--namespace", default="duestream")
    parser.add_argument("--lua", default=lua_folder(),
                        help="folder of the Lua files; default: where this file is, or that of the checkout")
    parser.add_argument("verb", choices=["put", "schedule", "cancel"])
    parser.add_argument("queue")
    parser.add_argument("id")
    parser.add_argument("--in", dest="delay_ms", type=int, default=0, help="milliseconds from now")
    parser.add_argument("--at", dest="due_ms", type=int, help="milliseconds since 1970, instead of --in")
    parser.add_argument("--name", default="default")
    parser.add_argument("--data", type=json.loads, default=NO_DATA, help="JSON")
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="a text beside the data")
    parser.add_argument("--group", help="a tenant, an account or a lock, for a queue with limits")
    parser.add_argument("--priority", choices=["high", "normal", "low"], default="normal")
    parser.add_argument("--mode", choices=["keep", "replace"], default="keep")
    parser.add_argument("--max-lateness", type=int, help="milliseconds after its due when it is too late to start")
    parser.add_argument("--too-late", choices=["drop", "dead", "run"], default="drop", help="what happens then")
    parser.add_argument("--bare", action="store_true", help="cancel a bare job")
    parser.add_argument("--no-nudge", action="store_true", help="leave a bare job to the safety tick")
    args = parser.parse_args()

    if args.group is not None:
        args.id = f"{{{checked('group', args.group)}}}{args.id}"
    producer = Producer(redis.Redis.from_url(args.redis), args.namespace, args.lua)
    if args.verb == "cancel":
        print(*producer.cancel(args.queue, [args.id], args.bare))
        return
    due_ms = producer.now_ms() + args.delay_ms if args.due_ms is None else args.due_ms
    if args.verb == "put":
        producer.put(args.queue, args.id, due_ms, not args.no_nudge)
        print("put", due_ms)
    else:
        job = {"id": args.id, "due_ms": due_ms, "name": args.name}
        if args.data is not NO_DATA:
            job["data"] = args.data
        if args.header:
            job["headers"] = dict(one.split("=", 1) for one in args.header)
        job["header"] = {}
        if args.max_lateness is not None:
            job["header"] |= {"l": base36(args.max_lateness), "p": {"drop": "d", "dead": "x", "run": "r"}[args.too_late]}
        if args.priority != "normal":
            job["header"]["t"] = tags_value(args.priority)
        print(*producer.schedule(args.queue, [job], args.mode))


if __name__ == "__main__":
    try:
        main()
    except (ValueError, Indeterminate, Moved, RedisError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
