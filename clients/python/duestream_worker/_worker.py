"""The worker: one thread claims, one settles, one beats, and handlers run beside them.

What must always hold:
 * A call is sent again, as it is, until it is answered. A claim is raised only after its answer was read.
 * A lease counts from when the call was sent that began or extended it. A run without a lease is stopped and not settled.
 * A name is made by each process. A process that was forked does not work under the name of another one.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import random
import secrets
import signal
import threading
import time
import traceback
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Deque, Dict, List, Optional, Sequence, Union
from urllib.parse import quote

from ._http import Refused, Unanswered, post

RUNS_MAX = 80
PAUSE_S = (0.05, 5.0)
LOST = ("lease lost", "timeout")
TOLD_AT = 3  # So many times a call was not answered before the log says so.
log = logging.getLogger("duestream")


class Stopped(Exception):
    """The run is to end: `job.check()` raises it. Its text says why."""


class Fatal(Exception):
    """Raise it when trying again cannot help: the job becomes a dead letter at once."""


class RetryIn(Exception):
    """Raise it to fail and to be tried again after so many seconds, instead of the backoff of the queue."""

    def __init__(self, seconds: float, message: str = "failed") -> None:
        super().__init__(message)
        self.seconds = seconds


class Defer(Exception):
    """Raise it to put the job off, without a failure. `close`: nobody of its "group" or "queue" starts meanwhile."""

    def __init__(self, seconds: float, reason: str = "deferred", close: Optional[str] = None) -> None:
        super().__init__(reason)
        self.seconds, self.close = seconds, close


class Job:
    """One start of one job. `token` only grows: a store refuses one that is lower than one it has."""

    def __init__(self, one: Dict[str, Any], until: float) -> None:
        self.id: str = one["id"]
        self.name: str = one["name"]
        self.data: Any = one.get("data")  # With a `codec`: as it was stored.
        self.codec: Optional[str] = one.get("codec")
        self.token: str = one["token"]
        self.attempt, self.failures, self.crashes = int(one["attempt"]), int(one["failures"]), int(one["crashes"])
        self.due_ms, self.timeout_ms = int(one["dueMs"]), int(one["timeoutMs"])
        self.group: Optional[str] = one.get("group")
        self.priority: Optional[str] = one.get("priority")
        self.headers: Dict[str, str] = one.get("headers") or {}
        self._run, self._begin = str(one["run"]), bool(one.get("begin"))
        self._until = until  # Monotonic seconds: so long the run is ours.
        self._why: Optional[str] = None
        self._told: Dict[str, Any] = {}
        self._future: Optional["Future[Any]"] = None

    @property
    def stopped(self) -> Optional[str]:
        """Why the handler is to end: "cancelled", "lease lost", "timeout" or "shutdown"; None: it is not."""
        return self._why

    def check(self) -> None:
        """Raises `Stopped` when the handler is to end. To be called now and then by a handler that takes long."""
        if self._why is not None:
            raise Stopped(self._why)

    def progress(self, fraction: float, text: Optional[str] = None) -> None:
        """How far the handler is, from 0 to 1: the next beat says it."""
        self._told = {**self._used(), "progress": fraction, **({} if text is None else {"text": text})}

    def spent(self, turns: int) -> None:
        """How many turns of the rate this start has really used, in all, in a queue with costs: the next beat says it, or the end."""
        self._told = {**self._told, "spent": turns}

    def _used(self) -> Dict[str, Any]:
        return {name: value for name, value in self._told.items() if name == "spent"}

    def _stop(self, why: str) -> None:
        self._why = self._why or why
        if self._future is not None:
            self._future.cancel()


Handler = Callable[[Job], Union[Any, Awaitable[Any]]]


class Worker:
    """Claims jobs of one queue and runs them, at most `concurrency` at a time.

    urls: one daemon or several, with `http.work` on. token: of `duestream tokens create --scope work`.
    """

    def __init__(self, urls: Union[str, Sequence[str]], queue: str, handler: Handler, *, token: Optional[str] = None,
                 concurrency: int = 10, label: str = "python", wait: float = 20.0) -> None:
        self._urls = [f"{url.rstrip('/')}/v1/queues/{quote(queue)}" for url in ([urls] if isinstance(urls, str) else urls)]
        if token is not None and not token.isascii():
            raise ValueError("token is none of duestream: take what `duestream tokens create --scope work` has printed")
        self._handler, self._token = handler, token
        self._slots, self._wait = max(1, concurrency), wait
        self.name = f"h-{label}-{secrets.token_hex(16)}"
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._running: Dict[str, Job] = {}
        self._ends: Deque[Dict[str, Any]] = deque()
        self._turn, self._lease, self._beat = random.randrange(len(self._urls)), 15.0, 5.0
        self._claimed: List[Dict[str, Any]] = []  # Ends that went with the claim that is under way.
        self._settling = 0
        self._is_polling = self._is_stopping = self._is_over = False
        self._failure: Optional[BaseException] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._pool = ThreadPoolExecutor(self._slots, thread_name_prefix=f"{queue}-handler")
        self._threads = [threading.Thread(target=self._guarded, args=(part,), daemon=True)
                         for part in (self._claim_all, self._settle_all, self._beat_all)]

    def run(self) -> None:
        """Works until `stop`, ctrl-C, or SIGTERM where nobody handles it. Raises `Refused` when a daemon refuses the worker."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.start()
        try:
            self.wait()
        except KeyboardInterrupt:
            log.info("stops")
        finally:
            self.stop()

    async def serve(self) -> None:
        """The same in an event loop, for handlers that are coroutine functions. Cancel it to stop."""
        self._loop = asyncio.get_running_loop()
        self.start()
        try:
            await asyncio.to_thread(self.wait)
        finally:
            await asyncio.to_thread(self.stop)

    def start(self) -> None:
        self._check_process()
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Until it stops."""
        with self._changed:
            while not self._is_stopping:
                self._changed.wait(1.0)
        if self._failure is not None:
            raise self._failure

    def stop(self, grace: float = 25.0) -> None:
        """Claims no more, lets handlers end for so many seconds, and gives back what is left. Twice is fine."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
            until = time.monotonic() + grace
            while self._running and time.monotonic() < until:
                self._changed.wait(0.1)
            for job in list(self._running.values()):
                job._stop("shutdown")
            # Nobody has read yet what became of these; told twice is fine.
            self._ends.extend(self._claimed)
            self._claimed = []
            self._changed.notify_all()
            while (self._ends or self._settling) and self._failure is None and time.monotonic() < until + 10:
                self._changed.wait(0.1)
            was_over, self._is_over = self._is_over, True
            self._changed.notify_all()
        if not was_over and self._failure is None:
            self._call("leave", {}, tries=5)
        self._pool.shutdown(wait=False)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError("this process was forked: make a Worker after the fork, it has a name of its own")

    def _guarded(self, part: Callable[[], None]) -> None:
        try:
            part()
        except BaseException as failure:
            with self._changed:
                if self._is_over:
                    return
                self._failure, self._is_stopping = self._failure or failure, True
                self._changed.notify_all()

    def _call(self, verb: str, body: Dict[str, Any], *, tries: int = 0, timeout: float = 10.0) -> Dict[str, Any]:
        """Sends the same call until it is answered, to the next daemon each time. Raises `Refused`."""
        self._check_process()
        pause, sent = PAUSE_S[0], 0
        while True:
            url = self._urls[self._turn % len(self._urls)]
            try:
                return post(f"{url}/{verb}", {"worker": self.name, **body}, self._token, timeout)
            except Unanswered as lost:
                sent += 1
                self._turn += 1
                if sent == TOLD_AT:
                    log.warning("nobody answers %s at %s (%s): it is sent again", verb, url, lost)
                if verb == "claim":
                    body["again"] = True
                if (tries and sent >= tries) or self._is_over or (verb == "claim" and self._is_stopping):
                    return {}
                time.sleep(max(lost.retry_after, pause * (0.5 + random.random() / 2)))
                pause = min(PAUSE_S[1], pause * 2)

    def _claim_all(self) -> None:
        seq = 0
        while True:
            with self._changed:
                while len(self._running) >= self._slots and not self._is_stopping:
                    self._changed.wait()
                if self._is_stopping:
                    return
                seq, self._is_polling, count = seq + 1, True, len(self._running)
                ends = self._claimed = self._take_ends()
                self._changed.notify_all()
            body = {"seq": seq, "max": min(RUNS_MAX, self._slots - count), "running": count, "ends": ends,
                    "wait": int(self._wait * 1000)}
            sent = time.monotonic()
            # Each repetition may wait anew, and a lease counts from the first.
            answer = self._call("claim", body, timeout=self._wait + 10)
            with self._changed:
                self._is_polling = False
                if answer:
                    self._claimed = []
            if answer:
                with self._changed:
                    self._lease, self._beat = answer["leaseMs"] / 1000, answer["beatMs"] / 1000
                    self._changed.notify_all()
                self._begin_all([Job(one, sent + self._lease) for one in answer["jobs"]], sent)

    def _begin_all(self, jobs: List[Job], sent: float) -> None:
        if jobs and time.monotonic() - sent > self._lease / 2:
            # The answer was read late: what is still ours is asked first.
            jobs = [job for job, word in zip(jobs, self._beat_for(jobs, tries=3)) if word == "ok"]
        for job in jobs:
            with self._changed:
                if self._is_stopping:
                    return
                self._running[job._run] = job
            self._begin(job)

    def _begin(self, job: Job) -> None:
        if inspect.iscoroutinefunction(self._handler):
            if self._loop is None:
                raise RuntimeError("the handler is a coroutine function: await worker.serve()")
            future = job._future = asyncio.run_coroutine_threadsafe(self._handle_async(job), self._loop)
        else:
            future = self._pool.submit(self._handle, job)
        future.add_done_callback(lambda _: self._forget(job))

    def _may_begin(self, job: Job) -> bool:
        """At most once: the job is over before its handler, for the one run that is told so."""
        if not job._begin:
            return True
        return self._call("begin", {"run": job._run}, timeout=self._beat).get("result") in ("ok", "already")

    def _handle(self, job: Job) -> None:
        try:
            if self._may_begin(job):
                self._end(job, {"end": "complete", **result_of(self._handler(job))})
        except BaseException as thrown:
            self._end(job, end_of(thrown))

    async def _handle_async(self, job: Job) -> None:
        try:
            if await asyncio.to_thread(self._may_begin, job):
                outcome: Any = self._handler(job)
                self._end(job, {"end": "complete", **result_of(await outcome)})
        except BaseException as thrown:
            self._end(job, end_of(thrown))

    def _end(self, job: Job, end: Dict[str, Any]) -> None:
        # What is not ours any more, and what goes back at a stop, is not settled.
        if job._why in LOST or (job._why == "shutdown" and end["end"] != "complete"):
            return
        if end["end"] == "fail":
            log.warning("job %s, attempt %d: %s: %s", job.id, job.attempt, end["kind"], end["error"])
        with self._changed:
            self._ends.append({"run": job._run, **end, **job._used()})

    def _forget(self, job: Job) -> None:
        with self._changed:
            self._running.pop(job._run, None)
            self._changed.notify_all()

    def _take_ends(self) -> List[Dict[str, Any]]:
        return [self._ends.popleft() for _ in range(min(RUNS_MAX, len(self._ends)))]

    def _settle_all(self) -> None:
        """Ends go with the next claim; while one waits, or none comes any more, they have a call of their own."""
        while True:
            with self._changed:
                while not (self._ends and (self._is_polling or self._is_stopping)) and not self._is_over:
                    self._changed.wait()
                ends = self._take_ends()
                self._settling = len(ends)
            if not ends:
                return
            self._call("settle", {"runs": ends})
            with self._changed:
                self._settling = 0
                self._changed.notify_all()

    def _beat_all(self) -> None:
        last, hurry = time.monotonic(), 1
        while not self._is_over:
            with self._changed:
                # A claim says how often to beat, and may say it meanwhile.
                while not self._is_over and (rest := last + self._beat / hurry - time.monotonic()) > 0:
                    self._changed.wait(rest)
                jobs = [job for job in self._running.values() if not job._begin and job._why not in LOST]
            last, hurry = time.monotonic(), 1
            for at in range(0, len(jobs), RUNS_MAX):
                some = jobs[at:at + RUNS_MAX]
                if len(self._beat_for(some, tries=1)) < len(some):
                    hurry = 10

    def _beat_for(self, jobs: List[Job], *, tries: int) -> List[str]:
        """Extends their leases by what is answered. Those whose lease ran out meanwhile are told."""
        runs = [{"run": job._run, **job._told} for job in jobs]
        sent, patience = time.monotonic(), max(0.2, self._beat / 2)
        words: List[str] = self._call("beat", {"runs": runs}, tries=tries, timeout=patience).get("results", [])
        for job, word in zip(jobs, words):
            if word in ("ok", "cancel"):
                job._until = sent + self._lease
            why = {"cancel": "cancelled", "fenced": "lease lost", "gone": "lease lost", "timeout": "timeout"}.get(word)
            if why is not None:
                job._stop(why)
        for job in jobs:
            if time.monotonic() >= job._until:
                job._stop("lease lost")
        return words


def result_of(value: Any) -> Dict[str, Any]:
    """What the handler returned, where JSON can say it."""
    try:
        return {} if value is None else {"result": json.loads(json.dumps(value, allow_nan=False))}
    except (TypeError, ValueError):
        return {}


def end_of(thrown: BaseException) -> Dict[str, Any]:
    if isinstance(thrown, Defer):
        closes = {} if thrown.close is None else {"close": thrown.close}
        return {"end": "defer", "delay": int(thrown.seconds * 1000), "reason": str(thrown), **closes}
    more: Dict[str, Any] = {"fatal": True} if isinstance(thrown, Fatal) else {}
    if isinstance(thrown, RetryIn):
        more = {"retryIn": int(thrown.seconds * 1000)}
    stack = "".join(traceback.format_exception(type(thrown), thrown, thrown.__traceback__))
    return {"end": "fail", "error": str(thrown)[:2000] or type(thrown).__name__, "kind": type(thrown).__name__[:200],
            "stack": stack[-2000:], **more}
