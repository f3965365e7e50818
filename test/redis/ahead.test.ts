/**
 * Jobs that are offered before they are due, script by script: an offer leaves its job in scheduled, a start takes it out and
 * its run has the due time until which a worker holds it, and who changes it takes it back. Each scene is a story of such jobs. Planted
 * bugs must change what a scene tells, and a call that is cut off before any of its writes and made again must end as it would have.
 * The model of `test/proof` hands nothing out ahead; `test/flow/worker/ahead.test.ts` has workers.
 */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { digestOf } from '../../src/job/record-header.ts';
import { whenReady } from '../../src/redis/connection/connect.ts';
import { seenText } from '../../src/redis/scripts/edits.ts';
import type { Claim, Delivery, Taken } from '../../src/redis/scripts/replies.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { sent } from '../support/debounce-desk.ts';
import { broken, takeSnapshot } from '../support/invariants.ts';
import { cutOff, drain, endsOf, isOfAhead, lineOf, luaOf, savePoint, writesOf } from '../support/model-cut.ts';
import { brokenTexts, OF_AHEAD } from '../support/mutants.ts';
import { item, LEASE_MS, only, T0, usePartition, WINDOW_MS } from '../support/partition.ts';
import { planted, slipped } from '../support/planted.ts';

const p = usePartition();
const J = 'j:a';
/** Due long after each entry of this test is added, so that all of them are offers, however slow the machine is. */
const D = Date.now() + 3_600_000;

/** Jobs by id, of which each is due so long after D. */
const plan = (jobs: Readonly<Record<string, number>>, late: HeaderOptions = {}) =>
  p.scheduleAll(
    Object.entries(jobs).map(([id, inMs]) => item(id, { dueMs: D + inMs, late })),
    { nowMs: D - 1000 },
  );
interface Pass {
  /** null: nothing is offered. */
  readonly aheadMs?: number | null;
  readonly limit?: number;
  readonly cap?: number;
}
const pass = async (atMs: number, { aheadMs = 100, limit = 500, cap = 10_000 }: Pass = {}) => {
  const leader = { term: await p.lead(), leaseMs: LEASE_MS, limit, cap };
  return p.jobs.promote(p.ref, { ...leader, aheadMs: aheadMs ?? undefined, nowMs: D + atMs });
};
const turn = { consumer: 'w1', bytesMax: 1_000_000, windowMs: WINDOW_MS };
const serve = (atMs: number, own: Partial<typeof turn> & { suspects?: number; take?: number } = {}) => {
  const { take = 10, ...call } = own;
  return p.jobs.serve(p.ref, { ended: [], given: [], take }, { ...turn, ...call, nowMs: D + atMs });
};
const start = (deliveries: readonly Delivery[], atMs: number, call = {}) =>
  p.start(deliveries, { ...call, nowMs: D + atMs });
const relay = async (atMs: number) => {
  const leader = { term: await p.lead(), leaseMs: LEASE_MS, limit: 10, cap: 10_000 };
  return p.jobs.relay(p.ref, { ended: [], take: 10, pass: leader }, { ...turn, nowMs: D + atMs });
};
const claimsOf = (taken: readonly Taken[]): readonly Claim[] =>
  taken.flatMap((one) => ('token' in one ? [{ entry: one.entry, member: one.member, token: one.token }] : []));
const letGo = (claim: Claim, atMs: number) =>
  p.jobs.defer(p.ref, claim, { windowMs: WINDOW_MS, delayMs: 0, heldDueMs: D, nowMs: D + atMs });
/** A job that is due at D, and that a worker holds. */
async function held(late: HeaderOptions = {}): Promise<Claim> {
  await plan({ a: 0 }, late);
  await pass(-50);
  return only(claimsOf((await serve(-40)).taken));
}
const retried = async () => {
  await p.schedule('a');
  await p.retry(only(await p.run()), { delayMs: 0, nowMs: D });
  await pass(-50);
};
const runs = () => p.redis.hgetall(p.keys.runs);
const meta = async () => Promise.all(['ahead', 'wake', 'n.promoted', 'n.deferred', 'n.cancelled'].map(p.meta));
/** All that may be asked of a job that a worker holds. */
const asks = {
  cancel: (atMs: number) => p.cancel(J, { nowMs: D + atMs }),
  reschedule: (atMs: number) => p.reschedule(J, D + 60_000, { nowMs: D + atMs }),
  edit: (atMs: number) => p.edit(J, { data: 'newer' }, { nowMs: D + atMs }),
  replace: (atMs: number) => p.schedule('a', { dueMs: D + 60_000, mode: 'replace', nowMs: D + atMs }),
  debounce: (atMs: number) => p.scheduleAll([sent({ atMs: D + atMs })], { mode: 'debounce', nowMs: D + atMs }),
};
/** A job that debounces, which is due at D. */
const debounced = () => p.scheduleAll([sent({ atMs: D - 1000 })], { mode: 'debounce', nowMs: D - 1000 });

/** What may be with a job whose worker died while it held it, and what the next start says of it. */
interface Orphan {
  readonly late?: HeaderOptions;
  readonly change?: () => Promise<unknown>;
  readonly kind: string;
}
const ORPHANS: Readonly<Record<string, Orphan>> = {
  'it is a suspect': { kind: 'suspect' },
  'it is late': { late: { expiresAtMs: D - 30 }, kind: 'late' },
  'its record is gone': { change: () => p.redis.hdel(p.keys.jobs, J), kind: 'deadLetter' },
  'it was cancelled': { change: () => asks.cancel(-25), kind: 'dropped' },
  'it is due later': { change: () => asks.reschedule(-25), kind: 'dropped' },
};
async function orphan({ late, change }: Orphan, atMs: number) {
  await held(late);
  const taken = (await p.reclaim('w1')).deliveries;
  await change?.();
  return start(taken, atMs, { consumer: 'w2', suspects: 1 });
}
/** Members whose end is told until a time, and those of entries without a job. */
const overs = () => Promise.all([p.redis.zrange(p.keys.done, '0', '-1'), p.redis.zrange(p.keys.stale, '0', '-1')]);

/** What each scene tells, whatever became of it. */
type Scene = (told: unknown[]) => Promise<void>;
const scenes: readonly Scene[] = [
  // What is offered, and once.
  async (told) => {
    await plan({ due: -60, a: -50, b: 0, c: 49, d: 50, e: 51, f: 300 });
    told.push(await pass(-50), await meta(), await p.picture(), await pass(-50), await meta());
    told.push(await serve(-45), await plan({ g: 20 }), await pass(-50), await meta());
    told.push(await pass(-30), await pass(-30, { aheadMs: null }), await meta());
    told.push(await serve(-20), await pass(52), await meta(), await pass(400));
  },
  // No more than a pass may move; those of one due time come together.
  ...[2, 3, 4].map(
    (limit): Scene =>
      async (told) => {
        await plan({ a: 0, b: 1, c: 1, d: 2, e: 3 });
        told.push(await pass(-50, { limit }), await meta(), await serve(-49), await pass(-48, { limit }), await meta());
      },
  ),
  ...[1, 2].map(
    (limit): Scene =>
      async (told) => {
        await plan({ a: -60, b: -55, e: -54, c: 0 });
        told.push(await pass(-50, { limit }), await meta(), await serve(-49), await pass(-48), await meta());
      },
  ),
  // What was offered and is still there is promoted when it is due, whatever is offered later.
  ...[0, 50].map(
    (inMs): Scene =>
      async (told) => {
        await plan({ a: inMs });
        await pass(-50);
        await p.read();
        await plan({ b: 60 });
        told.push(await pass(-30), await meta());
      },
  ),
  // What is odd waits until it is due.
  async (told) => {
    await plan({ a: 1, ['y'.repeat(198)]: 2 });
    await p.put(`j:${'y'.repeat(199)}`, D + 3);
    await p.put('bare', D);
    await p.put('j:a', `${D + 1}.5`);
    told.push(await pass(-50), await meta(), await serve(-40), await pass(60), await serve(60), await p.picture());
  },
  // The clock goes back, and forward.
  async (told) => {
    await plan({ a: 0 });
    told.push(await pass(-50), await serve(-45), await meta());
    await plan({ b: -100_000 });
    told.push(await pass(-100_050), await meta(), await serve(-100_040));
    told.push(await pass(-99_000), await pass(-60), await meta(), await runs());
  },
  // Where entries wait to be read, or the queue is paused, or nothing is due soon.
  async (told) => {
    await plan({ a: -60, b: 0 });
    await pass(-60, { aheadMs: null });
    told.push(await pass(-50), await serve(-40), await pass(-30), await meta());
  },
  async (told) => {
    await plan({ a: 0, b: 5000 });
    told.push(await pass(-5000), await meta(), await pass(-50, { cap: 0 }));
    await p.redis.hset(p.keys.meta, 'paused', '1 because');
    told.push(await pass(-50), await meta());
  },
  // A start holds until the due time and not beyond; a repeated one says the same.
  ...[-40, -1, 0, 1].map(
    (atMs): Scene =>
      async (told) => {
        await plan({ a: 0, b: 10 });
        await pass(-50);
        const { taken } = await serve(atMs);
        told.push(taken, await runs(), await start(taken, atMs + 1), await p.picture(), await asks.cancel(atMs));
      },
  ),
  ...[-40, 0].map(
    (atMs): Scene =>
      async (told) => {
        await plan({ a: 0 });
        await pass(-50);
        const read = await p.read();
        told.push(
          await start(read, atMs),
          await runs(),
          await p.picture(),
          await start(read, atMs),
          await asks.cancel(-30),
        );
      },
  ),
  async (told) => {
    await plan({ a: 0, b: 10 });
    await pass(-50);
    told.push(await relay(-40), await runs(), await p.picture());
  },
  async (told) => {
    await p.schedule('a', { dueMs: D, data: 'x'.repeat(2000) });
    await pass(-50);
    told.push(await serve(-40), await runs());
  },
  // An offer that is void: its job was promoted, is due at another time, or is over. It starts once.
  async (told) => {
    await plan({ a: 0 });
    await pass(-50);
    await pass(10, { aheadMs: null });
    told.push(await serve(11), await p.picture());
  },
  async (told) => {
    await plan({ a: 0 });
    await pass(-50);
    await pass(10, { aheadMs: null });
    const read = await p.read('w1', 1);
    told.push(await start(read, 11), await serve(12), await p.picture());
  },
  async (told) => {
    await plan({ a: 0 });
    await pass(-50);
    told.push(await p.reschedule(J, D + 1, { nowMs: D - 45 }), await serve(-40), await p.picture(), await pass(-30));
    told.push(await serve(2), await p.picture());
  },
  ...[0, WINDOW_MS].map(
    (windowMs): Scene =>
      async (told) => {
        await plan({ a: 0 });
        await pass(-50);
        told.push(await p.cancel(J, { windowMs, nowMs: D - 45 }), await serve(-40, { windowMs }), await p.picture());
      },
  ),
  // Offered twice, after the clock went back: of two entries, in one call or in two, one starts.
  ...['w1', 'w2'].map(
    (consumer): Scene =>
      async (told) => {
        await plan({ a: 0, b: 0 });
        await pass(-50);
        const first = await p.read();
        await p.redis.hset(p.keys.meta, 'ahead', '1');
        told.push(await pass(-48));
        const second = await p.read(consumer);
        const given = consumer === 'w1' ? [...first, ...second] : second;
        told.push(await start(given, -40, { consumer }), await start(first, -39), await p.picture(), await runs());
      },
  ),
  // Who asks for a job that is held is told to ask again, and its worker to let it go.
  ...Object.values(asks).flatMap((ask) =>
    [-40, -1, 0, -10_000, -10_001].map(
      (atMs): Scene =>
        async (told) => {
          await held();
          told.push(await ask(atMs), await p.nudgesOf(() => ask(atMs), p.keys.stop), await p.picture(), await runs());
        },
    ),
  ),
  async (told) => {
    await debounced();
    await pass(-50);
    const { taken } = await serve(-40);
    told.push(await asks.debounce(-30), await letGo(only(claimsOf(taken)), -29), await asks.debounce(-28));
    told.push(await p.picture(), await runs());
  },
  async (told) => {
    await plan({ a: 0 });
    await pass(-50);
    const read = await p.read();
    await start(read, -40);
    await p.put(J, D + 5000);
    told.push(await start(read, -39), await p.picture(), await runs());
  },
  // An entry that was added when its job was due is no offer.
  async (told) => {
    await p.redis.hset(p.keys.meta, 'ahead', '1');
    await p.schedule('a');
    told.push(await p.deliver(), await p.running('b'), await runs());
  },
  async (told) => {
    await p.redis.hset(p.keys.meta, 'ahead', '1');
    await p.schedule('a');
    await p.redis.xgroup('CREATE', p.keys.ready, 'workers', '0', 'MKSTREAM');
    await p.redis.xadd(p.keys.ready, `${T0}-1`, 'member', J, 'due', T0);
    await p.redis.zrem(p.keys.scheduled, J);
    told.push(await start(await p.read(), 0), await p.picture());
  },
  // It is let go: it waits for its due time, its attempt is not counted, and who asked has the answer of a job that waits.
  ...Object.values(asks).map(
    (ask): Scene =>
      async (told) => {
        const claim = await held();
        told.push(await ask(-30), await letGo(claim, -29), await runs(), await meta(), await letGo(claim, -28));
        told.push(await pass(-27), await ask(-26), await p.picture(), await pass(10), await serve(11), await runs());
      },
  ),
  async (told) => {
    const claim = await held();
    told.push(await p.nudgesOf(() => letGo(claim, -29)), await pass(10), await serve(11), await letGo(claim, 12));
    told.push(await p.complete([claim]), await p.picture(), await runs());
  },
  // Put again by somebody meanwhile; asked to stop before it was let go.
  async (told) => {
    const claim = await held();
    await p.put(J, D + 5000);
    told.push(await letGo(claim, -30), await p.picture(), await runs());
  },
  async (told) => {
    const claim = await held();
    told.push(await p.cancel(J, { nowMs: D }), await letGo(claim, 1), await p.picture());
  },
  // Its worker dies: another one holds it, or runs it.
  ...[-20, 5].map(
    (atMs): Scene =>
      async (told) => {
        await held();
        const taken = (await p.reclaim('w1')).deliveries;
        told.push(await asks.cancel(atMs - 1), await start(taken, atMs, { consumer: 'w2' }), await runs());
        told.push(await p.picture());
      },
  ),
  ...[-20, 5].map(
    (atMs): Scene =>
      async (told) => {
        await held();
        const taken = (await p.reclaim('w1')).deliveries;
        const replies = await start(taken, atMs, { consumer: 'w2' });
        told.push(replies, await runs(), await asks.cancel(atMs));
        const started = taken.map((one, at): Taken => ({ ...one, ...(replies[at] ?? { kind: 'lost' }) }));
        told.push(await p.complete(claimsOf(started)), await p.picture());
      },
  ),
  // The same where it is a suspect, late, without a record, or changed before it is started.
  ...[-20, 5].flatMap((atMs) =>
    Object.values(ORPHANS).map(
      (one): Scene =>
        async (told) => {
          told.push(await orphan(one, atMs), await runs(), await p.picture(), await overs());
        },
    ),
  ),
  // A retry is offered as well, and so is what was put aside.
  ...[-40, 0].map(
    (atMs): Scene =>
      async (told) => {
        await retried();
        told.push(await serve(atMs), await runs(), await asks.cancel(atMs), await p.picture());
      },
  ),
  ...[1, 0].map(
    (suspects): Scene =>
      async (told) => {
        await p.schedule('a');
        await p.run();
        await p.release((await p.reclaim('w1')).deliveries, { consumer: 'w2' });
        await p.reschedule(J, D, { nowMs: D - 1000 });
        told.push(await pass(-50), await serve(-40, { suspects }), await runs(), await p.picture());
      },
  ),
  // A closed tag, a pause and an expiry before the due time.
  ...[0, WINDOW_MS].map(
    (windowMs): Scene =>
      async (told) => {
        await plan({ a: 0 }, { tags: ['x'] });
        await pass(-50);
        const close = { mode: 'close', untilMs: D + 99_000, text: '{}', most: 10 } as const;
        await p.jobs.closeTags(p.ref, ['x'], close);
        told.push(await serve(-40, { windowMs }), await p.picture(), await meta());
      },
  ),
  async (told) => {
    await plan({ a: 0 });
    await pass(-50);
    const read = await p.read();
    await p.redis.hset(p.keys.meta, 'paused', '1 because');
    told.push(await start(read, -40), await p.picture());
  },
  async (told) => {
    await plan({ a: 0 }, { expiresAtMs: D - 45 });
    await pass(-50);
    told.push(await serve(-40), await p.picture());
  },
  // What somebody saw of a job is what is there when it was let go.
  async (told) => {
    const claim = await held();
    const digest = digestOf((await p.redis.hget(p.keys.jobs, J)) ?? '');
    const asSeen = `${J}\0${seenText({ digest, token: claim.token, place: String(D) })}`;
    const cancel = () => p.jobs.cancel(p.ref, [asSeen], { windowMs: WINDOW_MS, nowMs: D - 30 });
    told.push(await cancel(), await letGo(claim, -29), await cancel());
  },
];

/** Without what another run of the same scene has otherwise: tokens, entries, and when a dead worker was last heard of. */
const told = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/\d{13}-\d+|\d{16,}|(?<="(?:beganMs|signMs)":|\\"[bi]\\":)\d+/g, '#');

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
    said.push(await p.picture(), await p.redis.hlen(p.keys.runs));
    all.push(told(said));
  }
  return all;
}

/** Bugs that no operator makes: `[script or part, words of one line, words in their place]`. */
const SLIPS: readonly (readonly [of: string, words: string, instead: string])[] = [
  // A cancel that resolves as cancelled although the worker goes on and begins.
  ['cancel', "if run and run.owner ~= '-' then", "if run and run.owner ~= '-' and run.due == '-' then"],
  ['cancel', "if isAhead(meta, run, now) then return 'held' end", 'tostring(now)'],
  ['held', "orderStop(meta, run, 'let-go ')", 'tostring(run)'],
  ['held', 'now + 10000', 'now + 1000000'],
  ['put-back', 'run.attempts = run.attempts - 1', 'run.attempts = run.attempts'],
  ['turn-away', 'if not job.offer and', 'if'],
  ['seen', '(tonumber(run.due) and run.due or', '(false and run.due or'],
  ['offers', 'mark > until_ and now', 'mark > until_ and mark'],
  ['offers', 'or math.max(mark, now)', 'or mark'],
  ['promote', 'math.min(limit, 100))', '100)'],
  ...['start', 'serve', 'relay'].map((of) => [of, 'call.ahead and now or nil', 'nil'] as const),
];
/** Broken lines that change nothing which could be told, with the reason. */
const EQUAL: readonly (readonly [words: string, why: string])[] = [];

test.each(Object.entries(ORPHANS))(
  'an entry whose worker died while it held the job is one as all others: %s',
  async (_, one) => {
    for (const atMs of [-20, 5]) {
      await p.reset();
      expect(await orphan(one, atMs)).toMatchObject([{ kind: one.kind }]);
      // Whoever is a suspect, or late, is settled by another call; of the others nothing is left in ready.
      const isOver = one.kind === 'dropped' || one.kind === 'deadLetter';
      expect(await p.redis.xlen(p.keys.ready)).toBe(isOver ? 0 : 1);
      expect(await overs()).toEqual([one.change === ORPHANS['it was cancelled']?.change ? [J] : [], []]);
    }
    // One of them took a record away by hand.
    await p.reset();
  },
);

test('planted bugs are noticed', { timeout: 600_000 }, async () => {
  const slips = SLIPS.map(([of, words, instead]) => ({
    of,
    name: `${of}: ${words} → ${instead}`,
    lua: slipped({ of, words, instead }),
  }));
  const own = ['offers', 'offered', 'held'].flatMap((of) => brokenTexts(of).map((bug) => ({ of, ...bug })));
  const others = [...new Set(OF_AHEAD.map((name) => name.split(' ')[0] ?? ''))].flatMap((of) =>
    brokenTexts(of)
      .filter(({ name }) => OF_AHEAD.includes(name))
      .map((bug) => ({ of, ...bug })),
  );
  expect(others.map(({ name }) => name).toSorted()).toEqual([...OF_AHEAD].toSorted());
  const right = await allTold();
  expect(await allTold()).toEqual(right);
  const unnoticed: string[] = [];
  for (const { of, name, lua } of [...own, ...others, ...slips]) {
    if (EQUAL.some(([words]) => name.includes(words))) continue;
    const takeOut = planted(p.redis, { of, lua });
    if (JSON.stringify(await allTold(right)) === JSON.stringify(right)) unnoticed.push(name);
    takeOut();
  }
  await p.reset();
  expect(unnoticed).toEqual([]);
});

/** Writes that only an offered job reaches: `retry` has the part, and lets nothing go that is held; `hand` drops each offer. */
const SITES = Object.keys(scriptOptions())
  .map((name) => name.replace('duestream_', ''))
  .filter((verb) => verb !== 'retry' && verb !== 'hand')
  .flatMap((verb) => writesOf(verb).filter((site) => isOfAhead(verb, site)));
const seen = new Set<string>();

/** A call in a state that it can be in, and what was done before. */
type Cut = readonly [verb: string, reach: () => Promise<() => Promise<unknown>>];
const offered = async (late: HeaderOptions = {}) => {
  await plan({ a: 0, b: 0, c: 10 }, late);
  await pass(-50);
};
/** The call that is cut off, in the state that `reach` leads to. */
const after =
  (reach: () => Promise<unknown>, call: () => Promise<unknown>): Cut[1] =>
  async () => {
    await reach();
    return call;
  };
const cuts: readonly Cut[] = [
  [
    'promote',
    async () => {
      await p.lead();
      await plan({ a: 0, b: 0, c: 10, d: 500 });
      return () => pass(-50);
    },
  ],
  ...[offered, retried].flatMap((reach): readonly Cut[] => [
    ['serve', after(reach, () => serve(-40))],
    ['relay', after(reach, () => relay(-40))],
    [
      'start',
      async () => {
        await reach();
        const read = await p.read();
        return () => start(read, -40);
      },
    ],
  ]),
  [
    'defer',
    async () => {
      const claim = await held();
      return () => letGo(claim, -30);
    },
  ],
  ...(['reschedule', 'edit', 'cancel'] as const).map((verb): Cut => [verb, after(held, () => asks[verb](-30))]),
  ['schedule', after(held, () => asks.replace(-30))],
];

test.each(cuts)(
  '%s, cut off before each of its writes and called again, ends as it would have',
  async (verb, reach) => {
    const call = await reach();
    const { redis, ref, keys } = p;
    const back = await savePoint(redis);
    const ends = async () => {
      await call();
      // What is promoted from now on is due, although the clock of the server is not there yet.
      await redis.hdel(keys.meta, 'ahead');
      await drain(redis, ref, { fromMs: D });
      return endsOf(await takeSnapshot(redis, keys));
    };
    const expected = await ends();
    for (let allowed = 0; ; allowed += 1) {
      await back();
      const site = await cutOff(redis, { verb, lua: luaOf(verb), allowed, call });
      if (site === undefined) break;
      seen.add(site);
      expect(broken(await takeSnapshot(redis, keys), { cutOff: true })).toEqual([]);
      expect([site, await ends()]).toEqual([site, expected]);
    }
    // A durable counter may have been raised by both calls.
    await p.reset();
  },
);

test('each write that only an offered job reaches was cut off', () => {
  expect(SITES.length).toBeGreaterThan(10);
  expect(
    SITES.filter((site) => !seen.has(site)).map((site) => `${site} ${lineOf(site.split(':')[0] ?? '', site)}`),
  ).toEqual([]);
});
