/**
 * Puts virtual time and seeded randomness where programs look for time and randomness. There is no way back: whoever
 * simulates does so in a process of its own, and installs this before it imports the product.
 */
import { syncBuiltinESMExports } from 'node:module';
import { performance } from 'node:perf_hooks';
import timersPromises from 'node:timers/promises';

/** @typedef {import('./time.mjs').Time} Time */

/** Stands for a timer of Node. */
class Timer {
  /** @param {(timer: Timer) => import('./time.mjs').Event} arm */
  constructor(arm) {
    this.arm = arm;
    this.event = arm(this);
  }
  cancel() {
    this.event.act = undefined;
  }
  refresh() {
    this.cancel();
    this.event = this.arm(this);
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  hasRef() {
    return true;
  }
}

/**
 * @param {{ time: Time, random: () => number, epochMs: number }} world
 */
export function install({ time, random, epochMs }) {
  const wallMs = () => Math.floor(epochMs + time.nowUs() / 1000);
  /** @param {number} ms @param {() => void} act */
  const after = (ms, act) => new Timer(() => time.schedule(time.current(), Math.max(1, ms || 1) * 1000, act));
  /** A turn of the event loop takes some microseconds. @param {() => void} act */
  const soon = (act) => new Timer(() => time.schedule(time.current(), 1 + random() * 20, act));
  const cancel = (/** @type {unknown} */ timer) => {
    if (timer instanceof Timer) timer.cancel();
  };
  /** @type {Record<string, unknown>} */
  const replaced = {
    setTimeout: (
      /** @type {(...args: unknown[]) => void} */ act,
      /** @type {number} */ ms,
      /** @type {unknown[]} */ ...args
    ) => after(ms, () => act(...args)),
    setImmediate: (/** @type {(...args: unknown[]) => void} */ act, /** @type {unknown[]} */ ...args) =>
      soon(() => act(...args)),
    setInterval(/** @type {() => void} */ act, /** @type {number} */ ms) {
      const timer = after(ms, () => {
        timer.refresh();
        act();
      });
      return timer;
    },
    clearTimeout: cancel,
    clearInterval: cancel,
    clearImmediate: cancel,
  };
  Object.assign(globalThis, replaced);
  Date.now = wallMs;
  Math.random = random;
  Object.defineProperty(performance, 'now', { value: () => time.nowUs() / 1000 });
  Object.defineProperty(globalThis.crypto, 'getRandomValues', {
    value(/** @type {Uint8Array} */ bytes) {
      for (let at = 0; at < bytes.length; at += 1) bytes[at] = Math.floor(random() * 256);
      return bytes;
    },
  });
  AbortSignal.timeout = (ms) => {
    const controller = new AbortController();
    after(ms, () => controller.abort(new DOMException('The operation timed out.', 'TimeoutError')));
    return controller.signal;
  };
  timersPromises.setImmediate = /** @type {never} */ (
    (/** @type {unknown} */ value) => new Promise((done) => void soon(() => done(value)))
  );
  syncBuiltinESMExports();
}
