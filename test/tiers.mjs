/**
 * Which tests run when.
 *
 *  `npm test`          every file that is not listed here: what runs on every change, in 250 seconds of CPU at most
 *  `npm run test:all`  those too, the files of `ONLY_IN_ALL`, and of the files of `SLICED` a slice. CI runs it, with the checks
 *  `npm run verify`    the files of `ONLY_IN_VERIFY`, and those of `SLICED` whole: all seeds, all rows, all zones, more servers.
 *                      CI does not run it
 *
 * Without a tier, as in `npm test -- test/proof/model.test.ts`, a file runs whole.
 */

/** @typedef {'quick' | 'ci' | 'verify'} Tier */

/** Path → why CI does not run it. @type {Readonly<Record<string, string>>} */
export const ONLY_IN_VERIFY = {
  'test/flow/chaos/chaos-verify.test.ts': 'twenty more rows of the fault matrix, a quarter of a minute each',
  'test/matrix.test.ts': 'downloads a newer server and runs all tests of scripts on it',
  'test/proof/sealed.test.ts': 'runs the tests of the embedded Redis again, where nothing outside can be written',
};

/**
 * What takes seconds of CPU, or of waiting, in each file: why → paths. Of each folder of `src` other files are in `npm test`.
 *
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const COSTLY = {
  'proves by random lists and walks': [
    'test/proof/account.test.ts',
    'test/flow/mover/schedule-handover.test.ts',
    'test/proof/head.test.ts',
    'test/proof/model.test.ts',
    'test/proof/moves.test.ts',
    'test/redis/ahead.test.ts',
    'test/redis/debounce-bugs.test.ts',
    'test/redis/quota-mixes.test.ts',
    'test/unit/estimate.test.ts',
    'test/unit/simulate.test.ts',
  ],
  'three databases, and thousands of rows': [
    'test/flow/sql/inbox.test.ts',
    'test/flow/sql/outbox-killed.test.ts',
    'test/flow/sql/outbox-processes.test.ts',
    'test/flow/sql/postgres.test.ts',
    'test/flow/sql/recipes.test.ts',
    'test/flow/sql/relay.test.ts',
  ],
  'large counts: thousands of jobs, or each call many times': [
    'test/flow/cli/cli-purge.test.ts',
    'test/flow/client/client-find-cluster.test.ts',
    'test/flow/client/durability.test.ts',
    'test/flow/client/durability-cluster.test.ts',
    'test/flow/client/list-over.test.ts',
    'test/flow/client/schedules-lost.test.ts',
    'test/flow/client/simulate.test.ts',
    'test/flow/mover/mover-janitor.test.ts',
    'test/flow/mover/repairer.test.ts',
    'test/flow/redis/damage-leftovers.test.ts',
    'test/flow/redis/full-redis.test.ts',
    'test/flow/worker/order.test.ts',
    'test/flow/worker/reclaim-spread.test.ts',
    'test/flow/worker/worker-turns.test.ts',
    'test/redis/check-members.test.ts',
    'test/redis/count.test.ts',
    'test/redis/erase.test.ts',
    'test/redis/garbage.test.ts',
    'test/redis/inspect.test.ts',
    'test/redis/issue.test.ts',
    'test/redis/oldest.test.ts',
    'test/redis/presence.test.ts',
    'test/redis/purge.test.ts',
    'test/unit/count-fires.test.ts',
    'test/unit/json-text.test.ts',
    'test/unit/shares.test.ts',
  ],
  'every path, option or example, one after the other': [
    'test/flow/api/api-access.test.ts',
    'test/flow/api/api-fuzz.test.ts',
    'test/flow/api/api-gates.test.ts',
    'test/flow/api/api-if-match.test.ts',
    'test/flow/api/api-unseen.test.ts',
    'test/flow/api/api-verbs.test.ts',
    'test/flow/api/api-why.test.ts',
    'test/flow/api/curl-examples.test.ts',
    'test/flow/api/generated-clients.test.ts',
    'test/flow/cli/cli-job-options.test.ts',
    'test/flow/cli/cli-newcomer.test.ts',
    'test/flow/client/calls.test.ts',
    'test/flow/client/client-changes.test.ts',
    'test/flow/client/if-match.test.ts',
    'test/flow/client/wire-producers.test.ts',
    'test/flow/examples/kit-producer.test.ts',
    'test/flow/examples/quotas.test.ts',
    'test/flow/http/alerts.test.ts',
    'test/flow/redis/damage.test.ts',
    'test/flow/worker/gates.test.ts',
    'test/redis/connect.test.ts',
    'test/redis/connect-problem.test.ts',
    'test/redis/plain-words.test.ts',
  ],
  'waits for outages, time-outs and late replies': [
    'test/flow/client/client-outage.test.ts',
    'test/flow/client/closing.test.ts',
    'test/flow/client/partly-lost.test.ts',
    'test/flow/daemon/constructors.test.ts',
    'test/flow/daemon/liveness.test.ts',
    'test/flow/daemon/log-unread.test.ts',
    'test/flow/daemon/start-lost-replies.test.ts',
    'test/flow/redis/evicting.test.ts',
    'test/flow/redis/redis-back.test.ts',
    'test/flow/redis/served-redis.test.ts',
    'test/flow/redis/silent-socket.test.ts',
    'test/flow/remote/lost-runs.test.ts',
    'test/flow/remote/policies.test.ts',
    'test/flow/worker/faults.test.ts',
    'test/flow/worker/handover.test.ts',
    'test/flow/worker/heartbeat.test.ts',
    'test/flow/worker/lost-ends.test.ts',
    'test/flow/worker/poison-record.test.ts',
    'test/flow/worker/quarantine.test.ts',
    'test/flow/worker/worker-frozen.test.ts',
    'test/flow/worker/worker-outage.test.ts',
    'test/flow/worker/worker-outcomes.test.ts',
    'test/flow/worker/worker-stop.test.ts',
    'test/redis/server-watch.test.ts',
    'test/unit/embedded-cache.test.ts',
  ],
  'processes of its own, or servers with Sentinels or in a Cluster': [
    'test/flow/cli/dev-several.test.ts',
    'test/flow/cli/mcp.test.ts',
    'test/flow/daemon/embedded-metrics.test.ts',
    'test/flow/daemon/embedding.test.ts',
    'test/flow/daemon/given-log.test.ts',
    'test/flow/daemon/handler-module.test.ts',
    'test/flow/daemon/relay.test.ts',
    'test/flow/nestjs/page.test.ts',
    'test/flow/redis/beyond-one-secure.test.ts',
    'test/flow/redis/redis-declared.test.ts',
    'test/flow/redis/redis-shape.test.ts',
    'test/flow/remote/python-client.test.ts',
    'test/flow/topology/debounce-sets.test.ts',
    'test/flow/topology/node-down.test.ts',
    'test/flow/topology/strict-order.test.ts',
    'test/flow/topology/subscriber.test.ts',
    'test/flow/topology/two-rates.test.ts',
    'test/flow/worker/worker-partitions.test.ts',
    'test/redis/cluster.test.ts',
    'test/redis/sentinel.test.ts',
    'test/unit/embedded-server.test.ts',
  ],
  'a browser': ['test/browser/groups.test.ts', 'test/browser/sets.test.ts'],
  'many commands, in long stories': [
    'test/flow/api/api-live.test.ts',
    'test/flow/api/api-login.test.ts',
    'test/flow/api/api-proxy.test.ts',
    'test/flow/api/api-schedule-runs.test.ts',
    'test/flow/api/api-wait.test.ts',
    'test/flow/cli/cli.test.ts',
    'test/flow/cli/cli-changes.test.ts',
    'test/flow/cli/cli-find.test.ts',
    'test/flow/cli/cli-import.test.ts',
    'test/flow/cli/cli-import-killed.test.ts',
    'test/flow/cli/cli-import-pg-boss.test.ts',
    'test/flow/cli/cli-outbox.test.ts',
    'test/flow/cli/cli-privacy.test.ts',
    'test/flow/cli/cli-queues.test.ts',
    'test/flow/cli/cli-schedules-runs.test.ts',
    'test/flow/cli/unserved.test.ts',
    'test/flow/client/client-find.test.ts',
    'test/flow/client/forecast.test.ts',
    'test/flow/mover/enqueuer.test.ts',
    'test/flow/remote/lossy-answers.test.ts',
    'test/flow/worker/compensation.test.ts',
    'test/flow/worker/handler-calls.test.ts',
  ],
  'checks of the checks': ['test/house-marks.test.ts'],
};

/** Path → why it is not part of `npm test`. @type {Readonly<Record<string, string>>} */
export const ONLY_IN_ALL = {
  ...Object.fromEntries(Object.entries(COSTLY).flatMap(([why, paths]) => paths.map((path) => [path, why]))),
  'test/api-reference.test.ts': 'reads the types of the whole library',
  'test/browser/behind-a-proxy.test.ts': 'downloads nginx and Caddy, and opens pages through them',
  'test/browser/closed.test.ts': 'the page of closed tags, in a browser',
  'test/browser/dashboard.test.ts': 'downloads a browser, and opens every page in it',
  'test/browser/dead-letters.test.ts': 'the page of dead letters, in a browser',
  'test/browser/draining.test.ts': 'drains a queue of tens of thousands of jobs',
  'test/browser/hostile.test.ts': 'every page with texts of strangers, on four windows',
  'test/browser/installation.test.ts': 'the name and the colour of an installation, in a browser',
  'test/browser/job.test.ts': 'the page of a job, in a browser',
  'test/browser/jobs.test.ts': 'the lists of jobs, in a browser',
  'test/browser/keyboard.test.ts': 'every action by keyboard, in a browser',
  'test/browser/looks.test.ts': 'what pages show of versions, lateness and past runs, in a browser',
  'test/browser/paint.test.ts': 'thousands of jobs behind the pages',
  'test/browser/phone.test.ts': 'every page on two phones, in a browser',
  'test/browser/queue.test.ts': 'the page of a queue, in a browser',
  'test/browser/reader.test.ts': 'every page for somebody who may only look, in a browser',
  'test/browser/rig.test.ts': 'downloads a browser',
  'test/browser/schedules.test.ts': 'the pages of schedules, in a browser',
  'test/browser/screenshots.test.ts': 'looks after the pictures in the docs',
  'test/browser/tasks.test.ts': 'what people come for, step by step, in a browser',
  'test/flow/chaos/chaos-smoke.test.ts': 'four rows of the fault matrix, a quarter of a minute each',
  'test/flow/cli/cli-completion.test.ts': 'asks the built command line at each tab key',
  'test/flow/cli/cli-restored.test.ts': 'restores a backup into another Redis',
  'test/flow/cli/cli-run.test.ts': '`start`, `worker` and `dev` as processes, through signals',
  'test/flow/cli/dev.test.ts': '`dev`, a worker and a shell as processes, four times',
  'test/flow/cli/dev-failover.test.ts': 'starts the servers of `dev --sentinel` and of `dev --cluster`, and stops some',
  'test/flow/cli/dev-watch.test.ts': 'starts handlers anew when their files change',
  'test/flow/cli/prove.test.ts': 'runs with daemons and workers as processes, of which some are killed',
  'test/flow/cli/runtimes.test.ts': 'downloads Deno and Bun, and runs daemons on them',
  'test/flow/daemon/schema.test.ts': 'daemons and workers as processes that meet another schema',
  'test/flow/daemon/shutdown-process.test.ts': 'daemons and workers as processes, through signals',
  'test/flow/deploy/autoscaling.test.ts':
    'downloads Prometheus, waits for its scrapes, and starts workers as processes',
  'test/flow/deploy/container.test.ts': 'carries out the Dockerfile: installs and builds twice',
  'test/flow/deploy/helm.test.ts': 'downloads Helm, and runs it some forty times',
  'test/flow/deploy/kubernetes-fields.test.ts': 'compiles every object for Kubernetes with the types of its API',
  'test/flow/deploy/kubernetes-pods.test.ts': 'daemons and workers as processes, through an outage and signals',
  'test/flow/examples/demo-report.test.ts': 'a report of the whole demo for each kind of damage',
  'test/flow/examples/demo.test.ts': '`npm run demo`, whole',
  'test/flow/examples/examples.test.ts': 'runs each example with workers and daemons as processes, and kills some',
  'test/flow/examples/find.test.ts': 'runs an example as processes',
  'test/flow/examples/mounted.test.ts': 'runs applications of Express and Fastify as processes',
  'test/flow/examples/readme.test.ts': 'the quick start as a process',
  'test/flow/examples/twelve-tasks.test.ts': 'runs each program of the how-to as a process',
  'test/flow/http/grafana.test.ts': 'downloads Prometheus and waits for its scrapes',
  'test/flow/redis/beyond-one.test.ts': 'all of a job on Sentinel and on Cluster, through failovers',
  'test/flow/redis/frozen.test.ts': 'Redis stands still for half a minute',
  'test/flow/redis/old-dump.test.ts': 'builds the product, and kills processes of it to make a dump',
  'test/flow/redis/sizing.test.ts': 'fills a Redis, to compare it with what `plan` says',
  'test/flow/remote/chaos.test.ts': 'kills daemons and workers over HTTP as processes, for twenty seconds',
  'test/flow/remote/conformance.test.ts': 'tries the clients in Python, Go and PHP for half a minute each',
  'test/flow/remote/go-client.test.ts': 'builds a worker in Go',
  'test/flow/topology/remote.test.ts': 'starts a cluster and sentinels, and fails over',
  'test/flow/topology/cluster-fixture.test.ts': 'starts and breaks clusters of six servers',
  'test/flow/topology/faults.test.ts': 'cuts a network in two, and moves slots of a cluster',
  'test/flow/topology/sentinel-fixture.test.ts': 'starts and breaks primaries with replicas and sentinels',
  'test/flow/topology/shared-limits.test.ts': 'starts a cluster, and fails over',
  'test/flow/topology/shares.test.ts': '64 partitions, 4 daemons, 20 workers on three primaries',
  'test/flow/targets/dispatcher-killed.test.ts': 'kills dispatchers as processes while a target answers',
  'test/flow/worker/closed-ladders.test.ts': 'kills workers and the leader while invoices are paid',
  'test/flow/worker/delivery-killed.test.ts': 'kills worker processes in each delivery mode',
  'test/flow/worker/delivery-recipes.test.ts': 'the recipes for exactly one effect, with killed processes',
  'test/flow/worker/sets-run.test.ts': 'kills workers and the leader while members of sets end',
  'test/flow/worker/misbehaving-process.test.ts': 'handlers that block or exit their process',
  'test/pack-docs.test.ts': 'compiles every example of README and docs against the packed package',
  'test/pack.test.ts': 'packs and installs what is published',
  'test/site.test.ts': 'builds the documentation as a site, and reads it in a browser',
  'test/proof/cast.test.ts': 'random lists, cuts and planted bugs of broadcasts',
  'test/proof/cut-off.test.ts': 'every scene, cut off before each write',
  'test/proof/debounce.test.ts': '15 of 100 walks each, and a quarter of the planted bugs',
  'test/proof/gates.test.ts': 'random walks through a gated queue, and planted bugs',
  'test/proof/gates-mutants.test.ts': 'every planted bug of gates',
  'test/proof/mutants.test.ts': 'every planted bug',
  'test/proof/sets-walk.test.ts': 'random walks through two sets, and planted bugs',
  'test/proof/sets.test.ts': 'every call that ends a member, cut off before each write, and planted bugs',
  'test/proof/spec.test.ts': 'runs a specification thousands of times, and once for each broken line of it',
  'test/proof/oracles.test.ts': 'asks a Python that is downloaded',
  'test/redis/bytes.test.ts': 'records of 256 KiB, for every script',
  'test/redis/sentinel-watch.test.ts': 'waits for a sentinel to call a frozen primary dead',
  'test/sim/redis-model.test.ts': 'compares the model of Redis with Redis, command by command',
  'test/sim/simulation.test.ts': 'runs of the simulation, and builds that are broken on purpose',
  'test/unit/embedded-apt.test.ts': 'downloads and unpacks packages, as two users',
  'test/unit/job-option-comments.test.ts': 'compiles the types of the options',
};

/** Path → what of it is run in CI; `npm run verify` runs it whole. @type {Readonly<Record<string, string>>} */
export const SLICED = {
  'test/browser/draining.test.ts': '20,000 of 100,000 jobs, for a quarter of a minute',
  'test/flow/api/api-fuzz.test.ts': '500 of 4,000 requests, and a fifth of that by each other way in',
  'test/flow/mover/schedule-handover.test.ts': '200 of 1,000 hand-overs',
  'test/flow/sql/outbox-killed.test.ts': '300 of 10,000 rows of an outbox, in each database',
  'test/flow/targets/dispatcher-killed.test.ts': 'kills dispatchers as processes while a target answers',
  'test/flow/worker/closed-ladders.test.ts': '100 of 1,000 ladders',
  'test/flow/worker/sets-run.test.ts': '20 of 200 sets, of 20 members',
  'test/proof/cast.test.ts': 'a sixth of the lists and cuts, and every planted bug',
  'test/proof/cut-off.test.ts': 'scenes with a script that has changed; without the search for every other write',
  'test/proof/gates-mutants.test.ts': 'planted bugs whose scripts have changed',
  'test/proof/mutants.test.ts': 'planted bugs whose scripts have changed',
  'test/proof/gates.test.ts': '2 of 8 walks, and planted bugs that a few walks notice',
  'test/proof/sets-walk.test.ts': '20 of 200 walks',
  'test/proof/head.test.ts': '200 of 500 lists, and 40 of 100 cuts',
  'test/proof/model.test.ts': '60 of 1000 lists, and 15 of 250 each with a limit of bytes and with closed tags',
  'test/proof/oracles.test.ts': 'around the clock changes of every eighth zone; without whole years',
  'test/proof/spec.test.ts': '200 of 5000 runs, and six of seven steps of every way',
  'test/redis/quota-mixes.test.ts': '5 of 25 mixes',
  'test/sim/simulation.test.ts':
    'one of three seeds, one of two of a process alone, one of three that linger, and every broken build',
};

/** What takes minutes, longest first: begun last, it would keep one core busy while the other has nothing left to do. */
export const BEGUN_FIRST = [
  'test/proof/mutants.test.ts',
  'test/proof/cut-off.test.ts',
  'test/flow/chaos/chaos-smoke.test.ts',
  'test/flow/remote/conformance.test.ts',
  'test/sim/simulation.test.ts',
  'test/browser/draining.test.ts',
  'test/flow/deploy/container.test.ts',
  'test/proof/gates.test.ts',
  'test/proof/gates-mutants.test.ts',
  'test/proof/oracles.test.ts',
  'test/proof/model.test.ts',
  'test/proof/cast.test.ts',
  'test/proof/spec.test.ts',
];

/** What is run now; undefined: what was named. */
export const tier = tierOf(process.env.TEST_TIER);

/** Whether only a slice of each file of `SLICED` is wanted. */
export const isSlice = tier !== undefined && tier !== 'verify';

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
  if (wanted === 'verify') return { include: [...verified, ...Object.keys(SLICED)], exclude: [] };
  const include = [
    'test/house*.test.ts',
    'test/!(house)*.test.ts',
    ...FOLDERS.map((name) => `test/${name}/**/*.test.ts`),
  ];
  if (wanted === 'quick') return { include, exclude: [...only, ...verified] };
  return { include, exclude: wanted === 'ci' ? verified : [] };
}

/** @param {string | undefined} text @returns {Tier | undefined} */
function tierOf(text) {
  if (text === undefined || text === 'quick' || text === 'ci' || text === 'verify') return text;
  throw new Error(`TEST_TIER is ${text}; allowed: quick, ci, verify`);
}
