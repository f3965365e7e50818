/**
 * Bugs in `hand`, planted one at a time: scenes of claims that are made once, again, too late, with ends and with what was taken
 * over must tell something else. The model of `test/proof` has no ledger of claims.
 */
import { expect, test } from 'vitest';
import { limit } from '../../src/redis/scripts/gates.ts';
import { ensureGroup } from '../../src/redis/scripts/ready.ts';
import type { Claim, Ended, Handed } from '../../src/redis/scripts/replies.ts';
import type { HandAsk, StartSettings } from '../../src/redis/scripts/worker-jobs.ts';
import { brokenTexts } from '../support/mutants.ts';
import { item, T0, usePartition } from '../support/partition.ts';
import { planted, slipped } from '../support/planted.ts';

const p = usePartition();
const WINDOW_MS = 60_000;

type Asked = Partial<HandAsk> & Partial<StartSettings>;
const handed = ({ ended = [], given = [], take = 5, lane = 0, seq = 1, ...call }: Asked = {}): Promise<Handed> => {
  const settings = { consumer: 'h-1', bytesMax: 1_000_000, windowMs: WINDOW_MS, nowMs: T0, ...call };
  return p.jobs.hand(p.ref, { ended, given, take, lane, seq }, settings);
};
/** The reply, without ids and tokens, which Redis makes. */
const told = ({ word, completed, taken, delivered, refusal }: Handed) => [
  word,
  completed ?? 'ok',
  delivered,
  refusal?.slice(0, 7),
  ...taken.map((one) => [one.member, one.kind, one.dueMs, 'attempts' in one ? [one.attempts, one.crashes] : '']),
];
const claimsIn = ({ taken }: Handed): readonly Claim[] =>
  taken.flatMap((one) => ('record' in one ? [{ entry: one.entry, member: one.member, token: one.token }] : []));
const endsOf = (claims: readonly Claim[]): readonly Ended[] => claims.map((claim) => ({ ...claim, mark: '' }));

async function seen(): Promise<unknown> {
  const entries = new Map((await p.redis.xrange(p.keys.ready, '-', '+')).map(([id, fields]) => [id, fields[1]]));
  const ledger = Object.entries(await p.redis.hgetall(p.keys.claims)).map(([place, text]) => [
    place,
    text.replaceAll(/\d+-\d+/g, (entry) => entries.get(entry) ?? 'gone'),
  ]);
  const logs = Object.keys(await p.redis.hgetall(p.keys.logs));
  const gone = await p.redis.hgetall(p.keys.meta);
  const counted = ['n.done', 'n.cancelled', 'held'].map((name) => gone[name]);
  return [await p.picture(), ledger.toSorted(), logs, counted, await p.redis.zcard(p.keys.done)];
}

async function ready(...ids: readonly string[]): Promise<void> {
  await p.scheduleAll(ids.map((id) => item(id)));
  await p.promote();
}

/** A job that a worker that has died was running, in the hands of another one. */
async function takenOver(id: string) {
  await p.running(id, { consumer: 'h-9' });
  return (await p.reclaim('h-9', { consumer: 'h-1' })).deliveries;
}

type Scene = (say: (what: unknown) => void) => Promise<void>;
const scenes: readonly Scene[] = [
  async (say) => {
    await ready('a', 'b', 'c');
    say(told(await handed({ take: 1 })));
    say(told(await handed({ take: 1, seq: 2 })));
    say(told(await handed({ take: 1, lane: 1 })));
    say(await seen());
    for (const seq of [1, 2]) say(told(await handed({ seq })));
    say(told(await handed({ take: 0, seq: 3 })));
    say(told(await handed({ seq: 2 })));
  },
  // Nothing was there: the number stands in the ledger, and the same claim may take what came since, once.
  async (say) => {
    await p.promote();
    say([told(await handed({ seq: 4 })), await seen()]);
    await ready('a');
    say(told(await handed({ seq: 4 })));
    say([told(await handed({ seq: 4 })), await seen()]);
  },
  // The same claim again: what was settled, taken over and is there.
  async (say) => {
    await ready('a', 'b', 'c');
    const claims = claimsIn(await handed({ take: 3 }));
    const [a, b] = claims;
    if (!a || !b) throw new Error('three run');
    await p.complete([a]);
    const { deliveries } = await p.reclaim('h-1', { consumer: 'h-2', entries: [b.entry] });
    say(told(await handed({ given: deliveries, take: 0, consumer: 'h-2' })));
    await ready('d');
    say([told(await handed()), await seen()]);
  },
  // Ends go through, whatever becomes of the claim.
  async (say) => {
    await ready('a', 'b', 'c', 'd');
    const [a, b, c] = endsOf(claimsIn(await handed({ take: 3 })));
    if (!a || !b || !c) throw new Error('three run');
    say(told(await handed({ ended: [a] })));
    say(told(await handed({ ended: [a, b], seq: 2, take: 0 })));
    say([told(await handed({ ended: [c], seq: 1 })), await seen()]);
    say(told(await handed({ ended: [c], seq: 3, take: 1 })));
  },
  // Without tombstones what is over goes, with what its handler said.
  async (say) => {
    const a = await p.running('a', { consumer: 'h-1' });
    await p.log(a, ['one']);
    say([told(await handed({ ended: endsOf([a]), windowMs: 0 })), await seen()]);
    const b = await p.running('b', { consumer: 'h-1' });
    await p.redis.hset(p.keys.meta, 'held', '1000 7');
    say([told(await handed({ ended: endsOf([b]), seq: 2 })), await seen()]);
  },
  // What was taken over comes first, and is started, or is suspect; its ends stand behind it in the call.
  async (say) => {
    const [given, more, last] = [await takenOver('a'), await takenOver('d'), await takenOver('e')];
    await ready('b', 'c');
    const first = await handed({ given, take: 1 });
    say([told(first), await seen()]);
    say(told(await handed({ given: more, ended: endsOf(claimsIn(first)), take: 0, seq: 2, suspects: 1 })));
    say([told(await handed({ seq: 2, suspects: 1 })), await seen()]);
    say(told(await handed({ given: last, take: 0, seq: 3, suspects: 2 })));
  },
  // Told of in another partition: nothing is taken, then or later.
  async (say) => {
    await ready('a');
    say([told(await handed({ take: -1 })), await seen()]);
    say([told(await handed()), await seen()]);
    say(told(await handed({ take: -1, seq: 2, given: [] })));
    say(told(await handed({ seq: 3 })));
  },
  // Paused: nothing is delivered, and what was taken over goes back.
  async (say) => {
    const given = await takenOver('a');
    await ready('b');
    await p.redis.hset(p.keys.meta, 'paused', `${T0} test`);
    say([told(await handed({ given })), await seen()]);
  },
  // A tag is closed while its job waits to be claimed.
  async (say) => {
    await p.scheduleAll([item('a', { late: { tags: ['x'] } }), item('b')]);
    await p.promote();
    const text = JSON.stringify({ at: T0, by: 'me', reason: 'paid' });
    await p.jobs.closeTags(p.ref, ['x'], { mode: 'close', untilMs: T0 + WINDOW_MS, text, most: 100 });
    say([told(await handed({ seq: 9 })), await seen()]);
    // Numbers are compared as numbers.
    say([told(await handed({ seq: 10 })), told(await handed({ seq: 9 }))]);
  },
  async (say) => {
    await p.scheduleAll([item('a', { data: 'x'.repeat(400) }), item('b'), item('c')]);
    await p.promote();
    say([told(await handed({ bytesMax: 500 })), await seen()]);
  },
  async (say) => {
    await ready('a');
    await p.redis.xgroup('DESTROY', p.keys.ready, 'workers');
    say(told(await handed()));
    await ensureGroup(p.redis, p.keys);
    say(told(await handed()));
  },
  // Limits: ends let the next one through, also those of a claim that comes too late or again, and not while it is paused.
  ...[false, true].map(
    (isPaused): Scene =>
      async (say) => {
        await limit(p.redis, p.ref, { share: { share: '0 1 0 1', groups: [] }, nowMs: T0 });
        await ready('{acme}a', '{acme}b', '{beta}c', '{beta}d', '{acme}e');
        const first = await handed({ take: 5 });
        say([told(first), await seen()]);
        const [one, two] = endsOf(claimsIn(first));
        if (!one || !two) throw new Error('two run');
        if (isPaused) await p.redis.hset(p.keys.meta, 'paused', `${T0} test`);
        say([told(await handed({ ended: [one] })), await seen()]);
        say([told(await handed({ seq: 2, take: 5, ended: [two] })), await seen()]);
        say([told(await handed({ seq: 1 })), await seen()]);
      },
  ),
  async (say) => {
    await limit(p.redis, p.ref, { share: { share: '0 1 0 1', groups: [] }, nowMs: T0 });
    await ready('{acme}a', '{beta}b', '{gamma}c', '{delta}d');
    say([told(await handed({ take: 1 })), await seen()]);
    say([told(await handed({ take: 0, seq: 2 })), await seen()]);
    await p.redis.xgroup('DESTROY', p.keys.ready, 'workers');
    say([told(await handed({ take: 2, seq: 3 })), await p.redis.zcard(p.keys.line)]);
    await ensureGroup(p.redis, p.keys);
  },
];

/** What is told by all scenes, each on an empty partition. */
async function toldByAll(): Promise<string> {
  const all: unknown[] = [];
  for (const scene of scenes) {
    await p.reset();
    await scene((what) => all.push(what)).catch((error: unknown) => all.push(String(error)));
    await ensureGroup(p.redis, p.keys);
  }
  await p.reset();
  return JSON.stringify(all);
}

/** Bugs that no rule makes: one word is another, or one line is not there. */
const SLIPS: readonly (readonly [words: string, instead: string])[] = [
  ["consumer .. ' ' .. lane", 'consumer'],
  ['sum = state[3]', 'sum = false'],
  ['state[6] and closed', 'false'],
  ['state[7] and logs', 'false'],
  ["isElsewhere and '-' or nil", 'nil'],
  ['take = math.max(0, take)', 'take = math.abs(take)'],
  ["listed ~= ''", 'true'],
  ['tonumber(last) > seq', 'last > tostring(seq)'],
  ['isAgain and readLedger({}) or {}', 'readLedger({})'],
  ['writeLedger(entries, delivered)', 'writeLedger(entries, {})'],
  ['writeLedger(entries, delivered)', 'writeLedger({}, delivered)'],
  ['if take > 0 and not call.isPaused then', 'if take > 0 then'],
  ['if gate and not (refusal or call.isPaused) then', 'if gate and not refusal then'],
  ['refusal or #delivered / 3', '#delivered / 3'],
  ["redis.call('HSET', claims, place, text)", "redis.call('HSET', claims, consumer, text)"],
];

/** What changes nothing that could be told. */
const EQUIVALENT: readonly string[] = [];

test('each planted bug makes a scene tell something else', { timeout: 600_000 }, async () => {
  const right = await toldByAll();
  expect(right).not.toContain('Error');
  expect((await toldByAll()) === right).toBe(true);
  const bugs = [
    ...brokenTexts('hand'),
    ...SLIPS.map(([words, instead]) => ({
      name: `hand: ${words} → ${instead}`,
      lua: slipped({ of: 'hand', words, instead }),
    })),
  ];
  const unnoticed: string[] = [];
  for (const { name, lua } of bugs) {
    const takeOut = planted(p.redis, { of: 'hand', lua });
    if ((await toldByAll()) === right) unnoticed.push(name);
    takeOut();
  }
  expect(unnoticed.filter((name) => !EQUIVALENT.some((said) => name.startsWith(said)))).toEqual([]);
});
