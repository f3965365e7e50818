/**
 * All rows, one after the other. What is done is kept line by line in a file, so that a campaign that was interrupted
 * goes on where it was, as long as it is the same one: same product, same harness, same seed and mode. A result is a
 * result: a red row is kept as well and not run again until somebody asks for a fresh start.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { notHere } from '../rows/not-here.mjs';

/** @typedef {import('./run.mjs').Verdict} Verdict */
/** @typedef {{ name: string, run: () => Promise<Verdict> }} Task */
/** @typedef {{ seed: number, mode: string, quick: boolean, of: string }} Terms what makes two campaigns the same */

/**
 * @param {object} campaign
 * @param {string} campaign.file
 * @param {Terms} campaign.terms
 * @param {readonly Task[]} campaign.tasks
 * @param {boolean} campaign.fresh
 * @param {(line: string) => void} campaign.say
 * @param {(verdict: Verdict) => void} campaign.tell each result of this run
 * @returns {Promise<readonly Verdict[]>} in the order of the tasks
 */
export async function runCampaign({ file, terms, tasks, fresh, say, tell }) {
  const done = open(file, { terms, fresh, say });
  const waiting = tasks.filter(({ name }) => !done.has(name));
  if (done.size > 0 && waiting.length > 0)
    say(`going on after ${tasks.length - waiting.length} of ${tasks.length} rows`);
  if (waiting.length === 0) say('all rows are done already; --fresh runs them again');
  const startedMs = performance.now();
  for (const [at, { name, run }] of waiting.entries()) {
    const goneMs = performance.now() - startedMs;
    const known = [...done.values()].map(({ seconds }) => seconds);
    const mean = known.length === 0 ? undefined : known.reduce((total, value) => total + value, 0) / known.length;
    const rest = mean === undefined ? '' : `, about ${minutes(mean * (waiting.length - at))} to go`;
    say(
      `row ${tasks.length - waiting.length + at + 1} of ${tasks.length}: ${name}, ${minutes(goneMs / 1000)} gone${rest}`,
    );
    const verdict = await run();
    done.set(name, verdict);
    appendFileSync(file, `${JSON.stringify({ name, verdict })}\n`);
    tell(verdict);
  }
  return tasks.flatMap(({ name }) => done.get(name) ?? []);
}

/**
 * What keeps a whole matrix from being green: rows that failed, and rows that were not run although nobody said in
 * `not-here.mjs` why not.
 *
 * @template {Pick<Verdict, 'id' | 'verdict'>} V
 * @param {readonly V[]} verdicts
 */
export function redIn(verdicts) {
  const excused = new Set(notHere.map(({ id }) => id));
  return verdicts.filter(({ id, verdict }) => verdict === 'failed' || (verdict === 'not run' && !excused.has(id)));
}

/**
 * @param {string} file
 * @param {{ terms: Terms, fresh: boolean, say: (line: string) => void }} how
 * @returns {Map<string, Verdict>}
 */
function open(file, { terms, fresh, say }) {
  const [head, ...lines] = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  if (head === JSON.stringify(terms) && !fresh) {
    // The last line may be half a line: it was not done.
    const whole = lines.slice(0, -1).map((line) => JSON.parse(line));
    writeFileSync(file, [head, ...lines.slice(0, -1), ''].join('\n'));
    return new Map(whole.map(({ name, verdict }) => [name, verdict]));
  }
  if (head !== undefined && !fresh)
    say('starting over: the last campaign was of other code, another seed or another mode');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(terms)}\n`);
  return new Map();
}

/** @param {number} seconds */
function minutes(seconds) {
  return seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

/**
 * What a campaign is of: the content of all files that take part.
 *
 * @param {string} root
 * @param {readonly string[]} folders
 */
export function fingerprintOf(root, folders) {
  const hash = createHash('sha256');
  for (const folder of folders) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).sort()) {
      const path = join(root, folder, name);
      if (statSync(path).isFile()) hash.update(`${folder}/${name}\n`).update(readFileSync(path));
    }
  }
  return hash.digest('hex').slice(0, 16);
}
