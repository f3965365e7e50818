/**
 * Jobs that are all due at one instant: on one primary with one partition, as in `npm run bench`, on one primary with six,
 * and on three primaries with six. One process with mover and worker; the settings take turns.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { median, rounded } from '../parts.mjs';
import { TooSoon, withRoom } from '../peers/workloads.mjs';
import { countOf, onStage, spentByAll, startsOf, until } from './stage.mjs';

/** @typedef {Readonly<Record<string, number>>} Figures */
/** @typedef {{ title: string, primaries: number, partitions: number }} Setting */

/** @type {readonly Setting[]} */
const SETTINGS = [
  { title: 'one primary, 1 partition', primaries: 1, partitions: 1 },
  { title: 'one primary, 6 partitions', primaries: 1, partitions: 6 },
  { title: '3 primaries, 6 partitions', primaries: 3, partitions: 6 },
];
const CONCURRENCY = 100;
const BYTES = 200;

/** @param {{ binary: string, quick: boolean, rounds: number }} given */
export async function burst({ binary, quick, rounds }) {
  const jobs = quick ? 5000 : 50_000;
  /** @type {Figures[][]} */
  const all = SETTINGS.map(() => []);
  for (let round = 1; round <= rounds; round += 1) {
    for (let nth = 0; nth < SETTINGS.length; nth += 1) {
      // Each round begins with another one, so that none is always the one after a long rest.
      const at = (nth + round) % SETTINGS.length;
      const setting = SETTINGS[at];
      if (!setting) continue;
      process.stderr.write(`burst: round ${round} of ${rounds}, ${setting.title}\n`);
      all[at]?.push(await withRoom(jobs, (dueMs) => measure({ binary, setting, jobs, dueMs })));
    }
  }
  return SETTINGS.map((setting, at) => rowOf(setting, jobs, { own: all[at] ?? [], base: all[0] ?? [] }));
}

/** @param {{ binary: string, setting: Setting, jobs: number, dueMs: number }} given @returns {Promise<Figures>} */
function measure({ binary, setting: { primaries, partitions }, jobs, dueMs }) {
  const wanted = { binary, partitions, ...(primaries === 1 ? {} : { shape: { masters: primaries, replicas: 0 } }) };
  return onStage(wanted, async (stage) => {
    const producer = await stage.start('producer');
    await producer.ask('load', { jobs, bytes: BYTES, dueMs });
    const worker = await stage.start('both', { concurrency: CONCURRENCY });
    await sleep(dueMs - Date.now() - 300);
    if (dueMs - Date.now() < 200) throw new TooSoon('not ready when the burst began');
    const before = await spentByAll(stage);
    await until(async () => (await countOf([worker])) >= jobs, `${jobs} jobs run`);
    const after = await spentByAll(stage);
    const starts = [...(await startsOf([worker])).values()];
    if (starts.some(({ times, firstMs }) => times !== 1 || firstMs < dueMs))
      throw new Error('a job was started twice or early');
    const lastMs = starts.reduce((last, { firstMs }) => Math.max(last, firstMs), 0);
    return {
      jobsPerSecond: (jobs / (lastMs - dueMs)) * 1000,
      redisMicros: ((after.cpuMs - before.cpuMs) / jobs) * 1000,
      commands: (after.commands - before.commands) / jobs,
    };
  });
}

/**
 * The rates beside the first setting are those of the same round.
 *
 * @param {Setting} setting
 * @param {number} jobs
 * @param {{ own: readonly Figures[], base: readonly Figures[] }} measured
 */
function rowOf(setting, jobs, { own, base }) {
  const of = (/** @type {string} */ name) => own.map((figures) => figures[name] ?? 0);
  const rates = of('jobsPerSecond');
  const ratios = rates.map((rate, round) => rate / (base[round]?.jobsPerSecond ?? Number.NaN));
  return {
    ...setting,
    jobs,
    jobsPerSecond: Math.round(median(rates)),
    least: Math.round(Math.min(...rates)),
    most: Math.round(Math.max(...rates)),
    ratio: rounded(median(ratios)),
    ratioLeast: rounded(Math.min(...ratios)),
    ratioMost: rounded(Math.max(...ratios)),
    redisMicros: rounded(median(of('redisMicros'))),
    commands: rounded(median(of('commands'))),
  };
}
