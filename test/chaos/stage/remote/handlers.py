"""The handlers of the workload, as handlers.mjs has them, of a worker over HTTP: their only effect is a line in the log of effects."""

import json
import os
import signal
import time
from typing import Any

from duestream_worker import Job, Worker

LOG = os.open(os.environ["CHAOS_EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
ACTOR = os.environ["CHAOS_ACTOR"]


def handle(job: Job) -> None:
    def note(ev: str, **more: Any) -> None:
        times = {"us": time.monotonic_ns() // 1000, "ms": time.time_ns() // 1_000_000}
        who = {"actor": ACTOR, "pid": os.getpid(), "id": job.id, "token": job.token, "attempt": job.attempt}
        os.write(LOG, (json.dumps({"ev": ev, **times, **who, **more}) + "\n").encode())

    kind = job.data["kind"]
    note("start", due=job.due_ms, crashes=job.crashes, failures=job.failures)
    until = time.monotonic() + job.data["workMs"] / 1000
    try:
        while (rest := until - time.monotonic()) > 0:
            time.sleep(min(rest, 0.01))
            job.check()
        job.check()
    except BaseException:
        note("finish", how="aborted")
        raise
    if kind == "poison" or (kind == "crash" and job.crashes == 0):
        note("crash")
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "throw" and job.failures == 0:
        note("finish", how="error")
        raise ValueError("planned")
    note("effect")
    note("finish", how="ok")


worker = Worker(os.environ["CHAOS_DAEMONS"].split(","), "chaos", handle, concurrency=int(os.environ["CHAOS_SLOTS"]))
worker.start()
print('{"msg":"started"}', flush=True)
worker.wait()
