/**
 * Breaks things and looks whether anything was lost: `npm run chaos [-- --fault F2,F4 --seed 7 --mode everysec]`. Real
 * processes on a private Redis, a seeded workload, one fault per row, and a judge that shares no code with the product.
 *
 *     --fault, --only F2,F4   only these rows            --seed 7        the same moments again
 *     --mode always|everysec|none  append-only file      --quick         a smaller workload
 *     --controls              builds that are broken on purpose must be caught
 *     --json                  one line of JSON per row   --keep          the folder with all histories
 *     --list                  what there is
 *
 * Ends with 0 when every row passed, 1 when one did not, 64 for wrong arguments.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { EmbeddedRedisError } from '../src/embedded/error.mjs';
import { Failed } from './run.mjs';
import { build, dependencies, redis, root } from './steps.mjs';

const MODES = /** @type {const} */ (['everysec', 'always', 'none']);

process.exitCode = await main().catch((error) => {
  if (!(error instanceof Failed || error instanceof EmbeddedRedisError)) throw error;
  process.stderr.write(`${error.message}\n`);
  return error.exitCode;
});

async function main() {
  const options = argumentsOf();
  if (typeof options === 'string') {
    process.stderr.write(`${options}\n`);
    return 64;
  }
  await dependencies();
  const { env } = await redis(process.env);
  const binary = env.DUESTREAM_REDIS_SERVER_BIN;
  if (!binary) {
    process.stderr.write('chaos needs a Redis of its own: leave DUESTREAM_REDIS_URL out\n');
    return 64;
  }
  await build();
  // Only now: these import what was installed and built.
  const { rows, variantsOf } = await import('../test/chaos/rows.mjs');
  const { runRow } = await import('../test/chaos/run.mjs');
  const { controls, runControl } = await import('../test/chaos/controls.mjs');
  if (options.list) {
    for (const { id, title } of [...rows, ...controls]) process.stdout.write(`${id.padEnd(5)} ${title}\n`);
    return 0;
  }
  const settings = { binary, product: root, ...options };
  const wanted = (/** @type {{ id: string }} */ { id }) => options.only.length === 0 || options.only.includes(id);
  const unknown = options.only.filter((id) => ![...rows, ...controls].some((row) => row.id === id));
  if (unknown.length > 0) {
    process.stderr.write(
      `there is no ${unknown.join(', ')}; there are ${[...rows, ...controls].map(({ id }) => id).join(', ')}\n`,
    );
    return 64;
  }
  process.stderr.write(`chaos: --seed ${options.seed}\n`);
  const verdicts = [];
  const namesControl = controls.some(({ id }) => options.only.includes(id));
  for (const row of options.controls ? [] : rows.filter(wanted).flatMap(variantsOf))
    verdicts.push(tell(await runRow(row, settings), options));
  for (const control of options.controls || namesControl ? controls.filter(wanted) : []) {
    verdicts.push(tell(await runControl(control, settings), options));
  }
  const failed = verdicts.filter(({ passed }) => !passed);
  const notRun = verdicts.filter((verdict) => verdict.notRun !== undefined).length;
  const seconds = verdicts.reduce((total, verdict) => total + verdict.seconds, 0);
  const names = failed.length === 0 ? '' : `: ${failed.map(({ id }) => id).join(', ')}`;
  process.stderr.write(
    `chaos: ${verdicts.length - failed.length - notRun} passed, ${failed.length} failed${names}, ${notRun} not run, ${Math.round(seconds)} s\n`,
  );
  return failed.length === 0 ? 0 : 1;
}

function argumentsOf() {
  const text = /** @type {const} */ ({ type: 'string' });
  const flag = /** @type {const} */ ({ type: 'boolean', default: false });
  try {
    const { values } = parseArgs({
      options: {
        fault: text,
        only: text,
        seed: text,
        mode: text,
        quick: flag,
        controls: flag,
        json: flag,
        keep: flag,
        list: flag,
      },
    });
    const mode = MODES.find((name) => name === (values.mode ?? 'everysec'));
    const seed = Number(values.seed ?? randomInt(1_000_000));
    if (mode === undefined) return `--mode ${values.mode}; allowed: ${MODES.join(', ')}`;
    if (!Number.isSafeInteger(seed)) return `--seed ${values.seed}; allowed: a whole number`;
    const only = [values.fault, values.only]
      .flatMap((list) => list?.split(',') ?? [])
      .map((id) => id.trim().toUpperCase());
    const { quick, controls, json, keep, list } = values;
    return { mode, seed, only, quick, controls, json, keep, list };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * @template {import('../test/chaos/run.mjs').Verdict} V
 * @param {V} verdict
 * @param {{ json: boolean }} options
 */
function tell(verdict, { json }) {
  if (json) process.stdout.write(`${JSON.stringify(verdict)}\n`);
  else for (const line of linesOf(verdict)) process.stdout.write(`${line}\n`);
  return verdict;
}

/** @param {import('../test/chaos/run.mjs').Verdict} verdict */
function linesOf(verdict) {
  const { id, title, passed, asked, starts, again, anomalies, lateP99Ms, lateMaxMs, seconds, complaints, kept } =
    verdict;
  const noted = Object.entries({ ...anomalies, ...verdict.noted }).map(([name, value]) => `${name} ${value}`);
  const numbers = [`${asked} jobs`, `${starts} starts`, `${again} again`, `late p99 ${lateP99Ms} max ${lateMaxMs} ms`];
  const summary = [...numbers, ...noted, `${seconds} s`].join(' · ');
  if (verdict.notRun !== undefined) return [`none ${id.padEnd(4)} ${title}`, `          not run: ${verdict.notRun}`];
  const head = `${passed ? 'pass' : 'FAIL'} ${id.padEnd(4)} ${title}`;
  return [
    head,
    `          ${summary}`,
    ...complaints.map((line) => `     ✗    ${line}`),
    ...(kept ? [`          kept: ${kept}`] : []),
  ];
}
