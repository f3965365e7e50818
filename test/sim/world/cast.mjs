/**
 * The processes of a simulation: daemons, workers and producers of the product itself, each an instance of its own that
 * owns its timers and its connections. One that ends without being asked to is started again, as a supervisor would.
 */
import { TIMEOUTS_MS } from '../../chaos/stage/workload.mjs';
import { handlerOf, sleep } from './handlers.mjs';

/** @typedef {import('./time.mjs').Process} Process */
/** @typedef {import('../../chaos/stage/history.mjs').Event} Event */
/** @typedef {import('../../chaos/stage/workload.mjs').PlannedJob} PlannedJob */
/** @typedef {'daemon' | 'worker' | 'producer'} Role */
/** @typedef {{ start: () => Promise<void>, stop: () => Promise<void> }} Service */
/**
 * @typedef {object} Actor
 * @property {Role} role
 * @property {Process} process
 * @property {(ev: string, more?: object) => void} note
 * @property {() => void} crash its process ends at once
 * @property {() => void} stop asks it to end in order; nobody replaces it
 * @property {boolean} leaving
 */
/** @typedef {ReturnType<typeof createCast>} Cast */

export const QUEUE = 'sim';
const URL = 'redis://model:6379';
const AGAIN = new Set(['indeterminate', 'unavailable', 'out-of-memory', 'refused']);
/** Of the jobs that may be handed out ahead. */
const CANCELLED = 0.2;
const SHUTDOWN_MS = 5000;
/** A stop may take its grace, half a second for aborted handlers, and the time until it hangs up. */
const STOP_MAX_MS = SHUTDOWN_MS + 10_000;

/**
 * @param {object} world
 * @param {typeof import('duestream') & typeof import('duestream/daemon')} world.product
 * @param {import('./time.mjs').Time} world.time
 * @param {import('./network.mjs').Network} world.network
 * @param {import('./journal.mjs').Journal} world.journal
 * @param {() => number} world.random
 * @param {number} world.partitions
 * @param {Process} world.director
 * @param {boolean} world.alone whoever is a worker is a mover as well
 * @param {number} world.linger for how many ms due jobs wait for company
 * @param {number} world.ahead how many ms before they are due jobs are handed to workers
 * @param {{ readonly rate?: `${number}/s`, readonly concurrency?: number, readonly perGroup?: number }} world.gates limits of the queue; empty: it is not gated
 */
export function createCast({
  product,
  time,
  network,
  journal,
  random,
  partitions,
  director,
  alone,
  gates,
  linger,
  ahead,
}) {
  const { createDaemon, createClient, createWorker, defineHandlers, defineQueue, DuestreamError, fixed } = product;
  /** @type {Set<Actor>} */
  const actors = new Set();
  /** @type {import('duestream').Queue<import('./handlers.mjs').Wish>} */
  const queue = defineQueue(QUEUE, { partitions, ...gates });

  /** @param {Role} role @param {(actor: Actor) => Promise<Service> | Service} make */
  function launch(role, make) {
    const process = time.process(role);
    process.name = `${role}-${process.pid}`;
    /** @type {(() => void) | undefined} */
    let ask;
    /** @type {Actor} */
    const actor = {
      role,
      process,
      leaving: false,
      note: (ev, more = {}) => {
        if (!process.dead) journal.note(process, ev, more);
      },
      crash: () => end(actor, make, 'crash'),
      stop() {
        actor.leaving = true;
        time.schedule(process, 0, () => ask?.());
      },
    };
    actors.add(actor);
    journal.tell(`${process.name} begins`);
    time.schedule(process, 0, () => {
      live().catch((error) => {
        journal.tell(`${process.name} failed: ${error}`);
        end(actor, make, 'failed');
      });
    });

    async function live() {
      const service = await make(actor);
      /** @type {Promise<void>} */
      const asked = new Promise((resolve) => {
        ask = resolve;
        if (actor.leaving) resolve();
      });
      await Promise.race([service.start(), asked]);
      await asked;
      const late = time.schedule(director, STOP_MAX_MS * 1000, () => {
        if (!process.dead) journal.complain('STOP', process.name, `it did not stop within ${STOP_MAX_MS} ms`);
      });
      const begunUs = time.nowUs();
      await service.stop();
      late.act = undefined;
      journal.tell(`${process.name} stopped after ${Math.round((time.nowUs() - begunUs) / 1000)} ms`);
      end(actor, make, 'stopped');
    }
    return actor;
  }

  /** @param {Actor} actor @param {Parameters<typeof launch>[1]} make @param {string} how */
  function end(actor, make, how) {
    const { process, role } = actor;
    if (process.dead) return;
    journal.exit(process, how);
    process.dead = true;
    actors.delete(actor);
    for (const link of network.linksOf(process)) network.cut(link);
    if (role === 'producer' || actor.leaving) return;
    time.schedule(director, 1000 * (100 + random() * 1500), () => {
      launch(role, make);
    });
  }

  const daemon = () =>
    launch('daemon', () =>
      createDaemon({
        redis: { url: URL },
        roles: ['mover'],
        mover: { linger },
        queues: { [QUEUE]: { partitions, ahead, ...gates } },
      }),
    );

  const worker = () =>
    launch('worker', (actor) =>
      createWorker(queue, handlerOf(actor), {
        redis: URL,
        concurrency: 8,
        shutdown: SHUTDOWN_MS,
      }),
    );

  /** A worker in the process of a mover. */
  const both = () =>
    launch('worker', (actor) =>
      createDaemon(
        {
          redis: { url: URL },
          roles: ['mover', 'worker'],
          mover: { linger },
          worker: { concurrency: 8, shutdown: SHUTDOWN_MS },
          queues: { [QUEUE]: { partitions, ahead, ...gates } },
        },
        { handlers: defineHandlers({ [QUEUE]: handlerOf(actor) }) },
      ),
    );

  /** Schedules its part of the work and ends when every call has settled. @param {readonly PlannedJob[]} plan @param {(done: Actor) => void} over */
  const producer = (plan, over) =>
    launch('producer', async (actor) => {
      const client = createClient({ redis: URL });
      await untilItIs(() => client.ready());
      const startedMs = Date.now();
      await Promise.all(
        plan.map(async (job) => {
          await sleep(Math.max(0, startedMs + job.callMs - Date.now()));
          await schedule(client, job, actor);
        }),
      );
      return {
        async start() {
          over(actor);
          actor.stop();
        },
        stop: () => client.close(),
      };
    });

  /** @template T @param {() => Promise<T>} make @returns {Promise<T>} */
  async function untilItIs(make) {
    while (true) {
      try {
        return await make();
      } catch {
        await sleep(250);
      }
    }
  }

  /** @param {import('duestream').Client} client @param {PlannedJob} job @param {Actor} actor */
  async function schedule(client, { id, delayMs, kind, workMs, priority }, { note }) {
    const [, group, own = id] = /^\{(.+?)\}(.+)$/.exec(id) ?? [];
    const at = new Date(Date.now() + delayMs);
    /** What it was refused with, or nothing. */
    async function ask() {
      note('enq.call', { id, due: at.getTime() });
      try {
        const { dueMs: due, status } = await client.schedule(
          queue,
          { kind, workMs },
          {
            id: own,
            group,
            priority,
            at,
            backoff: fixed('300ms'),
            timeout: TIMEOUTS_MS[kind],
          },
        );
        note('enq.ok', { id, due, status });
        return '';
      } catch (error) {
        const code = error instanceof DuestreamError ? error.code : `unknown: ${error}`;
        note(code === 'indeterminate' ? 'enq.unknown' : 'enq.fail', { id, code });
        return code;
      }
    }
    let code = await ask();
    while (AGAIN.has(code)) {
      await sleep(250);
      code = await ask();
    }
    if (code !== '') journal.complain('REFUSED', id, code);
    else if (ahead > 0 && group === undefined && random() < CANCELLED) await cancel(client, { id, at }, note);
  }

  /** In the last moment, when a worker may hold it. @param {import('duestream').Client} client @param {{ id: string, at: Date }} job @param {Actor['note']} note */
  async function cancel(client, { id, at }, note) {
    await sleep(Math.max(0, at.getTime() - Date.now() - 1.5 * ahead * random()));
    try {
      const { status } = await client.cancel(queue, id);
      if (status === 'cancelled') note('enq.cancelled', { id });
    } catch (error) {
      if (!(error instanceof DuestreamError)) journal.complain('REFUSED', id, String(error));
    }
  }

  return {
    daemon,
    worker: alone ? both : worker,
    producer,
    /** @param {Role} role */
    living: (role) => [...actors].filter((actor) => actor.role === role && !actor.leaving),
    all: () => [...actors],
  };
}
