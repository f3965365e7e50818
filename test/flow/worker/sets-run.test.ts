/**
 * Sets of jobs, whose members add members, fail, are cancelled or are too late, while workers and the leader are killed: each has
 * its callback once, after the last of its members, and the callback says how all of them ended, as the history tells it.
 *
 *     SETS=1000 SETS_MEMBERS=100 SETS_SEED=7 npx vitest run test/flow/worker/sets-run.test.ts
 */
import { expect, test } from 'vitest';
import type { SetEnds } from '../../../src/job/job.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { partitionKeys } from '../../../src/redis/keys.ts';
import { numbers, useKilled } from '../../support/killed.ts';
import { isSlice } from '../../tiers.mjs';

const SETS = Number(process.env.SETS ?? (isSlice ? 20 : 200));
const MEMBERS = Number(process.env.SETS_MEMBERS ?? (isSlice ? 20 : 50));
const SEED = Number(process.env.SETS_SEED ?? 1);
const PARTITIONS = 3;
const KILLS = 6;
const PAUSE_MS = 800;
/** So many sets are begun at a time. */
const AT_ONCE = 20;

interface Row {
  readonly set: string;
  readonly more: number;
}
const imports = defineQueue<Row>('imports', {
  partitions: PARTITIONS,
  history: { max: 10_000_000 },
  delivery: 'effectively-once',
});
const { client, redis, lines, kill } = useKilled('set-handlers.mjs');

/** Half of the members are put here, and each adds one. One of ten fails, one is too late, one is cancelled. */
async function fill(nth: number, random: () => number): Promise<void> {
  const set = `set-${nth}`;
  await client().sets.begin(imports, set, { then: { name: 'imported', data: { set, more: 0 } } });
  const jobs = Array.from({ length: MEMBERS / 2 }, (_, at) => {
    const fate = random();
    const more = fate < 0.1 ? -1 : 1;
    const late = fate > 0.9 ? { maxLateness: 1, delay: 1 } : { delay: Math.round(random() * 1000) };
    return { data: { set, more }, id: `row-${at}`, name: 'row', set, attempts: 1, ...late };
  });
  const half = Math.floor(jobs.length / 2);
  await client().scheduleMany(imports, jobs.slice(0, half));
  const rest = client().scheduleMany(imports, jobs.slice(half));
  await client().cancel(imports, [`{set:${set}}row-1`]);
  await rest;
  // The same call again, as after a lost reply.
  await Promise.all([client().sets.seal(imports, set), client().sets.seal(imports, set)]);
}

interface Tally {
  readonly d: number;
  readonly x: number;
  readonly c: number;
  readonly e: number;
  /** When the last member ended. */
  readonly lastMs: number;
}

/** How the members of each set ended, and the callbacks with their ends: what the history of all partitions says. */
async function ended(): Promise<{
  readonly members: Map<string, Tally>;
  readonly callbacks: readonly [string, number][];
}> {
  const members = new Map<string, Tally>();
  const callbacks: [string, number][] = [];
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const { past } = partitionKeys({ namespace: 'duestream', queue: 'imports', partition });
    for (const [member, text] of Object.entries(await redis().hgetall(past))) {
      const [, outcome = '', ms = ''] = /^1\S+ (\w) \S+ \S+ \S+ \S+ \S+ \S+ (\d+) /.exec(text) ?? [];
      const set = /\{set:([^}]+)\}/.exec(member)?.[1] ?? '';
      if (member.includes('{then}')) callbacks.push([set, Number(ms)]);
      else {
        const tally = members.get(set) ?? { d: 0, x: 0, c: 0, e: 0, lastMs: 0 };
        const count = tally[outcome as 'd'] + 1;
        members.set(set, { ...tally, [outcome]: count, lastMs: Math.max(tally.lastMs, Number(ms)) });
      }
    }
  }
  return { members, callbacks };
}

const liveJobs = async () => Number((await client().count(imports)).count);
const countsOf = ({ done, dead, cancelled, expired }: SetEnds) => [done, dead, cancelled, expired];

test(`each of ${SETS} sets of ${MEMBERS} members has its callback once, with the counts (seed ${SEED})`, {
  timeout: 180_000 + 20 * SETS * MEMBERS,
}, async () => {
  const random = numbers(SEED);
  const begunMs = Date.now();
  const names = Array.from({ length: SETS }, (_, nth) => nth);
  let isFilled = false;
  const filling = async () => {
    for (let from = 0; from < SETS; from += AT_ONCE)
      await Promise.all(names.slice(from, from + AT_ONCE).map((nth) => fill(nth, random)));
    isFilled = true;
  };
  const kills = {
    everyMs: PAUSE_MS,
    isOver: (nth: number) => nth >= KILLS && isFilled,
    ofLeader: (nth: number) => nth % 3 === 1,
  };
  await Promise.all([kill(kills), filling()]);
  await expect.poll(liveJobs, { timeout: 120_000 + 10 * SETS * MEMBERS, interval: 500 }).toBe(0);
  const tookMs = Date.now() - begunMs;

  expect((await client().sets.list(imports)).sets).toEqual([]);
  const { members, callbacks } = await ended();
  expect(members.size).toBe(SETS);
  // One end of each: a second life of the id would be a record of its own.
  expect(callbacks.map(([set]) => set).toSorted()).toEqual([...members.keys()].toSorted());
  const early = callbacks.filter(([set, ms]) => ms < (members.get(set)?.lastMs ?? 0));
  expect(early).toEqual([]);
  const told = lines().map((line) => JSON.parse(line.slice(line.indexOf(' {'))) as SetEnds);
  expect(new Set(told.map(({ name }) => name)).size).toBe(SETS);
  const wrong = told.filter((one) => {
    const { d, x, c, e } = members.get(one.name) ?? { d: 0, x: 0, c: 0, e: 0 };
    return countsOf(one).join() !== [d, x, c, e].join();
  });
  expect(wrong).toEqual([]);
  const all = [...members.values()].reduce((sum, { d, x, c, e }) => sum + d + x + c + e, 0);
  console.log(`${SETS} sets, ${all} members, ${told.length} runs of callbacks, ${Math.round(tookMs / 1000)} s`);
});
