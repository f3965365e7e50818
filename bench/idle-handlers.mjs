/** What a worker of a bench runs: nothing. */
import { root } from '../scripts/steps.mjs';

/** @type {typeof import('../src/index.ts')} */
const { defineHandlers } = await import(`${root}dist/index.js`);

export default defineHandlers({ bench: async () => undefined });
