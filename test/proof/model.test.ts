/**
 * Random lists of commands, carried out on Redis and on the model. A list that fails is made as short as it can be, and
 * printed with its seed; kept in `regressions.json` it runs before all others from then on.
 *
 *     PROOF_SEED=123 PROOF_RUNS=5000 npx vitest run test/proof/model.test.ts
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { messageOf } from '../../src/kernel/errors.ts';
import { type Command, type List, lists, randomWords, shorten, show } from '../support/model-commands.ts';
import { keptIn } from '../support/model-kept.ts';
import { type Bench, startBench } from '../support/model-run.ts';
import { isSlice } from '../tiers.mjs';

const RUNS = Number(process.env.PROOF_RUNS ?? (isSlice ? 60 : 1000));
const SEED = Number(process.env.PROOF_SEED ?? 1);
const LENGTH = 40;

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench.stop());

const failure = (list: List) =>
  bench.run(list).then(
    () => undefined,
    (error: unknown) => messageOf(error),
  );

/** @throws what the shortest such list that fails says, or what the list said if it fails no more. */
async function holds(list: List): Promise<void> {
  const first = await failure(list);
  if (first === undefined) return;
  const short = await shorten(list, async (shorter) => (await failure(shorter)) !== undefined);
  throw new Error(`PROOF_SEED=${SEED}: ${show(short)}\n${(await failure(short)) ?? first}`);
}

for (const { title, commands } of keptIn('test/proof/regressions.json')) {
  test(`kept: ${title}`, async () => {
    expect(await failure(commands)).toBeUndefined();
  });
}

/** Each list in a queue without limits, and in one with a limit of bytes, which is large enough for most. */
const LIMITED: List = [
  ['elect', 0, 0, 0],
  ['allot', 0, 0, 4],
];

test(`the sum of a limited queue is what the model says after each of ${LENGTH} random commands (seed ${SEED})`, {
  timeout: 300_000 + RUNS * 1500,
}, async () => {
  for (const list of lists({ seed: SEED + 1, runs: RUNS / 4, length: LENGTH })) {
    const limited = [...LIMITED, ...list.slice(1).toSpliced(20, 0, ['weigh', list.length % 3, 0, 0])];
    await holds(limited);
  }
});

/** A list whose jobs have tags, of which some are closed and opened all the time. */
const withClosedTags = (list: List): List =>
  list.flatMap(
    ([word, a, b, c], at): List => [
      [word, a, b, word === 'schedule' ? 18 + (c % 6) : c],
      ...(at % 4 === 3 ? [['closeTags', a, b, c] as const] : []),
    ],
  );

test(`no job of a closed tag is made or started by ${LENGTH} random commands (seed ${SEED})`, {
  timeout: 300_000 + RUNS * 1500,
}, async () => {
  for (const list of lists({ seed: SEED + 2, runs: RUNS / 4, length: LENGTH }).map(withClosedTags)) await holds(list);
});

const ENDS = ['complete', 'commit', 'bury', 'serve', 'retry', 'defer', 'cancel'];
/** A job is started, newer data come, and it ends. */
const newerWhileItRuns = ([, a, b, c]: Command): List => [
  ['debounced', a, 0, c],
  ['advance', 13, 0, 0],
  ['promote', 0, 0, 0],
  ['read', 0, 2, 0],
  ['start', 0, 0, 0],
  ...(c % 3 === 0 ? [['await', a % 3, 0, 0] as const] : []),
  ['debounced', a, b, c],
  [ENDS[(a + b) % ENDS.length] ?? '', 6 * (c % 2), b, c],
];

/** A list whose jobs are debounced, but for some. */
const withDebounce = (list: List): List =>
  list.flatMap((command, at): List => {
    const [word, a, b, c] = command;
    return [
      [word === 'schedule' && c % 4 !== 3 ? 'debounced' : word, a, b, c],
      ...(at % 6 === 2 ? [['debounced', c, a, b] as const] : []),
      ...(at % 9 === 8 ? newerWhileItRuns(command) : []),
    ];
  });

test(`calls of debounced jobs and their next lives are as the model says after each of ${LENGTH} random commands (seed ${SEED})`, {
  timeout: 300_000 + RUNS * 1500,
}, async () => {
  for (const list of lists({ seed: SEED + 3, runs: RUNS / 4, length: LENGTH }).map(withDebounce)) await holds(list);
});

/** A list whose calls carry ends that are past or not; some of those calls come a second time, without one. */
const withEnds = (list: List): List =>
  withClosedTags(list).flatMap((command, at): List => {
    const [, a, b, c] = command;
    return [
      ...(at % 2 === 0 ? [['late', a + b + c, 0, 0] as const] : []),
      command,
      ...(at % 5 === 4 ? [['repeat', 0, 0, 0] as const] : []),
    ];
  });

test(`a call that comes after its end does nothing, and one in time acts, after each of ${LENGTH} random commands (seed ${SEED})`, {
  timeout: 300_000 + RUNS * 1500,
}, async () => {
  for (const list of lists({ seed: SEED + 4, runs: RUNS / 4, length: LENGTH }).map(withEnds)) await holds(list);
});

test(`after each of ${LENGTH} random commands Redis holds what the model holds (seed ${SEED})`, {
  timeout: 300_000 + RUNS * 1500,
}, async () => {
  const used = new Set<string>();
  for (const list of lists({ seed: SEED, runs: RUNS, length: LENGTH })) {
    for (const [word] of list) used.add(word);
    await holds(list);
  }
  if (RUNS >= 50) expect([...used].sort()).toEqual([...randomWords].sort());
});
