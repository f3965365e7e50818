/**
 * From a fresh clone to a running demo or finished tests with nothing set up before: `npm run demo`, `npm test`,
 * `npm run test:all`, `npm run verify`. Each step is skipped when what it makes is there, so a second run downloads and builds nothing.
 *
 *     dependencies → redis → build → the task
 *
 * Node's built-ins only, because this runs before the dependencies exist.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EmbeddedRedisError } from '../src/embedded/error.mjs';
import { Failed, show } from './run.mjs';
import { build, dependencies, redis, root, say } from './steps.mjs';

const USAGE = 'usage: node scripts/up.mjs demo|test [arguments for the demo or for vitest] | all | verify';

/** @type {Readonly<Record<string, (args: readonly string[]) => Promise<number>>>} */
const TASKS = { demo, test, all, verify };

const [name = '', ...rest] = process.argv.slice(2);
process.exitCode = await main(TASKS[name], rest);

/**
 * @param {((args: readonly string[]) => Promise<number>) | undefined} task
 * @param {readonly string[]} args
 */
async function main(task, args) {
  if (task === undefined) {
    process.stderr.write(`${USAGE}\n`);
    return 64;
  }
  try {
    return await task(args);
  } catch (error) {
    if (!(error instanceof Failed || error instanceof EmbeddedRedisError)) throw error;
    process.stderr.write(`\n${error.message}\n`);
    return error.exitCode;
  }
}

/** @param {readonly string[]} args */
async function demo(args) {
  const env = await prepare(process.env);
  return show(process.execPath, [join(root, 'examples', 'payment-reminders', 'demo.mjs'), ...args], { cwd: root, env });
}

/** @typedef {{ code: number, counts?: Counts }} Ended */
/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/**
 * Tests see none of the caller's settings: they bring their own, and a Redis that somebody uses is not theirs to fill.
 *
 * @param {readonly string[]} args for vitest; with any, what is named runs whole
 */
async function test(args) {
  const env = await prepare(withoutSettings(process.env));
  return told([await vitest(args, args.length === 0 ? { ...env, TEST_TIER: 'quick' } : env)]);
}

/** What CI runs: the checks, which keep all cores busy, and then the tests. What the checks found is a test that failed. */
async function all() {
  const env = await prepare(withoutSettings(process.env));
  const code = await show('npm', ['run', '--silent', 'lint'], { cwd: root, env });
  const tests = await vitest([], { ...env, TEST_TIER: 'ci' });
  if (code !== 0) process.stderr.write('\nThe checks found something: see above, or run npm run lint.\n');
  const { counts } = tests;
  return told([tests, { code, ...(counts && { counts: { passed: 0, failed: code === 0 ? 0 : 1, skipped: 0 } }) }]);
}

/** What CI runs a part of, whole, and the tests that CI leaves out. */
async function verify() {
  const env = await prepare(withoutSettings(process.env));
  return told([await vitest([], { ...env, TEST_TIER: 'verify' })]);
}

/**
 * Ends with the counts of all parts, alone on a line; there are none of a part that was interrupted.
 *
 * @param {readonly Ended[]} parts
 */
function told(parts) {
  const ran = parts.flatMap(({ counts = [] }) => counts);
  const sum = (/** @type {keyof Counts} */ name) => ran.reduce((total, counts) => total + counts[name], 0);
  const total = { passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') };
  if (ran.length > 0) process.stdout.write(`\n${lineOf(total)}\n`);
  return parts.find(({ code }) => code !== 0)?.code ?? 0;
}

/** @param {NodeJS.ProcessEnv} env */
function withoutSettings({ DUESTREAM_REDIS_SERVER_BIN: program, DUESTREAM_REDIS_SOURCE: source, ...env }) {
  const neutral = Object.fromEntries(Object.entries(env).filter(([name]) => !/^(DUESTREAM_|TEST_TIER$)/.test(name)));
  if (program) neutral.DUESTREAM_REDIS_SERVER_BIN = program;
  if (source && source !== 'url') neutral.DUESTREAM_REDIS_SOURCE = source;
  return neutral;
}

/**
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Ended>} with the counts of vitest's own report
 */
async function vitest(args, env) {
  const folder = mkdtempSync(join(tmpdir(), 'duestream-test-'));
  try {
    const report = join(folder, 'report.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const program = join(root, 'node_modules', '.bin', 'vitest');
    const code = await show(program, ['run', ...reporters, ...args], { cwd: root, env });
    // There is no report when vitest was interrupted.
    return existsSync(report) ? { code, counts: countsOf(report) } : { code };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * A file that could not be loaded has no tests to fail, so it counts as one.
 *
 * @param {string} report
 * @returns {Counts}
 */
function countsOf(report) {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  const unloaded = testResults.filter(isUnloaded).length;
  return { passed: numPassedTests, failed: numFailedTests + unloaded, skipped: numPendingTests + numTodoTests };
}

/** @param {Counts} counts */
function lineOf({ passed, failed, skipped }) {
  const line = `${passed} passed, ${failed} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

/** @param {{ status: string, assertionResults: { status: string }[] }} file */
function isUnloaded(file) {
  return file.status === 'failed' && file.assertionResults.every((result) => result.status !== 'failed');
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<NodeJS.ProcessEnv>} for the task
 */
async function prepare(env) {
  await timed('dependencies', dependencies);
  let ready = env;
  await timed('redis', async () => {
    const found = await redis(env);
    ready = found.env;
    return found.said;
  });
  await timed('build', build);
  return ready;
}

/**
 * @param {string} step
 * @param {() => Promise<string>} work
 */
async function timed(step, work) {
  const startedMs = performance.now();
  const said = await work();
  say(step, `${said}, ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
}
