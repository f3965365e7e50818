/**
 * Bugs planted one at a time in all that only a gated queue runs: its parts and verbs, and its lines in other scripts. Each must
 * be noticed by a story of `test/support/gates-stories.ts`, by a call of `gates-cuts.ts` or `lending-cuts.ts` that is cut off, or by a random walk.
 * `gates-noticed-by.json` says which did so the last time, and that one is tried first:
 *
 *     PROOF_KEEP=1 npx vitest run test/proof/gates-mutants.test.ts
 *     PROOF_OF=heads,limit npx vitest run test/proof/gates-mutants.test.ts      # only those of these scripts and parts
 *
 * CI plants those whose scripts have changed (`test/support/verdicts.ts`).
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { cutGates, gateCuts } from '../support/gates-cuts.ts';
import { Desk } from '../support/gates-desk.ts';
import { GatesQueue } from '../support/gates-queue.ts';
import { stories } from '../support/gates-stories.ts';
import { LendingDesk, lendingStories } from '../support/lending-stories.ts';
import { luaOf } from '../support/model-cut.ts';
import { EQUIVALENT_OF_GATES, type Mutant, mutantsOfGates } from '../support/mutants.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { read, root } from '../support/repository.ts';
import { digestOfBug, named, verdictsOf } from '../support/verdicts.ts';

const NOTICES = 'test/proof/gates-noticed-by.json';
const lastTime = JSON.parse(read(NOTICES)) as Readonly<Record<string, string>>;
const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
const WALKS = Number(process.env.GATES_ROUNDS ?? 20);
const STEPS = 300;
/** Only such ways are tried: `PROOF_WAYS=story` is quick. */
const WAYS = (process.env.PROOF_WAYS ?? 'story,walk,cut').split(',');
/** A call that never ends is noticed as well. */
const PATIENCE_MS = 20_000;

let server: TestRedis;
let redis: Redis;
async function open(): Promise<void> {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'gates' });
  await whenReady(redis);
}
async function shut(): Promise<void> {
  close(redis);
  await server.stop();
}
beforeAll(open);
afterAll(shut);

/** Something that may notice a mutant: true when anything was wrong. */
interface Way {
  readonly name: string;
  readonly notices: (lua: (verb: string) => string) => Promise<boolean>;
}

/** Groups have a turn in 200 ms each. */
const RATED = ' 200000 1 - rated';

/** What is said of the groups then. */
const SAID: Readonly<Record<string, string>> = {
  '': '',
  [RATED]: ', where groups have a rate',
  ' s': ', where groups are in strict order',
};

const ways: readonly Way[] = [
  ...stories.map(
    ({ title, tell }): Way => ({
      name: `story: ${title}`,
      async notices() {
        await redis.flushall();
        return tell(new Desk(redis, ref)).then(
          () => false,
          () => true,
        );
      },
    }),
  ),
  ...lendingStories.map(
    ({ title, tell }): Way => ({
      name: `story: ${title}`,
      async notices() {
        await redis.flushall();
        return tell(new LendingDesk(redis)).then(
          () => false,
          () => true,
        );
      },
    }),
  ),
  ...['', RATED, ' s'].flatMap((own) =>
    gateCuts
      .filter(({ most, verb }) => own !== ' s' || (most[1] === 1 && verb !== 'limit'))
      .map(
        (cut): Way => ({
          name: `cut: ${cut.title}${SAID[own]}`,
          notices: (lua) =>
            cutGates(redis, ref, cut, { lua, own }).then(
              ({ wrong }) => wrong.length > 0,
              () => true,
            ),
        }),
      ),
  ),
  ...Array.from({ length: WALKS }, (_, nth): Way => walk(`walk ${nth}`, nth, false)),
  ...Array.from({ length: WALKS / 2 }, (_, nth): Way => walk(`walk ${nth} with cuts`, nth, true)),
  ...Array.from({ length: WALKS / 2 }, (_, nth): Way => walk(`walk ${nth} in strict order`, nth, nth % 2 === 1, true)),
];

function walk(name: string, nth: number, cuts: boolean, strict = false): Way {
  return {
    name,
    async notices() {
      await redis.flushall();
      const world = new GatesQueue(redis, [ref], { seed: 1000 + nth, cuts, owns: true, strict });
      await world.begin();
      return world.walk(STEPS).then(
        (wrong) => wrong !== undefined,
        () => true,
      );
    },
  };
}

function define(lua: (verb: string) => string): void {
  for (const [name, { numberOfKeys }] of Object.entries(scriptOptions())) {
    const verb = name.replace('duestream_', '');
    redis.defineCommand(name, { lua: lua(verb), ...(numberOfKeys !== undefined && { numberOfKeys }) });
  }
}

/** What was wrong by this way, or that it never ended. */
async function asks({ notices }: Way, lua: (verb: string) => string): Promise<boolean> {
  // A reply that cannot be that of its call costs the connection, and a script without an end the server.
  if ((await redis.ping().catch(() => undefined)) === undefined) await anew(lua);
  const limit = new AbortController();
  const late = sleep(PATIENCE_MS, 'late' as const, { signal: limit.signal }).catch(() => 'late' as const);
  const found = await Promise.race([notices(lua).catch(() => true), late]);
  limit.abort();
  if (found !== 'late') return found;
  await anew(lua);
  return true;
}

async function anew(lua: (verb: string) => string): Promise<void> {
  await shut();
  await open();
  define(lua);
}

/** Its name, whatever was put above its line meanwhile. */
const placeless = ({ name }: Mutant) => name.replace(/, line \d+/, '');

async function noticedBy(mutant: Mutant): Promise<string | undefined> {
  const lua = (verb: string) => mutant.scripts.get(verb) ?? luaOf(verb);
  define(lua);
  const known = ways.filter(({ name }) => name === lastTime[placeless(mutant)]);
  const tried = ways.filter(({ name }) => WAYS.some((kind) => name.startsWith(kind)));
  for (const way of [...known, ...tried]) if (await asks(way, lua)) return way.name;
  return undefined;
}

const all = mutantsOfGates();
const lives = all
  .filter(({ name }) => !EQUIVALENT_OF_GATES.has(name))
  .map((mutant) => ({ ...mutant, digest: digestOfBug(mutant.scripts) }));
const verdicts = verdictsOf('gates-mutants', ['test/support/gates-', 'test/support/lending-']);
const planted = lives.filter(({ of, digest }) => named?.includes(of) ?? verdicts.isAsked(digest));

test('what noticed a planted bug finds nothing in the scripts as they are', async () => {
  define(luaOf);
  const those = new Set(Object.values(lastTime));
  for (const way of ways.filter(({ name }) => those.has(name))) expect(await asks(way, luaOf), way.name).toBe(false);
});

test(`each of ${planted.length} planted bugs of gates is noticed, of ${lives.length}`, {
  timeout: 3_600_000,
}, async () => {
  const survivors: string[] = [];
  const told: Record<string, string> = {};
  for (const mutant of planted) {
    const by = await noticedBy(mutant);
    if (process.env.PROOF_KEEP) process.stderr.write(`${by ?? 'NOBODY'} · ${mutant.name}\n`);
    if (by === undefined) survivors.push(mutant.name);
    else told[placeless(mutant)] = by;
  }
  define(luaOf);
  const kept = planted.length < lives.length ? { ...lastTime, ...told } : told;
  if (process.env.PROOF_KEEP) await writeFile(join(root, NOTICES), `${JSON.stringify(kept, null, 2)}\n`);
  expect(survivors).toEqual([]);
  await verdicts.keep(lives.map(({ digest }) => digest));
});

test('every planted bug that is said to change nothing is one of them', () => {
  const names = new Set(all.map(({ name }) => name));
  expect([...EQUIVALENT_OF_GATES.keys()].filter((name) => !names.has(name))).toEqual([]);
});
