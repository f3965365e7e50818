/**
 * Ladders of reminders for invoices, of which half are paid at some moment: their tag is closed, and a step comes too late.
 * What counts is the token of a start, which holds the time of Redis: none is of a moment after the call has resolved.
 */
import { deposed, replaced } from '../faults/failover.mjs';
import { atLeast, exactly } from '../judge/predicates.mjs';
import { effectsSoFar } from '../stage/extras.mjs';
import { GRACE_TO_DIAL, STEADY } from '../stage/workload.mjs';

/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {{ nth: number, steps: readonly number[], paidMs: number }} Ladder when its steps are due and it is paid, ms from now on */

const INVOICES = 1000;
const SPAN_MS = 14_000;
const LAG_MS = 1000;
const TRIES_MAX = 100;
const AGAIN = new Set(['indeterminate', 'unavailable', 'refused']);

/** When the tags of the invoices were closed, of each run. @type {WeakMap<Scene, Map<number, number>>} */
const closings = new WeakMap();

/** @type {readonly import('../stage/run.mjs').Row[]} */
export const tagRows = [
  {
    id: 'F110',
    title: 'closed tags: 1,000 ladders, while workers, leaders and a master are killed',
    how: 'SIGKILL to a worker, 4 times, to the leader of a partition, twice, and to the master of Sentinels; half of the invoices are paid meanwhile, and each gets one step more',
    wanted:
      'starts after `close` has resolved 0; steps that came too late and were not answered `closed` 0; all that are owed are reminded',
    mode: 'replicated',
    topology: { kind: 'sentinel', downAfterMs: 3000 },
    env: GRACE_TO_DIAL,
    severs: true,
    declaredLossMs: { replicated: LAG_MS },
    workload: { ...STEADY, jobs: 300 },
    whole: true,
    async inject(scene) {
      const closed = new Map();
      closings.set(scene, closed);
      const [, answers] = await Promise.all([killAll(scene), payAll(scene, closed)]);
      return { closed: closed.size, open: answers.filter((status) => status !== 'closed').length };
    },
    async after(scene) {
      const closed = closings.get(scene) ?? new Map();
      const starts = effectsSoFar(scene).filter(({ ev, id = '' }) => ev === 'start' && id.startsWith('invoice-'));
      const late = starts.filter(({ id = '', token = '' }) => Number(token) > Number(closed.get(nthOf(id))) * 1000);
      const reminded = new Set(starts.map(({ id }) => id));
      const owed = Array.from({ length: INVOICES }, (_, nth) => nth)
        .filter((nth) => !closed.has(nth))
        .flatMap((nth) => [0, 1, 2].map((step) => idOf(nth, step)));
      return {
        late: late.length,
        reminders: starts.length,
        forgotten: owed.filter((id) => !reminded.has(id)).length,
      };
    },
    pass: ({ noted: { closed = 0, open = 1, late = 1, reminders = 0, forgotten = 1 } }) => [
      ...exactly('tags that were closed', closed, INVOICES / 2),
      ...exactly('late steps that were not answered `closed`', open, 0),
      ...exactly('starts after `close` had resolved', late, 0),
      ...exactly('steps that were owed and did not start', forgotten, 0),
      ...atLeast('starts', reminders, (3 * INVOICES) / 2),
    ],
  },
];

const idOf = (/** @type {number} */ nth, /** @type {number} */ step) => `invoice-${nth}-${step}`;
const nthOf = (/** @type {string} */ id) => Number(id.split('-')[1]);

/** @param {Scene} scene */
async function killAll(scene) {
  const { cast, anyWorker, leaderOf, sleep, note, theSentinels, random } = scene;
  const killSome = async () => {
    cast.send(await anyWorker(), 'SIGKILL');
    await sleep(1000);
    cast.send(await leaderOf(Math.floor(random() * 8)), 'SIGKILL');
    await sleep(1000);
    cast.send(await anyWorker(), 'SIGKILL');
    await sleep(1000);
  };
  await killSome();
  const master = await theSentinels().master();
  note('loss.begin');
  await master.kill();
  note('loss.end');
  await replaced(scene, master);
  await master.restart();
  await deposed(scene, master);
  await killSome();
}

/**
 * @param {Scene} scene
 * @param {Map<number, number>} closed invoice → the first ms at which its tag was surely closed
 * @returns {Promise<readonly string[]>} what the steps that came too late were answered
 */
async function payAll(scene, closed) {
  const { server, random, sleep, asked } = scene;
  // Only now: the rows are listed before the product is built.
  const { createClient, defineQueue, DuestreamError } = await import('duestream');
  const client = createClient({ redis: server.url, durability: 'replicated' });
  const queue = defineQueue('chaos', { partitions: 8 });
  const persist = async (/** @type {() => Promise<any>} */ call) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof DuestreamError && AGAIN.has(error.code)) || tries === TRIES_MAX) throw error;
      }
      await sleep(250);
    }
  };
  const schedule = (/** @type {number} */ nth, /** @type {number} */ step, /** @type {number} */ inMs) => {
    const at = new Date(Date.now() + inMs);
    asked(idOf(nth, step));
    return persist(() => client.schedule(queue, undefined, { id: idOf(nth, step), at, tags: [`invoice:${nth}`] }));
  };
  const climb = async (/** @type {Ladder} */ { nth, steps, paidMs }) => {
    await Promise.all(steps.map((inMs, step) => schedule(nth, step, inMs)));
    if (nth % 2 === 1) return [];
    await sleep(paidMs);
    await persist(() => client.tags.close(queue, `invoice:${nth}`, { for: '1h', reason: 'paid' }));
    closed.set(nth, Date.now() + 1);
    return [(await schedule(nth, 3, 10)).status];
  };
  try {
    const ladders = Array.from({ length: INVOICES }, (_, nth) => {
      const [paidMs = 0, ...steps] = Array.from({ length: 4 }, () => Math.floor(random() * SPAN_MS));
      return { nth, steps, paidMs };
    });
    return (await Promise.all(ladders.map(climb))).flat();
  } finally {
    await client.close();
  }
}
