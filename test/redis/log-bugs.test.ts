/**
 * Bugs in what keeps the lines of handlers, planted one at a time: scenes of starts, ends, dead letters and sweeps must tell
 * something else. The handlers of the model of `test/proof` say nothing.
 */
import { expect, test } from 'vitest';
import { LINES_BYTES_MAX, LINES_MAX } from '../../src/job/log-lines.ts';
import { sweep } from '../../src/redis/scripts/lease.ts';
import type { Claim } from '../../src/redis/scripts/replies.ts';
import { eraseLines, forget } from '../../src/redis/scripts/upkeep.ts';
import { brokenTexts } from '../support/mutants.ts';
import { item, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';
import { planted, slipped } from '../support/planted.ts';

const p = usePartition();
const limits = {
  batch: 100,
  windowMs: WINDOW_MS,
  tombstonesMax: 10_000,
  floorMs: 60_000,
  retentionMs: 3_600_000,
  deadLettersMax: 100_000,
};

const sweepAt = async (nowMs: number) => sweep(p.redis, p.ref, { term: await p.lead(), limits, nowMs });
const letters = async () => (await p.redis.xrange(p.keys.dead, '-', '+')).map(([id]) => id);
/** What is kept, without ids and tokens, which Redis makes. */
async function seen(): Promise<unknown> {
  const all = await p.redis.hgetall(p.keys.logs);
  const ids = await letters();
  const named = (field: string) => (field.startsWith('\0') ? `letter ${ids.indexOf(field.slice(1))}` : field);
  return [
    await p.redis.hget(p.keys.meta, 'logs'),
    Object.entries(all)
      .map(([field, text]) => `${named(field)}: ${text.replace(/^\d+/, 'token')}`)
      .toSorted(),
  ];
}
async function again(nowMs: number): Promise<Claim> {
  await p.promote({ nowMs });
  return only(await p.claim(await p.read()));
}

type Scene = (told: unknown[]) => Promise<void>;
const scenes: readonly Scene[] = [
  async (told) => {
    const claim = await p.running('a');
    told.push(await p.log(claim, ['one', 'two']), await p.log(claim, ['two', 'three'], { last: 3, tags: 'x' }));
    told.push(await seen(), await p.log(claim, ['seven'], { last: 7 }), await p.log(claim, ['seven'], { last: 7 }));
  },
  async (told) => {
    const claim = await p.running('a');
    told.push(
      await p.log(
        claim,
        Array.from({ length: LINES_MAX }, () => 'x'),
      ),
      await seen(),
    );
    told.push(await p.log(claim, ['y', 'z'], { last: LINES_MAX + 2 }));
  },
  async (told) => {
    const claim = await p.running('a');
    const line = (letter: string) => letter.repeat(LINES_BYTES_MAX / 2 - 1);
    told.push(await p.log(claim, [line('a'), line('b')]), await seen());
    const other = await p.running('b');
    told.push(await p.log(other, [line('a'), `${line('b')}b`]), await seen());
    told.push(await p.log(claim, ['c'], { last: 3 }));
  },
  async (told) => {
    const first = await p.running('a');
    await p.log(first, ['one']);
    await p.retry(first);
    const second = await again(T0 + 1000);
    told.push(await p.log(first, ['old']), await p.log({ ...second, entry: first.entry }, ['odd']));
    told.push(await p.log(second, ['two', 'three']), await seen());
    await p.complete([second]);
    told.push(await p.log(second, ['late']), await seen());
    told.push(await sweepAt(T0 + WINDOW_MS + 1));
  },
  async (told) => {
    await p.put('bare', T0);
    const [first] = await p.run();
    if (!first) throw new Error('nothing runs');
    told.push(await p.log(first, ['one']), await p.complete([first]));
    await p.put('bare', T0 + 1);
    told.push(await p.log(await again(T0 + 1), ['two']));
  },
  async (told) => {
    await p.scheduleAll([item('a'), item('b'), item('c')]);
    const [a, b, c] = await p.run();
    if (!a || !b || !c) throw new Error('three run');
    for (const claim of [a, b, c]) await p.log(claim, [claim.member]);
    await p.bury(a);
    await p.bury(b);
    told.push(await seen(), await p.complete([c], { windowMs: 0 }), await seen());
    const [one = '', two = ''] = await letters();
    told.push((await p.replay(one)).kind, await seen(), await forget(p.redis, p.ref, [two]));
  },
  async (told) => {
    await p.scheduleAll([item('a'), item('b')]);
    const [a, b] = await p.run();
    if (!a || !b) throw new Error('two run');
    for (const claim of [a, b]) await p.log(claim, [claim.member]);
    told.push(await p.commit(a, []), await seen());
    await p.cancel(b.member);
    told.push(await p.bury(b), await seen());
  },
  async (told) => {
    const claim = await p.running('a');
    await p.log(claim, ['one']);
    const many = Array.from({ length: 40 }, (_, nth) => [`j:${nth}`, `1 1 0 -\n${'x'.repeat(100)}`]).flat();
    await p.redis.hset(p.keys.logs, ...many, '\0nonsense', 'x', '\x001763719000000-0', 'x');
    for (let pass = 0; pass < 3; pass += 1) await sweepAt(T0);
    told.push((await p.redis.hlen(p.keys.logs)) > 0, (await p.redis.hget(p.keys.meta, 'logs')) !== '0');
    for (let pass = 0; pass < 20; pass += 1) await sweepAt(T0);
    told.push(await seen(), await p.bury(claim), await sweepAt(T0), await seen());
    await p.redis.del(p.keys.dead, p.keys.jobs, p.keys.done);
    told.push(await sweepAt(T0));
  },
  async (told) => {
    for (const [id, tags] of [
      ['a', 'x,yy'],
      ['b', 'y'],
      ['c', '-'],
    ] as const) {
      const claim = await p.running(id);
      await p.log(claim, ['one'], { tags });
      await p.complete([claim]);
    }
    for (const tag of ['y', '-', 'yy', 'x']) {
      for (const mode of ['count', 'remove'] as const) {
        told.push(await eraseLines(p.redis, p.ref, { tag, mode, limit: 30 }), await seen());
      }
    }
  },
  async (told) => {
    const many = Array.from({ length: 500 }, (_, nth) => [`j:${nth}`, '1 1 0 -\nx']).flat();
    await p.redis.hset(p.keys.logs, ...many);
    const { looked, next } = await eraseLines(p.redis, p.ref, { tag: 'x', mode: 'count', limit: 1000 });
    told.push(looked < 200, next === undefined);
  },
];

/** What is told by all scenes, each on an empty partition. */
async function toldByAll(): Promise<string> {
  const told: unknown[] = [];
  for (const scene of scenes) {
    await p.reset();
    await scene(told).catch((error: unknown) => told.push(String(error)));
    told.push(await seen());
  }
  await p.reset();
  return JSON.stringify(told);
}

/** Bugs that no rule makes: one word is another, or one line is not there. */
const SLIPS: readonly (readonly [of: string, words: string, instead: string])[] = [
  ['log', 'if token ~= job.token then', 'if false then'],
  ['log', "if not token or job.attempts == '1' then", 'if not token then'],
  ['log', 'unkept + first - known - 1', 'unkept'],
  ['log-lines', "logs and deadLetter ~= '-' and", 'logs and'],
  ['log-lines', "redis.call('HGET', logs, '\\0' .. deadLetter)", "redis.call('HGET', logs, member)"],
  ['sweep-lines', "'^%z(%d+%-%d+)$'", "'^%z(.+)$'"],
  ['erase-lines', "(',' .. tags .. ','):find(',' .. tag .. ',', 1, true)", 'tags:find(tag, 1, true)'],
];

/** What changes nothing that could be told. */
const EQUIVALENT: readonly string[] = [];

test('each planted bug makes a scene tell something else', { timeout: 600_000 }, async () => {
  const right = await toldByAll();
  expect(await toldByAll()).toBe(right);
  const bugs = [
    ...['log', 'log-lines', 'sweep-lines', 'erase-lines'].flatMap((of) =>
      brokenTexts(of).map((bug) => ({ of, ...bug })),
    ),
    ...SLIPS.map(([of, words, instead]) => ({ of, name: `${of}: ${words}`, lua: slipped({ of, words, instead }) })),
  ];
  const unnoticed: string[] = [];
  for (const { of, name, lua } of bugs) {
    const takeOut = planted(p.redis, { of, lua });
    if ((await toldByAll()) === right) unnoticed.push(name);
    takeOut();
  }
  expect(unnoticed.filter((name) => !EQUIVALENT.some((said) => name.startsWith(said)))).toEqual([]);
});
