/** Handlers that do what handlers should not: `stubborn` ignores its signal, `float` forgets a promise, `block` the loop. */
import { defineHandlers, defineQueue } from 'duestream';

/** @type {import('duestream').Handler<undefined>} */
const stubborn = () => new Promise(() => {});

/** @type {import('duestream').Handler<undefined>} */
const float = () => {
  void Promise.reject(new Error('nobody listens'));
};

/** @type {import('duestream').Handler<undefined>} */
const block = () => {
  const untilMs = Date.now() + 1600;
  while (Date.now() < untilMs);
};

export default defineHandlers(
  { odd: { stubborn, float, block, default: () => {} } },
  { queues: [defineQueue('odd', { timeout: 50, attempts: 1 })] },
);
