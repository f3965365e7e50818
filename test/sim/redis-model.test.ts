/**
 * The model of Redis against the real one: the lists of commands that prove our scripts on a real server run on the
 * model as well, with the same replies, the same stored data and the same nudges after each command.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { messageOf } from '../../src/kernel/errors.ts';
import { type List, lists, show } from '../support/model-commands.ts';
import { keptIn } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import { listen } from './listen.mjs';

const RUNS = Number(process.env.PROOF_RUNS ?? 150);
const SEED = Number(process.env.PROOF_SEED ?? 1);
const LENGTH = 40;

let bench: Bench;
beforeAll(async () => {
  bench = await startBench(listen);
});
afterAll(() => bench.stop());

const failure = (list: List) =>
  bench.run(list).then(
    () => undefined,
    (error: unknown) => messageOf(error),
  );

test(`our scripts do on the model what they do on Redis (seed ${SEED})`, {
  timeout: 300_000 + RUNS * 1500,
}, async () => {
  for (const { commands } of keptIn('test/proof/scenes.json')) expect(await failure(commands)).toBeUndefined();
  for (const list of lists({ seed: SEED, runs: RUNS, length: LENGTH })) {
    const why = await failure(list);
    if (why !== undefined) throw new Error(`PROOF_SEED=${SEED}: ${show(list)}\n${why}`);
  }
});
