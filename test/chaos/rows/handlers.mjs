/** Faults of handlers: code of users that does what it should not, inside our workers. */

import { deadLettersIn, keyOf } from '../judge/dump.mjs';
import { atLeast, atMost, exactly, failures } from '../judge/predicates.mjs';
import { ask, askRaw, doneOf, effectsSoFar, idsOf, partitionOf, saidBy, within } from '../stage/extras.mjs';
import { SLOTS, WORKERS } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */
/** @typedef {import('../stage/run.mjs').Outcome} Outcome */

const JOB_LEASE_MS = 3000;
const BLOCK_MS = 2 * JOB_LEASE_MS;
/** No job of the workload ends its worker or becomes a dead letter. */
const HARMLESS = { crashes: 0, poison: 0 };
const TIMEOUT_MS = 700;
const STUBBORN = 100;

/** @type {readonly Row[]} */
export const handlerRows = [
  {
    id: 'F7',
    title: 'handlers hold the event loop of their worker for two leases',
    how: `busy loops of ${BLOCK_MS} ms in 2 handlers`,
    wanted: 'one accepted effect per token; each such worker measures and exports the lag',
    workload: { ...HARMLESS, jobs: 1000 },
    async inject(scene) {
      const ids = idsOf('block', 2);
      await ask(
        scene,
        ids.map((id) => ({ id, data: { kind: 'block', workMs: 5, blockMs: BLOCK_MS } })),
      );
      const blocks = (/** @type {string} */ what) => effectsSoFar(scene).filter(({ ev }) => ev === `block.${what}`);
      // A worker that got both begins one: the other is run elsewhere before its loop is over.
      const isOver = (/** @type {string} */ one) =>
        effectsSoFar(scene).some(({ ev, id }) => ev === 'finish' && id === one);
      const areOver = () => ids.every(isOver) && blocks('begin').length === blocks('end').length;
      await within(30_000, areOver, 'the end of the busy loops');
      const begins = blocks('begin');
      for (const { id, pid, us } of blocks('end')) {
        const fromUs = begins.find((begin) => begin.id === id)?.us ?? us;
        scene.note('pause', { child: pid, us: fromUs });
        scene.note('resume', { child: pid, us });
      }
    },
    pass({ effects, actors }) {
      const blocked = new Set(effects.flatMap(({ ev, pid }) => (ev === 'block.end' ? [pid] : [])));
      const silent = actors.filter(
        (actor) => blocked.has(actor.pid) && saidBy(actor, 'the event loop was blocked').length === 0,
      );
      return [
        ...atLeast('workers that were blocked', blocked.size, 1),
        ...exactly('blocked workers that did not tell their lag', silent.length, 0),
      ];
    },
  },
  {
    id: 'F8',
    title: 'handlers that never end until their signal aborts',
    how: `${3 * SLOTS} jobs that wait for ever, time-out ${TIMEOUT_MS} ms, 3 attempts`,
    wanted: 'slot back <= time-out + 1 s, dead after exactly 3 starts',
    workload: { ...HARMLESS, jobs: 1000 },
    async inject(scene) {
      const ids = idsOf('endless', 3 * SLOTS);
      const { fixed } = await import('duestream');
      const how = { timeout: TIMEOUT_MS, attempts: 3, backoff: fixed('300ms'), data: { workMs: 600_000 } };
      await ask(
        scene,
        ids.map((id) => ({ id, ...how })),
      );
      const dead = async () => (await deadLettersIn(scene.redis))['attempts-exhausted'] === ids.length;
      return { endlessMs: await within(30_000, dead, 'the end of those that never end') };
    },
    pass({ effects, deadLetters }) {
      const endless = effects.filter(({ id = '' }) => id.startsWith('endless'));
      const starts = endless.filter(({ ev }) => ev === 'start');
      const held = starts.map(({ us, token }) => {
        const end = endless.find((event) => event.ev === 'finish' && event.token === token);
        return ((end?.us ?? Number.POSITIVE_INFINITY) - us) / 1000;
      });
      return [
        ...exactly('starts', starts.length, 3 * 3 * SLOTS),
        ...atMost('ms that a slot was taken', Math.max(0, ...held), TIMEOUT_MS + 1000),
        ...exactly('dead letters', deadLetters['attempts-exhausted'] ?? 0, 3 * SLOTS),
      ];
    },
  },
  {
    id: 'F9',
    title: 'handlers that ignore the signal to stop',
    how: `${STUBBORN} jobs whose handlers never end; a worker ends when an eighth of its slots is lost`,
    wanted: 'all slots back <= 30 s, each such job started once, crashes 0, workers end with 1',
    workload: { ...HARMLESS, jobs: 1000 },
    env: {
      DUESTREAM_WORKER__ABORT_GRACE: '300',
      DUESTREAM_WORKER__SHUTDOWN: '3000',
      DUESTREAM_WORKER__RECYCLE_AT_PERCENT: '12',
    },
    async inject(scene) {
      const startedMs = performance.now();
      const how = { timeout: 500, attempts: 1, data: { kind: 'stubborn', workMs: 1 } };
      await ask(
        scene,
        idsOf('stubborn', STUBBORN).map((id) => ({ id, ...how })),
      );
      const dead = async () => (await deadLettersIn(scene.redis))['attempts-exhausted'] === STUBBORN;
      await within(30_000, dead, 'the dead letters');
      await within(20_000, () => scene.cast.living('worker').length === WORKERS, 'a successor of each worker');
      await Promise.all(scene.cast.living('worker').map(({ started }) => started));
      const probes = idsOf('probe', 2 * WORKERS * SLOTS);
      await ask(
        scene,
        probes.map((id) => ({ id, data: { workMs: 2000 } })),
      );
      await within(30_000, () => mostAtOnce(scene) >= WORKERS * SLOTS, 'all slots');
      const restoredMs = Math.round(performance.now() - startedMs);
      await within(15_000, () => doneOf(scene, probes) === probes.length, 'the probes');
      const gone = scene.cast.actors.filter(({ role, isGone }) => role === 'worker' && isGone());
      const codes = await Promise.all(gone.map(({ exited }) => exited));
      return { restoredMs, otherEnds: codes.filter(({ code }) => code !== 1).length };
    },
    pass({ noted, effects, deadLetters, crashed, actors }) {
      const ended = actors.filter(({ role, isGone }) => role === 'worker' && isGone());
      const unclear = ended.filter((actor) => saidBy(actor, 'too many slots are lost').length === 0);
      return [
        ...atMost('ms until all slots were back', noted.restoredMs ?? Number.POSITIVE_INFINITY, 30_000),
        ...exactly(
          'starts',
          effects.filter(({ ev, id = '' }) => ev === 'start' && id.startsWith('stubborn')).length,
          STUBBORN,
        ),
        ...exactly('dead letters', deadLetters['attempts-exhausted'] ?? 0, STUBBORN),
        ...exactly('crashes', crashed, 0),
        ...exactly('ends with another status than 1', noted.otherEnds ?? -1, 0),
        ...atLeast('workers that began anew', ended.length, WORKERS),
        ...exactly('workers that ended and did not say why', unclear.length, 0),
      ];
    },
  },
  {
    id: 'F11',
    title: 'promises that are rejected and that nobody listens to',
    how: '60 handlers that forget a promise',
    wanted: 'no worker ends, each such job done by its first start, a line in the log',
    workload: { ...HARMLESS, jobs: 1000 },
    outcry:
      /"error":"a promise that its handler forgot".*"msg":"unhandled rejection: a promise of a handler was rejected and nothing caught it"/,
    async inject(scene) {
      const ids = idsOf('float', 60);
      await ask(
        scene,
        ids.map((id, at) => ({ id, delay: at * 50, data: { kind: 'float', workMs: 5 } })),
      );
      await within(20_000, () => doneOf(scene, ids) === ids.length, 'the handlers that forget');
    },
    pass({ effects, actors, report, crashed }) {
      const starts = effects.filter(({ ev, id = '' }) => ev === 'start' && id.startsWith('float'));
      const told = actors.filter((actor) => saidBy(actor, 'unhandled rejection').length > 0);
      return [
        ...exactly('workers', actors.filter(({ role }) => role === 'worker').length, WORKERS),
        ...exactly('starts of those that forget', starts.length, 60),
        ...exactly('starts again', report.counts.again, failures(effects)),
        ...exactly('crashes', crashed, 0),
        ...atLeast('workers that told', told.length, 1),
      ];
    },
  },
  {
    id: 'F71',
    title: 'names without a handler, and records of a version that nobody knows',
    how: '30 jobs of an unknown name, 10 records of version 9',
    wanted: 'dead letters no-handler exactly 30; version 9: parked, started 0, dead 0, cancelled when asked',
    workload: { ...HARMLESS, jobs: 1000 },
    async inject(scene) {
      const { redis, cast } = scene;
      await ask(
        scene,
        idsOf('nameless', 30).map((id) => ({ id, name: 'nobody-knows' })),
      );
      const lua = cast.textOf('schedule').replace('^1[0-9a-z]+[;|]', '^9[0-9a-z]+[;|]');
      const ids = idsOf('strange', 10);
      const dueMs = Date.now();
      for (const id of ids) await askRaw(scene, { lua, id, dueMs, record: `9${dueMs.toString(36)};z=1|\x01\x02` });
      // Two times of four seconds: parked, and parked again.
      await scene.sleep(9000);
      const kept = await Promise.all(ids.map((id) => redis.hget(keyOf(partitionOf(id), 'jobs'), `j:${id}`)));
      const parked = kept.filter((record) => record?.startsWith('9')).length;
      let cancelled = 0;
      for (const id of ids) {
        const keys = ['scheduled', 'jobs', 'runs', 'done', 'meta'].map((name) => keyOf(partitionOf(id), name));
        const reply = await redis.eval(cast.textOf('cancel'), 5, ...keys, '', '0', '600000', `j:${id}`);
        if (String(reply) === 'cancelled') cancelled += 1;
      }
      return { parked, cancelled };
    },
    pass({ deadLetters, noted, effects, actors }) {
      const strange = effects.filter(({ ev, id = '' }) => ev === 'start' && /^(strange|nameless)/.test(id));
      const told = actors.filter((actor) => saidBy(actor, 'jobs of a later version').length > 0);
      return [
        ...exactly('dead letters no-handler', deadLetters['no-handler'] ?? 0, 30),
        ...exactly('kinds of dead letters', Object.keys(deadLetters).length, 1),
        ...exactly('parked', noted.parked ?? 0, 10),
        ...exactly('cancelled', noted.cancelled ?? 0, 10),
        ...exactly('starts of what nobody can run', strange.length, 0),
        ...atLeast('workers that told', told.length, 1),
      ];
    },
  },
  {
    id: 'F75',
    title: 'a storm of retries: every handler fails',
    how: '400 jobs in 5 s that succeed, then 400 that fail 3 times, exponential backoff with full jitter',
    wanted:
      'commands of Redis per second <= 2.5x and per start <= 2x those of success, backoff spread by chi-square < 24.3',
    workload: { ...HARMLESS, jobs: 100, throws: 0, callsMs: 1000, nearMs: 500, farMs: 800 },
    drainMs: 20_000,
    async inject(scene) {
      await scene.sleep(2500);
      const idle = await commandsDuring(scene, 2000, async () => {});
      const good = await commandsDuring(scene, 7000, () => ask(scene, spread('good', { data: { workMs: 5 } })));
      const { exponential } = await import('duestream');
      const how = { attempts: 3, backoff: exponential('2s', { max: '4s' }), data: { kind: 'fail', workMs: 5 } };
      const storm = await commandsDuring(scene, 9000, () => ask(scene, spread('storm', how)));
      const net = (/** @type {typeof good} */ { perSecond, perStart }, /** @type {number} */ ms) =>
        perStart * (1 - idle.perSecond / Math.max(1, perSecond)) * (ms > 0 ? 1 : 0);
      const times = (/** @type {number} */ one, /** @type {number} */ other) => Math.round((100 * one) / other) / 100;
      return {
        idlePerSecond: Math.round(idle.perSecond),
        goodPerSecond: Math.round(good.perSecond),
        stormPerSecond: Math.round(storm.perSecond),
        timesPerSecond: times(storm.perSecond, good.perSecond),
        timesPerStart: times(net(storm, 1), net(good, 1)),
      };
    },
    pass({ noted, effects, deadLetters }) {
      return [
        // Completions travel together, and each retry is a call of its own.
        ...atMost('times the commands per second', noted.timesPerSecond ?? Number.POSITIVE_INFINITY, 2.5),
        ...atMost('times the commands per start', noted.timesPerStart ?? Number.POSITIVE_INFINITY, 2),
        ...atMost('chi-square of the first backoff in 8 parts', chiSquare(firstDelays(effects), 2000), CHI_MAX),
        ...exactly('dead letters', deadLetters['attempts-exhausted'] ?? 0, 400),
      ];
    },
  },
];

/** Of 7 degrees of freedom; an even spread is above it once in a thousand runs. */
const CHI_MAX = 24.3;

/**
 * 400 jobs over 5 s.
 *
 * @param {string} prefix
 * @param {object} how
 */
const spread = (prefix, how) => idsOf(prefix, 400).map((id, at) => ({ id, delay: Math.round(at * 12.5), ...how }));

/**
 * What Redis was asked for while something went on.
 *
 * @param {import('../stage/scene.mjs').Scene} scene
 * @param {number} ms
 * @param {() => Promise<void>} act
 */
async function commandsDuring(scene, ms, act) {
  const count = async () => Number(/total_commands_processed:(\d+)/.exec(await scene.redis.info('stats'))?.[1]);
  const starts = () => effectsSoFar(scene).filter(({ ev }) => ev === 'start').length;
  const [before, begun, startedMs] = [await count(), starts(), performance.now()];
  await act();
  await scene.sleep(Math.max(0, ms - (performance.now() - startedMs)));
  const commands = (await count()) - before;
  const tookS = (performance.now() - startedMs) / 1000;
  return { perSecond: commands / tookS, perStart: commands / Math.max(1, starts() - begun) };
}

/** From the first failure of a job to its second due. @param {Outcome['effects']} effects */
function firstDelays(effects) {
  const storm = effects.filter(({ id = '' }) => id.startsWith('storm'));
  const failed = new Map(
    storm.filter(({ ev, attempt }) => ev === 'finish' && attempt === 1).map(({ id, ms }) => [id, ms]),
  );
  return storm
    .filter(({ ev, attempt }) => ev === 'start' && attempt === 2)
    .map(({ id, due = 0 }) => due - (failed.get(id) ?? due));
}

/**
 * How far from evenly spread over `[0, widthMs)`.
 *
 * @param {readonly number[]} delays
 * @param {number} widthMs
 */
function chiSquare(delays, widthMs) {
  const parts = Array.from({ length: 8 }, () => 0);
  for (const delay of delays) {
    const part = Math.min(7, Math.max(0, Math.floor((8 * delay) / widthMs)));
    parts[part] = (parts[part] ?? 0) + 1;
  }
  const expected = delays.length / 8;
  if (expected === 0) return Number.POSITIVE_INFINITY;
  return parts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

/**
 * How many handlers that behave ran at the same time at most, from the first probe on.
 *
 * @param {import('../stage/scene.mjs').Scene} scene
 */
function mostAtOnce(scene) {
  const effects = effectsSoFar(scene).filter(({ id = '' }) => !id.startsWith('stubborn'));
  const first = effects.findIndex(({ id = '' }) => id.startsWith('probe'));
  if (first === -1) return 0;
  let most = 0;
  /** @type {Set<string>} */
  const running = new Set();
  for (const { ev, token = '' } of effects.slice(first)) {
    if (ev === 'start') running.add(token);
    if (ev === 'finish') running.delete(token);
    most = Math.max(most, running.size);
  }
  return most;
}
