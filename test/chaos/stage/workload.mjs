/**
 * The work that goes on while something breaks. Everything about it follows from the seed: which jobs there are, when
 * each is scheduled and due, how long its handler takes, and which handlers throw or take their worker with them.
 */

/** @typedef {'plain' | 'throw' | 'crash' | 'poison' | 'odd' | 'deaf'} Kind what the handler of a job does */
/**
 * @typedef {object} PlannedJob
 * @property {string} id with its group in front, if it has one
 * @property {'high' | 'low'} [priority]
 * @property {number} callMs when it is scheduled, ms after the start of its producer
 * @property {number} delayMs
 * @property {Kind} kind
 * @property {number} workMs how long its handler takes
 * @property {number} padBytes of data
 */
/**
 * @typedef {object} Workload
 * @property {number} jobs
 * @property {number} callsMs over which the calls are spread
 * @property {number} nearMs 60 % are due within this of their call, 10 % at once
 * @property {number} farMs 30 % are due within this
 * @property {number} throws parts of all jobs
 * @property {number} crashes
 * @property {number} poison
 * @property {number} odd
 * @property {number} [deaf] handlers that go on after their time-out the first time, and fail then
 * @property {readonly [number, number]} workMs
 * @property {number} padBytes
 * @property {number} [groups] of a gated queue: one job in ten is of the first group, one in twenty of none
 */

/** The processes of a run, unless its row says otherwise. */
export const PRODUCERS = 4;
export const DAEMONS = 3;
export const WORKERS = 4;
/**
 * For faults after which every worker has to dial again, which takes up to 2.5 s: a grace longer than that, as the default
 * of 5 s is. With the shortened one a worker would be given up that is on its way back.
 */
export const GRACE_TO_DIAL = { DUESTREAM_WORKER__GRACE: '3000' };
/** Time-outs of jobs that have one of their own. @type {Readonly<Partial<Record<Kind, number>>>} */
export const TIMEOUTS_MS = { deaf: 1500 };
/** So long does the first attempt of a handler take that pays no heed to its signal. */
export const DEAF_MS = 2500;
/** Handlers that a worker runs at once. */
export const SLOTS = 8;

/**
 * Every worker that a job ends takes seconds and up to 7 bystanders with it, so the rows whose subject that is raise
 * these two parts.
 *
 * @type {Workload}
 */
export const FULL = {
  jobs: 2000,
  callsMs: 5000,
  nearMs: 4000,
  farMs: 9000,
  throws: 0.05,
  crashes: 0.001,
  poison: 0.0005,
  odd: 0,
  workMs: [5, 60],
  padBytes: 0,
};

/**
 * Jobs that go on for longer than a failover, and none of which ends its worker.
 *
 * @type {Partial<Workload>}
 */
export const STEADY = { jobs: 1000, callsMs: 7000, nearMs: 2000, farMs: 5000, crashes: 0, poison: 0 };

/**
 * For a look that takes seconds.
 *
 * @type {Workload}
 */
export const QUICK = { ...FULL, jobs: 500, callsMs: 3500, nearMs: 1500, farMs: 4000, crashes: 0, poison: 0 };

/**
 * @param {Workload} workload
 * @param {{ random: () => number, producers: number }} by
 * @returns {readonly (readonly PlannedJob[])[]} per producer
 */
export function planOf(workload, { random, producers }) {
  const { jobs, callsMs, nearMs, farMs, padBytes } = workload;
  const [shortest, longest] = workload.workMs;
  const all = Array.from({ length: jobs }, (_, index) => {
    const when = random();
    const delayMs = Math.floor(when < 0.1 ? 0 : random() * (when < 0.7 ? nearMs : farMs));
    const workMs = Math.round(shortest + random() * (longest - shortest));
    const job = {
      id: `job-${index}`,
      callMs: Math.floor(random() * callsMs),
      delayMs,
      kind: kindOf(workload, random()),
      workMs,
      padBytes,
    };
    return workload.groups === undefined ? job : placed(job, { groups: workload.groups, random });
  });
  return Array.from({ length: producers }, (_, producer) =>
    all.filter((_job, index) => index % producers === producer).sort((a, b) => a.callMs - b.callMs),
  );
}

/**
 * The same job with a group and a priority.
 *
 * @param {PlannedJob} job
 * @param {{ groups: number, random: () => number }} by
 * @returns {PlannedJob}
 */
function placed(job, { groups, random }) {
  const [whose, first] = [random(), random()];
  const group = whose < 0.1 ? 0 : 1 + Math.floor(random() * (groups - 1));
  const id = whose > 0.95 ? job.id : `{g${group}}${job.id}`;
  if (first < 0.8) return { ...job, id };
  return { ...job, id, priority: first < 0.9 ? 'high' : 'low' };
}

/**
 * @param {Workload} workload
 * @param {number} at from 0 up to 1
 * @returns {Kind}
 */
function kindOf({ throws, crashes, poison, odd, deaf = 0 }, at) {
  if (at < throws) return 'throw';
  if (at < throws + crashes) return 'crash';
  if (at < throws + crashes + poison) return 'poison';
  if (at < throws + crashes + poison + odd) return 'odd';
  return at < throws + crashes + poison + odd + deaf ? 'deaf' : 'plain';
}

/**
 * Small, fast, good enough: mulberry32. Numbers from 0 up to 1.
 *
 * @param {number} seed
 */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
