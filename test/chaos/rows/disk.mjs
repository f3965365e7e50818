/** Faults of the disk under Redis and of what it finds there when it starts. */
import { ask } from '../../../src/embedded/ask.mjs';
import { fill, free, losePower, onRealDisk, onSmallDisk, whyNoSmallDisk } from '../faults/disk.mjs';
import { atLeast, atMost, calm, exactly, resumed, settled } from '../judge/predicates.mjs';
import { FULL, GRACE_TO_DIAL } from '../stage/workload.mjs';

/** @typedef {import('../stage/run.mjs').Row} Row */

/** Where deaths and lines of logs are counted, no job ends its worker and none throws. */
const HARMLESS = { crashes: 0, poison: 0, throws: 0 };
/** Jobs become due until after the fault, also of a smaller workload. */
const { callsMs, nearMs, farMs } = FULL;
const AS_LONG = { callsMs, nearMs, farMs };
/** Redis writes once a second, and puts a write off for one more while the disk is busy. */
const EVERYSEC_MS = 2000;
/** A settle is on its way for a moment after its handler has ended. */
const SETTLING_MS = 1500;
/** So many commands in the file, each of which takes so long to load, are 5 seconds. */
const LOADED = { commands: 14_000, delayUs: 300 };
const LOADING_MIN_MS = 4000;
/** A process has no more connections than these. */
const CONNECTIONS = 4;

/** @type {readonly Row[]} */
export const diskRows = [
  {
    id: 'F23',
    title: 'the power is cut',
    how: 'SIGKILL, and every file cut to its synced length',
    wanted: 'lost 0 with always; with everysec only what was acknowledged in the last 2.0 s',
    variants: ['always', 'everysec'],
    declaredLossMs: { everysec: EVERYSEC_MS },
    whole: true,
    prepare: onRealDisk,
    inject: cutPower,
    pass: (outcome) => [
      ...settled(outcome),
      ...resumed(outcome, 5000),
      ...atLeast('bytes cut', outcome.noted.cutBytes ?? 0, outcome.mode === 'always' ? 0 : 1),
    ],
  },
  {
    id: 'F25',
    title: 'Redis comes back with a snapshot that is 4 seconds old',
    how: 'no append-only file; SAVE, 4 s later SIGKILL, start',
    wanted: 'starts again <= completions in those 4 s; every invariant holds',
    mode: 'none',
    workload: AS_LONG,
    declaredLossMs: { none: 0 },
    whole: true,
    async inject({ server, redis, sleep, note }) {
      // What comes after it is carried out as soon as it is over, and seen before its reply.
      note('loss.begin');
      await redis.save();
      await sleep(4000);
      await server.stop();
      note('loss.end');
      await server.start();
    },
    pass(outcome) {
      const { effects, report, fromMs, toMs } = outcome;
      const over = effects.filter(({ ev, ms }) => ev === 'finish' && ms > fromMs - SETTLING_MS && ms < toMs);
      return [
        ...settled(outcome),
        ...resumed(outcome, 5000),
        ...atLeast('jobs that Redis forgot', report.counts.excused, 1),
        ...atLeast('starts that Redis forgot', report.counts.forgotten, 1),
        ...atMost('starts that Redis forgot', report.counts.forgotten, over.length),
      ];
    },
  },
  {
    id: 'F41',
    title: 'the disk of the append-only file is full',
    how: 'a tmpfs filled for 5 s; with everysec filled again, and SIGKILL; with always Redis ends itself',
    wanted: 'no worker believed dead; lost 0, at the SIGKILL <= 1 per producer',
    variants: ['always', 'everysec'],
    workload: { ...HARMLESS, ...AS_LONG },
    env: GRACE_TO_DIAL,
    declaredLossMs: { everysec: EVERYSEC_MS },
    whole: true,
    impossible: whyNoSmallDisk,
    prepare: onSmallDisk,
    severs: true,
    inject: (scene) => (scene.mode === 'always' ? endsItself(scene) : refusesWrites(scene)),
    drainMs: 20_000,
    pass(outcome) {
      const { report, crashed, actors, noted, toMs } = outcome;
      const { repairedMs = toMs } = noted;
      const producers = actors.filter(({ role }) => role === 'producer').length;
      return [
        ...settled(outcome),
        ...resumed(outcome, 5000),
        // As soon as there is room, and not only after the kill.
        ...resumed({ ...outcome, toMs: repairedMs }, 5000),
        ...calm(outcome),
        ...exactly('workers believed dead', crashed, 0),
        ...atMost('jobs lost', report.counts.excused, producers),
      ];
    },
  },
  {
    id: 'F43',
    title: 'Redis loads its data for 5 seconds and answers LOADING',
    how: 'SIGKILL, and a start that is held up at every command of its file',
    wanted: 'connections <= 1/s per process; no process ends',
    workload: HARMLESS,
    env: GRACE_TO_DIAL,
    whole: true,
    severs: true,
    inject: loadsLong,
    pass(outcome) {
      const { loadingMs = 0, opened = 0, processes = 0, ended = 0 } = outcome.noted;
      return [
        ...settled(outcome),
        ...resumed(outcome, 5000),
        ...calm(outcome),
        ...atLeast('ms of loading', loadingMs, LOADING_MIN_MS),
        // Each connection comes back once; what is more than that are attempts, of which one in four seconds is enough.
        ...atMost('connections while loading', opened, processes * (CONNECTIONS + loadingMs / 4000)),
        ...exactly('processes that ended', ended, 0),
        ...exactly('workers believed dead', outcome.crashed, 0),
      ];
    },
  },
];

/** @param {import('../stage/scene.mjs').Scene} scene */
async function cutPower({ server, note }) {
  note('loss.begin');
  const cut = await losePower(server);
  note('loss.end');
  await server.start();
  return cut;
}

/** Every write is refused; it goes on as soon as there is room, and it may be killed meanwhile. @param {import('../stage/scene.mjs').Scene} scene */
async function refusesWrites({ server, redis, sleep, until, note }) {
  const writes = async (/** @type {string} */ status) =>
    (await redis.info('persistence')).includes(`aof_last_write_status:${status}`);
  fill(server.dir);
  await until(() => writes('err'), 'an error of writing');
  await sleep(5000);
  free(server.dir);
  await until(() => writes('ok'), 'a write that succeeds');
  const repairedMs = Date.now();
  await sleep(1500);
  fill(server.dir);
  await until(() => writes('err'), 'another error of writing');
  note('loss.begin');
  await server.stop();
  note('loss.end');
  free(server.dir);
  await server.start();
  return { repairedMs };
}

/** @param {import('../stage/scene.mjs').Scene} scene */
async function endsItself({ server, sleep, until }) {
  fill(server.dir);
  await until(() => server.isGone(), 'the end of Redis');
  await sleep(3000);
  free(server.dir);
  await server.start();
}

/** @param {import('../stage/scene.mjs').Scene} scene */
async function loadsLong({ server, redis, sleep, cast }) {
  const gone = () => cast.actors.filter(({ role, isGone }) => role !== 'producer' && isGone()).length;
  const goneBefore = gone();
  const filling = redis.pipeline();
  for (let at = 0; at < LOADED.commands; at += 1) filling.set(`foreign:${at}`, 'x');
  await filling.exec();
  await server.stop();
  // Redis looks at its sockets once per 1024 commands that it loads.
  server.begin({ 'key-load-delay': String(LOADED.delayUs) });
  const begunMs = Date.now();
  let asked = 0;
  let opened = 0;
  let loadingMs = 0;
  for (let loading = true; loading; ) {
    await sleep(200);
    asked += 1;
    const info = String(await ask({ socketPath: server.socketPath }, ['INFO'], 3000).catch(() => 'loading:1'));
    loading = info.includes('loading:1');
    const seen = /total_connections_received:(\d+)/.exec(info)?.[1];
    if (!loading || seen === undefined) continue;
    loadingMs = Date.now() - begunMs;
    opened = Number(seen) - asked;
  }
  return {
    loadingMs,
    opened,
    processes: cast.actors.filter(({ isGone }) => !isGone()).length,
    ended: gone() - goneBefore,
  };
}
