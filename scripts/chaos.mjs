/**
 * Breaks things and looks whether anything was lost: `npm run chaos [-- --fault F2,F4 --seed 7 --mode everysec]`. Real
 * processes on a private Redis, a seeded workload, one fault per row, and a judge that shares no code with the product.
 *
 *     --fault, --only F2,F4   only these rows            --seed 7        the same moments again
 *     --mode always|everysec|none  append-only file      --quick         a smaller workload
 *     --minutes 10            faults go on for so long, in the rows that can: F117
 *     --linger 20             daemons say that due jobs linger for so many ms; bounds of lateness are so much wider
 *     --profile quiet         daemons and workers look as rarely; a lost sign may cost a minute, all other bounds stay
 *     --controls              builds that are broken on purpose must be caught
 *     --json                  one line of JSON per row   --keep          the folder with all histories
 *     --list                  what there is
 *     --all                   every row and control, and docs/reliability.md from what they found; goes on where it was
 *                             interrupted, unless it is --fresh
 *     --amend                 what these rows find takes the place of what the report says of them
 *     --report                the same documents from docs/reliability.json, without running anything
 *     --peers                 what BullMQ and pg-boss keep in faults of the same kind, beside duestream; alone, and with
 *                             --seed. Writes bench/results/kept.json and the table in docs/comparison.md
 *     --judge FILE            whether a history in the format of Jepsen is linearizable, such as history.edn that --keep
 *                             left; of one that is not ours with --model register or cas-register
 *
 * Ends with 0 when no row failed, 1 when one did, 64 for wrong arguments; with --all also with 1 when one was not run.
 */
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { EmbeddedRedisError } from '../src/embedded/error.mjs';
import { argumentsFor, wholeNumber } from './arguments.mjs';
import { Failed, show } from './run.mjs';
import { build, dependencies, redis, root } from './steps.mjs';

/** `--all` without a seed runs the same moments each time, so that it can go on where it was interrupted. */
const SEED_OF_ALL = 7;
const PROFILES = /** @type {const} */ (['default', 'quiet']);
const MODES = /** @type {const} */ (['everysec', 'always', 'none']);
const MODELS = /** @type {const} */ (['job', 'register', 'cas-register']);
/** Of the objects of a history that are not linearizable. */
const FLAWS_SHOWN = 20;

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
  if (options.report) return report();
  if (options.peers) return peers(options.seed);
  if (options.judge !== undefined) return judgeFile(options.judge, options.model);
  await dependencies();
  const { env } = await redis(process.env);
  const binary = env.DUESTREAM_REDIS_SERVER_BIN;
  if (!binary) {
    process.stderr.write('chaos needs a Redis of its own: leave DUESTREAM_REDIS_URL out\n');
    return 64;
  }
  await build();
  // Only now: these import what was installed and built.
  const { rows } = await import('../test/chaos/rows/rows.mjs');
  const { controls } = await import('../test/chaos/faults/controls.mjs');
  if (options.list) {
    for (const { id, title } of [...rows, ...controls]) process.stdout.write(`${id.padEnd(5)} ${title}\n`);
    return 0;
  }
  const settings = { binary, product: root, ...options };
  const unknown = options.only.filter((id) => ![...rows, ...controls].some((row) => row.id === id));
  if (unknown.length > 0) {
    process.stderr.write(
      `there is no ${unknown.join(', ')}; there are ${[...rows, ...controls].map(({ id }) => id).join(', ')}\n`,
    );
    return 64;
  }
  if (options.all) return campaign(settings);
  const verdicts = await runChosen(settings);
  if (options.amend) await amend(verdicts);
  return sum(verdicts);
}

/**
 * @param {import('../test/chaos/stage/run.mjs').Settings & { only: readonly string[], controls: boolean, json: boolean }} settings
 */
async function runChosen(settings) {
  const { rows, variantsOf } = await import('../test/chaos/rows/rows.mjs');
  const { runRow } = await import('../test/chaos/stage/run.mjs');
  const { controls, runControl } = await import('../test/chaos/faults/controls.mjs');
  const { only, seed } = settings;
  process.stderr.write(`chaos: --seed ${seed}\n`);
  const wanted = (/** @type {{ id: string }} */ { id }) => only.length === 0 || only.includes(id);
  const namesControl = controls.some(({ id }) => only.includes(id));
  const verdicts = [];
  for (const row of settings.controls ? [] : rows.filter(wanted).flatMap(variantsOf))
    verdicts.push(tell(await runRow(row, settings), settings));
  for (const control of settings.controls || namesControl ? controls.filter(wanted) : []) {
    verdicts.push(tell(await runControl(control, settings), settings));
  }
  return verdicts;
}

/**
 * @param {import('../test/chaos/stage/run.mjs').Settings & { fresh: boolean, json: boolean, quick: boolean }} settings
 */
async function campaign(settings) {
  const { rows, variantsOf } = await import('../test/chaos/rows/rows.mjs');
  const { runRow } = await import('../test/chaos/stage/run.mjs');
  const { controls, runControl } = await import('../test/chaos/faults/controls.mjs');
  const { fingerprintOf, redIn, runCampaign } = await import('../test/chaos/stage/campaign.mjs');
  const { resultOf } = await import('../test/chaos/judge/report.mjs');
  const work = await import('../test/chaos/stage/workload.mjs');
  const { PARTITIONS } = await import('../test/chaos/judge/dump.mjs');
  const { seed, mode, quick, fresh } = settings;
  const tasks = [
    ...rows.flatMap(variantsOf).map((row) => ({
      name: row.variants ? `${row.id} ${row.mode}` : row.id,
      run: () => runRow(row, settings),
    })),
    ...controls.map((control) => ({ name: control.id, run: () => runControl(control, settings) })),
  ];
  const verdicts = await runCampaign({
    file: join(root, '.cache', 'chaos', `all${quick ? '-quick' : ''}.jsonl`),
    tasks,
    fresh,
    terms: { seed, mode, quick, of: fingerprintOf(root, ['src', 'lua', 'test/chaos']) },
    say: (line) => process.stderr.write(`chaos: ${line}\n`),
    tell: (verdict) => tell(verdict, settings),
  });
  if (quick) return sum(verdicts, redIn(verdicts));
  const of = (/** @type {readonly { id: string }[]} */ list) =>
    verdicts.filter(({ id }) => list.some((one) => one.id === id)).map(resultOf);
  const made = {
    date: new Date().toISOString().slice(0, 10),
    duestream: JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version,
    node: process.versions.node,
    redis:
      /v=(\S+)/.exec(execFileSync(settings.binary, ['--version'], { encoding: 'utf8' }))?.[1] ?? 'of unknown version',
    cores: availableParallelism(),
    seed,
    mode,
    jobs: work.FULL.jobs,
    producers: work.PRODUCERS,
    nearMs: work.FULL.nearMs,
    farMs: work.FULL.farMs,
    throws: work.FULL.throws,
    crashes: work.FULL.crashes,
    poison: work.FULL.poison,
    daemons: work.DAEMONS,
    workers: work.WORKERS,
    slots: work.SLOTS,
    partitions: PARTITIONS.length,
  };
  const findings = { made, rows: of(rows), controls: of(controls) };
  writeFileSync(join(root, 'docs', 'reliability.json'), `${JSON.stringify(findings, null, 2)}\n`);
  await report();
  return sum(verdicts, redIn(verdicts));
}

/**
 * Replaces single rows of the report, which names them, and adds those that it did not have.
 *
 * @param {readonly import('../test/chaos/stage/run.mjs').Verdict[]} verdicts
 */
async function amend(verdicts) {
  const { resultOf } = await import('../test/chaos/judge/report.mjs');
  const file = join(root, 'docs', 'reliability.json');
  const { made, rows, controls } = JSON.parse(readFileSync(file, 'utf8'));
  const fresh = verdicts.map(resultOf);
  const amended = (/** @type {readonly import('../test/chaos/judge/report.mjs').Result[]} */ all) =>
    all.map((old) => fresh.find(({ id, mode }) => id === old.id && mode === old.mode) ?? old);
  const isNew = (/** @type {{ id: string, mode: string }} */ { id, mode }) =>
    ![...rows, ...controls].some((old) => old.id === id && old.mode === mode);
  const withNew = (/** @type {readonly import('../test/chaos/judge/report.mjs').Result[]} */ all, letter = 'F') =>
    [...amended(all), ...fresh.filter((one) => one.id.startsWith(letter) && isNew(one))].sort(
      (a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)),
    );
  const again = [...new Set([...(made.again?.split(', ') ?? []), ...fresh.map(({ id }) => id)])].join(', ');
  const findings = { made: { ...made, again }, rows: withNew(rows), controls: withNew(controls, 'N') };
  writeFileSync(file, `${JSON.stringify(findings, null, 2)}\n`);
  await report();
}

/** Writes what follows from `docs/reliability.json`. */
async function report() {
  const { markdownOf, withDurability } = await import('../test/chaos/judge/report.mjs');
  const findings = JSON.parse(readFileSync(join(root, 'docs', 'reliability.json'), 'utf8'));
  writeFileSync(join(root, 'docs', 'reliability.md'), markdownOf(findings));
  const readme = join(root, 'README.md');
  writeFileSync(readme, withDurability(readFileSync(readme, 'utf8'), findings));
  process.stderr.write('chaos: docs/reliability.md and the README say what docs/reliability.json says\n');
  return 0;
}

/** What others keep is a case of the bench, which installs them. @param {number} seed */
function peers(seed) {
  const bench = [
    '--import',
    './scripts/dependencies.mjs',
    'bench/bench.mjs',
    'kept',
    '--seed',
    String(seed),
    '--write',
  ];
  return show(process.execPath, bench, { cwd: root });
}

/**
 * Says of a history whether it is linearizable; ends with 1 when it is not.
 *
 * @param {string} path
 * @param {import('../test/chaos/outside/models.mjs').ModelName} model
 */
async function judgeFile(path, model) {
  if (!existsSync(path)) {
    process.stderr.write(`--judge ${path}: there is no such file\n`);
    return 64;
  }
  const { judge, readHistory } = await import('../test/chaos/outside/history.mjs');
  const { objects, operations, flaws } = judge(readHistory(readFileSync(path, 'utf8')), model);
  for (const { key, stuck } of flaws.slice(0, FLAWS_SHOWN)) {
    const whose = key === '' ? '' : `${key}: `;
    process.stdout.write(`${whose}no order of the calls allows ${stuck.f} ${JSON.stringify(stuck.value)}\n`);
  }
  const found = flaws.length === 0 ? 'linearizable' : `not linearizable: ${flaws.length} of them`;
  process.stdout.write(`${path}: ${operations} calls, objects: ${objects}; ${found}\n`);
  return flaws.length === 0 ? 0 : 1;
}

/**
 * @param {readonly import('../test/chaos/stage/run.mjs').Verdict[]} verdicts
 * @param {readonly { id: string }[]} [red] what makes it end with 1
 */
function sum(verdicts, red = verdicts.filter(({ verdict }) => verdict === 'failed')) {
  const count = (/** @type {string} */ wanted) => verdicts.filter(({ verdict }) => verdict === wanted).length;
  const seconds = verdicts.reduce((total, verdict) => total + verdict.seconds, 0);
  const names = red.length === 0 ? '' : `; red: ${red.map(({ id }) => id).join(', ')}`;
  process.stderr.write(
    `chaos: ${count('passed')} passed, ${count('failed')} failed, ${count('not run')} not run, ${Math.round(seconds)} s${names}\n`,
  );
  return red.length === 0 ? 0 : 1;
}

function argumentsOf() {
  const text = /** @type {const} */ ({ type: 'string' });
  const flag = /** @type {const} */ ({ type: 'boolean', default: false });
  const values = argumentsFor(import.meta.filename, {
    fault: text,
    only: text,
    seed: text,
    mode: text,
    minutes: text,
    linger: text,
    profile: text,
    judge: text,
    model: text,
    peers: flag,
    quick: flag,
    controls: flag,
    json: flag,
    keep: flag,
    list: flag,
    all: flag,
    fresh: flag,
    report: flag,
    amend: flag,
  });
  const mode = MODES.find((name) => name === (values.mode ?? 'everysec'));
  const profile = PROFILES.find((name) => name === (values.profile ?? 'default'));
  const model = MODELS.find((name) => name === (values.model ?? 'job'));
  const seed = Number(values.seed ?? (values.all || values.peers ? SEED_OF_ALL : randomInt(1_000_000)));
  if (mode === undefined) return `--mode ${values.mode}; allowed: ${MODES.join(', ')}`;
  if (profile === undefined) return `--profile ${values.profile}; allowed: ${PROFILES.join(', ')}`;
  if (model === undefined) return `--model ${values.model}; allowed: ${MODELS.join(', ')}`;
  if (!Number.isSafeInteger(seed)) return `--seed ${values.seed}; allowed: a whole number`;
  const only = [values.fault, values.only]
    .flatMap((list) => list?.split(',') ?? [])
    .map((id) => id.trim().toUpperCase());
  const lingerMs = wholeNumber(import.meta.filename, 'linger', {
    given: values.linger,
    otherwise: 0,
    from: 0,
    to: 1000,
  });
  const minutes = wholeNumber(import.meta.filename, 'minutes', {
    given: values.minutes,
    otherwise: 0,
    from: 0,
    to: 600,
  });
  const { quick, controls, json, keep, list, all, fresh, report, amend } = values;
  const clash = clashOf({
    all,
    amend,
    fresh,
    quick,
    hasRows: only.length > 0,
    controls,
    isOwn: lingerMs > 0 || profile !== 'default',
    isLong: minutes > 0,
  });
  const how = { quick, controls, json, keep, list, all, fresh, report, amend };
  return (
    clash ?? { mode, seed, only, minutes, lingerMs, profile, judge: values.judge, model, peers: values.peers, ...how }
  );
}

/** What does not go together. @param {Record<'all' | 'amend' | 'fresh' | 'quick' | 'hasRows' | 'controls' | 'isOwn' | 'isLong', boolean>} given */
function clashOf({ all, amend, fresh, quick, hasRows, controls, isOwn, isLong }) {
  if (all && (hasRows || controls)) return '--all is every row and control; not together with --fault or --controls';
  if (isOwn && (all || amend))
    return '--linger and --profile are not what the report is about; not together with --all or --amend';
  if (isLong && !hasRows) return '--minutes is for --fault, of a row that can go on for so long';
  if (fresh && !all) return '--fresh is for --all';
  if (amend && (!hasRows || quick)) return '--amend is for --fault, with the whole workload';
  return undefined;
}

/**
 * @template {import('../test/chaos/stage/run.mjs').Verdict} V
 * @param {V} verdict
 * @param {{ json: boolean }} options
 */
function tell(verdict, { json }) {
  if (json) process.stdout.write(`${JSON.stringify(verdict)}\n`);
  else for (const line of linesOf(verdict)) process.stdout.write(`${line}\n`);
  return verdict;
}

/** @param {import('../test/chaos/stage/run.mjs').Verdict} verdict */
function linesOf(verdict) {
  const { id, title, passed, asked, starts, again, anomalies, lateP99Ms, lateMaxMs, seconds, complaints, kept } =
    verdict;
  const outside = `${verdict.outside} judged from outside`;
  const noted = Object.entries({ ...anomalies, ...verdict.noted }).map(([name, value]) => `${name} ${value}`);
  const numbers = [
    `${asked} jobs`,
    `${starts} starts`,
    `${again} again`,
    `late p99 ${lateP99Ms} max ${lateMaxMs} ms`,
    outside,
  ];
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
