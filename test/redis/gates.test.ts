/**
 * Gated partitions: what each script does there to the job and to the microsecond, twice in a row, and cut off before each of
 * its writes.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { gateShare } from '../../src/job/gate.ts';
import type { Rate } from '../../src/job/rate.ts';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { cutGates, type GateCut, gateCuts } from '../support/gates-cuts.ts';
import { Desk, NOW } from '../support/gates-desk.ts';
import { stories } from '../support/gates-stories.ts';
import { randomFrom } from '../support/gates-world.ts';
import { isOfGates, isReadOnly, lineOf, writesOf } from '../support/model-cut.ts';
import { rows } from '../support/model-moves.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { tier } from '../tiers.mjs';

const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'gates' });
  await whenReady(redis);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  close(redis);
  await server.stop();
});

/** Rows of the table of transitions. */
const moves = new Set<string>();

for (const { title, tell } of stories) test(title, () => tell(new Desk(redis, ref, moves)));

test('partitions share a rate whose burst is less than one for each, at first and after idle times', async () => {
  const partitions = 4;
  const rate: Rate = { limit: 10, perMs: 1000, burst: 2 };
  const desks = Array.from(
    { length: partitions },
    (_, partition) => new Desk(redis, partitionRef('t', { queue: 'q', partition, layoutGeneration: 0 })),
  );
  for (const [partition, desk] of desks.entries()) {
    await desk.begin(gateShare({ rate }, { partition, partitions })?.share ?? '');
    await desk.line(...Array.from({ length: 100 }, (_, nth) => `${partition}-${nth}`));
  }
  const random = randomFrom(5);
  const starts: number[] = [];
  let nowMs = NOW;
  for (let look = 0; look < 60; look += 1) {
    for (const desk of desks) {
      desk.nowMs = nowMs;
      starts.push(...(await desk.serve(9)).map(() => nowMs));
    }
    nowMs += look % 10 === 9 ? 5000 : Math.floor(random() * 60);
  }
  const wrong = starts.flatMap((fromMs, first) =>
    starts
      .slice(first)
      .map((toMs, nth) => ({ count: nth + 1, ms: toMs - fromMs }))
      .filter(({ count, ms }) => count > ((ms + 50) * rate.limit) / rate.perMs + rate.burst + 0.5),
  );
  expect(wrong).toEqual([]);
  // 54 looks in 1.6 s, and six after an idle time.
  expect(starts.length).toBeGreaterThan(20);
});

test('the table of transitions says of jobs that wait no more than happens, and each move is in it', () => {
  // `test/redis/lend.test.ts` shows what only limits do that queues share.
  const ofGates = [...rows].filter(
    (row) => /\bwaiting\b| limit | mend-gates |\w+ (retry|defer|release) ready/.test(row) && !/ borrow /.test(row),
  );
  expect(ofGates.filter((row) => !moves.has(row))).toEqual([]);
});

/** What each cut was before. */
const sites = new Set<string>();

// 168 calls, each as often as it writes: for CI.
describe.runIf(tier !== 'quick')('cut off before each write and made again', () => {
  async function whole(cut: GateCut, own?: string): Promise<void> {
    const found = await cutGates(redis, ref, cut, own === undefined ? {} : { own });
    for (const site of found.sites) sites.add(site);
    expect(found.wrong).toEqual([]);
  }

  /** Each group has a turn in 200 ms. */
  const RATED = ' 200000 1 - rated';
  for (const cut of gateCuts) {
    test(cut.title, () => whole(cut));
    test(`${cut.title}, where groups have a rate`, () => whole(cut, RATED));
    // Limits that a call sets are in no order.
    if (cut.most[1] === 1 && cut.verb !== 'limit') {
      test(`${cut.title}, where groups are in strict order`, () => whole(cut, ' s'));
    }
  }

  /** A stream that is gone, which only a leader and a start meet. */
  const SELDOM = /'XGROUP', 'CREATE'|return \(redis\.call\('XADD'/;
  /** The leader is awake in its own pass, and an expiry gives back the turn that the next takes. */
  const NUDGES = /^(promote|expire): .*('wake', text|'SPUBLISH', wake, text)/;
  /** A part may be there twice in a script. */
  const lineAt = (verb: string, site: string) => `${verb}: ${lineOf(verb, site).trim()}`;

  test('every write of gates was cut off in every script', () => {
    const verbs = Object.keys(scriptOptions()).map((name) => name.replace('duestream_', ''));
    const wanted = verbs
      .filter((verb) => !isReadOnly(verb) && !['remove', 'cast'].includes(verb))
      .flatMap((verb) => writesOf(verb).flatMap((site) => (isOfGates(verb, site) ? [lineAt(verb, site)] : [])))
      .filter((line) => !SELDOM.test(line) && !NUDGES.test(line));
    expect(wanted.length).toBeGreaterThan(100);
    const cut = new Set([...sites].map((site) => lineAt(site.split(':')[0] ?? '', site)));
    expect([...new Set(wanted)].filter((line) => !cut.has(line))).toEqual([]);
  });
});
