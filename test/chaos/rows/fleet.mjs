/** Faults of fleets: processes that look alike, that are of different versions, that come and go together, or that see
 * each other wrongly. */
import { patchedCopy, publishedCopy } from '../faults/copies.mjs';
import { deadLettersIn, keyOf } from '../judge/dump.mjs';
import { atLeast, atMost, exactly, lateBy } from '../judge/predicates.mjs';
import { after, before, dropped } from '../marks.mjs';
import { ask, askRaw, doneOf, effectsSoFar, idsOf, partitionOf, saidBy, within } from '../stage/extras.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/scene.mjs').Scene} Scene */
/** @typedef {import('../stage/cast.mjs').Actor} Actor */

const LEASE_MS = 1500;
const HARMLESS = { crashes: 0, poison: 0 };
/** A parked record is back after four seconds, and promoted within a safety tick; the rest is for the start. */
const PARKED_MS = 5500;
const FLEETS = 5;
const CROWD = 40;
/** The matrix: Redis is not pinned for more than 5 s. It needs 0.9 to 1.8 s here, and what is used does not depend on who else works. */
const CPU_MS = 2500;
/** Idle for a lease, three rounds in which others are preferred, and what a noisy machine takes. */
const CLAIMED_MS = 6000;

/** @type {readonly Row[]} */
export const fleetRows = [
  {
    id: 'F16',
    title: 'two daemons with the same host, process id and configuration',
    how: 'both believe that they are process 1; one is killed 3 times',
    wanted: `one leader per epoch, late <= lease + 1 s`,
    daemons: 2,
    workload: HARMLESS,
    watch: true,
    env: { NODE_OPTIONS: `--import=${new URL('../faults/twins.mjs', import.meta.url).href}` },
    async inject({ cast, sleep, random }) {
      for (let time = 0; time < 3; time += 1) {
        const twins = cast.living('daemon');
        const twin = twins[Math.floor(random() * twins.length)];
        if (twin) cast.send(twin, 'SIGKILL');
        await sleep(3000);
      }
    },
    pass(outcome) {
      const terms = outcome.actors.flatMap((actor) =>
        saidBy(actor, 'leader elected').map(({ partition, epoch }) => `${partition} ${epoch}`),
      );
      return [
        ...lateBy(outcome, LEASE_MS + 1000),
        ...atLeast('terms', terms.length, 8),
        ...exactly('terms with two leaders', terms.length - new Set(terms).size, 0),
      ];
    },
  },
  {
    id: 'F17',
    title: 'a rolling upgrade, a roll-back and the upgrade again, under load',
    how: '21 processes replaced one by one by those of the other version; jobs of both versions all the time',
    wanted: 'lost 0, misread 0, dead 0, jobs of version 2 run <= 5.5 s after the last process of version 1',
    workload: { ...HARMLESS, callsMs: 12_000 },
    async inject(scene) {
      const { cast } = scene;
      const later = laterVersion(cast.product);
      // Once a version is published, it is the one that everybody goes back to.
      const earlier = publishedCopy(cast.product) ?? cast.product;
      const first = [...cast.living('daemon'), ...cast.living('worker')];
      const versions = new Map(first.map(({ pid }) => [pid, 1]));
      /** @type {readonly string[]} */
      let ids = [];
      for (let step = 0; step < 3 * first.length; step += 1) {
        const to = Math.floor(step / first.length) === 1 ? 1 : 2;
        const more = idsOf('later', ids.length + 6).slice(ids.length);
        for (const id of more) await later.ask(scene, { id, dueMs: Date.now() + Math.floor(scene.random() * 1500) });
        ids = [...ids, ...more];
        // Daemons and workers by turns.
        const role = step % 2 === 0 ? 'worker' : 'daemon';
        await replaceOne(scene, { role, to, versions, product: to === 2 ? later.product : earlier });
      }
      const parkedMs = await within(15_000, () => doneOf(scene, ids) === ids.length, 'jobs of version 2');
      const misread = effectsSoFar(scene).filter(
        ({ ev, id = '', pid }) => ev === 'start' && id.startsWith('later') && versions.get(pid) !== 2,
      );
      const told = [...cast.actors].filter((actor) => saidBy(actor, 'jobs of a later version').length > 0).length;
      return { replaced: versions.size - first.length, later: ids.length, parkedMs, misread: misread.length, told };
    },
    pass: ({ noted, deadLetters }) => [
      ...atLeast('processes that were replaced', noted.replaced ?? 0, 20),
      ...exactly('jobs of version 2 in hands of version 1', noted.misread ?? -1, 0),
      ...exactly('kinds of dead letters', Object.keys(deadLetters).length, 0),
      ...atMost('ms until all of version 2 had run', noted.parkedMs ?? Number.POSITIVE_INFINITY, PARKED_MS),
      ...atLeast('workers that parked', noted.told ?? 0, 1),
    ],
  },
  {
    id: 'F18',
    title: 'a downgrade: jobs of version 2, and workers of version 1 only',
    how: '40 records of version 2 for 9 s, then workers of version 2',
    wanted:
      'parked 40, started 0, dead 0, a line in the log; all run <= 5.5 s after the last worker of version 1 is gone',
    workload: { ...HARMLESS, jobs: 1000 },
    async inject(scene) {
      const { cast, redis } = scene;
      const later = laterVersion(cast.product);
      const ids = idsOf('later', 40);
      const dueMs = Date.now();
      for (const id of ids) await later.ask(scene, { id, dueMs });
      await scene.sleep(9000);
      const kept = await Promise.all(ids.map((id) => redis.hget(keyOf(partitionOf(id), 'jobs'), `j:${id}`)));
      const parked = kept.filter((record) => record?.startsWith('2')).length;
      const started = effectsSoFar(scene).filter(({ ev, id = '' }) => ev === 'start' && id.startsWith('later')).length;
      const deadLetters = Object.values(await deadLettersIn(redis)).reduce((total, count) => total + count, 0);
      const old = cast.living('worker');
      const told = old.filter((actor) => saidBy(actor, 'jobs of a later version').length > 0).length;
      await Promise.all(old.map(() => cast.worker({ product: later.product }).started));
      await Promise.all(old.map((actor) => cast.dismiss(actor)));
      const ranMs = await within(15_000, () => doneOf(scene, ids) === ids.length, 'jobs of version 2');
      return { parked, started, deadLetters, told, ranMs };
    },
    pass: ({ noted }) => [
      ...exactly('parked', noted.parked ?? 0, 40),
      ...exactly('started by version 1', noted.started ?? -1, 0),
      ...exactly('dead letters', noted.deadLetters ?? -1, 0),
      ...atLeast('workers that told', noted.told ?? 0, 1),
      ...atMost('ms until they had run', noted.ranMs ?? Number.POSITIVE_INFINITY, PARKED_MS),
    ],
  },
  {
    id: 'F19',
    title: '200 workers come at once, and vanish at once',
    how: `${FLEETS} processes with ${CROWD} workers each, SIGKILL to all in the middle of their jobs`,
    wanted: 'max/mean of what survivors take over <= 1.6, Redis uses <= 2.5 s of a processor, all run again <= 25 s',
    workload: { ...HARMLESS, jobs: 1000 },
    drainMs: 30_000,
    async inject(scene) {
      const { cast, redis } = scene;
      const fleets = Array.from({ length: FLEETS }, () => cast.fleet(CROWD));
      await Promise.all(fleets.map(({ started }) => started));
      const pids = new Set(fleets.map(({ pid }) => pid));
      const inHand = () =>
        effectsSoFar(scene).filter(({ ev, pid, id = '' }) => ev === 'start' && pids.has(pid) && id.startsWith('hold'))
          .length;
      let asked = 0;
      /** @type {string[]} */
      const ids = [];
      for (; asked < 1500 && inHand() < 0.75 * FLEETS * CROWD; asked += 100) {
        const some = idsOf('hold', asked + 100).slice(asked);
        ids.push(...some);
        await ask(
          scene,
          some.map((id) => ({ id, data: { kind: 'hold', workMs: 5 } })),
        );
        await scene.sleep(400);
      }
      const held = inHand();
      const usedMs = await cpuMsOf(redis);
      for (const fleet of fleets) cast.send(fleet, 'SIGKILL');
      const againMs = await within(40_000, () => doneOf(scene, ids) === ids.length, 'what the fleet held');
      const claims = claimsOf(scene, pids);
      const mean = claims.reduce((total, count) => total + count, 0) / claims.length;
      const spread = Math.round((100 * Math.max(...claims)) / mean) / 100;
      return { held, againMs, spread, cpuMs: (await cpuMsOf(redis)) - usedMs };
    },
    pass: ({ noted }) => [
      ...atLeast('jobs in the hands of the fleet', noted.held ?? 0, (FLEETS * CROWD) / 2),
      ...atMost('max/mean of claims', noted.spread ?? Number.POSITIVE_INFINITY, 1.6),
      ...atMost('ms of a processor that Redis used', noted.cpuMs ?? Number.POSITIVE_INFINITY, CPU_MS),
      ...atMost('ms until all had run again', noted.againMs ?? Number.POSITIVE_INFINITY, 25_000),
    ],
  },
  {
    id: 'F20',
    title: 'half of the workers see a wrong set of the living',
    how: 'one takes everybody for dead, one takes nobody for dead; 2 SIGKILLs to the others',
    wanted: `taken over <= ${CLAIMED_MS} ms, double claims 0`,
    // Half of the workers are gone for most of the time: with more jobs there would be no free slot for what they left.
    // It lasts until the victims are chosen, which takes two starts and two ends of workers.
    workload: { ...HARMLESS, workMs: [50, 500], jobs: 800, callsMs: 10_000 },
    async inject(scene) {
      const { cast, sleep } = scene;
      const product = patchedCopy(cast.product, [WRONG_VIEW]);
      const [one, other, ...right] = cast.living('worker');
      const wrong = ['nobody', 'everybody'].map((view) => cast.worker({ product, env: { CHAOS_VIEW: view } }));
      await Promise.all(wrong.map(({ started }) => started));
      for (const actor of [one, other]) if (actor) await cast.dismiss(actor);
      for (const victim of right) {
        await scene.until(async () => (await scene.runningOn(victim)) > 2, 'a busy worker');
        cast.send(victim, 'SIGKILL');
        await sleep(4000);
      }
      await sleep(3000);
      return { victims: right.length };
    },
    pass({ effects, actors, noted }) {
      const dead = new Set(actors.filter(({ role, isGone }) => role === 'worker' && isGone()).map(({ pid }) => pid));
      const cut = effects.filter(
        ({ ev, pid, token }) =>
          ev === 'start' && dead.has(pid) && !effects.some((event) => event.ev === 'finish' && event.token === token),
      );
      const waits = cut.map(({ id, us }) => {
        const next = effects.find((event) => event.ev === 'start' && event.id === id && event.us > us);
        return ((next?.us ?? Number.POSITIVE_INFINITY) - us) / 1000;
      });
      return [
        ...exactly('victims', noted.victims ?? 0, 2),
        ...atLeast('jobs that were cut off', cut.length, 4),
        ...atMost('ms until one was started again', Math.max(0, ...waits), CLAIMED_MS),
      ];
    },
  },
];

/** What a worker believes of the others, whatever Redis says. */
const WRONG_VIEW = {
  file: 'dist/redis/scripts/presence.js',
  mark: 'missing-beats',
  edit: before(
    "if (process.env.CHAOS_VIEW === 'nobody') return ids;",
    "if (process.env.CHAOS_VIEW === 'everybody') return [];",
  ),
};

/**
 * The version after this one: its records say 2, have a header letter that is new, and a body that this one cannot read.
 *
 * @param {string} product
 */
function laterVersion(product) {
  const copy = patchedCopy(product, [
    { file: 'lua/start.lua', mark: 'later-version', edit: after('if record:byte() == 50 then isLater = nil end') },
    { file: 'lua/serve.lua', mark: 'later-version', edit: after('if record:byte() == 50 then isLater = nil end') },
    { file: 'lua/schedule.lua', mark: 'record-version', edit: dropped },
    { file: 'dist/job/record-header.js', mark: 'record-header', edit: before("record = record.replace(/^2/, '1');") },
    {
      file: 'dist/job/codec.js',
      mark: 'record-body',
      edit: before(
        "const [head, text] = [record.slice(0, record.indexOf('|')), record.slice(record.indexOf('|') + 1)];",
        "if (head.startsWith('2')) record = head + '|' + Buffer.from(text, 'base64').toString();",
      ),
    },
  ]);
  return {
    product: copy,
    /** @param {Scene} scene @param {{ id: string, dueMs: number }} job */
    ask(scene, { id, dueMs }) {
      const data = Buffer.from(JSON.stringify({ d: { workMs: 5 } })).toString('base64');
      const lua = scene.cast.textOf('schedule', copy);
      return askRaw(scene, { lua, id, dueMs, record: `2${dueMs.toString(36)};z=new|${data}` });
    },
  };
}

/**
 * The new one first, then the old one ends; of a role of which none is left, one of the other.
 *
 * @param {Scene} scene
 * @param {{ role: 'daemon' | 'worker', to: number, versions: Map<number, number>, product: string }} how
 */
async function replaceOne({ cast }, { role, to, versions, product }) {
  const outdated = (/** @type {'daemon' | 'worker'} */ of) =>
    cast.living(of).find(({ pid }) => (versions.get(pid) ?? to) !== to);
  const old = outdated(role) ?? outdated(role === 'daemon' ? 'worker' : 'daemon');
  if (!old) return;
  const fresh = old.role === 'daemon' ? cast.daemon({ product }) : cast.worker({ product });
  versions.set(fresh.pid, to);
  await fresh.started;
  await cast.dismiss(old);
}

/**
 * How many jobs that were cut off under these processes each worker has started again.
 *
 * @param {Scene} scene
 * @param {ReadonlySet<number>} pids
 */
function claimsOf(scene, pids) {
  const events = effectsSoFar(scene);
  const finished = new Set(events.flatMap(({ ev, token }) => (ev === 'finish' ? [token] : [])));
  const cut = new Set(
    events.flatMap(({ ev, pid, id, token }) => (ev === 'start' && pids.has(pid) && !finished.has(token) ? [id] : [])),
  );
  const again = events.filter(({ ev, pid, id }) => ev === 'start' && cut.has(id) && !pids.has(pid));
  return scene.cast.living('worker').map((actor) => again.filter(({ pid }) => pid === actor.pid).length);
}

/** How many ms of a processor Redis has used so far. @param {import('ioredis').Redis} redis */
async function cpuMsOf(redis) {
  const info = await redis.info('cpu');
  const seconds = ['user', 'sys'].map((part) => Number(new RegExp(`used_cpu_${part}:([0-9.]+)`).exec(info)?.[1]));
  return Math.round(1000 * seconds.reduce((total, one) => total + one, 0));
}
