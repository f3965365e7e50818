/** The worker for Go against live daemons: its ends, a stop, a daemon that dies, a freeze, and at most once. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ended, useRemote } from '../../support/remote.ts';
import { root } from '../../support/repository.ts';
import { findGo } from '../../support/toolchains.ts';

// A lease in which a client beats twice on a machine that does other things too.
const remote = useRemote({ daemons: 2, config: { worker: { jobLease: 3000 } } });
const run = promisify(execFile);
const go = await findGo();
const MODULE = 'github.com/duestream/duestream/clients/go';

const PROGRAM = `package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	duestream "${MODULE}"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options := duestream.Options{URLs: strings.Split(os.Args[1], ","), Queue: os.Args[2], Concurrency: 5, Grace: 100 * time.Millisecond}
	err := duestream.Run(ctx, options, func(ctx context.Context, job *duestream.Job) (any, error) {
		switch {
		case job.ID == "bad":
			return nil, duestream.Fatal(fmt.Errorf("customer is gone"))
		case job.ID == "late":
			return nil, duestream.Defer(time.Hour, "locked")
		case job.ID == "again" && job.Attempt == 1:
			return nil, duestream.RetryIn(10*time.Millisecond, fmt.Errorf("once more"))
		case job.ID == "panics":
			panic("no")
		case strings.HasPrefix(job.ID, "hangs"):
			fmt.Println("began", job.ID)
			<-ctx.Done()
			fmt.Println("stopped", job.ID, job.Stopped())
			return nil, job.Stopped()
		}
		fmt.Println("ran", job.ID, job.Attempt, string(job.Data))
		return "done", nil
	})
	fmt.Println("over", err)
}
`;

let folder = '';
beforeAll(async () => {
  if (!go.program) return;
  folder = mkdtempSync(join(tmpdir(), 'due-go-'));
  writeFileSync(join(folder, 'main.go'), PROGRAM);
  const uses = `require ${MODULE} v0.0.0\nreplace ${MODULE} => ${join(root, 'clients/go')}\n`;
  writeFileSync(join(folder, 'go.mod'), `module probe\ngo 1.19\n${uses}`);
  const { path, env: plain } = go.program;
  const env = { ...plain, GOFLAGS: '-mod=mod', GOPROXY: 'off', GOCACHE: join(folder, 'cache') };
  await run(path, ['build', '-o', 'probe', '.'], { cwd: folder, env });
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

function started(urls = [remote.at(0).url, remote.at(1).url]) {
  const child = spawn(join(folder, 'probe'), [urls.join(','), remote.queue], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  return { child, said: () => said.split('\n').slice(0, -1) };
}

const stateOf = async (id: string) => (await remote.client().get(remote.queue, id))?.state;

describe.skipIf(!go.program)(`the worker for Go${go.program ? '' : `: ${go.reason}`}`, () => {
  test('runs handlers, and says what they return, how they fail, and that they panic', async () => {
    const { said } = started();
    const ids = ['a', 'bad', 'late', 'again'];
    await remote.schedule(...ids.map((id) => ({ id, data: 1 })), { id: 'panics', attempts: 1 });
    await expect.poll(() => said().toSorted()).toEqual(['ran a 1 1', 'ran again 2 1']);
    await expect
      .poll(() => Promise.all([...ids, 'panics'].map(stateOf)))
      .toEqual(['done', 'dead', 'scheduled', 'done', 'dead']);
  });

  test('goes on at another daemon when one dies, and runs each job once', async () => {
    const third = await remote.serve();
    const { said } = started([third.url, remote.at(1).url]);
    const ids = Array.from({ length: 40 }, (_, at) => `job-${at}`);
    await remote.schedule(...ids.slice(0, 20).map((id) => ({ id })));
    await expect.poll(() => said().length).toBe(20);
    await third.daemon.stop();
    await remote.schedule(...ids.slice(20).map((id) => ({ id })));
    await expect.poll(() => said().toSorted()).toEqual(ids.map((id) => `ran ${id} 1 null`).toSorted());
  });

  test('leaves at a stop, and gives back what it ran without a failure', async () => {
    const { child, said } = started();
    await remote.schedule({ id: 'hangs' });
    await expect.poll(said).toEqual(['began hangs']);
    const over = once(child, 'exit');
    child.kill('SIGTERM');
    await over;
    expect(said()).toContain('over <nil>');
    expect(await remote.worker().jobs(remote.at(0), { wait: '5s' })).toMatchObject([{ failures: 0, crashes: 0 }]);
  });

  test('hears that somebody cancels its job, and that its time is up', async () => {
    const { said } = started();
    await remote.schedule({ id: 'hangs-a' }, { id: 'hangs-b', timeout: 100, attempts: 1 });
    await expect.poll(() => said().toSorted()).toEqual(expect.arrayContaining(['began hangs-a']));
    await remote.client().cancel(remote.queue, 'hangs-a');
    await expect.poll(said).toEqual(expect.arrayContaining(['stopped hangs-a cancelled', 'stopped hangs-b timeout']));
  });

  test('that is frozen for longer than its lease settles nothing of what it ran', async () => {
    const { child, said } = started();
    await remote.schedule({ id: 'hangs' });
    await expect.poll(said).toEqual(['began hangs']);
    child.kill('SIGSTOP');
    const other = remote.worker();
    const [job] = await other.jobs(remote.at(0), { wait: '30s' });
    if (!job) throw new Error('there is a job');
    child.kill('SIGCONT');
    await expect.poll(said).toEqual(['began hangs', 'stopped hangs lease lost']);
    expect(await other.settle(remote.at(0), ended(job))).toEqual(['ok']);
  });

  test('that was frozen while its claim was answered runs nothing of what it has lost', async () => {
    const { child, said } = started();
    await expect.poll(remote.polls).toBe(1);
    child.kill('SIGSTOP');
    await remote.schedule({ id: 'a' });
    // The answer is in its socket, and nobody extends what is in it.
    const other = remote.worker();
    const [job] = await other.jobs(remote.at(0), { wait: '30s' });
    if (!job) throw new Error('there is a job');
    expect(job).toMatchObject({ id: 'a', crashes: 1 });
    child.kill('SIGCONT');
    await remote.schedule({ id: 'b' });
    await expect.poll(said).toEqual(['ran b 1 null']);
    expect(await other.settle(remote.at(0), ended(job))).toEqual(['ok']);
  });

  test('at most once: asks before the handler, and runs it for the one start that may', async () => {
    const at = await remote.serve({ queues: { [remote.queue]: { delivery: 'at-most-once' } } });
    remote.onEnd(() => at.daemon.stop());
    await remote.schedule({ id: 'a' });
    const { said } = started([at.url]);
    await expect.poll(said).toEqual(['ran a 1 null']);
    expect(await stateOf('a')).toBe('done');
  });
});
