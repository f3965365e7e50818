/**
 * What `npm run bench -- stages` measures: for each script a way to bring jobs into the state it starts from, and the call. Every
 * call is the product's own, so that what the client splits or repeats is measured as it happens.
 */

/** @typedef {import('./stages-partition.mjs').Partition} Partition */
/** @typedef {import('./stages-partition.mjs').Given} Given */

/**
 * @typedef {object} Case
 * @property {readonly number[]} batches sizes of one call
 * @property {number} [byDefault] the batch of the product's default settings, which the table of longest calls takes
 * @property {boolean} [isPlain] a command of Redis, no script of ours: its figure is that of `cmdstat_<name>`
 * @property {boolean} [leaves] the call changes nothing that the next one would miss: it may be made again on the same jobs
 * @property {(partition: Partition, given: Given) => Promise<readonly unknown[]>} prepare returns what the calls are about
 * @property {(partition: Partition, chunk: readonly any[]) => Promise<void>} call one batch, to its end
 */

const BATCHES = [1, 20, 100, 256];
const WINDOW_MS = 600_000;
/** Tags of other jobs. */
const CLOSED = 1000;
const CONSUMER = 'bench';
const UNCOMPENSATED = { windowMs: WINDOW_MS, reason: 'bench', error: '{"m":"bench"}' };

/** @type {Readonly<Record<string, Case>>} in the order a job meets them */
export const cases = {
  schedule: {
    batches: [...BATCHES, 250],
    byDefault: 250,
    prepare: async (partition, given) => partition.items(given),
    call: (partition, chunk) => partition.schedule(chunk),
  },
  // Newer calls of jobs that wait, which move them.
  debounce: {
    batches: [1, 50],
    prepare: async (partition, given) => {
      await partition.scheduled({ ...given, isDebounced: true });
      return partition.items({ ...given, isDebounced: true });
    },
    call: (partition, chunk) => partition.schedule(chunk, 'debounce'),
  },
  'schedule-tagged': {
    batches: [1, 50],
    prepare: async (partition, given) => partition.items({ ...given, isTagged: true }),
    call: (partition, chunk) => partition.schedule(chunk),
  },
  'schedule-closed': {
    batches: [1, 50],
    async prepare(partition, given) {
      await partition.closeTags(CLOSED);
      return partition.items({ ...given, isTagged: true });
    },
    call: (partition, chunk) => partition.schedule(chunk),
  },
  'schedule-limited': {
    batches: [1, 100],
    async prepare(partition, given) {
      await partition.limit();
      return partition.items(given);
    },
    call: (partition, chunk) => partition.schedule(chunk),
  },
  promote: {
    batches: [...BATCHES, 300],
    byDefault: 300,
    prepare: (partition, given) => partition.scheduled(given),
    async call(partition, chunk) {
      for (let left = chunk.length; left > 0; ) left -= await partition.promote(left);
    },
  },
  xreadgroup: {
    batches: BATCHES,
    byDefault: 256,
    isPlain: true,
    prepare: (partition, given) => partition.readied(given),
    async call(partition, chunk) {
      await partition.read(chunk.length);
    },
  },
  start: {
    batches: [...BATCHES, 80],
    byDefault: 80,
    prepare: (partition, given) => partition.delivered(given),
    async call(partition, chunk) {
      await partition.start(chunk);
    },
  },
  'start-tagged': {
    batches: [1, 50],
    prepare: (partition, given) => partition.delivered({ ...given, isTagged: true }),
    async call(partition, chunk) {
      await partition.start(chunk);
    },
  },
  'start-closed': {
    batches: [1, 50],
    async prepare(partition, given) {
      await partition.closeTags(CLOSED);
      return partition.delivered({ ...given, isTagged: true });
    },
    async call(partition, chunk) {
      await partition.start(chunk);
    },
  },
  // The dearer of its two ends: dead letters.
  expire: {
    batches: [40],
    byDefault: 40,
    prepare: (partition, given) => partition.delivered({ ...given, isLate: true }),
    async call(partition, chunk) {
      await partition.untilTaken(chunk, (rest) =>
        partition.jobs.expire(partition.ref, rest, { consumer: CONSUMER, windowMs: WINDOW_MS }),
      );
    },
  },
  extend: {
    batches: BATCHES,
    byDefault: 100,
    leaves: true,
    prepare: (partition, given) => partition.started(given),
    async call(partition, chunk) {
      await partition.jobs.extend(partition.ref, chunk, CONSUMER);
    },
  },
  complete: {
    batches: BATCHES,
    byDefault: 100,
    prepare: (partition, given) => partition.started(given),
    async call(partition, chunk) {
      await partition.jobs.complete(partition.ref, chunk, { windowMs: WINDOW_MS });
    },
  },
  'complete-limited': {
    batches: [1, 100],
    async prepare(partition, given) {
      await partition.limit();
      return partition.started(given);
    },
    async call(partition, chunk) {
      await partition.jobs.complete(partition.ref, chunk, { windowMs: WINDOW_MS });
    },
  },
  retry: {
    batches: [1],
    byDefault: 1,
    prepare: (partition, given) => partition.started(given),
    async call(partition, [claim]) {
      await partition.jobs.retry(partition.ref, claim, {
        windowMs: WINDOW_MS,
        delayMs: 60_000,
        error: '{"m":"bench"}',
      });
    },
  },
  defer: {
    batches: [1],
    byDefault: 1,
    prepare: (partition, given) => partition.started(given),
    async call(partition, [claim]) {
      await partition.jobs.defer(partition.ref, claim, { windowMs: WINDOW_MS, delayMs: 60_000 });
    },
  },
  bury: {
    batches: [1],
    byDefault: 1,
    prepare: (partition, given) => partition.started(given),
    async call(partition, [claim]) {
      await partition.jobs.bury(partition.ref, claim, UNCOMPENSATED);
    },
  },
  release: {
    batches: [...BATCHES, 80],
    byDefault: 80,
    prepare: (partition, given) => partition.delivered(given),
    async call(partition, chunk) {
      await partition.untilTaken(chunk, (rest) => partition.jobs.release(partition.ref, rest, { consumer: CONSUMER }));
    },
  },
  reclaim: {
    batches: [...BATCHES.slice(0, 3), 50],
    byDefault: 50,
    prepare: (partition, given) => partition.started(given),
    async call(partition, chunk) {
      await partition.reclaim(chunk.map(({ entry }) => entry));
    },
  },
  cancel: {
    batches: [...BATCHES.slice(0, 3), 50],
    byDefault: 50,
    prepare: async (partition, given) => (await partition.scheduled(given)).map(({ member }) => member),
    async call(partition, chunk) {
      await partition.untilTaken(chunk, (rest) => partition.jobs.cancel(partition.ref, rest, { windowMs: WINDOW_MS }));
    },
  },
  replay: {
    batches: [1],
    byDefault: 1,
    prepare: (partition, given) => partition.dead(given),
    async call(partition, [deadLetter]) {
      await partition.jobs.replay(partition.ref, deadLetter);
    },
  },
  sweep: {
    batches: [...BATCHES, 500],
    byDefault: 500,
    prepare: (partition, given) => partition.over(given),
    async call(partition, chunk) {
      await partition.sweep(chunk.length);
    },
  },
  purge: {
    batches: [...BATCHES.slice(0, 3)],
    byDefault: 100,
    prepare: (partition, given) => partition.dead(given),
    async call(partition, chunk) {
      for (let left = chunk.length; left > 0; ) left -= await partition.purge(left);
    },
  },
  fire: {
    batches: [1, 100],
    byDefault: 100,
    prepare: async (partition, given) => partition.items(given),
    call: (partition, chunk) => partition.fire(chunk),
  },
  peek: {
    batches: [1],
    byDefault: 1,
    leaves: true,
    prepare: async (partition, given) => (await partition.scheduled(given)).map(({ member }) => member),
    async call(partition, [member]) {
      await partition.peek(member);
    },
  },
  oldest: {
    batches: [100],
    byDefault: 100,
    leaves: true,
    prepare: (partition, given) => partition.delivered(given),
    async call(partition) {
      await partition.oldest();
    },
  },
  'check-members': {
    batches: [500],
    byDefault: 500,
    leaves: true,
    prepare: (partition, given) => partition.scheduled(given),
    call: (partition, chunk) => partition.checkMembers({ part: 'jobs', limit: chunk.length }),
  },
  // Of each job its record and its place are things to look at.
  'check-members-all': {
    batches: [300],
    byDefault: 300,
    leaves: true,
    prepare: (partition, given) => partition.scheduled(given),
    call: (partition) => partition.checkMembers({ part: 'all', limit: 600 }),
  },
  'check-entries': {
    batches: [300],
    byDefault: 300,
    leaves: true,
    prepare: (partition, given) => partition.delivered(given),
    call: (partition, chunk) => partition.checkEntries(chunk.length),
  },
  repair: {
    batches: [50],
    byDefault: 50,
    prepare: (partition, given) => partition.orphaned(given),
    call: (partition, chunk) => partition.repair(chunk),
  },
  stats: {
    batches: [1],
    byDefault: 1,
    leaves: true,
    prepare: (partition, given) => partition.readied(given),
    async call(partition) {
      await partition.stats();
    },
  },
};
