/**
 * The golden vectors of the wire format against our own code: what is frozen there is what we read, write and answer.
 * Foreign producers are checked against the same file, so that two implementations can only agree.
 */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeRecord, decodeTombstone, encodeBody, encodeRecord, idOf, memberOf } from '../../../src/job/codec.ts';
import type { HeaderOptions } from '../../../src/job/fields.ts';
import { parseJobId, parseJobName, parseName } from '../../../src/job/job.ts';
import { crc16, createJobIds, partitionOf, routingText } from '../../../src/job/job-id.ts';
import { groupOf, parseGroup } from '../../../src/job/labels.ts';
import { decodeSettings } from '../../../src/job/queue-settings.ts';
import { countedRecord, decodeHeader } from '../../../src/job/record-header.ts';
import { close, openCommands, type Redis, whenReady } from '../../../src/redis/connection/connect.ts';
import { controlKeys, partitionKeys, partitionRef } from '../../../src/redis/keys.ts';
import { limit } from '../../../src/redis/scripts/gates.ts';
import { createJobs } from '../../../src/redis/scripts/jobs.ts';
import { elect } from '../../../src/redis/scripts/lease.ts';
import { findQueue } from '../../../src/redis/scripts/queues.ts';
import { scripts } from '../../../src/redis/scripts/script-table.ts';
import { dueOf } from '../../../src/redis/scripts/scripts.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { read } from '../../support/repository.ts';
import { createStage, vectors } from '../../support/wire.ts';

const ref = partitionRef('duestream', { queue: 'emails', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'test' });
  await whenReady(redis);
});
afterAll(async () => {
  close(redis);
  await server.stop();
});

describe('names', () => {
  test.each(vectors.keys)('the keys of $namespace $queue $partition are built the same way', (vector) => {
    expect(partitionKeys(vector)).toMatchObject(vector.keys);
    expect(controlKeys(vector.namespace)).toMatchObject(vector.control);
  });

  const grammars: Readonly<Record<string, (text: string) => unknown>> = {
    queue: (text) => parseName(text, 'queue'),
    jobName: parseJobName,
    id: (text) => parseJobId(text),
    group: parseGroup,
  };
  for (const [what, parse] of Object.entries(grammars)) {
    const { valid = [], invalid = [] } = vectors.names[what] ?? {};
    test.each(valid)(`%j is a valid ${what}`, (text) => expect(parse(text)).toBe(text));
    test.each(invalid)(`%j is no valid ${what}`, (text) => expect(() => parse(text)).toThrow(/allowed/));
  }

  test.each(vectors.ids)('$id is made of $ms, $sequence and $random', ({ ms, sequence, random, id }) => {
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    const bytes = Buffer.from([...random].map((digit) => digits.indexOf(digit)));
    const reserve = createJobIds({
      clock: { wallMs: () => ms },
      random: (pool) => void Buffer.from(pool.buffer).fill(bytes),
    });
    reserve(sequence);
    expect(reserve(1)()).toBe(id);
    expect(parseJobId(id)).toBe(id);
  });

  test.each(vectors.members)('$member stands for $id', ({ id, bare, member }) => {
    expect(memberOf(id, { bare })).toBe(member);
    expect(idOf(member)).toEqual({ id, bare });
  });
});

describe('groups', () => {
  test.each(vectors.groups)('$member is of group $group', ({ member, group }) => {
    expect(groupOf(member)).toBe(group ?? undefined);
  });

  test('the scripts say the same of all that can wait in line', async () => {
    await redis.flushall();
    const nowMs = 1_763_719_000_000;
    await limit(redis, ref, { share: { share: '0 1 1 0', groups: [] }, nowMs });
    await redis.zadd(ref.keys.scheduled, nowMs - 1, 'first', nowMs - 1, 'second');
    for (const { member } of vectors.groups) await redis.zadd(ref.keys.scheduled, nowMs, member);
    const { term } = await elect(redis, ref, { processId: 'm', leaseMs: 60_000 });
    await createJobs(redis).promote(ref, { term, leaseMs: 60_000, limit: 500, cap: 10, nowMs });
    const places = await redis.zrange(ref.keys.line, '0', '-1');
    const lined = new Map(places.map((place) => [place.slice(place.indexOf('\0') + 11), place.split('\0')[0]]));
    const told = vectors.groups.filter(({ member }) => lined.has(member));
    expect(told.map(({ member }) => [member, lined.get(member)])).toEqual(
      told.map(({ member, group }) => [member, group ?? '']),
    );
    expect(told.length).toBeGreaterThan(vectors.groups.length - 4);
  });
});

test.each(vectors.partitions)('$id goes to the same partition', ({ id, text, crc16: sum, of }) => {
  expect([routingText(id), crc16(Buffer.from(text))]).toEqual([text, sum]);
  for (const [partitions, partition] of Object.entries(of)) expect(partitionOf(id, Number(partitions))).toBe(partition);
});

test.each(vectors.base36)('$number is $text', ({ number, text }) => {
  expect(encodeRecord(number, '{}')).toBe(`1${text}|{}`);
  expect(decodeHeader(`1${text}|{}`)?.askedDueMs).toBe(number);
});

describe('records', () => {
  test.each(vectors.records)('$record', (vector) => {
    const { dueMs, name = 'default', data, options = {}, header = {}, headers, counts, record, bytes, digest } = vector;
    const { a: attempts, t: timeoutMs, b: backoff } = options;
    const overrides = Object.fromEntries(
      Object.entries({ attempts, timeoutMs, backoff }).filter(([, value]) => value !== undefined),
    );
    const lateness = { ...latenessOf(header), ...tagsOf(header), ...costOf(header), ...(headers && { headers }) };
    expect(decodeRecord(record)).toEqual({ askedDueMs: dueMs, bare: false, name, data, ...overrides, ...lateness });
    const encoded = encodeRecord(dueMs, encodeBody({ name, data }, overrides), lateness);
    expect(counts ? countedRecord(encoded) : encoded).toBe(record);
    expect(Buffer.byteLength(record)).toBe(bytes);
    expect(createHash('sha1').update(record).digest('hex').slice(0, 16)).toBe(digest);
  });

  test.each(vectors.unreadable)('%j cannot be read', (record) => expect(() => decodeRecord(record)).toThrow());

  test.each(vectors.tombstones)('$tombstone', ({ tombstone, deadLetter, ...said }) => {
    expect(decodeTombstone(tombstone)).toEqual({ ...said, deadLetter: deadLetter ?? undefined });
  });
});

test.each(vectors.registry)('the registry says $value', async ({ value, partitions, generation }) => {
  await redis.hset(controlKeys('duestream').queues, 'emails', value);
  const found = findQueue(redis, 'duestream', 'emails');
  if (partitions === null) await expect(found).rejects.toThrow(/cannot be read/);
  else expect(await found).toEqual({ queue: 'emails', partitions, layoutGeneration: generation });
});

test.each(vectors.limits)('the registry says $value of $setting', async ({ setting, value, means }) => {
  expect(decodeSettings({ [setting]: value })[setting]).toEqual(means ?? undefined);
});

test.each(vectors.scores)('a score of $score is due at $dueMs', ({ score, ...means }) => {
  expect(dueOf(score)).toEqual(means);
});

test.each(vectors.nudges)('a leader that looks at $wake hears $publish of a job due at $dueMs', async (vector) => {
  const { wake, dueMs, publish } = vector;
  const stage = await createStage(server, ref);
  if (wake !== null) await redis.hset(ref.keys.meta, 'wake', wake);
  const call = { now: '1763718000000', generation: '0', mode: 'keep', horizon: '315360000000', bytes: '266240' };
  const { nudges } = await stage.play({ schedule: { ...call, jobs: [['j:a', '1mi8or64g|{}', String(dueMs)]] } });
  expect(nudges).toEqual(publish === null ? [] : [publish]);
});

describe('bare jobs', () => {
  async function promoted(member: string, { score, nowMs }: { score: string; nowMs: number }): Promise<string> {
    await redis.flushall();
    await redis.zadd(ref.keys.scheduled, score, member);
    const { term } = await elect(redis, ref, { processId: 'm', leaseMs: 60_000 });
    await createJobs(redis).promote(ref, { term, leaseMs: 60_000, limit: 10, cap: 10, nowMs });
    const [deadLetter] = await redis.xrange(ref.keys.dead, '-', '+');
    if (deadLetter) return deadLetter[1][5] ?? '';
    return (await redis.xlen(ref.keys.ready)) === 1 ? 'ready' : 'waits';
  }

  test.each(vectors.dues)('a score of $score at $nowMs: $becomes', async ({ becomes, record, ...due }) => {
    expect(await promoted('order-1042', due)).toBe(becomes);
    expect(await redis.hget(ref.keys.jobs, 'order-1042')).toBe(record ?? null);
  });

  const at = { score: '1763719000000', nowMs: 1_763_719_000_000 };
  test.each(vectors.names.bareId?.valid ?? [])('%j runs', async (id) => expect(await promoted(id, at)).toBe('ready'));
  test.each(vectors.names.bareId?.invalid.filter((id) => id !== 'j:a') ?? [])('%j becomes a dead letter', async (id) =>
    expect(await promoted(id, at)).toBe('bad-member'),
  );
});

for (const { title, steps } of vectors.stories) {
  test(title, async () => {
    const stage = await createStage(server, ref);
    for (const step of steps) {
      const { reply, nudges } = await stage.play(step);
      expect(reply).toEqual(step.reply);
      if (step.schedule) expect(nudges).toEqual(step.nudges ?? []);
    }
  });
}

describe('the page', () => {
  const page = read('docs/wire-protocol.md');

  test('shows partitions as they are', () => {
    const rows = [
      ...page.matchAll(/^\| `([^`]+)` \| `([^`]+)` \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$/gm),
    ];
    expect(rows.length).toBeGreaterThanOrEqual(7);
    for (const [, id = '', text, sum, ...numbers] of rows) {
      expect([routingText(id), crc16(Buffer.from(routingText(id)))]).toEqual([text, Number(sum)]);
      expect(numbers.map(Number)).toEqual([1, 2, 3, 8, 1000].map((partitions) => partitionOf(id, partitions)));
    }
  });

  test('names every section of the vectors', () => {
    const sections = Object.keys(vectors).filter((name) => name !== 'wire' && name !== 'about');
    expect(sections.filter((name) => !page.includes(`\n| \`${name}\` |`))).toEqual([]);
  });

  test.each(['schedule', 'cancel'] as const)('shows %s.lua as it is called', (verb) => {
    const all = scripts[verb].keys.map((key) => `K:${key}`);
    // These and those behind them are named by a producer whose jobs have to do with them.
    const keys = all.slice(
      0,
      all.findIndex((key) => ['K:groups', 'K:order'].includes(key)),
    );
    expect(page).toContain(`<sha1> ${keys.length}\n  ${keys.join(' ')} `);
  });
});

/** A priority stands among the tags, as one that begins with = . */
function tagsOf({ t }: Readonly<Record<string, string>>): HeaderOptions {
  const words = (t ?? '').replaceAll(' ', '=').split(',');
  const priority = (['high', 'low'] as const).find((one) => words.includes(`=${one}`));
  const tags = words.filter((word) => word !== '' && !word.startsWith('='));
  return { ...(priority && { priority }), ...(tags.length > 0 && { tags }) };
}

const costOf = ({ c }: Readonly<Record<string, string>>): HeaderOptions =>
  c === undefined ? {} : { cost: Number.parseInt(c, 36) };

function latenessOf({ e, l, p = 'd' }: Readonly<Record<string, string>>): HeaderOptions {
  if (e === undefined && l === undefined) return {};
  const policies: Readonly<Record<string, NonNullable<HeaderOptions['onLate']>>> = { d: 'drop', x: 'dead', r: 'run' };
  return {
    ...(e === undefined ? {} : { expiresAtMs: Number.parseInt(e, 36) }),
    ...(l === undefined ? {} : { maxLatenessMs: Number.parseInt(l, 36) }),
    onLate: policies[p] ?? 'drop',
  };
}
