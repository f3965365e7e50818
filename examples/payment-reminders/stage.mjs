/**
 * Everything the demo stands on, started in one place and taken down in one place: a Redis of its own, the mail server,
 * two daemons and three workers. Taking down works at any moment, also half-way through the start.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { resolveRedis } from '../../src/embedded/resolve.mjs';
import { startEmbedded } from '../../src/embedded/server.mjs';
import { createObserver } from './observer.mjs';
import { fateOf } from './plan.mjs';
import { openPostOffice } from './post-office.mjs';
import { createCrew } from './processes.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HANDLERS = fileURLToPath(new URL('handlers.mjs', import.meta.url));
const WORKERS = 3;
const READY_MS = 60_000;
/** Two demos that start at the same moment look for a free port in different places. */
const FIRST_PORT = 20_000 + (process.pid % 10_000);

/** @typedef {import('./plan.mjs').Timetable} Timetable */
/** @typedef {import('./processes.mjs').Running} Running */
/** @typedef {Awaited<ReturnType<typeof setStage>>} Stage */

/**
 * @param {object} how
 * @param {Timetable} how.timetable
 * @param {(closer: () => Promise<unknown> | unknown) => void} how.onClose registers what takes down each thing, last first
 * @param {(name: string) => void} how.onUnexpectedExit
 * @param {() => boolean} how.keepsLogs asked when everything else is down
 * @param {AbortSignal} how.signal
 * @param {(line: string) => void} how.say
 */
export async function setStage({ timetable, onClose, onUnexpectedExit, keepsLogs, signal, say }) {
  await mkdir(join(ROOT, '.duestream'), { recursive: true });
  const dir = await mkdtemp(join(ROOT, '.duestream', 'demo-'));
  onClose(() => keepsLogs() || rm(dir, { recursive: true }));
  const namespace = `demo-${Date.now().toString(36)}`;
  const found = await resolveRedis();
  const url = found.kind === 'url' ? found.url : await ownRedis(found.path);
  const observer = createObserver({ url, namespace });
  onClose(observer.close);
  await observer.reach();
  if (found.kind === 'url') onClose(observer.clear);
  const office = await openPostOffice({ fateOf });
  onClose(office.close);
  say(`mail server at ${office.url}; it refuses some mails for now (451) and some for good (550)`);

  const config = await settings();
  const env = {
    DUESTREAM_CONFIG: config,
    DEMO_REDIS_URL: url,
    DEMO_SMTP_URL: office.url,
    DEMO_LOCK_PREFIX: namespace,
  };
  const crew = createCrew({ logDir: dir, env, onUnexpectedExit });
  onClose(crew.stop);
  const daemons = [1, 2].map((nth) => crew.start(`daemon ${nth}`, ['start', '--roles', 'mover']));
  const workers = Array.from({ length: WORKERS }, (_, at) => crew.start(`worker ${at + 1}`, ['worker', HANDLERS]));
  await allAlive([...daemons, ...workers]);
  say(`2 daemons (pid ${pids(daemons)}) and ${WORKERS} workers (pid ${pids(workers)}) are up`);
  return { dir, config, url, namespace, observer, office, daemons, workers };

  /** @param {string} binary */
  async function ownRedis(binary) {
    const server = await startEmbedded({ binary, dataDir: join(dir, 'redis'), port: FIRST_PORT });
    onClose(server.stop);
    say(`a Redis of its own at ${server.url} (pid ${server.pid}), with an append-only file`);
    return server.url;
  }

  /** Writes duestream.yaml. The leases are short, so that recovery fits into the run; the promises scale with them. */
  async function settings() {
    const { moverMs, jobMs, beatMs, graceMs } = timetable.leases;
    const worker = { jobLease: jobMs, beatTtl: beatMs, grace: graceMs, shutdown: '3s' };
    const tree = { namespace, redis: { url }, mover: { lease: moverMs }, worker };
    const path = join(dir, 'duestream.yaml');
    // JSON is YAML.
    await writeFile(path, `${JSON.stringify(tree, null, 2)}\n`);
    return path;
  }

  /** @param {readonly Running[]} crewList */
  async function allAlive(crewList) {
    const deadlineMs = Date.now() + READY_MS;
    for (;;) {
      const here = new Set((await observer.alive()).map(({ pid }) => pid));
      const missing = crewList.filter(({ pid }) => !here.has(pid));
      if (missing.length === 0) return;
      const gone = missing.find((running) => !running.alive());
      if (gone || Date.now() > deadlineMs) {
        throw new Error(`${(gone ?? missing[0])?.name} did not come up; its log is in ${dir}`);
      }
      await sleep(50, undefined, { signal });
    }
  }
}

/** @param {readonly Running[]} list */
const pids = (list) => list.map(({ pid }) => pid).join(', ');
