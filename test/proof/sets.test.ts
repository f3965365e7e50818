/**
 * The callback of a set is made once, in the step in which the last member ends. Every call that can end one is cut off before
 * each of its writes; and bugs are planted one at a time in all that only members of sets reach.
 *
 *     PROOF_OF=callback,tend npx vitest run test/proof/sets.test.ts      # only those of these scripts and parts
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { close, openCommands, type Redis, whenReady } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { luaOf } from '../support/model-cut.ts';
import { EQUIVALENT_OF_SETS, type Mutant, mutantsOfSets } from '../support/mutants.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { cutSets, SetDesk, stories } from '../support/sets-stories.ts';
import { tales } from '../support/sets-tales.ts';

const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
let server: TestRedis;
let redis: Redis;
async function open(): Promise<void> {
  server = await startRedis();
  redis = openCommands({ redis: { path: server.socketPath }, name: 'sets' });
  await whenReady(redis);
}
async function shut(): Promise<void> {
  close(redis);
  await server.stop();
}
beforeAll(open);
afterAll(shut);

describe('cut off before each of its writes, and looked after by the leader', () => {
  for (const story of stories) {
    test(`${story.verb}: ${story.title}`, async () => {
      const { wrong, sites } = await cutSets(new SetDesk(redis, ref), story, luaOf);
      expect(wrong).toEqual([]);
      expect(sites.length).toBeGreaterThan(4);
    });

    test(`${story.verb}, without a done window: ${story.title}`, async () => {
      // The end of a callback is forgotten at once, and a member that was cut off leaves nothing to count.
      const { wrong } = await cutSets(new SetDesk(redis, ref, { windowMs: 0 }), story, luaOf);
      expect(wrong.filter((one) => !one.includes('the callback says'))).toEqual([]);
    });

    test(`${story.verb}, in a queue with limits: ${story.title}`, async () => {
      const { wrong, sites } = await cutSets(new SetDesk(redis, ref, { gates: { concurrency: 2 } }), story, luaOf);
      expect(wrong).toEqual([]);
      expect(sites.length).toBeGreaterThan(4);
    });
  }
});

for (const { title, tell } of tales) test(title, () => tell(new SetDesk(redis, ref)));

/** A call that never ends is noticed as well. */
const PATIENCE_MS = 20_000;

function define(verb: string, lua: string): void {
  const name = `duestream_${verb}`;
  const { numberOfKeys } = scriptOptions()[name] ?? {};
  redis.defineCommand(name, numberOfKeys === undefined ? { lua } : { lua, numberOfKeys });
}

async function isNoticed({ scripts }: Mutant): Promise<boolean> {
  const lua = (verb: string) => scripts.get(verb) ?? luaOf(verb);
  for (const { tell } of tales) {
    const went = await tell(new SetDesk(redis, ref)).then(
      () => true,
      () => false,
    );
    if (!went) return true;
  }
  for (const story of stories) {
    const found = await cutSets(new SetDesk(redis, ref), story, lua).catch(() => undefined);
    if (!found || found.wrong.length > 0) return true;
  }
  return false;
}

const only = process.env.PROOF_OF?.split(',');
const planted = mutantsOfSets().filter(({ of, name }) => !EQUIVALENT_OF_SETS.has(name) && (!only || only.includes(of)));

test(`each of ${planted.length} planted bugs is noticed`, { timeout: 600_000 }, async () => {
  const survivors: string[] = [];
  for (const mutant of planted) {
    for (const [verb, lua] of mutant.scripts) define(verb, lua);
    const late = new Promise<true>((resolve) => setTimeout(resolve, PATIENCE_MS, true).unref());
    if (!(await Promise.race([isNoticed(mutant), late]))) survivors.push(mutant.name);
    for (const verb of mutant.scripts.keys()) define(verb, luaOf(verb));
  }
  expect(survivors).toEqual([]);
});
