/** What every window says of a job in each state, as `docs/reference/states.md` has it. */
import { expect, test } from 'vitest';
import { dueTimes } from '../../src/inspect/doctor/check-members.ts';
import { memberOf } from '../../src/job/codec.ts';
import { debounceLetter } from '../../src/job/debounce.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { oldestDue, peek, stats } from '../../src/redis/read/inspect.ts';
import { examine } from '../../src/redis/repair/examine.ts';
import { close, limit } from '../../src/redis/scripts/gates.ts';
import { item, only, usePartition } from '../support/partition.ts';
import { read } from '../support/repository.ts';

const p = usePartition();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const HORIZON_MS = 3650 * 24 * HOUR_MS;
const ago = (minutes: number) => Date.now() - minutes * MINUTE_MS;

const put = (id: string, minutes = 5, late = {}) =>
  p.scheduleAll([item(id, { dueMs: ago(minutes), late })], { nowMs: Date.now() });
const promote = () => p.promote({ nowMs: Date.now() });
const pause = () => p.redis.hset(p.keys.meta, 'paused', `${Date.now()} x`);

/** A gated queue in which `{a}first` runs, and the job that is asked about has become due behind it. */
async function behind(share: string, { id = '{a}x', late = {} } = {}): Promise<string> {
  await limit(p.redis, p.ref, { share: { share, groups: [] } });
  await put('{a}first', 9);
  await promote();
  await p.start(await p.read(), { nowMs: Date.now() });
  await put(id, 5, late);
  await promote();
  return memberOf(id);
}

/** Nobody runs, and the group or the queue was closed before the job became due. */
async function closed(group: string): Promise<string> {
  await limit(p.redis, p.ref, { share: { share: '0 1 0 1', groups: [] } });
  await close(p.redis, p.ref, { group, until: { forMs: HOUR_MS } });
  await put('{a}x');
  await promote();
  return memberOf('{a}x');
}

async function ready(): Promise<string> {
  await put('x');
  await promote();
  return memberOf('x');
}

async function running() {
  await ready();
  const [started] = await p.claim(await p.read());
  if (!started) throw new Error('it runs');
  return started;
}

async function bare(score: number): Promise<string> {
  await p.put('x', score);
  return 'x';
}

/** By the first column of the page: brings a job there, and says which member it is. */
const ways: Readonly<Record<string, () => Promise<string>>> = {
  'will be due': async () => {
    await put('x', -60);
    return memberOf('x');
  },
  'is due, and no leader has looked yet': async () => {
    await put('x');
    return memberOf('x');
  },
  'is due in a paused queue': async () => {
    await pause();
    return ready();
  },
  'is in line behind a full group': () => behind('0 1 0 1'),
  'is in line behind a full queue': () => behind('0 1 1 0', { id: 'x' }),
  'is in line behind a rate': () => behind('3600000000 1 0 0', { id: 'x' }),
  'is in line behind a rate of its group': () => behind('0 1 0 0 3600000000.000 1 - x'),
  'is in line in a closed group': () => closed('a'),
  'is in line in a closed queue': () => closed(''),
  'is in line in a paused queue': async () => {
    const member = await behind('0 1 0 1');
    await pause();
    return member;
  },
  'is in line and past its `expiresAt`': () => behind('0 1 0 1', { late: { expiresAtMs: ago(1) } }),
  'is ready, and no worker has read it': ready,
  'was delivered, and its handler has not begun': async () => {
    const member = await ready();
    await p.read();
    return member;
  },
  runs: async () => (await running()).member,
  'runs, and a debounce call brought newer data': async () => {
    const call = { mode: 'debounce', nowMs: Date.now() } as const;
    const debounced = (dueMs: number, order: number) => {
      const { member, record } = item('x', { dueMs });
      const letter = debounceLetter(order, { waitMs: 1000, maxMs: HOUR_MS });
      return { member, dueMs, record: record.replace('|', `${letter}|`) };
    };
    await p.scheduleAll([debounced(ago(5), ago(6))], call);
    await promote();
    await p.claim(await p.read());
    await p.scheduleAll([debounced(Date.now() + MINUTE_MS, Date.now())], call);
    return memberOf('x');
  },
  'failed, and waits for its next attempt': async () => {
    const claim = await running();
    await p.retry(claim, { delayMs: HOUR_MS, nowMs: Date.now() });
    return claim.member;
  },
  'was deferred': async () => {
    const claim = await running();
    await p.defer(claim, { delayMs: HOUR_MS, nowMs: Date.now() });
    return claim.member;
  },
  'is done': async () => {
    const claim = await running();
    await p.complete([claim], { nowMs: Date.now() });
    return claim.member;
  },
  'was cancelled': async () => {
    await put('x');
    await p.cancel(memberOf('x'), { nowMs: Date.now() });
    return memberOf('x');
  },
  'is a dead letter': async () => {
    const claim = await running();
    await p.bury(claim, { nowMs: Date.now() });
    return claim.member;
  },
  'was put by a plain ZADD, and will be due': () => bare(Date.now() + HOUR_MS),
  'was put by a plain ZADD, and is due': () => bare(ago(5)),
  'was put with a due time in seconds': () => bare(Math.floor(ago(5) / 1000)),
  'was put with a due time past the horizon': () => bare(Date.now() + HORIZON_MS + HOUR_MS),
  'was put with a due time in nanoseconds': () => bare(Date.now() * 1_000_000),
};

/** Without what `{a}first` counts, which is in front of the jobs in line. */
async function countedBy(isInLine: boolean): Promise<string> {
  const found = await stats(p.redis, p.ref);
  const counts = { ...found, running: found.running - (isInLine && found.running > 0 ? 1 : 0) };
  const names = (['scheduled', 'waiting', 'ready', 'running', 'dead'] as const).filter((name) => counts[name] > 0);
  return [...names.map((name) => `\`${name}\``), ...(found.done > 0 ? ['ends'] : [])].join(', ');
}

async function doctorSays(): Promise<string> {
  const subject = { redis: p.redis, info: new Map([['role', 'slave']]), namespace: 't', horizonMs: HORIZON_MS };
  const { saw } = await dueTimes({ ...subject, done: {} as never, closedMax: 1 });
  return /looks? like seconds|past the horizon/.exec(saw)?.[0].replace('look ', 'looks ') ?? '';
}

const rows = [...read('docs/reference/states.md').matchAll(/^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|(.*?)\|$/gm)]
  .map(([, ...cells]) => cells.map((cell) => cell.trim()))
  .filter(([job]) => job !== 'the job');

test('the page has a row for each state, and each row a way to get there', () => {
  expect(rows.map(([job]) => job)).toEqual(Object.keys(ways));
});

test.each(rows)('a job that %s is seen as the page says', async (job = '', ...said) => {
  await p.redis.hset('t:v1:{control}:queues', 'q', '{"partitions":1,"generation":0}');
  const member = (await ways[job]?.()) ?? '';
  const isInLine = said[0] === '`waiting`';
  const [seen, { ageMs, inLine }] = await Promise.all([peek(p.redis, p.ref, member), oldestDue(p.redis, p.ref)]);
  const state = seen && 'state' in seen ? seen.state : 'moved';
  const late = ageMs < 4 * MINUTE_MS ? 'no' : inLine ? 'in line' : 'yes';
  expect([`\`${state}\``, await countedBy(isInLine), late, await doctorSays()]).toEqual(said);
  const { flaws } = await examine(p.redis, p.ref, { clock: systemClock, apartMs: 0 });
  expect(flaws.filter(({ what }) => what !== 'overdue').map(({ what }) => what)).toEqual([]);
});

test('a job in line is due since its due time, whatever its score is', async () => {
  await behind('0 1 0 1');
  const { ageMs } = await oldestDue(p.redis, p.ref);
  expect(Math.floor(ageMs / MINUTE_MS)).toBe(5);
  const [{ waitingSinceMs = 0, headDueMs }] = [await stats(p.redis, p.ref)];
  expect(Math.floor((Date.now() - waitingSinceMs) / MINUTE_MS)).toBe(5);
  expect(headDueMs).toBeUndefined();
  only(await p.redis.zrange(p.keys.scheduled, '0', '-1'));
});
