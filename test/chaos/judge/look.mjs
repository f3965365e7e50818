/** Gathers what a run left behind: what everybody wrote down, and what Redis holds in the end. */
import { join } from 'node:path';
import { readAll, readEvents } from '../stage/history.mjs';
import { check } from './checker.mjs';
import { judgeConduct } from './conduct.mjs';
import { counted, deadLettersIn, leftIn, membersOf, PARTITIONS } from './dump.mjs';
import { judgeGates } from './gates.mjs';
import { judgeOutside } from './outside.mjs';
import { outcriesIn } from './said.mjs';

/** After unrest, a new leader is found within its lease and a second. */
const SETTLED_US = 4_000_000;

/**
 * What everybody wrote down and what Redis holds, with the judge's report.
 *
 * @param {object} parts
 * @param {import('../stage/run.mjs').Row} parts.row
 * @param {import('../stage/server.mjs').Mode} parts.mode
 * @param {string} parts.folder
 * @param {readonly (readonly import('../stage/workload.mjs').PlannedJob[])[]} parts.plans
 * @param {import('ioredis').Redis} parts.redis
 * @param {import('../stage/scene.mjs').Scene} parts.scene
 * @param {import('../faults/clocks.mjs').Clocks | undefined} parts.clocks
 * @param {readonly import('./watch.mjs').Pass[]} parts.passes
 * @param {readonly import('./gates.mjs').Look[]} parts.looks
 * @param {readonly import('./vitals.mjs').Vital[]} parts.vitals
 * @param {readonly import('./terms.mjs').Term[]} parts.terms
 * @param {readonly import('../stage/cast.mjs').Actor[]} parts.actors
 * @param {boolean} parts.ranOut
 */
export async function look({ row, mode, folder, plans, redis, scene, clocks, passes, looks, ...parts }) {
  const { vitals, terms, actors, ranOut } = parts;
  const calls = [...readAll(join(folder, 'history'), '.jsonl'), ...scene.foreign()].sort((a, b) => a.us - b.us);
  // A due is a moment of the clock of Redis, so what handlers did is judged by that clock, however wrong it was; but a
  // jump of the clock makes nothing late.
  const effects = readEvents(join(folder, 'effects.jsonl')).map((event) => ({
    ...event,
    ...(clocks ? { ms: clocks.reachedMs(event), shownMs: Math.min(event.ms, clocks.shownMs(event)) } : {}),
  }));
  const nemesis = readEvents(join(folder, 'nemesis.jsonl'));
  const begun = nemesis.find(({ ev }) => ev === 'fault.begin');
  const ended = nemesis.find(({ ev }) => ev === 'fault.end');
  const fault = { fromUs: begun?.us ?? 0, toUs: ended?.us ?? Number.POSITIVE_INFINITY };
  const loss = lossIn(nemesis, row.declaredLossMs?.[mode], mode === 'replicated');
  const lives = livesOf(nemesis);
  const members = await membersOf(redis);
  const { anomalies, counts, excused } = check({
    kinds: new Map(plans.flat().map(({ id, kind }) => [id, kind])),
    calls,
    effects,
    ...lives,
    passes,
    cuts: cutsIn(nemesis, row.severs ? fault : undefined),
    timeouts: new Map(calls.flatMap(({ id = '', timeoutMs }) => (timeoutMs === undefined ? [] : [[id, timeoutMs]]))),
    members,
    left: await leftIn(redis),
    repaired: await counted(redis, 'mended'),
    fault,
    ranOut,
    loss,
  });
  const overs = row.gates
    ? judgeGates({ ...gatesIn(nemesis, row), exits: lives.exits, pauses: lives.pauses, calls, effects, looks, loss })
    : [];
  const births = new Map(nemesis.filter(({ ev }) => ev === 'spawn').map((event) => [childOf(event), event.us]));
  const outside = judgeOutside(folder, { calls, effects, members, births, loss, isTimeTrue: clocks === undefined });
  const outcries = actors.flatMap(({ name, log }) => outcriesIn(log).map((line) => ({ actor: name, line })));
  const conduct = judgeConduct({ vitals, outcries, declared: row.outcry, terms, calm: calmOf(nemesis) });
  const report = {
    anomalies: [...anomalies, ...outside.anomalies, ...overs, ...conduct],
    counts: { ...counts, ...outside.counts },
    excused,
  };
  const deadLetters = await deadLettersIn(redis);
  const crashed = await counted(redis, 'crashed');
  const troubles = nemesis.filter(({ ev }) => ev === 'fault.failed').map(({ code }) => `the fault failed: ${code}`);
  return { report, troubles, calls, effects, deadLetters, crashed, fromMs: begun?.ms ?? 0, toMs: ended?.ms ?? 0 };
}

/**
 * @param {readonly import('../stage/history.mjs').Event[]} nemesis
 * @param {number | undefined} beforeMs
 * @param {boolean} keepsJobs
 */
function lossIn(nemesis, beforeMs, keepsJobs) {
  if (beforeMs === undefined) return undefined;
  const at = (/** @type {string} */ name) =>
    nemesis.find(({ ev }) => ev === `loss.${name}`) ?? nemesis.find(({ ev }) => ev === `fault.${name}`);
  return { fromUs: (at('begin')?.us ?? 0) - beforeMs * 1000, toUs: at('end')?.us ?? 0, keepsJobs };
}

/**
 * The limits of a row, and what its fault did to them: between the notes `limits.begin` and `limits` others were set, between
 * `holds.gone` and `holds.back` holds were missing, and each `step` is one of the clock of Redis.
 *
 * @param {readonly import('../stage/history.mjs').Event[]} nemesis
 * @param {import('../stage/run.mjs').Row} row
 */
function gatesIn(nemesis, { gates = { concurrency: 0, perGroup: 0, rate: 0 }, partitions = PARTITIONS.length }) {
  const of = (/** @type {string} */ what) => nemesis.filter(({ ev }) => ev === what);
  const { inOrder = true, ...limits } = gates;
  return {
    limits,
    inOrder,
    partitions,
    steps: of('step').length,
    changes: of('limits').map((event, at) => ({
      .../** @type {import('./gates.mjs').Limits} */ (/** @type {unknown} */ (event)),
      fromUs: of('limits.begin')[at]?.us ?? event.us,
      toUs: event.us,
    })),
    unheld: of('holds.gone').map((event, at) => ({
      fromUs: event.us,
      toUs: of('holds.back')[at]?.us ?? Number.POSITIVE_INFINITY,
    })),
  };
}

/** @param {import('../stage/history.mjs').Event} event */
const childOf = (event) => Number(Object.entries(event).find(([name]) => name === 'child')?.[1]);

/**
 * When workers lost what they held: every one in the fault, or one between the notes `cut` and `repair`.
 *
 * @param {readonly import('../stage/history.mjs').Event[]} nemesis
 * @param {{ fromUs: number, toUs: number } | undefined} fault
 */
function cutsIn(nemesis, fault) {
  const one = nemesis
    .filter(({ ev }) => ev === 'cut')
    .map((cut) => ({
      pid: childOf(cut),
      fromUs: cut.us,
      toUs:
        nemesis.find((event) => event.ev === 'repair' && childOf(event) === childOf(cut))?.us ??
        Number.POSITIVE_INFINITY,
    }));
  return [...one, ...(fault ? [{ pid: undefined, ...fault }] : [])];
}

/**
 * Ends of workers, freezes of daemons and workers, as long as the run was not over, and who was asked to end.
 *
 * @param {readonly import('../stage/history.mjs').Event[]} nemesis
 */
function livesOf(nemesis) {
  const overUs = nemesis.find(({ ev }) => ev === 'over')?.us ?? Number.POSITIVE_INFINITY;
  const of = (/** @type {string} */ what) => nemesis.filter(({ ev }) => ev === what);
  const pauses = of('pause').map((pause) => {
    const resumed = of('resume').find((event) => childOf(event) === childOf(pause) && event.us > pause.us);
    return { pid: childOf(pause), fromUs: pause.us, toUs: resumed?.us ?? Number.POSITIVE_INFINITY };
  });
  const at = (/** @type {import('../stage/history.mjs').Event} */ event) => ({ pid: childOf(event), us: event.us });
  const isTerm = (/** @type {object} */ event) => 'signal' in event && event.signal === 'SIGTERM';
  return {
    exits: of('exit')
      .filter(({ actor, us }) => us < overUs && !/^(producer|daemon)/.test(actor))
      .map((event) => ({ ...at(event), signal: 'signal' in event ? String(event.signal ?? '') : '' })),
    pauses,
    dismissals: of('signal').filter(isTerm).map(at),
  };
}

/**
 * The stretches in which nothing was wrong: from the go to the fault, after the fault, and never soon after the birth,
 * the end or a freeze of a process that could lead, or a moment in which the machine stood still.
 *
 * @param {readonly import('../stage/history.mjs').Event[]} nemesis
 */
function calmOf(nemesis) {
  const isUnrest = (/** @type {import('../stage/history.mjs').Event} */ { ev, actor }) =>
    ['fault.begin', 'fault.end', 'pause', 'resume', 'stall'].includes(ev) ||
    (ev !== 'signal' && actor.startsWith('daemon'));
  const goUs = nemesis.find(({ ev }) => ev === 'go')?.us ?? Number.POSITIVE_INFINITY;
  const endUs = nemesis.find(({ ev }) => ev === 'over')?.us ?? 0;
  const begunUs = nemesis.find(({ ev }) => ev === 'fault.begin')?.us ?? 0;
  const endedUs = nemesis.find(({ ev }) => ev === 'fault.end')?.us ?? Number.POSITIVE_INFINITY;
  const later = nemesis
    .filter((event) => isUnrest(event) && event.us >= endedUs && event.us < endUs)
    .map(({ us }) => us);
  const after = later.map((us, at) => ({ fromUs: us + SETTLED_US, toUs: later[at + 1] ?? endUs }));
  const isStill = nemesis.some(({ ev, us }) => ev === 'stall' && us > goUs && us < begunUs);
  const before = isStill ? [] : [{ fromUs: goUs, toUs: begunUs }];
  return [...before, ...after].filter(({ fromUs, toUs }) => fromUs < toUs);
}
