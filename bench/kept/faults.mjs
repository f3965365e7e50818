/** What is broken, in each system in the same way. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * @typedef {object} Fault
 * @property {string} name in flags and results
 * @property {string} title
 * @property {string} how
 * @property {(stage: import('./stage.mjs').Stage) => Promise<void>} inject
 */

const KILLS = 4;
/** Longer than anybody believes that a silent worker lives. */
const FROZEN_MS = 15_000;
const CRASHES = 2;
const DOWN_MS = 500;
const LOST = 20;
const LOSING_MAX_MS = 8000;

/** @type {readonly Fault[]} */
export const faults = [
  { name: 'nothing', title: 'nothing', how: 'the same work, undisturbed', inject: async () => {} },
  {
    name: 'workers',
    title: 'workers are killed',
    how: `SIGKILL to a worker, ${KILLS} times, each of them started again`,
    async inject({ living }) {
      for (let times = 0; times < KILLS; times += 1) {
        kill(living()[0], 'SIGKILL');
        await sleep(1200);
      }
    },
  },
  {
    name: 'frozen',
    title: 'a worker freezes, and wakes up',
    how: `SIGSTOP to a worker for ${FROZEN_MS / 1000} s`,
    async inject({ living }) {
      const [worker] = living();
      kill(worker, 'SIGSTOP');
      await sleep(FROZEN_MS);
      kill(worker, 'SIGCONT');
    },
  },
  {
    name: 'server',
    title: 'the server is killed',
    how: `SIGKILL to redis-server, or to PostgreSQL with all its processes, ${CRASHES} times, each of them started again after ${DOWN_MS} ms`,
    async inject({ store }) {
      for (let times = 0; times < CRASHES; times += 1) {
        await store.crash();
        await sleep(DOWN_MS);
        await store.start();
        await sleep(2000);
      }
    },
  },
  {
    name: 'replies',
    title: 'replies get lost',
    how: `a proxy cuts the connection instead of handing on the reply to a request, ${LOST} times`,
    async inject({ proxy }) {
      const untilMs = Date.now() + LOSING_MAX_MS;
      while (proxy.lost() < LOST && Date.now() < untilMs) {
        proxy.loseNextReply();
        await sleep(150);
      }
    },
  },
];

/** @param {import('./stage.mjs').Actor | undefined} actor @param {NodeJS.Signals} signal */
function kill(actor, signal) {
  if (!actor) throw new Error('no worker lives');
  process.kill(actor.pid, signal);
}
