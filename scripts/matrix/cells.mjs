/**
 * A cell of the matrix: one tier of tests on one server. The tests start servers of their own from the program that they
 * are given (`DUESTREAM_REDIS_SERVER_BIN`), so a cell differs from `npm test` by nothing but that program.
 *
 * What is done is kept line by line, so that a run that was interrupted goes on where it was, as long as product, scripts
 * and tests are the same.
 */
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { makeCertificates } from '../../test/chaos/faults/certificates.mjs';
import { capture } from '../run.mjs';
import { root } from '../steps.mjs';

/**
 * @typedef {object} Tier
 * @property {string} title for the table
 * @property {readonly string[]} paths of tests
 * @property {readonly string[]} [few] of them with `--few`
 * @property {boolean} [whole] also what CI leaves out of them, because it takes long
 */

/** @type {Readonly<Record<string, Tier>>} */
export const TIERS = {
  scripts: { title: 'scripts', paths: ['test/redis/'] },
  proofs: {
    title: 'proofs',
    paths: ['model', 'cut-off', 'moves', 'invariants'].map((name) => `test/proof/${name}.test.ts`),
  },
  topologies: {
    title: 'Cluster and Sentinel',
    whole: true,
    paths: ['test/flow/topology/', 'test/flow/redis/beyond-one', 'test/flow/client/durability'],
  },
  flow: {
    title: 'flow',
    paths: ['test/flow/'],
    few: [
      ...['client/client', 'client/client-outage', 'daemon/daemon-life', 'mover/mover-leading'],
      ...['redis/full-redis', 'redis/redis-back', 'worker/delivery-commit', 'worker/worker-outage'],
      ...['worker/worker-recovery', 'http/http-metrics', 'cli/cli-doctor', 'cli/dev-several'],
    ].map((name) => `test/flow/${name}.test.ts`),
  },
};

/**
 * @typedef {object} TopologyOfTests
 * @property {string} title
 * @property {Readonly<Record<string, string>>} env what makes `startRedis` of the tests start it
 * @property {boolean} [secure] its servers get certificates of an authority that the tests trust
 * @property {readonly string[]} [flow] the only tests that are run on it: those that need nothing of a single server
 */

const IN_PROCESS = ['daemon/daemon-life', 'daemon/embedding', 'daemon/embedded-metrics'].map(
  (name) => `test/flow/${name}.test.ts`,
);
/** Its processes get an environment of their own, in which no authority is named. */
const ANYWHERE = [...IN_PROCESS, 'test/flow/worker/delivery-killed.test.ts'];

/**
 * How the servers of a test are put together: another axis.
 *
 * @type {Readonly<Record<string, TopologyOfTests>>}
 */
export const TOPOLOGIES = {
  standalone: { title: 'one primary', env: {} },
  sentinel: {
    title: 'a primary with Sentinels',
    env: { TEST_TOPOLOGY: 'sentinel' },
    flow: [...ANYWHERE, 'test/flow/client/client.test.ts', 'test/flow/worker/worker-queues.test.ts'],
  },
  cluster: { title: 'a Cluster', env: { TEST_TOPOLOGY: 'cluster' }, flow: ANYWHERE },
  'cluster-secure': {
    title: 'a Cluster with TLS and users',
    env: { TEST_TOPOLOGY: 'cluster-secure' },
    secure: true,
    flow: [...IN_PROCESS, 'test/flow/redis/beyond-one-secure.test.ts'],
  },
};

/** The tiers that are run on a topology. @param {string} topology @returns {readonly string[]} */
export const tiersOn = (topology) => (TOPOLOGIES[topology]?.flow ? ['flow'] : Object.keys(TIERS));

/**
 * What a cell runs: what CI runs of its files, or all of it. A proof tries all scripts there, for it is another server that runs them.
 *
 * @param {{ topology: string, tier: string, few: boolean }} cell
 * @returns {{ paths: readonly string[], tier: 'ci' | undefined }} tier: as `test/tiers.mjs` has it
 */
export function testsOf({ topology, tier, few }) {
  const { flow } = TOPOLOGIES[topology] ?? {};
  const { paths = [], few: some = paths, whole = false } = TIERS[tier] ?? {};
  return { paths: flow ?? (few ? some : paths), tier: flow || whole ? undefined : 'ci' };
}

/**
 * @typedef {object} Cell
 * @property {string} server `valkey-9.1`
 * @property {string} version as the program says it: `9.1.2`
 * @property {string} from where it was had
 * @property {string} topology
 * @property {string} tier
 * @property {boolean} few whether it was a handful of files of the tier
 * @property {number} files
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {number} seconds
 * @property {string} date
 * @property {readonly string[]} failures `file: title: message`
 */
/** @typedef {Pick<Cell, 'server' | 'version' | 'from' | 'topology' | 'tier' | 'few'> & { binary: string }} Task */

/** @param {Task} task @returns {Promise<Cell>} */
export async function runCell({ binary, ...cell }) {
  const folder = mkdtempSync(join(tmpdir(), 'duestream-matrix-'));
  const report = join(folder, 'report.json');
  const startedMs = performance.now();
  try {
    const { env: topology = {}, secure } = TOPOLOGIES[cell.topology] ?? {};
    const { paths, tier } = testsOf(cell);
    const args = ['run', '--reporter=json', `--outputFile=${report}`, ...paths];
    const trust = secure ? await trusted(folder) : {};
    const kept = Object.entries(process.env).filter(([name]) => !/^(DUESTREAM_|VITEST|TEST)/.test(name));
    const of = {
      ...topology,
      ...trust,
      ...(tier ? { TEST_TIER: tier } : {}),
      PROOF_OF: 'all',
      DUESTREAM_REDIS_SERVER_BIN: binary,
    };
    const env = { ...Object.fromEntries(kept), ...of };
    const ended = await capture(join(root, 'node_modules', '.bin', 'vitest'), args, { cwd: root, env });
    const counts = judged(existsSync(report) ? countsOf(report) : unreported(ended.output), ended);
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    return { ...cell, ...counts, seconds, date: new Date().toISOString().slice(0, 10) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Certificates for the servers, and that every process of the tests trusts them. @param {string} folder */
async function trusted(folder) {
  const { authority, good } = await makeCertificates(folder);
  return { NODE_EXTRA_CA_CERTS: authority, TEST_CERTIFICATES: JSON.stringify({ authority, good }) };
}

/** A file that could not be loaded has no tests to fail, so it counts as one. @param {string} report */
function countsOf(report) {
  /** @typedef {{ status: string, fullName: string, failureMessages: readonly string[] }} Result */
  /** @typedef {{ name: string, status: string, message: string, assertionResults: readonly Result[] }} File */
  /** @type {{ numPassedTests: number, numPendingTests: number, numTodoTests: number, testResults: readonly File[] }} */
  const { numPassedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
  const failures = testResults.flatMap(({ name, status, message, assertionResults }) => {
    const path = relative(root, name);
    const failed = assertionResults.filter((result) => result.status === 'failed');
    const unloaded = status === 'failed' && failed.length === 0 ? [`${path}: ${message.split('\n')[0]}`] : [];
    const why = (/** @type {Result} */ result) => result.failureMessages[0]?.split('\n')[0] ?? 'without a message';
    return [...failed.map((result) => `${path}: ${result.fullName}: ${why(result)}`), ...unloaded];
  });
  return {
    files: testResults.length,
    passed: numPassedTests,
    failed: failures.length,
    skipped: numPendingTests + numTodoTests,
    failures,
  };
}

/** @param {string} output */
function unreported(output) {
  return {
    files: 0,
    passed: 0,
    failed: 1,
    skipped: 0,
    failures: [`the tests ended without a report: ${last(output)}`],
  };
}

/** @typedef {Pick<Cell, 'files' | 'passed' | 'failed' | 'skipped' | 'failures'>} Counts */

/**
 * Nothing is green that was not run, or that ended badly although each test passed, as by an error that nobody caught.
 *
 * @param {Counts} counts
 * @param {{ code: number, output: string }} ended
 * @returns {Counts}
 */
export function judged(counts, { code, output }) {
  if (counts.failed > 0) return counts;
  if (counts.passed === 0) return { ...counts, failed: 1, failures: ['no test was run'] };
  if (code === 0) return counts;
  return { ...counts, failed: 1, failures: [`the tests ended with ${code}: ${last(output)}`] };
}

/** @param {string} output */
const last = (output) => output.trim().split('\n').at(-1) ?? '';

/** @param {Pick<Cell, 'server' | 'version' | 'topology' | 'tier' | 'few'>} cell */
export const nameOf = ({ server, version, topology, tier, few }) =>
  `${server} (${version}) ${topology} ${tier}${few ? ', a few files' : ''}`;

/**
 * The cells that were done before with the same code.
 *
 * @param {string} file
 * @param {{ code: string, fresh: boolean }} terms `code`: a fingerprint
 */
export function openKept(file, { code, fresh }) {
  const [head, ...lines] = existsSync(file) && !fresh ? readFileSync(file, 'utf8').split('\n') : [];
  // The last line may be half a line: it was not done.
  const whole = head === code ? lines.slice(0, -1) : [];
  /** @type {Map<string, Cell>} */
  const cells = new Map(whole.map((line) => JSON.parse(line)).map((cell) => [nameOf(cell), cell]));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, [code, ...whole, ''].join('\n'));
  return {
    /** @param {Task} task */
    get: (task) => cells.get(nameOf(task)),
    /** @param {Cell} cell */
    keep: (cell) => appendFileSync(file, `${JSON.stringify(cell)}\n`),
  };
}
