/**
 * Bytes that a network held: a call arrives when its caller has sent it again, or has given it up, and somebody else has
 * undone what it did. What arrives then changes nothing.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { atLeast, exactly, settled } from '../judge/predicates.mjs';
import { commandLine } from '../stage/load.mjs';

/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {import('duestream').Client} Client */
/** @typedef {import('duestream').Queue<any>} Queue */
/**
 * @typedef {object} Undoing what one does, another one undoes, and the first one's bytes must not do again
 * @property {string} verb the script
 * @property {(client: Client, queue: Queue, name: string) => Promise<unknown>} act
 * @property {(client: Client, queue: Queue, name: string) => Promise<unknown>} undo
 * @property {(client: Client, queue: Queue, name: string) => Promise<boolean>} isUndone
 */

/** A call whose bytes are held counts as lost after this. */
const TIMEOUT_MS = 1000;
/** A client that sends a call again, and one that gives it up. */
const CALLERS = /** @type {const} */ (['15s', '100ms']);

/** @type {readonly Undoing[]} */
const UNDOINGS = [
  {
    verb: 'cancel',
    act: (client, queue, name) => client.cancel(queue, name),
    // Where the first call was given up, the job of before is still there, and this one stands in its place.
    undo: (client, queue, name) => client.schedule(queue, 2, { id: name, delay: '2h', ifExists: 'replace' }),
    isUndone: async (client, queue, name) => (await client.get(queue, name))?.state === 'scheduled',
  },
  {
    verb: 'close-tags',
    act: (client, queue, name) => client.tags.close(queue, name, { for: '1h' }),
    undo: (client, queue, name) => client.tags.open(queue, name),
    isUndone: async (client, queue, name) => !(await client.tags.list(queue)).tags.some(({ tag }) => tag === name),
  },
  {
    verb: 'close',
    act: (client, queue, name) => client.groups.close(queue, name, { for: '1h' }),
    undo: (client, queue, name) => client.groups.open(queue, name),
    isUndone: async (client, queue, name) => (await client.groups.get(queue, name)).closed === undefined,
  },
];

/** @type {readonly import('../stage/run.mjs').Row[]} */
export const lateRows = [
  {
    id: 'F112',
    title: 'a network holds calls until they were repeated or given up, and undone by others',
    how: 'the line holds a cancel, a close of a tag and of a group, each of a client that sends it again and of one that gives up, and the share of a limit; others undo them; then all arrive',
    wanted: 'calls that act after their caller counted them as lost 0',
    line: true,
    workload: { jobs: 300, crashes: 0, poison: 0 },
    async inject(scene) {
      /** @type {typeof import('duestream')} */
      const { createClient, defineQueue } = await import(pathToFileURL(join(scene.product, 'dist', 'index.js')).href);
      const queue = defineQueue('late', { perGroup: 1 });
      const near = createClient({ redis: scene.server.url });
      try {
        const open = (/** @type {string} */ retryBudget) =>
          createClient({ redis: { url: scene.theLine().url, commandTimeout: TIMEOUT_MS }, retryBudget });
        // The first job declares the queue.
        await near.schedule(queue, 0, { id: 'first', delay: '2h' });
        const tried = UNDOINGS.flatMap((undoing) =>
          CALLERS.map((budget) =>
            tryOne(scene, { ...undoing, queue, near, far: open(budget), isGivenUp: budget === '100ms' }),
          ),
        );
        const held = await Promise.all([...tried, tryLimit(scene)]);
        return { held: held.length, acted: held.filter((isUndone) => !isUndone).length };
      } finally {
        await near.close();
      }
    },
    pass: (outcome) => [
      ...settled(outcome),
      ...atLeast('calls that were held', outcome.noted.held ?? 0, 7),
      ...exactly('calls that acted too late', outcome.noted.acted ?? -1, 0),
    ],
  },
];

/**
 * @param {Scene} scene
 * @param {Undoing & { queue: Queue, near: Client, far: Client, isGivenUp: boolean }} of
 * @returns {Promise<boolean>} whether what was undone stays undone
 */
async function tryOne({ theLine }, { verb, act, undo, isUndone, queue, near, far, isGivenUp }) {
  const name = `${verb}-${isGivenUp ? 'given-up' : 'repeated'}`;
  try {
    if (verb === 'cancel') await near.schedule(queue, 1, { id: name, delay: '1h' });
    await far.ready();
    const caught = theLine().hold(verb, (request) => request.includes(name));
    const called = act(far, queue, name).then(
      () => false,
      () => true,
    );
    const { release } = await caught;
    if ((await called) !== isGivenUp) throw new Error(`${name} ended otherwise`);
    await undo(near, queue, name);
    await release();
    return await isUndone(near, queue, name);
  } finally {
    await far.close();
  }
}

/** Somebody sets 9 of each group, and somebody else 1, when the bytes of the 9 are still on their way. @param {Scene} scene */
async function tryLimit({ cast, theLine, server, redis, until }) {
  const set = async (/** @type {string} */ url, /** @type {number} */ most) => {
    const { err } = await commandLine({ ...cast, url }, ['queues', 'set', 'share', '--per-group', String(most)]);
    if (err !== '') throw new Error(`queues set: ${err}`);
  };
  const share = async () => (await redis.hget('duestream:v1:{share:0}:meta', 'gates')) ?? '';
  await redis.hset('duestream:v1:{control}:queues', 'share', JSON.stringify({ partitions: 1, generation: 0 }));
  // A leader that shares out says its term.
  const caught = theLine().hold(
    'limit',
    (request) => request.includes('{share:0}') && !/d-[\w-]+:\d+:\d+/.test(request),
  );
  const called = set(cast.url, 9);
  const { release } = await caught;
  await called;
  await set(server.url, 1);
  await until(async () => / 1$/.test(await share()), 'the share of the second limit');
  await release();
  return / 1$/.test(await share());
}
