/**
 * Which tests run when. `npm test` runs every file that is not listed here, and of the proofs a slice. `npm run test:all`,
 * which CI runs, runs `npm test` first, and then the files of `ONLY_IN_ALL` and the proofs whole. `npm run verify` runs the
 * files of `ONLY_IN_VERIFY`: each of them runs a whole matrix. Without a tier, as in
 * `npm test -- test/proof/model.test.ts`, a file runs whole.
 */

/** @typedef {'quick' | 'rest' | 'verify'} Tier */

/** Path → why CI does not run it. @type {Readonly<Record<string, string>>} */
export const ONLY_IN_VERIFY = {
  'test/matrix.test.ts': 'downloads a newer server and runs all tests of scripts on it',
};

/** Path → why it is not part of `npm test`. @type {Readonly<Record<string, string>>} */
export const ONLY_IN_ALL = {
  'test/api-reference.test.ts': 'reads the types of the whole library',
  'test/browser/dashboard.test.ts': 'downloads a browser, and opens every page in it',
  'test/browser/dead-letters.test.ts': 'the page of dead letters, in a browser',
  'test/browser/draining.test.ts': 'drains a queue of 100,000 jobs for a minute',
  'test/browser/hostile.test.ts': 'every page with texts of strangers, three times, in a browser',
  'test/browser/job.test.ts': 'the page of a job, in a browser',
  'test/browser/jobs.test.ts': 'the lists of jobs, in a browser',
  'test/browser/keyboard.test.ts': 'every action by keyboard, in a browser',
  'test/browser/looks.test.ts': 'what pages show of versions, lateness and past runs, in a browser',
  'test/browser/paint.test.ts': 'thousands of jobs behind the pages',
  'test/browser/queue.test.ts': 'the page of a queue, in a browser',
  'test/browser/reader.test.ts': 'every page for somebody who may only look, in a browser',
  'test/browser/rig.test.ts': 'downloads a browser',
  'test/browser/schedules.test.ts': 'the pages of schedules, in a browser',
  'test/browser/screenshots.test.ts': 'looks after the pictures in the docs',
  'test/flow/chaos/chaos-smoke-processes.test.ts': 'ten rows of the fault matrix, a quarter of a minute each',
  'test/flow/chaos/chaos-smoke-redis.test.ts': 'eight more of them',
  'test/flow/cli/cli-completion.test.ts': 'asks the built command line at each tab key',
  'test/flow/cli/cli-restored.test.ts': 'restores a backup into another Redis',
  'test/flow/cli/cli-run.test.ts': '`start`, `worker` and `dev` as processes, through signals',
  'test/flow/cli/dev-failover.test.ts': 'starts the servers of `dev --sentinel` and of `dev --cluster`, and stops some',
  'test/flow/cli/dev-watch.test.ts': 'starts handlers anew when their files change',
  'test/flow/daemon/shutdown-process.test.ts': 'daemons and workers as processes, through signals',
  'test/flow/deploy/container.test.ts': 'carries out the Dockerfile: installs and builds twice',
  'test/flow/examples/demo.test.ts': '`npm run demo`, whole',
  'test/flow/examples/examples.test.ts': 'runs each example with workers and daemons as processes, and kills some',
  'test/flow/examples/mounted.test.ts': 'runs applications of Express and Fastify as processes',
  'test/flow/examples/twelve-tasks.test.ts': 'runs each program of the how-to as a process',
  'test/flow/http/grafana.test.ts': 'downloads Prometheus and waits for its scrapes',
  'test/flow/redis/beyond-one.test.ts': 'all of a job on Sentinel and on Cluster, through failovers',
  'test/flow/redis/frozen.test.ts': 'Redis stands still for half a minute',
  'test/flow/redis/old-dump.test.ts': 'builds the product, and kills processes of it to make a dump',
  'test/flow/redis/sizing.test.ts': 'fills a Redis, to compare it with what `plan` says',
  'test/flow/topology/cluster-fixture.test.ts': 'starts and breaks clusters of six servers',
  'test/flow/topology/faults.test.ts': 'cuts a network in two, and moves slots of a cluster',
  'test/flow/topology/sentinel-fixture.test.ts': 'starts and breaks primaries with replicas and sentinels',
  'test/flow/topology/shares.test.ts': '64 partitions, 4 daemons, 20 workers on three primaries',
  'test/flow/worker/delivery-killed.test.ts': 'kills worker processes in each delivery mode',
  'test/flow/worker/delivery-recipes.test.ts': 'the recipes for exactly one effect, with killed processes',
  'test/flow/worker/misbehaving-process.test.ts': 'handlers that block or exit their process',
  'test/pack-docs.test.ts': 'compiles every example of README and docs against the packed package',
  'test/pack.test.ts': 'packs and installs what is published',
  'test/proof/sealed.test.ts': 'the embedded Redis where nothing outside can be written',
  'test/redis/bytes.test.ts': 'records of 256 KiB, for every script',
  'test/redis/sentinel-watch.test.ts': 'waits for a sentinel to call a frozen primary dead',
  'test/sim/redis-model.test.ts': 'compares the model of Redis with Redis, command by command',
  'test/sim/simulation.test.ts': 'ten runs of the simulation and of builds that are broken on purpose',
  'test/unit/embedded-apt.test.ts': 'downloads and unpacks packages, as two users',
  'test/unit/job-option-comments.test.ts': 'compiles the types of the options',
};

/** Path → what of it is part of `npm test`. @type {Readonly<Record<string, string>>} */
export const SLICED = {
  'test/flow/api/api-fuzz.test.ts': '500 of 4,000 requests',
  'test/flow/mover/schedule-handover.test.ts': '200 of 1,000 hand-overs',
  'test/proof/cast.test.ts': 'a sixth of the lists and cuts, and every fourth planted bug',
  'test/proof/cut-off.test.ts': 'the scenes; without the search for every other write',
  'test/proof/model.test.ts': '200 of 1000 lists',
  'test/proof/mutants.test.ts': 'every fourth planted bug',
  'test/proof/oracles.test.ts': 'around the clock changes of every sixteenth zone',
};

/** What takes minutes, longest first: begun last, it would keep one core busy while the other has nothing left to do. */
export const BEGUN_FIRST = [
  'test/flow/chaos/chaos-smoke-processes.test.ts',
  'test/proof/cut-off.test.ts',
  'test/flow/chaos/chaos-smoke-redis.test.ts',
  'test/sim/simulation.test.ts',
  'test/browser/draining.test.ts',
  'test/flow/deploy/container.test.ts',
  'test/proof/oracles.test.ts',
  'test/proof/model.test.ts',
  'test/proof/cast.test.ts',
];

/** What is run now; undefined: what was named. */
export const tier = tierOf(process.env.TEST_TIER);

/** Whether only a slice of each proof is wanted. */
export const isSlice = tier === 'quick';

/** Folders of tests. */
const FOLDERS = ['unit', 'redis', 'flow', 'proof', 'sim', 'browser'];

/**
 * For vitest: what is run.
 *
 * @param {Tier | undefined} wanted
 * @returns {{ include: readonly string[], exclude: readonly string[] }}
 */
export function filesOf(wanted) {
  const only = Object.keys(ONLY_IN_ALL);
  const verified = Object.keys(ONLY_IN_VERIFY);
  if (wanted === 'verify') return { include: verified, exclude: [] };
  if (wanted === 'rest') return { include: [...only, ...Object.keys(SLICED)], exclude: [] };
  const include = [
    'test/house*.test.ts',
    'test/!(house)*.test.ts',
    ...FOLDERS.map((name) => `test/${name}/**/*.test.ts`),
  ];
  return { include, exclude: wanted === 'quick' ? [...only, ...verified] : [] };
}

/** @param {string | undefined} text @returns {Tier | undefined} */
function tierOf(text) {
  if (text === undefined || text === 'quick' || text === 'rest' || text === 'verify') return text;
  throw new Error(`TEST_TIER is ${text}; allowed: quick, rest, verify`);
}
