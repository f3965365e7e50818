/**
 * The specification of a job's way (way-of-a-job.qnt) is run by Quint's own simulator: chance takes it through thousands of
 * runs, and all ways of the first steps are taken. A specification that cannot fail shows nothing, so lines of it are
 * broken, one at a time, and each break must break an invariant. The scripts themselves have proofs of their own; this one
 * says that what they do together is right when any call may come late, twice, or never.
 *
 *     npx vitest run test/proof/spec.test.ts                                     # 5000 runs, and seven steps of every way
 *     PROOF_SEED=123 PROOF_RUNS=20000 npx vitest run test/proof/spec.test.ts     # other runs, and more of them
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load, parse, runSimulator } from '@informalsystems/quint/dist/src/cliCommands.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { capture } from '../../scripts/run.mjs';
import { edited } from '../chaos/marks.mjs';
import { read, root } from '../support/repository.ts';
import { isSlice } from '../tiers.mjs';

const FILE = 'test/proof/way-of-a-job.qnt';
const QUINT = join(root, 'node_modules', '.bin', 'quint');
const SEED = process.env.PROOF_SEED ?? '7';
const RUNS = process.env.PROOF_RUNS ?? (isSlice ? '200' : '5000');
/** Six steps from the beginning, and from a start; seven take four times as long. */
const EVERY_WAY = isSlice ? 'everyWayTest' : 'everyWayFurtherTest';
/** Until a broken line is noticed; most are within fifty, and no run is made after that. */
const RUNS_TO_NOTICE = 3000;
const STEPS = 40;
/** A run of thousands ends when it ends, on a slow machine too. */
const ANY_TIME_MS = 3_600_000;

const text = read(FILE);

/** `[what is wrong, the invariant that it breaks, mark → the line in its place]`. */
const BROKEN: readonly (readonly [wrong: string, breaks: string, lines: Readonly<Record<string, string>>])[] = [
  ['the same call of a producer makes another job', 'invEndsOnce', { 'same-call': 'if (false) s' }],
  ['a term is given twice', 'invOneLeader', { 'epoch-grows': 'val term = 1' }],
  ['promote does not ask whose term it is', 'invOneLeader', { fence: 'val isFenced = false' }],
  ['promote does not ask for the due time', 'invNeverEarly', { due: 'val isDue = s.scheduled.has(j)' }],
  [
    'promote removes before it adds, and is cut off in between',
    'invNothingLost',
    {
      'add-first': 'ready: if (isCut) s.ready else s.ready.put(s.last + 1, j),',
      'remove-moved': 'scheduled: s.scheduled.without(j),',
    },
  ],
  ['an entry of another worker is started', 'invOneAtATime', { 'own-entry': 'val isGiven = true' }],
  ['the start of another worker is continued', 'invOneOwner', { 'own-start': 'val isMine = mine.entry == e' }],
  ['a token is minted twice', 'invOneOwner', { mint: 'val token = 1' }],
  ['a tombstone is started', 'invStaysOver', { tombstone: 'val isOver = false' }],
  ['a cancel is forgotten at the next start', 'invStaysOver', { 'asked-to-stop': 'val isStopped = false' }],
  ['an old entry starts a job that waits again', 'invNeverEarly', { 'waits-again': 'val isBack = false' }],
  ['the second entry of a job starts it as well', 'invOneAtATime', { 'runs-elsewhere': 'val isElsewhere = false' }],
  ['the run of an entry that is dropped stays bound to it', 'invHoldsItsEntry', { unbound: 'runs: s.runs' }],
  ['any token ends a job', 'invNewestWins', { 'fence-end': 'val isIts = s.runs.has(h.job)' }],
  ['any token puts a job back', 'invNewestWins', { 'fence-retry': 'val isIts = s.runs.has(h.job)' }],
  [
    'an end lets its entry go first, and is cut off after that',
    'invNothingLost',
    { 'end-first': 'else if (cut == 1) s.letGo(h.entry)' },
  ],
  ['a retry is not put in scheduled', 'invNothingLost', { 'back-first': 'scheduled: s.scheduled,' }],
  ['who lost its entry may extend it', 'invHoldsItsEntry', { 'fence-extension': 'val isIts = true' }],
  ['the run of a dead worker keeps its owner', 'invHoldsItsEntry', { 'no-owner': 'runs: s.runs,' }],
  ['a reclaim acknowledges the entry', 'invNothingLost', { 'claim-entry': 'pending: s.pending.without(e)' }],
  ['nobody reclaims', 'invNothingStuck', { idle: 'val isIdle = false' }],
];

/** What runs must get to. */
const REACHED = [
  ...['isDone', 'isDead', 'isCancelled', 'startedTwice', 'ledByTwo', 'inTwoPlaces', 'takenOver', 'heldByTwo'],
];

const invariants = [...text.matchAll(/^ {2}val (inv\w+) =/gm)].map(([, name = '']) => name);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'due-spec-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The simulator that is written in TypeScript; the other one is a program that would have to be downloaded. */
function quint(command: 'run' | 'test', file: string, args: readonly string[]) {
  const all = [command, file, '--main', 'way', '--backend', 'typescript', '--seed', SEED, ...args];
  return capture(QUINT, all, { cwd: root, env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' } });
}

/**
 * What becomes of a specification whose lines may be broken. The steps are those of `quint run`, in this process: a process
 * for each broken line would spend its time on reading its own program. Types are left out, because a line in the place of
 * another does not have others.
 */
async function outcomeOf(input: string, invariant: string) {
  const what = { input, main: 'way', init: 'init', step: 'step', invariant, witnesses: [] };
  const how = { backend: 'typescript', seed: BigInt(SEED), maxSamples: RUNS_TO_NOTICE, maxSteps: STEPS, verbosity: 0 };
  const parsed = await (await load({ ...what, ...how })).asyncChain(parse);
  const untyped = parsed.map((stage) => ({ ...stage, types: new Map(), effects: new Map(), modes: new Map() }));
  const run = await untyped.asyncChain(runSimulator);
  return run.isLeft() ? run.value.msg : `no violation in ${RUNS_TO_NOTICE} runs`;
}

/** A copy in which lines are broken. */
function brokenCopy(lines: Readonly<Record<string, string>>): string {
  const file = join(folder, `${Object.keys(lines).join('-')}.qnt`);
  const broken = Object.entries(lines).reduce((all, [mark, line]) => edited(all, mark, () => line), text);
  writeFileSync(file, broken);
  return file;
}

describe('the specification', () => {
  test('holds in every run that chance takes, and these runs get far', { timeout: ANY_TIME_MS }, async () => {
    const { code, output } = await quint('run', FILE, [
      ...['--max-samples', RUNS, '--max-steps', `${STEPS}`],
      ...['--invariants', ...invariants, '--witnesses', ...REACHED],
    ]);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('No violation found') });
    const often = new Map([...output.matchAll(/(\w+) was witnessed in (\d+) trace/g)].map(([, name, n]) => [name, n]));
    expect(REACHED.filter((name) => Number(often.get(name) ?? 0) === 0)).toEqual([]);
  });

  test('holds in every way of the first steps', { timeout: ANY_TIME_MS }, async () => {
    const { code, output } = await quint('test', FILE, ['--max-samples', '1', '--match', EVERY_WAY]);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('1 passing') });
  });

  test('names lines of the scripts that are there', () => {
    const named = [...text.matchAll(/^\s*\/\/\/ (lua\/\S+): (.+)$/gm)].map(([, path = '', line = '']) => ({
      path,
      line,
    }));
    const missing = named.filter(
      ({ path, line }) =>
        !read(path)
          .split('\n')
          .some((one) => one.trim() === line),
    );
    expect(named.length).toBeGreaterThan(25);
    expect(missing).toEqual([]);
  });

  test('says of each step that a script takes which lines it stands for', () => {
    const verbs = ['schedule', 'cancel', 'elect', 'promote', 'read', 'start', 'finish', 'retry', 'extend', 'reclaim'];
    const taken = [...text.matchAll(/((?:^ {2}\/\/\/ lua\/.+\n)+) {2}pure def (\w+)\(s: State/gm)].map(
      ([, , name]) => name,
    );
    expect(verbs.filter((verb) => !taken.includes(verb))).toEqual([]);
  });
});

describe('a broken line is noticed:', () => {
  test.each(BROKEN)('%s (%s)', { timeout: ANY_TIME_MS }, async (_wrong, breaks, lines) => {
    expect(await outcomeOf(brokenCopy(lines), breaks)).toBe('Invariant violated');
  });

  test('each invariant is broken by one, and each mark is used', () => {
    expect(invariants.filter((name) => !BROKEN.some(([, breaks]) => breaks === name))).toEqual([]);
    const marks = [...text.matchAll(/^\s*\/\/ @(\S+)$/gm)].map(([, mark = '']) => mark);
    expect(marks.filter((mark) => !BROKEN.some(([, , lines]) => mark in lines))).toEqual([]);
  });
});
