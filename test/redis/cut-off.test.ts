/**
 * A script that was cut off between two writes leaves what it wrote. Adding comes before removing, so no job is lost;
 * and the same call again, with what a worker does anyway about the entries it still holds, brings the partition to
 * where it would have been. Here every script is cut off after each of its writes, and called again.
 *
 * XACK and XDEL count as one write: between them an entry would be left to `fsck`. So would the durable counters, which
 * a cut-off call may have raised already.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { EntryId } from '../../src/core/job.ts';
import { ownPending, readEntries } from '../../src/redis/ready.ts';
import { scriptOptions, type Verb } from '../../src/redis/scripts.ts';
import { brokenInvariants, type Picture } from '../support/keyspace.ts';
import { item, only, T0, usePartition } from '../support/partition.ts';

const p = usePartition();

/** Counts the writes of a script and stops before the one after the last allowed. */
const counting = (allowed: number) => `
local real, left, writes = redis, ${allowed}, { ZADD = 1, ZREM = 1, HSET = 1, HDEL = 1, HINCRBY = 1, XADD = 1, XACK = 1, XCLAIM = 1, PEXPIRE = 1 }
local redis = { sha1hex = real.sha1hex, call = function(command, ...)
  if writes[command] then
    if left == 0 then error('cut off') end
    left = left - 1
  end
  return real.call(command, ...)
end }
`;

/** Runs a call whose script is cut off. False when the script had no more writes and ended. */
async function cutOff(verb: Verb, allowed: number, call: () => Promise<unknown>): Promise<boolean> {
  const name = `duestream_${verb}`;
  const { lua = '', numberOfKeys = 0 } = scriptOptions[name] ?? {};
  const [shebang = '', ...rest] = lua.split('\n');
  const script = `${shebang}${counting(allowed)}${rest.join('\n')}`;
  const whole: unknown = Reflect.get(p.redis, name);
  Reflect.set(p.redis, name, (...parts: (string | number)[]) => p.redis.eval(script, numberOfKeys, ...parts));
  try {
    await call();
    return false;
  } catch (error) {
    if (!String(error).includes('cut off')) throw error;
    return true;
  } finally {
    Reflect.set(p.redis, name, whole);
  }
}

/** What a worker does about entries it holds and does not know of: it starts them. */
async function adopt(consumer: string): Promise<void> {
  if ((await p.redis.exists(p.keys.ready)) === 0) return;
  const entries: readonly EntryId[] = await ownPending(p.redis, p.keys, { consumer, idleMs: 0, limit: 10 });
  const deliveries = await readEntries(p.redis, p.keys, entries);
  if (deliveries.length > 0) await p.start(deliveries, { consumer });
}

interface Scene {
  readonly verb: Verb;
  readonly title: string;
  /** Sets the scene, and returns the call. */
  readonly arrange: () => Promise<() => Promise<unknown>>;
  /** Goes on after the repeated call, as the system would. */
  readonly after?: () => Promise<unknown>;
}

const runAndAdopt = async () => {
  await p.claim(await p.read());
  await adopt('w1');
};

const scenes: readonly Scene[] = [
  { verb: 'schedule', title: 'new jobs', arrange: async () => () => p.scheduleAll([item('a'), item('b')]) },
  {
    verb: 'schedule',
    title: 'a replaced job',
    arrange: async () => {
      await p.retry(await p.running('a'));
      return () => p.schedule('a', { data: 'new', mode: 'replace' });
    },
  },
  {
    verb: 'promote',
    title: 'jobs of ours and of others',
    arrange: async () => {
      await p.lead();
      await p.scheduleAll([item('a'), item('b', { dueMs: T0 + 1 })]);
      await p.put('bare', T0);
      return () => p.promote();
    },
    after: runAndAdopt,
  },
  {
    verb: 'start',
    title: 'a job, and the entry of a cancelled one',
    arrange: async () => {
      await p.scheduleAll([item('a'), item('b')]);
      const deliveries = await p.deliver();
      await p.cancel('j:b');
      return () => p.start(deliveries);
    },
  },
  {
    verb: 'release',
    title: 'a delivered job',
    arrange: async () => {
      await p.schedule('a');
      const deliveries = await p.deliver();
      return () => p.release(deliveries);
    },
  },
  {
    verb: 'complete',
    title: 'running jobs',
    arrange: async () => {
      const claims = [await p.running('a'), await p.running('b')];
      return () => p.complete(claims);
    },
    after: () => adopt('w1'),
  },
  {
    verb: 'retry',
    title: 'a running job',
    arrange: async () => {
      const claim = await p.running('a');
      return () => p.retry(claim);
    },
    after: () => adopt('w1'),
  },
  {
    verb: 'defer',
    title: 'a running job',
    arrange: async () => {
      const claim = await p.running('a');
      return () => p.defer(claim);
    },
    after: () => adopt('w1'),
  },
  {
    verb: 'bury',
    title: 'a running job',
    arrange: async () => {
      const claim = await p.running('a');
      return () => p.bury(claim);
    },
    after: () => adopt('w1'),
  },
  {
    verb: 'cancel',
    title: 'a scheduled job',
    arrange: async () => {
      await p.schedule('a');
      return () => p.cancel('j:a');
    },
    after: async () => {
      await p.promote();
      await runAndAdopt();
    },
  },
  {
    verb: 'replay',
    title: 'a letter',
    arrange: async () => {
      const letter = await p.dead('a');
      return () => p.replay(letter);
    },
  },
  {
    verb: 'reclaim',
    title: 'a running job',
    arrange: async () => {
      await p.running('a');
      return () => p.reclaim('w1');
    },
  },
];

let lost: string[] = [];
beforeEach(() => {
  lost = [];
});
afterEach(async () => {
  expect(lost).toEqual([]);
  await p.reset();
});

test.each(scenes)('$verb of $title, cut off anywhere and called again', async ({ verb, arrange, after }) => {
  const whole = await arrange();
  await whole();
  await after?.();
  const expected: Picture = await p.picture();
  let cuts = 0;
  for (; ; cuts += 1) {
    await p.reset();
    const call = await arrange();
    if (!(await cutOff(verb, cuts, call))) break;
    lost.push(...(await brokenInvariants(p.redis, p.keys)).filter((sentence) => sentence.includes('is lost')));
    await call();
    await after?.();
    expect(await p.picture(), `after ${cuts} writes`).toEqual(expected);
    expect(await brokenInvariants(p.redis, p.keys), `after ${cuts} writes`).toEqual([]);
  }
  expect(cuts).toBeGreaterThan(1);
});

test('a crash is counted once by a reclaim that was cut off and repeated', async () => {
  await p.running('a');
  await cutOff('reclaim', 1, () => p.reclaim('w1'));
  await p.reclaim('w1');
  expect(only(Object.values(await p.redis.hgetall(p.keys.runs))).split(' ')[4]).toBe('1');
});
