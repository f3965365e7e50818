/**
 * One simulation: a world from a seed, episode after episode until the hours are over. In each episode producers
 * schedule jobs while things go wrong; then all is well until nothing is left to do, and everything is judged.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { check } from '../../chaos/judge/checker.mjs';
import { judgeGates } from '../../chaos/judge/gates.mjs';
import { planOf, seeded } from '../../chaos/stage/workload.mjs';
import { createCast } from './cast.mjs';
import { FAULTS, strike } from './faults.mjs';
import { install } from './globals.mjs';
import { createJournal } from './journal.mjs';
import { createLook } from './look.mjs';
import { createMachine } from './machine.mjs';
import { createNetwork, takeOver } from './network.mjs';
import { createTime } from './time.mjs';

/** @typedef {import('../../chaos/judge/checker.mjs').Anomaly} Anomaly */
/**
 * @typedef {object} Settings
 * @property {string} product the folder whose `dist` and `lua` run
 * @property {number} seed
 * @property {number} hours
 * @property {readonly string[]} [faults] all unless named
 * @property {number} [density] how many times as many faults
 * @property {boolean} [alone] one process, mover and worker
 * @property {boolean} [gated] the queue has limits, which are judged
 * @property {number} [linger] for how many ms due jobs wait for company
 * @property {number} [ahead] how many ms before they are due jobs are handed to workers
 * @property {(line: string) => void} [print] everything that happens
 */

const EPOCH_MS = 1_763_719_000_000;
const CALLS_MS = 20_000;
/** A lease of a job, a grace, a look of the repairer and the retries of a job, several times over. */
const DRAIN_MS = 300_000;
/** A server that is silent for longer than this, and then has to be dialled again, may cost a lease. */
const CUT_MS = 4000;

/** @param {Settings} settings */
export async function simulate(settings) {
  const { product: folder, seed, hours, faults = Object.keys(FAULTS), density = 1, print } = settings;
  const { alone = false, gated = false, linger = 0, ahead = 0 } = settings;
  const random = seeded(seed);
  const time = createTime({ random });
  install({ time, random, epochMs: EPOCH_MS });
  const [host, director] = [time.process('server'), time.process('director')];
  const network = createNetwork({ time, random, host });
  takeOver(network, time);
  const partitions = 1 + Math.floor(random() * 3);
  const limits = gated ? limitsOf(partitions, random) : undefined;
  const gates = limits ? { ...limits, rate: /** @type {const} */ (`${limits.rate}/s`) } : {};
  const journal = createJournal({ nowUs: time.nowUs, serverMs: () => machine.nowMs(), ...(print ? { print } : {}) });
  const machine = createMachine({ time, host, director, network, epochMs: EPOCH_MS, journal, ran });
  const built = (/** @type {string[]} */ ...path) => import(pathToFileURL(join(folder, 'dist', ...path)).href);
  const product = { ...(await built('index.js')), ...(await built('daemon', 'index.js')) };
  await quarantineEach(folder, time);
  const cast = createCast({
    product,
    time,
    network,
    journal,
    random,
    partitions,
    director,
    alone,
    gates,
    linger,
    ahead,
  });
  const look = createLook(machine.ask, partitions);
  const stage = { time, network, cast, journal, director, machine, random, ahead };
  const untilUs = hours * 3600e6;
  const totals = {
    episodes: 0,
    jobs: 0,
    starts: 0,
    again: 0,
    faults: 0,
    relayed: 0,
    offered: 0,
    cancelled: 0,
    accounts: 0,
  };
  const { readAccount, tokenMs } = await built('job', 'account.js');

  /** @param {string} verb @param {readonly string[]} keys @param {readonly string[]} args @param {unknown} reply */
  function ran(verb, keys, args, reply) {
    if (verb === 'retry' || verb === 'bury') addUp(args);
    const passed = verb === 'promote' ? reply : verb === 'relay' && Array.isArray(reply) ? reply[0] : undefined;
    if (!Array.isArray(passed) || passed[0] === 'fenced') return;
    if (verb === 'relay') totals.relayed += 1;
    totals.offered += offeredIn(passed);
    const partition = Number(/:(\d+)\}/.exec(keys[0] ?? '')?.[1]);
    journal.passes.push({ partition, epoch: Number(args[1]?.split(':')[1]) });
  }

  /** What failed carries the account of its start. @param {readonly string[]} args of a script that ends or repeats a failed job */
  function addUp([, , , member = '', token = '', , error = '']) {
    const account = readAccount(error === '' ? undefined : JSON.parse(error).l);
    if (account === undefined) return;
    totals.accounts += 1;
    const { startedMs, lateMs, parts } = account;
    const sum = parts.reduce((/** @type {number} */ all, /** @type {{ ms: number }} */ { ms }) => all + ms, 0);
    if (sum === lateMs && startedMs === tokenMs(token)) return;
    journal.complain('ACCOUNT', member, `${sum} ms are accounted for of ${lateMs}, of ${startedMs}, token ${token}`);
  }

  for (let count = 0; count < (alone ? 0 : 2 + random() * 2); count += 1) cast.daemon();
  for (let count = 0; count < (alone ? 1 : 2 + random() * 3); count += 1) cast.worker();
  /** @type {Anomaly[]} */
  let anomalies = [];
  while (time.nowUs() < untilUs && anomalies.length === 0) anomalies = await episode();
  return { seed, anomalies, ...totals, events: time.events(), virtualMs: time.nowUs() / 1000 };

  /** @returns {Promise<Anomaly[]>} */
  async function episode() {
    totals.episodes += 1;
    const repairedBefore = look.repaired();
    const jobs = 20 + Math.floor(random() * 150);
    const farMs = 1000 + random() * 20_000;
    const wishes = { throws: 0.1, crashes: 0.01, poison: random() < 0.1 ? 0.01 : 0, odd: 0 };
    const mostMs = 10 + random() ** 2 * (random() < 0.2 ? 20_000 : 4000);
    // Where few run at a time, longer jobs would not be over when all should be. Nor does a lease of a job that is buried end
    // where a judge sees it.
    const gentle = gated ? { groups: 12, crashes: 0, poison: 0, deaf: 0.05 } : {};
    const workMs = /** @type {const} */ ([1, gated ? Math.min(mostMs, 1000) : mostMs]);
    const workload = { ...wishes, ...gentle, jobs, callsMs: CALLS_MS, nearMs: farMs / 4, farMs, workMs, padBytes: 0 };
    const plans = planOf(workload, { random, producers: 2 }).map((plan) =>
      plan.map((job) => ({ ...job, id: job.id.replace(/^(\{.*\})?/, `$1${totals.episodes}-`) })),
    );
    let open = plans.length;
    const ended = () => {
      open -= 1;
    };
    for (const plan of plans) cast.producer(plan, ended);
    await troubled();
    const quietUs = time.nowUs();
    await time.run(quietUs + DRAIN_MS * 1000, () => open === 0 && look.isEmpty());
    // What settles last is noted a moment later.
    await time.run(time.nowUs() + 100_000 + random() * 20e6);
    if (open > 0) journal.complain('UNSETTLED', 'producers', `${open} never ended`);
    return judge(plans.flat(), repairedBefore);
  }

  async function troubled() {
    const spanUs = (CALLS_MS + random() * 10_000) * 1000;
    const endUs = time.nowUs() + spanUs;
    for (let left = Math.floor(random() ** 2 * 12 * density); left > 0 && faults.length > 0; left -= 1) {
      const waitUs = random() * random() * spanUs;
      time.schedule(director, waitUs, () => strike(stage, faults));
      totals.faults += 1;
    }
    await time.run(endUs);
  }

  /** @param {readonly import('../../chaos/stage/workload.mjs').PlannedJob[]} plan @param {number} repairedBefore @returns {Anomaly[]} */
  function judge(plan, repairedBefore) {
    const { calls, effects, exits, pauses, stalls, passes } = journal;
    const report = check({
      kinds: new Map(plan.map(({ id, kind }) => [id, kind])),
      // A handler whose worker cannot extend its lease is told to stop. Of 15 s, 5 may be over when a stall begins.
      cuts: stalls
        .filter(({ fromUs, toUs }) => toUs - fromUs > CUT_MS * 1000)
        .map((stall) => ({ pid: undefined, ...stall })),
      calls,
      effects,
      exits,
      pauses,
      stalls,
      passes,
      left: look.left(),
      repaired: look.repaired() - repairedBefore,
      members: look.members().filter(({ id }) => id.replace(/^\{.*\}/, '').startsWith(`${totals.episodes}-`)),
    });
    const flaws = look.flaws(join(folder, 'lua')).map((detail) => ({ kind: 'FLAW', id: 'redis', detail }));
    const steady = { changes: [], looks: [], unheld: [], inOrder: false, steps: machine.steps(), partitions };
    const overs = limits ? judgeGates({ ...steady, limits, calls, effects, pauses }) : [];
    const found = [...report.anomalies, ...overs, ...afterCancels(), ...journal.complaints, ...flaws];
    totals.jobs += plan.length;
    totals.starts += report.counts.starts;
    totals.again += report.counts.again;
    journal.turn();
    return found;
  }

  /** Starts of jobs of which a call had said that they are cancelled. @returns {Anomaly[]} */
  function afterCancels() {
    const { calls, effects } = journal;
    const cancelled = new Map(calls.flatMap(({ ev, id, us }) => (ev === 'enq.cancelled' ? [[id, us]] : [])));
    totals.cancelled += cancelled.size;
    return effects
      .filter(({ ev, id, us }) => ev === 'start' && us > (cancelled.get(id) ?? Number.POSITIVE_INFINITY))
      .map(({ id = '' }) => ({ kind: 'AFTER-CANCEL', id, detail: 'it started although a cancel had resolved' }));
  }
}

/** How many jobs a pass has offered: their lateness is -1. @param {readonly unknown[]} reply */
function offeredIn(reply) {
  let count = 0;
  for (let at = 8; at < reply.length; at += 2) if (Number(reply[at]) < 0) count += Number(reply[at + 1]);
  return count;
}

/**
 * Limits that the partitions can share.
 *
 * @param {number} partitions
 * @param {() => number} random
 */
function limitsOf(partitions, random) {
  const below = (/** @type {number} */ most) => Math.floor(random() * most);
  return { concurrency: partitions * (1 + below(3)), perGroup: 1 + below(2), rate: partitions * (5 + below(40)) };
}

/**
 * A process has one quarantine for its workers, and here all processes are one: each gets its own, or what a dead one
 * left in it would hold up the living.
 *
 * @param {string} folder of the product
 * @param {import('./time.mjs').Time} time
 */
async function quarantineEach(folder, time) {
  const { createQuarantine, processQuarantine } = await import(
    pathToFileURL(join(folder, 'dist', 'worker', 'run', 'quarantine.js')).href
  );
  const own = new WeakMap();
  processQuarantine.join = (/** @type {unknown} */ member) => {
    const process = time.current();
    if (!own.has(process)) own.set(process, createQuarantine());
    return own.get(process).join(member);
  };
}
