/**
 * What `bench:stages` measures: for each script a way to bring jobs into the state it starts from, and the call. Every
 * call is the product's own, so that what the client splits or repeats is measured as it happens.
 */

/** @typedef {import('./stages-world.mjs').World} World */
/** @typedef {import('./stages-world.mjs').Given} Given */

/**
 * @typedef {object} Case
 * @property {readonly number[]} batches sizes of one call
 * @property {number} [byDefault] the batch of the product's default settings, which the table of longest calls takes
 * @property {boolean} [isPlain] a command of Redis, no script of ours: its figure is that of `cmdstat_<name>`
 * @property {boolean} [leaves] the call changes nothing that the next one would miss: it may be made again on the same jobs
 * @property {(world: World, given: Given) => Promise<readonly unknown[]>} prepare returns what the calls are about
 * @property {(world: World, chunk: readonly any[]) => Promise<void>} call one batch, to its end
 */

const BATCHES = [1, 20, 100, 256];
const WINDOW_MS = 600_000;
const CONSUMER = 'bench';
const UNCOMPENSATED = { windowMs: WINDOW_MS, reason: 'bench', error: '{"m":"bench"}' };

/** @type {Readonly<Record<string, Case>>} in the order a job meets them */
export const cases = {
  schedule: {
    batches: [...BATCHES, 250],
    byDefault: 250,
    prepare: async (world, given) => world.items(given),
    call: (world, chunk) => world.schedule(chunk),
  },
  promote: {
    batches: [...BATCHES, 300],
    byDefault: 300,
    prepare: (world, given) => world.scheduled(given),
    async call(world, chunk) {
      for (let left = chunk.length; left > 0; ) left -= await world.promote(left);
    },
  },
  xreadgroup: {
    batches: BATCHES,
    byDefault: 256,
    isPlain: true,
    prepare: (world, given) => world.readied(given),
    async call(world, chunk) {
      await world.read(chunk.length);
    },
  },
  start: {
    batches: [...BATCHES, 80],
    byDefault: 80,
    prepare: (world, given) => world.delivered(given),
    async call(world, chunk) {
      await world.start(chunk);
    },
  },
  // The dearer of its two ends: dead letters.
  expire: {
    batches: [40],
    byDefault: 40,
    prepare: (world, given) => world.delivered({ ...given, isLate: true }),
    async call(world, chunk) {
      await world.untilTaken(chunk, (rest) =>
        world.jobs.expire(world.ref, rest, { consumer: CONSUMER, windowMs: WINDOW_MS }),
      );
    },
  },
  extend: {
    batches: BATCHES,
    byDefault: 100,
    leaves: true,
    prepare: (world, given) => world.started(given),
    async call(world, chunk) {
      await world.jobs.extend(world.ref, chunk, CONSUMER);
    },
  },
  complete: {
    batches: BATCHES,
    byDefault: 100,
    prepare: (world, given) => world.started(given),
    async call(world, chunk) {
      await world.jobs.complete(world.ref, chunk, { windowMs: WINDOW_MS });
    },
  },
  retry: {
    batches: [1],
    byDefault: 1,
    prepare: (world, given) => world.started(given),
    async call(world, [claim]) {
      await world.jobs.retry(world.ref, claim, { windowMs: WINDOW_MS, delayMs: 60_000, error: '{"m":"bench"}' });
    },
  },
  defer: {
    batches: [1],
    byDefault: 1,
    prepare: (world, given) => world.started(given),
    async call(world, [claim]) {
      await world.jobs.defer(world.ref, claim, { windowMs: WINDOW_MS, delayMs: 60_000 });
    },
  },
  bury: {
    batches: [1],
    byDefault: 1,
    prepare: (world, given) => world.started(given),
    async call(world, [claim]) {
      await world.jobs.bury(world.ref, claim, UNCOMPENSATED);
    },
  },
  release: {
    batches: [...BATCHES, 80],
    byDefault: 80,
    prepare: (world, given) => world.delivered(given),
    async call(world, chunk) {
      await world.untilTaken(chunk, (rest) => world.jobs.release(world.ref, rest, { consumer: CONSUMER }));
    },
  },
  reclaim: {
    batches: [...BATCHES.slice(0, 3), 50],
    byDefault: 50,
    prepare: (world, given) => world.started(given),
    async call(world, chunk) {
      await world.reclaim(chunk.map(({ entry }) => entry));
    },
  },
  cancel: {
    batches: [...BATCHES.slice(0, 3), 50],
    byDefault: 50,
    prepare: async (world, given) => (await world.scheduled(given)).map(({ member }) => member),
    async call(world, chunk) {
      await world.untilTaken(chunk, (rest) => world.jobs.cancel(world.ref, rest, { windowMs: WINDOW_MS }));
    },
  },
  replay: {
    batches: [1],
    byDefault: 1,
    prepare: (world, given) => world.dead(given),
    async call(world, [deadLetter]) {
      await world.jobs.replay(world.ref, deadLetter);
    },
  },
  sweep: {
    batches: [...BATCHES, 500],
    byDefault: 500,
    prepare: (world, given) => world.over(given),
    async call(world, chunk) {
      await world.sweep(chunk.length);
    },
  },
  purge: {
    batches: [...BATCHES.slice(0, 3)],
    byDefault: 100,
    prepare: (world, given) => world.dead(given),
    async call(world, chunk) {
      for (let left = chunk.length; left > 0; ) left -= await world.purge(left);
    },
  },
  fire: {
    batches: [1, 100],
    byDefault: 100,
    prepare: async (world, given) => world.items(given),
    call: (world, chunk) => world.fire(chunk),
  },
  peek: {
    batches: [1],
    byDefault: 1,
    leaves: true,
    prepare: async (world, given) => (await world.scheduled(given)).map(({ member }) => member),
    async call(world, [member]) {
      await world.peek(member);
    },
  },
  oldest: {
    batches: [100],
    byDefault: 100,
    leaves: true,
    prepare: (world, given) => world.delivered(given),
    async call(world) {
      await world.oldest();
    },
  },
  'check-members': {
    batches: [500],
    byDefault: 500,
    leaves: true,
    prepare: (world, given) => world.scheduled(given),
    call: (world, chunk) => world.checkMembers({ part: 'jobs', limit: chunk.length }),
  },
  // Of each job its record and its place are things to look at.
  'check-members-all': {
    batches: [300],
    byDefault: 300,
    leaves: true,
    prepare: (world, given) => world.scheduled(given),
    call: (world) => world.checkMembers({ part: 'all', limit: 600 }),
  },
  'check-entries': {
    batches: [300],
    byDefault: 300,
    leaves: true,
    prepare: (world, given) => world.delivered(given),
    call: (world, chunk) => world.checkEntries(chunk.length),
  },
  repair: {
    batches: [50],
    byDefault: 50,
    prepare: (world, given) => world.orphaned(given),
    call: (world, chunk) => world.repair(chunk),
  },
  stats: {
    batches: [1],
    byDefault: 1,
    leaves: true,
    prepare: (world, given) => world.readied(given),
    async call(world) {
      await world.stats();
    },
  },
};
