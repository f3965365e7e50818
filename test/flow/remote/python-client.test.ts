/** The worker for Python against live daemons: threads and coroutines, a daemon that dies, a worker that dies or freezes, a fork. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { findOnPath } from '../../../src/embedded/binary.mjs';
import { useRemote } from '../../support/remote.ts';
import { root } from '../../support/repository.ts';

// A lease in which a client beats twice on a machine that does other things too.
const remote = useRemote({ daemons: 2, config: { worker: { jobLease: 3000 } } });
const run = promisify(execFile);
const PATH = join(root, 'clients/python');

/** The first of the system that is new enough. */
async function pythonOf(): Promise<string | undefined> {
  for (const python of [...(await findOnPath('python3', process.env.PATH))]) {
    const asked = await run(python, ['-c', 'import sys; print(sys.version_info >= (3, 9))']).catch(() => undefined);
    if (asked?.stdout.trim() === 'True') return python;
  }
  return undefined;
}
const python = await pythonOf();

const HEAD = `
import asyncio, logging, os, sys, threading, time
from duestream_worker import Defer, Fatal, Job, RetryIn, Stopped, Worker
urls, queue = sys.argv[1].split(","), sys.argv[2]
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
log = logging.getLogger("duestream")
log.addHandler(logging.NullHandler())
`;

interface Ran {
  readonly child: ChildProcess;
  readonly said: string[];
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Runs a program; what it says, line by line. */
function started(program: string, urls = [remote.at(0).url, remote.at(1).url]): Ran {
  const args = ['-u', '-c', HEAD + program, urls.join(','), remote.queue];
  const child = spawn(python ?? '', args, {
    env: { ...process.env, PYTHONPATH: PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    let rest = '';
    stream?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString()).split('\n');
      rest = lines.pop() ?? '';
      said.push(...lines);
    });
  }
  return { child, said };
}

const stateOf = async (id: string) => (await remote.client().get(remote.queue, id))?.state;
const IDS = Array.from({ length: 60 }, (_, at) => `job-${at}`);

describe.skipIf(python === undefined)('the worker for Python', () => {
  test('runs handlers in threads, and says what they raise', async () => {
    const { said } = started(`
def handle(job):
    if job.id == "bad": raise Fatal("customer is gone")
    if job.id == "late": raise Defer(3600, "locked")
    if job.id == "again" and job.attempt == 1: raise RetryIn(0.01, "once more")
    say("ran", job.id, job.attempt, job.data)
Worker(urls, queue, handle, concurrency=4).run()
`);
    await remote.schedule(...['a', 'bad', 'late', 'again'].map((id) => ({ id, data: { n: 1 } })));
    await expect.poll(() => said).toEqual(expect.arrayContaining(["ran a 1 {'n': 1}", "ran again 2 {'n': 1}"]));
    await expect
      .poll(() => Promise.all(['a', 'bad', 'late', 'again'].map(stateOf)))
      .toEqual([...['done', 'dead', 'scheduled', 'done']]);
  });

  test('runs coroutines in the loop of its program', async () => {
    const { said } = started(`
async def handle(job):
    await asyncio.sleep(0.01)
    say("ran", job.id)
asyncio.run(Worker(urls, queue, handle, concurrency=20).serve())
`);
    await remote.schedule(...IDS.map((id) => ({ id })));
    await expect.poll(() => said.toSorted()).toEqual(IDS.map((id) => `ran ${id}`).toSorted());
    await expect.poll(() => stateOf('job-59')).toBe('done');
  });

  test('goes on at another daemon when one dies, and runs each job once', async () => {
    const third = await remote.serve();
    const { said } = started(
      `
def handle(job):
    say("ran", job.id)
Worker(urls, queue, handle, concurrency=5).run()
`,
      [third.url, remote.at(1).url],
    );
    await remote.schedule(...IDS.slice(0, 20).map((id) => ({ id })));
    await expect.poll(() => said.length).toBe(20);
    await third.daemon.stop();
    await remote.schedule(...IDS.slice(20).map((id) => ({ id })));
    await expect.poll(() => said.toSorted()).toEqual(IDS.map((id) => `ran ${id}`).toSorted());
  });

  test('leaves at a stop, and what it ran not goes to others at once', async () => {
    const { said, child } = started(`
import signal
def handle(job):
    say("began", job.id)
    while job.stopped is None: time.sleep(0.01)
    raise Stopped(job.stopped)
worker = Worker(urls, queue, handle, concurrency=2)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=worker.stop, args=(0.1,)).start())
worker.run()
say("over")
`);
    await remote.schedule({ id: 'a' });
    await expect.poll(() => said).toEqual(['began a']);
    const over = once(child, 'exit');
    child.kill('SIGTERM');
    await over;
    expect(said).toEqual(['began a', 'over']);
    const [job] = await remote.worker().jobs(remote.at(0), { wait: '5s' });
    expect(job).toMatchObject({ id: 'a', failures: 0, crashes: 0 });
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('stops at %s by itself, and what fails is said', async (signal) => {
    const { child, said } = started(`
log.handlers.clear()
def handle(job):
    if job.id == "bad": raise Fatal("customer is gone")
    say("began", job.id)
    while job.stopped is None: time.sleep(0.01)
    raise Stopped(job.stopped)
worker = Worker(urls, queue, handle)
stop = worker.stop
worker.stop = lambda: stop(0.1)
worker.run()
say("over")
`);
    await remote.schedule({ id: 'bad' }, { id: 'long' });
    const both = ['began long', 'job bad, attempt 1: Fatal: customer is gone'];
    await expect.poll(() => said.toSorted()).toEqual(both);
    const over = once(child, 'exit');
    child.kill(signal);
    expect(await over).toEqual([0, null]);
    expect(said).toContain('over');
    expect(await remote.worker().jobs(remote.at(0), { wait: '5s' })).toMatchObject([{ id: 'long', crashes: 0 }]);
  });

  test('says that nobody answers, and refuses a token that is none', async () => {
    const { said } = started('log.handlers.clear()\nWorker(urls, queue, print).run()', ['http://127.0.0.1:9']);
    await expect.poll(() => said.join()).toMatch(/^nobody answers claim at http:.*it is sent again/);
    const refused = started('Worker(urls, queue, print, token="due_…")');
    await expect.poll(() => refused.said.join()).toContain('duestream tokens create --scope work');
  });

  test('hears that somebody cancels its job, and that its time is up', async () => {
    const { said } = started(`
def handle(job):
    say("began", job.id)
    while job.stopped is None: time.sleep(0.01)
    say("stopped", job.id, job.stopped)
    raise Stopped(job.stopped)
Worker(urls, queue, handle, concurrency=2).run()
`);
    await remote.schedule({ id: 'a' }, { id: 'b', timeout: 100, attempts: 1 });
    await expect.poll(() => said.toSorted()).toEqual(expect.arrayContaining(['began a', 'began b']));
    await remote.client().cancel(remote.queue, 'a');
    await expect.poll(() => said).toEqual(expect.arrayContaining(['stopped a cancelled', 'stopped b timeout']));
    await expect.poll(() => Promise.all(['a', 'b'].map(stateOf))).toEqual(['cancelled', 'dead']);
  });

  test('a worker that is frozen for longer than its lease settles nothing of what it ran', async () => {
    const { said, child } = started(`
def handle(job):
    say("began", job.id)
    while job.stopped is None: time.sleep(0.01)
    say("stopped", job.stopped)
Worker(urls, queue, handle, concurrency=1).run()
`);
    await remote.schedule({ id: 'a' });
    await expect.poll(() => said).toEqual(['began a']);
    child.kill('SIGSTOP');
    const other = remote.worker();
    const [job] = await other.jobs(remote.at(0), { wait: '30s' });
    expect(job).toMatchObject({ id: 'a', crashes: 1 });
    child.kill('SIGCONT');
    await expect.poll(() => said).toEqual(['began a', 'stopped lease lost']);
    expect(await other.settle(remote.at(0), { run: job?.run, end: 'complete' })).toEqual(['ok']);
  });

  test('a worker that was frozen while its claim was answered runs nothing of what it has lost', async () => {
    const { said, child } = started(`
def handle(job):
    say("ran", job.id, job.crashes)
Worker(urls, queue, handle, concurrency=2).run()
`);
    await expect.poll(remote.polls).toBe(1);
    child.kill('SIGSTOP');
    await remote.schedule({ id: 'a' });
    // The answer is in its socket, and nobody extends what is in it.
    const other = remote.worker();
    const [job] = await other.jobs(remote.at(0), { wait: '30s' });
    expect(job).toMatchObject({ id: 'a', crashes: 1 });
    child.kill('SIGCONT');
    await remote.schedule({ id: 'b' });
    await expect.poll(() => said).toEqual(['ran b 0']);
    expect(await other.settle(remote.at(0), { run: job?.run, end: 'complete' })).toEqual(['ok']);
  });

  test('of a worker that is killed each job runs elsewhere', async () => {
    const { said, child } = started(`
def handle(job):
    say("began", job.id)
    time.sleep(3600)
Worker(urls, queue, handle, concurrency=3).run()
`);
    await remote.schedule(...['a', 'b', 'c'].map((id) => ({ id })));
    await expect.poll(() => said.length).toBe(3);
    child.kill('SIGKILL');
    const second = started(`
def handle(job):
    say("ran", job.id, job.crashes)
Worker(urls, queue, handle, concurrency=3).run()
`);
    await expect.poll(() => second.said.toSorted()).toEqual(['ran a 1', 'ran b 1', 'ran c 1']);
  });

  test('at most once: asks before the handler, and runs it for the one start that may', async () => {
    const at = await remote.serve({ queues: { [remote.queue]: { delivery: 'at-most-once' } } });
    remote.onEnd(() => at.daemon.stop());
    await remote.schedule({ id: 'a' });
    const { said } = started(`Worker(urls, queue, lambda job: say("ran", job.id)).run()`, [at.url]);
    await expect.poll(() => said).toEqual(['ran a']);
    expect(await stateOf('a')).toBe('done');
  });

  test('refuses to work in a process that was forked', async () => {
    const { said } = started(`
worker = Worker(urls, queue, lambda job: None)
if os.fork() == 0:
    try:
        worker.run()
    except RuntimeError as why:
        say("refused:", why)
    os._exit(0)
os.wait()
`);
    await expect.poll(() => said.join()).toMatch(/^refused: this process was forked/);
  });

  test('says why a daemon refuses it', async () => {
    const { said } = started(`
try:
    Worker(urls, "NO QUEUE", lambda job: None).run()
except Exception as why:
    say(type(why).__name__, why.code)
`);
    await expect.poll(() => said).toEqual([expect.stringMatching(/^Refused (bad-input|not-found)$/)]);
  });
});
