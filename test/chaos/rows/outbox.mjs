/** An outbox beside faults of Redis: its rows are committed in a database, and a relay makes their calls. */
import { nodeOf, shardsOf } from '../faults/failover.mjs';
import { atLeast, atMost, exactly, settled } from '../judge/predicates.mjs';
import { within } from '../stage/extras.mjs';
import { GRACE_TO_DIAL } from '../stage/workload.mjs';

/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {import('../faults/failover.mjs').Shard} Shard */

const AWAY_MS = 6000;
const EVERY_MS = 200;
/** More than a relay claims at once, so that they could stand before all others. */
const BACKLOG = 150;
/** A row of a queue that is well: the relay looks every second, and a busy machine takes its time. */
const ON_TIME_MS = 3000;
/** The longest pause of a queue that was away, and its calls. */
const CAUGHT_UP_MS = 30_000;

/** @type {readonly import('../stage/run.mjs').Row[]} */
export const outboxRows = [
  {
    id: 'F113',
    title: 'an outbox has rows for a queue whose shard is down beside rows for one that is well',
    how: `Cluster, cluster-require-full-coverage no: SIGSTOP to the master and the replica of a shard for ${AWAY_MS / 1000} s, ${BACKLOG} rows for a queue there, then a row for each queue every ${EVERY_MS} ms; SIGCONT`,
    wanted: `rows for the queue that is well wait <= ${ON_TIME_MS / 1000} s, the others <= ${CAUGHT_UP_MS / 1000} s after the repair; jobs of each row 1; every call settles <= 15 s`,
    topology: { kind: 'cluster', settings: { 'cluster-require-full-coverage': 'no' } },
    mode: 'none',
    env: GRACE_TO_DIAL,
    severs: true,
    workload: { jobs: 300, crashes: 0, poison: 0 },
    inject: besideOneThatIsDown,
    pass: (outcome) => {
      const {
        healthyMs = ON_TIME_MS + 1,
        heldUpMs = 0,
        caughtUpMs = CAUGHT_UP_MS + 1,
        rows = 0,
        jobs = -1,
      } = outcome.noted;
      return [
        ...settled(outcome),
        ...atMost('ms that a row of the queue that is well waited', healthyMs, ON_TIME_MS),
        ...atLeast('ms that a row of the queue that was down waited', heldUpMs, AWAY_MS / 2),
        ...atMost('ms until all rows were carried out', caughtUpMs, CAUGHT_UP_MS),
        ...atLeast('rows', rows, BACKLOG + 20),
        ...exactly('jobs that were made', jobs, rows),
      ];
    },
  },
];

/** @param {Scene} scene */
async function besideOneThatIsDown(scene) {
  const { server, redis, repeatedly } = scene;
  const { defineQueue } = await import('duestream');
  const { createOutbox, createRelay, outboxTable } = await import('duestream/sql');
  const [down, well, shard] = await queuesApart(scene);
  const queues = [down, well].map((name) => defineQueue(name));
  const db = await openSqlite(outboxTable('sqlite'));
  const outbox = createOutbox({ dialect: 'sqlite' });
  const relay = createRelay({ dialect: 'sqlite', run: db.run, redis: server.url, queues });
  let rows = 0;
  const write = (/** @type {string} */ queue) => {
    rows += 1;
    outbox.schedule(db.run, defineQueue(queue), rows, { id: `row-${rows}`, delay: '2h' });
  };
  const waited = { [down]: 0, [well]: 0 };
  const look = async () => {
    for (const { queue, lagMs } of (await relay.state()).queues) waited[queue] = Math.max(waited[queue] ?? 0, lagMs);
  };
  try {
    relay.start();
    for (const queue of [down, well]) write(queue);
    const isEmpty = async () => (await relay.state()).rows === 0;
    await within(20_000, isEmpty, 'both queues are declared');
    shard.replica.signal('SIGSTOP');
    shard.master.signal('SIGSTOP');
    for (let nth = 0; nth < BACKLOG; nth += 1) write(down);
    await repeatedly(AWAY_MS, EVERY_MS, async () => {
      write(down);
      write(well);
      await look();
    });
    shard.master.signal('SIGCONT');
    shard.replica.signal('SIGCONT');
    const caughtUpMs = await within(2 * CAUGHT_UP_MS, isEmpty, 'all rows are carried out');
    const made = await Promise.all(
      [down, well].map((name) => redis.hget(`duestream:v1:{${name}:0}:meta`, 'n.scheduled')),
    );
    const jobs = made.reduce((total, count) => total + Number(count), 0);
    return { rows, jobs, caughtUpMs, healthyMs: waited[well] ?? -1, heldUpMs: waited[down] ?? 0 };
  } finally {
    for (const node of [shard.master, shard.replica]) node.signal('SIGCONT');
    await relay.stop();
    db.close();
  }
}

/**
 * Names of two queues on different shards, and the shard of the first. The registry is on neither: a row about that is another one.
 *
 * @param {Scene} scene
 * @returns {Promise<readonly [down: string, well: string, shard: Shard]>}
 */
async function queuesApart(scene) {
  const cluster = scene.theCluster();
  const anyone = nodeOf(cluster.nodes.find(({ isGone }) => !isGone));
  const masterOf = async (/** @type {string} */ tag) =>
    cluster.masterOf(Number(await anyone.ask('CLUSTER', 'KEYSLOT', `{${tag}}`)));
  const registry = await masterOf('control');
  const [first, second] = (await shardsOf(scene)).filter(({ master }) => master !== registry);
  if (!first || !second) throw new Error('the partitions are on too few masters');
  const onShard = async (/** @type {Shard} */ { master }) => {
    for (let nth = 0; ; nth += 1) if ((await masterOf(`outbox-${nth}:0`)) === master) return `outbox-${nth}`;
  };
  return [await onShard(first), await onShard(second), first];
}

/** @param {string} table */
async function openSqlite(table) {
  const { default: initSqlJs } = await import('sql.js');
  const { Database } = await initSqlJs();
  const db = new Database();
  db.run(table);
  return {
    /** @param {string} text @param {readonly import('duestream/sql').SqlValue[]} params */
    run(text, params) {
      const statement = db.prepare(text, /** @type {import('sql.js').SqlValue[]} */ ([...params]));
      try {
        const found = [];
        while (statement.step()) found.push(statement.getAsObject());
        return found;
      } finally {
        statement.free();
      }
    },
    close: () => db.close(),
  };
}
