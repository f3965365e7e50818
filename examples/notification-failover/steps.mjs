/** The chain: what is tried, in which order, and how long each step has before the next one begins. */
import { defineQueue } from 'duestream';

const second = Number(process.env.SECOND_MS ?? 1000);
/** @type {Readonly<Record<string, number>>} */
const waits = { push: 10 * second, sms: 20 * second, messenger: 60 * second };
export const steps = Object.keys(waits);

/** @typedef {{ note: string, text: string, fate: Readonly<Record<string, string>> }} Note */
/** One attempt per step: what fails is not repeated, the next step follows. */
/** @type {import('duestream').Queue<Note>} */
export const notes = defineQueue('notes', { attempts: 1 });

/** @param {string} step */
export const waitMs = (step) => waits[step] ?? 0;

/**
 * How a step is planned. The id is made from what the job is, so every process finds the same job under it.
 *
 * @param {string} note
 * @param {string} step
 */
export const plan = (note, step) => ({ id: `note:${note}:${step}`, name: step, timeout: waitMs(step) });
