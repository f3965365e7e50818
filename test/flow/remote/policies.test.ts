/** `doctor` compares how daemons judge runs of workers over HTTP. */
import { expect, test } from 'vitest';
import { checks } from '../../../src/inspect/doctor/checks.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { beat, type Identity } from '../../../src/redis/scripts/presence.ts';
import { useRemote } from '../../support/remote.ts';

const remote = useRemote();

async function found() {
  const check = checks.find(({ name }) => name === 'policies');
  if (!check) throw new Error('doctor has no such check');
  const done = { windowMs: 0, tombstonesMax: 0, floorMs: 0 };
  const place = { namespace: 'duestream', horizonMs: 0, done, closedMax: 0 };
  return check.look({ redis: remote.redis, info: new Map(), ...place });
}

test('daemons that judge alike are well, whatever each of them names', async () => {
  const other = await remote.serve({ queues: { emails: { attempts: 5 } } });
  remote.onEnd(() => other.daemon.stop());
  expect(await found()).toEqual({ status: 'ok', saw: '2 daemons with http.work judge alike' });
});

test('attempts, backoff and time-out of a queue that differ are named, with a daemon for each', async () => {
  const emails = { attempts: 2, backoff: { kind: 'fixed', delay: '1s' }, timeout: '1m' } as const;
  const other = await remote.serve({ queues: { emails } });
  remote.onEnd(() => other.daemon.stop());
  const { status, saw, advice } = await found();
  expect(status).toBe('warn');
  expect(saw).toMatch(/^2 daemons with http\.work; "emails": attempts (5 on \S+ \d+, 2|2 on \S+ \d+, 5) on \S+ \d+;/);
  expect(saw).toMatch(/"emails": backoff .*"fixed"/);
  expect(saw).toMatch(/"emails": timeout .*1m on/);
  expect(saw).not.toContain('all other queues');
  expect(advice).toContain('the same values');
});

test('the time-out of workers is that of all queues that nobody names', async () => {
  const other = await remote.serve({ worker: { timeout: '1m' } });
  remote.onEnd(() => other.daemon.stop());
  expect((await found()).saw).toMatch(/all other queues: timeout /);
});

test('a daemon without workers over HTTP, and one of an older version, say nothing', async () => {
  const plain = await remote.serve({ http: { work: 'off' }, queues: { emails: { attempts: 2 } } });
  remote.onEnd(() => plain.daemon.stop());
  const old: Identity = { id: 'old', role: 'daemon', host: 'old', pid: 1, startedMs: 0, queues: [] };
  await beat(remote.redis, { namespace: 'duestream', identity: old, ttlMs: 60_000 });
  expect(await found()).toEqual({ status: 'ok', saw: '1 daemon with http.work' });
  await remote.redis.del(controlKeys('duestream').beat('old'));
});
