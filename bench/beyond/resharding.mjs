/**
 * A primary is added to three, and then the one with the control keys is removed, while 2,000 jobs per second are scheduled
 * and run, with --quick 500. Slots move by SETSLOT and MIGRATE, as `redis-cli --cluster` moves them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { grow, shrink } from '../../test/chaos/faults/reshard.mjs';
import { rounded } from '../parts.mjs';
import { homesOf, onStage, quantile, startsOf, until } from './stage.mjs';

/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./child.mjs').Flowed} Flowed */
/** @typedef {{ phase: string, fromMs: number, toMs: number, seconds: number, slots: number, keys: number }} Phase */

const PARTITIONS = 24;
const DAEMONS = 2;
/** Of worker processes, and of the workers in each. */
const PROCESSES = 2;
/** Jobs are due so long after their call. */
const NEAR_MS = 500;
const FAR_MS = 2000;

/** @param {{ binary: string, quick: boolean, rounds: number }} given */
export async function resharding({ binary, quick, rounds }) {
  const [restMs, perSecond] = quick ? [6000, 500] : [20_000, 2000];
  /** @type {Awaited<ReturnType<typeof measure>>[]} */
  const measured = [];
  for (let round = 1; round <= rounds; round += 1) {
    process.stderr.write(`resharding: round ${round} of ${rounds}, about ${quick ? 40 : 110} s\n`);
    const wanted = { binary, partitions: PARTITIONS, shape: { replicas: 0 } };
    measured.push(await onStage(wanted, (stage) => measure(stage, restMs, perSecond)));
  }
  return (measured[0] ?? []).map((_, at) => ({ perSecond, ...rowOf(measured.flatMap((rows) => rows[at] ?? [])) }));
}

/** @param {Stage} stage @param {number} restMs @param {number} perSecond */
async function measure(stage, restMs, perSecond) {
  const cluster = stage.theCluster();
  for (let nth = 0; nth < DAEMONS; nth += 1) await stage.start('daemon');
  /** @type {import('./stage.mjs').Child[]} */
  const workers = [];
  for (let nth = 0; nth < PROCESSES; nth += 1) workers.push(await stage.start('workers', { workers: PROCESSES }));
  const producer = await stage.start('producer');
  await producer.ask('flow', { perSecond, nearMs: NEAR_MS, farMs: FAR_MS });
  await sleep(FAR_MS + restMs / 2);
  /** @type {Phase[]} */
  const phases = [];
  const during = async (
    /** @type {string} */ phase,
    /** @type {() => Promise<{ slots: number, keys: number }>} */ act,
  ) => {
    const fromMs = Date.now();
    const { slots, keys } = await act();
    const toMs = Date.now();
    process.stderr.write(`resharding: ${phase}, ${Math.round((toMs - fromMs) / 1000)} s\n`);
    phases.push({ phase, fromMs, toMs, seconds: (toMs - fromMs) / 1000, slots, keys });
  };
  const resting = async () => {
    await sleep(restMs);
    return { slots: 0, keys: 0 };
  };
  await during('before', resting);
  await during('a primary is added', () => grow(cluster));
  await during('between', resting);
  const { control } = await homesOf(cluster, PARTITIONS);
  await during('a primary is removed', () => shrink(cluster, control));
  await during('after', resting);
  const flowed = /** @type {Flowed} */ (await producer.ask('dam'));
  const wanted = [...flowed.duesMs.keys()].filter((at) => flowed.duesMs[at]);
  const isOver = async () => {
    const starts = await startsOf(workers);
    return wanted.every((at) => starts.has(at));
  };
  await until(isOver, `${wanted.length} jobs run`, 120_000).catch(() => undefined);
  return judged(phases, flowed, await startsOf(workers));
}

/**
 * A row for each phase, of the jobs that are due in it, and one for all. A call belongs to no phase: calls are in the last row.
 *
 * @param {readonly Phase[]} phases
 * @param {Flowed} flowed
 * @param {Awaited<ReturnType<typeof startsOf>>} starts
 */
function judged(phases, { duesMs, calls, failures }, starts) {
  const all = [...duesMs].map((dueMs, at) => ({ dueMs, start: starts.get(at) })).filter(({ dueMs }) => dueMs > 0);
  const rowOfPhase = (/** @type {Phase} */ { phase, fromMs, toMs, seconds, slots, keys }) => {
    const some = all.filter(({ dueMs }) => dueMs >= fromMs && dueMs < toMs);
    const lates = some.flatMap(({ dueMs, start }) => (start ? [start.firstMs - dueMs] : []));
    return {
      phase,
      seconds,
      slots,
      keys,
      calls: 0,
      failed: 0,
      jobs: some.length,
      lost: some.filter(({ start }) => start === undefined).length,
      again: some.filter(({ start }) => (start?.times ?? 0) > 1).length,
      p50Ms: quantile(lates, 0.5),
      p99Ms: quantile(lates, 0.99),
      maxMs: quantile(lates, 1),
    };
  };
  const whole = { phase: 'all', fromMs: 0, toMs: Number.POSITIVE_INFINITY, slots: 0, keys: 0 };
  const seconds = phases.reduce((sum, phase) => sum + phase.seconds, 0);
  return [...phases.map(rowOfPhase), { ...rowOfPhase({ ...whole, seconds }), calls, failed: failures.length }];
}

/** Counts of all rounds, medians of times. @param {readonly ReturnType<typeof judged>[number][]} rounds */
function rowOf(rounds) {
  const of = (/** @type {Exclude<keyof ReturnType<typeof judged>[number], 'phase'>} */ name) =>
    rounds.map((row) => row[name]);
  const sum = (/** @type {Parameters<typeof of>[0]} */ name) => of(name).reduce((all, one) => all + one, 0);
  const middle = (/** @type {Parameters<typeof of>[0]} */ name) => rounded(quantile(of(name), 0.5));
  return {
    phase: rounds[0]?.phase ?? '',
    seconds: middle('seconds'),
    slots: middle('slots'),
    keys: middle('keys'),
    jobs: sum('jobs'),
    calls: sum('calls'),
    failed: sum('failed'),
    lost: sum('lost'),
    again: sum('again'),
    p50Ms: middle('p50Ms'),
    p99Ms: middle('p99Ms'),
    maxMs: rounded(Math.max(...of('maxMs'))),
  };
}
