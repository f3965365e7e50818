/**
 * Bugs in what debounces, planted one at a time: scenes of calls, ends, cancels, cuts and limits must tell something else.
 * The model of `test/proof` does not debounce.
 */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { whenReady } from '../../src/redis/connection/connect.ts';
import { begun, debounceDesk, J, MAX, sent, WAIT } from '../support/debounce-desk.ts';
import { cutOff, luaOf } from '../support/model-cut.ts';
import { brokenTexts, OF_DEBOUNCE } from '../support/mutants.ts';
import { only, T0, usePartition } from '../support/partition.ts';
import { planted, slipped } from '../support/planted.ts';

const p = usePartition();
const { sendAll, send, scoreOf, dataOf, runOf, started, running, ends, limits } = debounceDesk(p);
const digitOf = async () => ((await p.redis.hget(p.keys.runs, J)) ?? '').split(/[ \n]/)[8];

/** What each scene tells, whatever became of it. */
type Scene = (told: unknown[]) => Promise<void>;
const late = (name: string): HeaderOptions => ({ tags: [name] });
const scenes: readonly Scene[] = [
  async (told) => {
    for (const ms of [0, 900, 1800, 2700, 3600, 4500]) told.push(await send({ atMs: T0 + ms, late: late(`t${ms}`) }));
    told.push(await send({ atMs: T0 + 4500, data: 'x' }), await send({ order: T0, atMs: T0 + 4500 }));
    told.push(await send({ atMs: T0 + 4500, late: late('t4500') }));
    told.push(await send({ atMs: T0 + MAX }), await dataOf(), await scoreOf());
  },
  async (told) => {
    await p.schedule('a', { dueMs: T0 + 7000 });
    told.push(await send(), await p.schedule('b', { dueMs: T0, data: ';d=1|;d=1.1|' }), await send({ id: 'b' }));
  },
  async (told) => {
    await send();
    await p.reschedule(J, T0 + 60_000);
    told.push(await send({ atMs: T0 + 10 }), await runOf());
  },
  async (told) => {
    const calls = Array.from({ length: 60 }, (_, nth) => ({
      id: `n${nth}`,
      late: { tags: Array.from({ length: 10 }, (_, tag) => `t${tag}`) },
    }));
    await sendAll(calls);
    await sendAll(calls.slice(0, 50), T0);
    const more = calls.map((call) => ({ ...call, atMs: T0 + 1 }));
    told.push((await sendAll(more)).map(({ kind }) => kind));
  },
  ...[true, false].map(
    (isLater): Scene =>
      async (told) => {
        const run = await running();
        if (isLater) told.push(await send({ atMs: T0 + 2000, late: late('new') }));
        told.push(await p.cancel(J));
        if (!isLater) told.push(await send({ atMs: T0 + 2000, late: late('new') }));
        told.push(await p.extend([run]), await p.complete([run]));
        told.push(await send({ atMs: T0 + 2000, late: late('new') }), await send({ atMs: T0 + 1500 }));
      },
  ),
  ...ends.map(
    ([, end]): Scene =>
      async (told) => {
        const run = await running();
        await p.await(J);
        for (const ms of [2000, 4000, 6500]) told.push(await send({ atMs: T0 + ms }));
        told.push(
          await end(run),
          await end(run),
          await runOf().then((next) => ({ ...next, token: '' })),
          await digitOf(),
        );
        told.push(await p.count('scheduled'), await p.count('adopted'), await p.meta('wake'));
        told.push(await send({ atMs: T0 + 6900 }));
        const second = await started(T0 + 7000);
        told.push(second.data, await end(run), await send({ atMs: T0 + 7100 }), await send({ atMs: T0 + 7200 }));
        told.push(await end(second), await scoreOf());
      },
  ),
  ...(['retry', 'defer'] as const).flatMap((verb) =>
    [true, false].map(
      (isCancelled): Scene =>
        async (told) => {
          const run = await running();
          if (isCancelled) await p.cancel(J);
          await send({ atMs: T0 + 2000 });
          told.push(
            await p[verb](run, { delayMs: 100, nowMs: T0 + 3000 }),
            await send({ atMs: T0 + 3050 }),
            await runOf(),
            await digitOf(),
          );
          told.push(await p.cancel(J));
        },
    ),
  ),
  ...[true, false].map(
    (isCancelled): Scene =>
      async (told) => {
        const run = await running();
        if (isCancelled) await p.cancel(J);
        await p.reclaim('w1');
        told.push(await send({ atMs: T0 + 2000 }), await p.complete([run]));
        const delivery = { entry: run.entry, member: J, dueMs: T0 };
        told.push(begun(delivery, only(await p.start([delivery], { consumer: 'w2' }))).data);
      },
  ),
  async (told) => {
    const run = await running();
    await send({ atMs: T0 + 2000 });
    await p.put(J, T0 + 50_000);
    told.push(await p.complete([run]), await scoreOf());
  },
  async (told) => {
    const record = sent().record.replace(/d=\w+/, 'd=zzzzzzzzzzzzz');
    told.push(await p.scheduleAll([{ ...sent(), record }], { mode: 'debounce' }));
    const data = 'x'.repeat(400_000);
    told.push(await sendAll([{ data }, { id: 'b', data }]));
  },
  async (told) => {
    const run = await running();
    await p.cancel(J);
    await send({ atMs: T0 + 2000 });
    await p.reclaim('w1');
    const delivery = { entry: run.entry, member: J, dueMs: T0 };
    const second = begun(delivery, only(await p.start([delivery], { consumer: 'w2' })));
    told.push(second.data, await p.complete([second]), await send({ atMs: T0 + 2000 }));
  },
  async (told) => {
    await send();
    const delivery = only(await p.deliver({ nowMs: T0 + WAIT }));
    await p.start([delivery]);
    await send({ atMs: T0 + 2000 });
    const again = begun(delivery, only(await p.start([delivery])));
    told.push(await p.complete([again]), await send({ atMs: T0 + 2000 }));
  },
  ...[true, false].map(
    (isCut): Scene =>
      async (told) => {
        await p.bury(await running());
        const [deadLetter = ''] = only(await p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1));
        await send({ atMs: T0 + 2000 });
        await p.complete([await started(T0 + 3000)]);
        const call = () => p.replay(deadLetter, { nowMs: T0 + 4000 });
        // The dead letter is still there.
        if (isCut) await cutOff(p.redis, { verb: 'replay', lua: luaOf('replay'), allowed: 3, call });
        told.push(await call(), await send({ atMs: T0 + 1500 }), await send({ atMs: T0 + 2000 }));
        told.push(await send({ atMs: T0 + 5000 }));
      },
  ),
  async (told) => {
    await p.schedule('a');
    await p.edit(J, { hasData: true, data: 'edited' });
    await p.bury(only(await p.run()));
    const [deadLetter = ''] = only(await p.redis.xrevrange(p.keys.dead, '+', '-', 'COUNT', 1));
    await p.schedule('a', { dueMs: T0 + 1 });
    await p.complete(await p.run({ nowMs: T0 + 1 }));
    told.push(await p.replay(deadLetter, { nowMs: T0 + 2 }), await p.redis.hget(p.keys.jobs, J));
  },
  async (told) => {
    await p.redis.hset(p.keys.meta, { quota: '1 400', held: '0 0' });
    told.push(await sendAll([{}, { id: 'b' }]), await send({ atMs: T0 + 1, data: 'x'.repeat(500) }));
  },
  async (told) => {
    await send({ id: '{g}1' });
    await limits({ groupPending: 2 });
    const counted = { isCounted: true };
    told.push(await send({ id: '{g}1', atMs: T0 + 1 }));
    told.push(
      await sendAll([
        { id: '{g}1', atMs: T0 + 1, ...counted },
        { id: '{g}2', ...counted },
        { id: '{g}3', ...counted },
      ]),
    );
  },
  async (told) => {
    await send({ late: late('x') });
    await p.jobs.closeTags(p.ref, ['x'], { mode: 'close', untilMs: T0 + 99_000, text: '{}', most: 10 });
    told.push(await send({ atMs: T0 + 1, late: late('x') }), await send({ late: late('x') }));
  },
  async (told) => {
    await limits({ rate: { limit: 1, perMs: 60_000, burst: 1 } });
    for (const id of ['a', 'b']) await send({ id });
    await p.promote({ nowMs: T0 + WAIT });
    const waits = (await p.redis.zscore(p.keys.scheduled, J)) === null ? 'b' : 'a';
    told.push(await send({ id: waits, atMs: T0 + 1001 }), await p.redis.zrange(p.keys.line, '0', '-1'));
    told.push(await send({ id: waits, atMs: T0 + 1002, late: { priority: 'high' } }));
    told.push(await p.redis.zrange(p.keys.line, '0', '-1'), await scoreOf(`j:${waits}`));
  },
  async (told) => {
    const run = await running();
    await send({ atMs: T0 + 2000 });
    told.push(await p.complete([run], { hold: true }), await p.redis.xlen(p.keys.ready));
  },
  async (told) => {
    await send({ atMs: T0 });
    told.push(await p.scheduleAll([{ ...sent({ order: T0 + 1 }), dueMs: 0 }], { mode: 'debounce', nowMs: T0 + 1 }));
    told.push(await p.redis.hget(p.keys.jobs, J), await send({ atMs: T0, order: T0 + 2, data: 'x'.repeat(700_000) }));
  },
];

/** Without what another run of the same scene has otherwise: tokens, entries, moments of the server. */
const told = (value: unknown): string => JSON.stringify(value).replaceAll(/\d{16,}|179\d{10}-\d+/g, '#');

/** A reply that cannot be that of its call costs the connection. */
async function connected(): Promise<void> {
  while ((await p.redis.ping().catch(() => undefined)) === undefined) {
    await setImmediate();
    await whenReady(p.redis);
  }
}

/** Up to the first that is not what was told before. */
async function allTold(before?: readonly string[]): Promise<readonly string[]> {
  const all: string[] = [];
  for (const scene of scenes) {
    if (before && all.length > 0 && all.at(-1) !== before[all.length - 1]) break;
    await p.reset();
    const said: unknown[] = [];
    await scene(said).catch((error: unknown) => said.push(String(error)));
    await connected();
    said.push(await p.picture(), (await p.redis.zrange(p.keys.tags, '0', '-1')).length);
    all.push(told(said));
  }
  return all;
}

/** Bugs that no operator makes, and that are hard to see: `[script or part, words of one line, words in their place]`. */
const SLIPS: readonly (readonly [of: string, words: string, instead: string])[] = [
  ['debounce', 'due = math.min(due, ceiling)', 'due = due'],
  ['debounce', 'due = math.min(due, ceiling) }', 'due = due }'],
  ['debounce', 'hasBit(run.cancel, AGAIN) and first or ceiling', 'ceiling'],
  ['debounce', 'hasBit(run.cancel, AGAIN) and first or ceiling', 'first'],
  ['debounce', 'run.cancel = withBit(run.cancel, AGAIN)', 'run.cancel = AGAIN'],
  ['debounce', 'run.cancel = withBit(run.cancel, AGAIN)', 'run.cancel = run.cancel'],
  ['debounce', 'run.cancel = onlyWaited(run.cancel)', 'run.cancel = run.cancel'],
  ['debounce', 'unboundText(run, run.due)', 'runText(run)'],
  ['debounce', "markOf(record):match('(%x+)$')", 'digestOf(record .. order)'],
  ['debounce', 'and firstMark(current) or', "and '' or"],
  ['debounce', "current:match('^%.%l(%w+ %x+)')", "''"],
  ['debounce', 'newsOf(keys, call, job, current) or', '{ reply = "merged 0", score = "0", ceiling = 1, due = 1 } or'],
  ['again', 'run.token, run.generation', "'0', run.generation"],
  ['again', "run.generation + 1, '0'", "run.generation + 1, '1'"],
  ['again', 'onlyWaited(run.cancel)', "'0'"],
  ['completion', "isCancelled and (mark:match('\\n.*') or '') or mark", 'mark'],
  ['completion', 'livesOn and { member = member, run = run } or nil', 'nil'],
  ['completion', 'not livesOn and tags and', 'tags'],
  ['completion', 'not livesOn and member or nil', 'member'],
  ['completion', '(livesOn and 0 or 1)', '1'],
  ['completion', 'goesOn = isAgain or livesOn', 'goesOn = isAgain'],
  ['bury', "livesOn and '-' or deadLetterId()", 'deadLetterId()'],
  ['bury', 'hasNews(run)', 'false'],
  ['commit', 'hasNews(run)', 'false'],
  ['commit', "hasLivedOn(run, token) and 'already' or 'fenced'", "'fenced'"],
  ['put-back', 'if hasNews(run) then', 'if false then'],
  ['cancel', 'withBit(withoutBit(run.cancel, AGAIN), STOP)', 'withBit(run.cancel, STOP)'],
  ['start-one', 'and not hasBit(run.cancel, AGAIN)', ''],
  ['start-one', 'run.cancel = onlyWaited(run.cancel)', 'run.cancel = withoutBit(run.cancel, STOP)'],
  ['turn-away', 'hasBit(run.cancel, STOP) and not hasBit(run.cancel, AGAIN)', 'hasBit(run.cancel, STOP)'],
  ['replay', 'record = withLaterMark(here)', 'record = record'],
  ['replay', 'bare(here) == bare(record)', 'here == record'],
  ['schedule', "if reply == 'replaced' and news then", "if reply == 'none' and news then"],
];
/** Broken lines that change nothing which could be told, with the reason. */
const EQUAL: readonly (readonly [words: string, why: string])[] = [
  ['turned >: if number > 9007199254740991', 'the largest number there is'],
  ['turned >: local current = job.length > 0', 'a look more, which finds nothing'],
  ['replay @later-mark: turned <', 'the same order has the same mark'],
  ['no guard: if isAhead(', 'no job of these is handed out ahead; test/flow/worker/ahead.test.ts has one'],
  ["no guard: if not news then return 'held'", 'the same'],
];

test('planted bugs are noticed', { timeout: 600_000 }, async () => {
  const slips = SLIPS.map(([of, words, instead]) => ({
    of,
    name: `${of}: ${words} → ${instead}`,
    lua: slipped({ of, words, instead }),
  }));
  const marked = OF_DEBOUNCE.map((name) => ({ of: name.split(' ')[0] ?? '', name }));
  const broken = ['debounce', 'again'].flatMap((of) => brokenTexts(of).map((bug) => ({ of, ...bug })));
  const others = marked.flatMap(({ of, name }) =>
    brokenTexts(of)
      .filter((bug) => bug.name === name)
      .map((bug) => ({ of, ...bug })),
  );
  expect(others.map(({ name }) => name).toSorted()).toEqual([...OF_DEBOUNCE].toSorted());
  const right = await allTold();
  expect(await allTold()).toEqual(right);
  const unnoticed: string[] = [];
  const bugs = [...broken, ...others, ...slips];
  for (const { of, name, lua } of bugs) {
    if (EQUAL.some(([words]) => name.includes(words))) continue;
    const takeOut = planted(p.redis, { of, lua });
    if (JSON.stringify(await allTold(right)) === JSON.stringify(right)) unnoticed.push(name);
    takeOut();
  }
  await p.reset();
  expect(unnoticed).toEqual([]);
  expect(bugs.length).toBeGreaterThan(50);
});
