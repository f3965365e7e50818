/** Every verb of the command line and every method of a producer, each as the user that the how-to gives it to. */
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const PATIENCE_MS = 120_000;
const NEVER = '1h';

/**
 * @param {object} to
 * @param {string} to.main
 * @param {string} to.all the URL of who may do everything
 * @param {string} to.producing
 * @param {string} to.looking
 * @returns {Promise<{ run: number, failed: readonly string[] }>}
 */
export async function everyVerb({ main, all, producing, looking }) {
  /** @type {string[]} */
  const failed = [];
  let run = 0;

  /**
   * @param {string} url
   * @param {string} line
   */
  async function verb(url, line) {
    run += 1;
    const { code, said } = await commandLine(main, url, line.split(' '));
    if (code !== 0) failed.push(`${new URL(url).username}: ${line}: ${code}: ${said.slice(0, 500)}`);
  }
  const inOrder = async (/** @type {string} */ url, /** @type {readonly string[]} */ lines) => {
    for (const line of lines) await verb(url, line);
  };

  await produce(producing, failed);
  await Promise.all([
    inOrder(all, [
      ...['schedules put tick --queue load --every 1s', 'schedules show tick', 'schedules pause tick'],
      ...['schedules resume tick', 'schedules trigger tick', 'schedules backfill tick --from -3s --to now'],
      ...['schedules preview tick', 'schedules rm tick', 'queues pause load', 'queues resume load'],
      ...[
        'schedule side --id s1 --delay 1h',
        'queues pause side',
        'doctor',
        'doctor --keys',
        'doctor load --repair --yes',
        'dead replay load --all',
        'dead purge load --yes',
      ],
      ...['dead ls load', 'queues show load', 'ls load', 'queues rm side --force'],
    ]),
    inOrder(looking, [
      ...[
        'queues ls',
        'queues show load',
        'ls chaos',
        'ls chaos --state running',
        'ls load --state cancelled',
        'show load look',
      ],
      ...[
        'dead ls load',
        'queues leaders',
        'queues workers',
        'schedules forecast',
        'schedules ls',
        'doctor chaos',
        'doctor',
      ],
    ]),
    inOrder(producing, ['schedule load --id p1 --delay 1h', 'cancel load p1']),
  ]);
  return { run, failed };
}

/**
 * @param {string} url
 * @param {string[]} failed
 */
async function produce(url, failed) {
  // Only now: the rows are listed before the product is built.
  const { createClient, defineQueue } = await import('duestream');
  const producer = createClient({ redis: url });
  const load = defineQueue('load', { partitions: 1 });
  try {
    await producer.schedule(load, undefined, { id: 'look', delay: NEVER, name: 'count' });
    await producer.scheduleMany(
      load,
      [1, 2].map((n) => ({ data: n, id: `many-${n}`, delay: NEVER, name: 'count' })),
    );
    await producer.cancel(load, ['many-1', 'many-2']);
    await producer.schedule(load, 'no', { id: 'rude', name: 'insult' });
    const deadLetter = await deadLetterOf(producer, load);
    await producer.deadLetters.replay(load, { job: 'look' });
    await producer.deadLetters.replay(load, deadLetter);
  } catch (error) {
    failed.push(`producer: ${error instanceof Error ? error.message : error}`);
  } finally {
    await producer.close();
  }
}

/**
 * @param {import('duestream').Client} producer
 * @param {import('duestream').Queue<unknown>} queue
 */
async function deadLetterOf(producer, queue) {
  const untilMs = Date.now() + PATIENCE_MS;
  while (Date.now() < untilMs) {
    const { deadLetter } = (await producer.get(queue, 'rude')) ?? {};
    if (deadLetter !== undefined) return deadLetter;
    await sleep(100);
  }
  throw new Error('the job that fails never became a dead letter');
}

/**
 * The built command line, in this process: three dozen processes would take longer than all else together.
 *
 * @param {string} main
 * @param {string} url
 * @param {readonly string[]} args
 * @returns {Promise<{ code: number, said: string }>}
 */
async function commandLine(main, url, args) {
  const { runCli } = await import(pathToFileURL(join(dirname(main), 'cli', 'cli.js')).href);
  let said = '';
  const screen = { write: (/** @type {string} */ text) => (said += text) };
  const env = { NO_COLOR: '1', DUESTREAM_REDIS_URL: url };
  const stdin = Readable.from([]);
  const code = await runCli({ args, env, cwd: dirname(main), stdin, stdout: screen, stderr: screen });
  return { code, said };
}
