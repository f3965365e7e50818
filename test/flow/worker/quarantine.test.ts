/** One job that kills its worker each time it runs does not take its neighbours with it. */
import { expect, it } from 'vitest';
import { readNew } from '../../../src/redis/scripts/ready.ts';
import { eventually, gate, QUICK, useLine } from '../../support/worker-line.ts';

const line = useLine();
/** The next crash would be the last. */
const LAST = { ...QUICK, crashes: 2 };

/** Jobs that ran together when their worker died. */
async function leave(...ids: readonly string[]): Promise<void> {
  await line.plan(...ids.map((id) => ({ id })));
  await eventually(async () => (await line.picture()).ready?.length).toBe(ids.length);
  const [batch] = await readNew(line.redis, [line.ref], { consumer: 'ghost', count: ids.length, blockMs: 0 });
  await line.jobs.start(line.ref, batch?.deliveries ?? [], { consumer: 'ghost', bytesMax: 1e7, windowMs: 60_000 });
}

it('jobs that shared a crash run one at a time, and what comes meanwhile is not beside them', async () => {
  await leave('s0', 's1', 's2', 's3');
  let running: string[] = [];
  const company = new Map<string, readonly string[]>();
  const doors = new Map<string, () => void>();
  const worker = await line.worker(async ({ id }) => {
    running.push(id);
    for (const one of running) company.set(one, running);
    const door = gate();
    doors.set(id, door.open);
    if (id.startsWith('s')) await door.opened;
    running = running.filter((one) => one !== id);
  }, LAST);
  await eventually(() => doors.size).toBe(1);
  await line.plan(...line.many(3, 'fresh'));
  for (let ended = 1; ended <= 4; ended += 1) {
    await eventually(() => [...doors.keys()].filter((id) => id.startsWith('s')).length).toBe(ended);
    [...doors]
      .filter(([id]) => id.startsWith('s'))
      .at(-1)?.[1]();
  }
  await eventually(() => worker.heard.of('job.completed').length).toBe(7);
  for (const id of ['s0', 's1', 's2', 's3']) expect(company.get(id)).toEqual([id]);
});

it('jobs that may crash more than once again go on together', async () => {
  await leave('a', 'b', 'c');
  const door = gate();
  const worker = await line.worker(() => door.opened, QUICK);
  await eventually(() => worker.heard.of('job.started').length).toBe(3);
  door.open();
  await eventually(() => worker.heard.of('job.completed').length).toBe(3);
});

it('suspects that were not started go back when their worker stops, and cost no attempt', async () => {
  await leave('a', 'b');
  const door = gate();
  const worker = await line.worker(() => door.opened, LAST);
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  const stopped = worker.stop({ shutdown: 2000 });
  await eventually(async () => Object.keys((await line.picture()).pending ?? {})).toEqual([worker.consumer]);
  door.open();
  await stopped;
  const next = await line.worker(() => undefined, LAST);
  await eventually(() => next.heard.of('job.completed').length).toBe(1);
  expect(next.heard.of('job.started')).toMatchObject([{ attempt: 2 }]);
});

it('a worker that stops starts no suspect any more, also while its last read is still under way', async () => {
  // Without this right a read ends when its own time is over.
  const user = { username: 'subject', password: 'x' };
  await line.redis.call('ACL', 'SETUSER', 'subject', 'on', '>x', '~*', '&*', '+@all', '-client|unblock');
  await leave('a', 'b');
  const door = gate();
  const redis = { path: line.server.socketPath, ...user };
  const worker = await line.worker(() => door.opened, { ...LAST, redis });
  await eventually(() => worker.heard.of('job.started').length).toBe(1);
  const stopped = worker.stop();
  door.open();
  await stopped;
  expect(worker.heard.of('job.started').length).toBe(1);
  const next = await line.worker(() => undefined, LAST);
  await eventually(() => next.heard.of('job.completed').length).toBe(1);
  expect(next.heard.of('job.started')).toMatchObject([{ attempt: 2 }]);
});

it('how many suspects wait is told whenever it has changed', async () => {
  await leave('a', 'b', 'c');
  const doors: (() => void)[] = [];
  const worker = await line.worker(() => {
    const door = gate();
    doors.push(door.open);
    return door.opened;
  }, LAST);
  for (let ended = 0; ended < 3; ended += 1) {
    await eventually(() => doors.length).toBe(ended + 1);
    doors[ended]?.();
  }
  await eventually(() => worker.heard.of('job.completed').length).toBe(3);
  const told = worker.heard.of('suspects.waiting');
  expect(told.map(({ waiting }) => waiting)).toEqual([3, 2, 1, 0]);
  expect(told[0]).toEqual({ queue: line.queue, waiting: 3 });
});
