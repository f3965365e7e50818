/**
 * What a system of jobs does when it is asked whether it keeps them: a producer, a worker, and perhaps a process that
 * promotes. Each is set as its own documentation says for jobs that must not be lost, and looks for the dead as soon as it
 * can be told to, so that a run takes seconds.
 */

/**
 * @typedef {object} Planned
 * @property {string} id
 * @property {number} callMs when it is asked for, after the start of its producer
 * @property {number} delayMs
 * @property {number} workMs how long its handler takes
 */
/** @typedef {{ readonly id: string, readonly workMs: number }} Data of a job */

/**
 * @typedef {object} System
 * @property {string} name
 * @property {string} title
 * @property {string} settings for people: versions, and what was set
 * @property {'redis' | 'postgres'} store
 * @property {string | undefined} [execPath] of its processes; left out: this Node
 * @property {(url: string) => Promise<{ schedule: (job: { id: string, dueMs: number, data: Data }) => Promise<unknown>, close: () => Promise<unknown> }>} producer
 *   the same job may be asked for again
 * @property {(url: string, run: (data: Data) => Promise<void>) => Promise<unknown>} worker
 * @property {(url: string) => Promise<unknown>} [daemon] promotes, and runs no jobs
 */

/** Handlers that a worker runs at once. */
export const SLOTS = 8;
