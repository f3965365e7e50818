/** `K:diary`: what scripts write about rare changes, each once, and what of it is read again. */
import { describe, expect, test } from 'vitest';
import { diaryEntries, diaryIntervals } from '../../src/redis/diary.ts';
import { close } from '../../src/redis/scripts/gates.ts';
import { elect, observe, resign } from '../../src/redis/scripts/lease.ts';
import { pause, remove, resume } from '../../src/redis/scripts/upkeep.ts';
import { brokenTexts } from '../support/mutants.ts';
import { usePartition } from '../support/partition.ts';
import { planted } from '../support/planted.ts';

const p = usePartition();
const ada = { by: 'ada', reason: 'the mail server moves' };
const told = async () => (await diaryEntries(p.redis, p.ref)).map(({ entry: _, atMs: _at, ...rest }) => defined(rest));
const held = async () => (await diaryIntervals(p.redis, p.ref)).map(defined);
const defined = (all: object) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
const gated = () => p.redis.hset(p.keys.meta, 'gates', '0 1 5 0', 'gate', '0 0 0 0 0 0');
const closes = (of: Partial<Parameters<typeof close>[2]>) =>
  close(p.redis, p.ref, { group: '', until: { forMs: 60_000 }, by: 'ada', ...of });

describe('a pause', () => {
  test('is told with who and why, and so is its end; the same calls again tell nothing', async () => {
    for (let time = 0; time < 2; time += 1) await pause(p.redis, p.ref, ada);
    for (let time = 0; time < 2; time += 1) await resume(p.redis, p.ref, 'bob');
    const [began, ended] = await diaryEntries(p.redis, p.ref);
    expect(await told()).toEqual([
      { what: 'paused', by: 'ada', why: ada.reason },
      { what: 'resumed', by: 'bob', why: ada.reason, fromMs: expect.any(Number) },
    ]);
    expect(await held()).toEqual([
      { what: 'paused', by: 'ada', why: ada.reason, fromMs: began?.atMs, toMs: ended?.atMs },
    ]);
  });

  test('that an older process made is told by its end, and before it by what holds', async () => {
    await p.redis.hset(p.keys.meta, 'paused', '1763719000000 by hand');
    const since = { what: 'paused', why: 'by hand', fromMs: 1_763_719_000_000 };
    expect(await held()).toEqual([since]);
    await resume(p.redis, p.ref, 'bob');
    expect(await held()).toEqual([{ ...since, toMs: expect.any(Number) }]);
  });

  test('holds also where its diary is a key of another type, which somebody else wrote', async () => {
    await p.redis.set(p.keys.diary, 'mine');
    expect(await pause(p.redis, p.ref, ada)).toMatchObject({ kind: 'ok' });
    expect(await p.promote()).toMatchObject({ kind: 'paused' });
    expect(await p.redis.get(p.keys.diary)).toBe('mine');
  });
});

describe('a closing', () => {
  test('is told with its end, and opening it early tells the true one', async () => {
    await gated();
    await closes({ why: 'down' });
    await closes({ group: 'acme', why: '429' });
    const before = await held();
    expect(before).toMatchObject([
      { what: 'closed', by: 'ada', why: 'down' },
      { what: 'closed', by: 'ada', why: '429', group: 'acme' },
    ]);
    for (let time = 0; time < 2; time += 1) await closes({ until: 0, by: 'bob' });
    const [queue, group] = await held();
    const opened = (await diaryEntries(p.redis, p.ref)).filter(({ what }) => what === 'opened');
    expect(opened).toMatchObject([{ by: 'bob', group: undefined }]);
    expect(queue).toEqual({ ...before[0], toMs: opened[0]?.atMs });
    expect(group).toEqual(before[1]);
  });

  test('that is prolonged is one entry with its first beginning and its last end', async () => {
    await gated();
    await closes({ why: 'down' });
    const [first] = await diaryEntries(p.redis, p.ref);
    for (const minutes of [2, 3, 2]) await closes({ until: { forMs: minutes * 60_000 }, why: `${minutes}` });
    const entries = await diaryEntries(p.redis, p.ref);
    expect(entries).toMatchObject([{ what: 'closed', fromMs: first?.atMs, why: '3' }]);
    expect(await held()).toMatchObject([{ fromMs: first?.atMs, toMs: entries[0]?.untilMs }]);
  });
});

describe('a leader', () => {
  const elects = (processId: string, silentMs?: number) =>
    elect(p.redis, p.ref, { processId, leaseMs: 60_000, silentMs });

  test('is told when it is elected and when it resigns, once each', async () => {
    const { term } = await elects('m1');
    await elects('m1');
    for (let time = 0; time < 2; time += 1) await resign(p.redis, p.ref, term);
    await elects('m2');
    expect(await told()).toEqual([
      { what: 'elected', by: 'm1' },
      { what: 'resigned', by: 'm1' },
      { what: 'elected', by: 'm2' },
    ]);
    const [, gone, come] = await diaryEntries(p.redis, p.ref);
    expect((await held()).at(-1)).toEqual({ what: 'leaderless', by: 'm1', fromMs: gone?.atMs, toMs: come?.atMs });
  });

  test('that follows one that died says since when that gave no sign of life', async () => {
    await elects('m2', 4000);
    const [elected] = await diaryEntries(p.redis, p.ref);
    expect(elected).toMatchObject({ what: 'elected', by: 'm2' });
    const agoMs = (elected?.atMs ?? 0) - (elected?.fromMs ?? 0);
    expect(agoMs >= 4000 && agoMs < 5000).toBe(true);
  });
});

describe('that no worker lives', () => {
  test('is told once, whoever leads, and so is the first that comes back, since when it was', async () => {
    const term = await p.lead();
    const see = (state: 'served' | 'unserved', agoMs = 0) => observe(p.redis, p.ref, { term, state, agoMs });
    expect(await see('served')).toBe('same');
    expect(await see('unserved', 15_000)).toBe('ok');
    expect(await see('unserved')).toBe('same');
    expect(await see('served')).toBe('ok');
    expect(await see('served')).toBe('same');
    const [, gone, back] = await diaryEntries(p.redis, p.ref);
    expect(back?.fromMs).toBe(gone?.fromMs);
    expect((await held()).at(-1)).toEqual({ what: 'unserved', fromMs: gone?.fromMs, toMs: back?.atMs });
    expect((gone?.atMs ?? 0) - (gone?.fromMs ?? 0)).toBeGreaterThanOrEqual(15_000);
  });

  test('is told by nobody who does not lead any more', async () => {
    const term = await p.lead();
    await resign(p.redis, p.ref, term);
    expect(await p.withoutWrite(() => observe(p.redis, p.ref, { term, state: 'unserved' }))).toBe('fenced');
  });
});

test('a diary keeps the newest thousand, goes by itself, and goes with its queue', async () => {
  for (let time = 0; time < 501; time += 1) {
    void pause(p.redis, p.ref, ada);
    await resume(p.redis, p.ref);
  }
  expect(await p.redis.xlen(p.keys.diary)).toBe(1000);
  const ttlMs = await p.redis.pttl(p.keys.diary);
  expect(ttlMs > 89 * 86_400_000 && ttlMs <= 90 * 86_400_000).toBe(true);
  await remove(p.redis, p.ref, { force: true });
  expect(await p.redis.exists(p.keys.diary)).toBe(0);
});

/** Calls one after the other, of which the diary tells. */
const SCENES: readonly (() => Promise<unknown>)[] = [
  async () => {
    for (let time = 0; time < 2; time += 1) await pause(p.redis, p.ref, ada);
    for (let time = 0; time < 2; time += 1) await resume(p.redis, p.ref, 'bob');
  },
  async () => {
    await gated();
    for (const minutes of [1, 2]) await closes({ until: { forMs: minutes * 60_000 }, why: 'down' });
    for (const minutes of [1, 2]) await closes({ group: 'acme', until: { forMs: minutes * 60_000 } });
    await closes({ until: { forMs: 600_000 } });
    await closes({ until: 0, by: 'bob' });
  },
  async () => {
    // The second begins at the end of the first, so it prolongs nothing.
    const nowMs = 1_795_919_000_000;
    await gated();
    for (const after of [0, 1000]) await closes({ nowMs: nowMs + after, until: nowMs + after + 1000 });
  },
  async () => {
    const term = await p.lead();
    const see = (state: 'served' | 'unserved') => observe(p.redis, p.ref, { term, state, agoMs: 15_000 });
    const first = [await see('served'), await see('unserved'), await see('unserved')];
    return [...first, await p.redis.hexists(p.keys.meta, 'unserved'), await see('served'), await see('served')];
  },
  async () => {
    const term = await p.lead();
    await resign(p.redis, p.ref, term);
    return observe(p.redis, p.ref, { term, state: 'unserved', agoMs: 0 });
  },
];

/** All that is seen afterwards, without the times of the machine. */
async function seenAfter(scene: () => Promise<unknown>): Promise<string> {
  await p.reset();
  const said = await scene().catch(String);
  const stored = [await p.redis.xrange(p.keys.diary, '-', '+'), await p.redis.hexists(p.keys.meta, 'unserved')];
  const lasts = (await p.redis.pttl(p.keys.diary)) > 0;
  return JSON.stringify([said, stored, lasts]).replaceAll(/\d{13,}(-\d+)?/g, '#');
}

test('planted bugs of what writes a diary are noticed', async () => {
  const right = await each(SCENES, seenAfter);
  expect(await each(SCENES, seenAfter)).toEqual(right);
  const unnoticed: string[] = [];
  for (const { of, name, lua } of ['observe', 'diary'].flatMap((of) =>
    brokenTexts(of).map((bug) => ({ of, ...bug })),
  )) {
    const takeOut = planted(p.redis, { of, lua });
    if (JSON.stringify(await each(SCENES, seenAfter)) === JSON.stringify(right)) unnoticed.push(name);
    takeOut();
  }
  await p.reset();
  expect(unnoticed).toEqual([]);
});

/** One after the other: they share a partition. */
async function each<One, Other>(all: readonly One[], act: (one: One) => Promise<Other>): Promise<readonly Other[]> {
  const found: Other[] = [];
  for (const one of all) found.push(await act(one));
  return found;
}
