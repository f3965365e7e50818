/**
 * Clocks that are wrong, for single processes of a run. Each such process has its own clock, a small file that the clock
 * shim reads at every call, so that it can jump while the process runs. The file holds three numbers of 64 bits: ms that
 * are added to the wall clock, parts per million by which all clocks run too fast, and since when (ns, monotonic).
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { buildShim } from './shims.mjs';

/** @typedef {{ offsetMs?: number, ratePpm?: number }} Wrong what is wrong with a clock */
/** @typedef {ReturnType<typeof createClock>} Clock */
/** @typedef {Awaited<ReturnType<typeof createClocks>>} Clocks */
/** @typedef {(role: 'redis' | import('../stage/cast.mjs').Role, nth: number) => Wrong | undefined} WrongClocks */

/**
 * @param {string} folder
 * @param {WrongClocks} wrongOf undefined: this process has a true clock
 * @param {number} [aheadMs] so long before they are due jobs are handed to workers
 */
export async function createClocks(folder, wrongOf, aheadMs = 0) {
  const library = await buildShim('clock', folder);
  /** @type {Map<string, Clock>} */
  const clocks = new Map();
  /** @type {Map<string, number>} */
  const born = new Map();
  return {
    /**
     * The environment of a process that is about to start.
     *
     * @param {'redis' | import('../stage/cast.mjs').Role} role
     * @param {string} name
     * @returns {Readonly<Record<string, string>>}
     */
    envFor(role, name) {
      const nth = born.get(role) ?? 0;
      born.set(role, nth + 1);
      const wrong = wrongOf(role, nth);
      if (wrong === undefined) return {};
      const file = join(folder, `${name}.clock`);
      const clock = createClock(file, wrong);
      clocks.set(name, clock);
      return { LD_PRELOAD: library, CLOCK_SHIM_FILE: file };
    },
    /** @param {string} name */
    of(name) {
      const clock = clocks.get(name);
      if (!clock) throw new Error(`the clock of ${name} is true`);
      return clock;
    },
    /**
     * What the clock of Redis had reached by then: after a step back that is the moment of the step, because what was
     * due before it may rightly run after it. A job that is held then begins when as much time has passed as Redis had said.
     *
     * @param {{ us: number, ms: number }} moment in true time
     */
    reachedMs: ({ us, ms }) => clocks.get('redis')?.reachedMs({ us, ms }, aheadMs) ?? ms,
    /** What it shows at that moment. @param {{ us: number, ms: number }} moment */
    shownMs: ({ us, ms }) => clocks.get('redis')?.shownMs({ us, ms }) ?? ms,
    close() {
      for (const clock of clocks.values()) clock.close();
    },
  };
}

/**
 * @param {string} file
 * @param {Wrong} wrong
 */
function createClock(file, { offsetMs: first = 0, ratePpm = 0 }) {
  const handle = openSync(file, 'w');
  const sinceNs = process.hrtime.bigint();
  const jumps = [{ us: 0, ms: 0, offsetMs: first }];
  write(first);

  /** @param {number} offsetMs */
  function write(offsetMs) {
    const numbers = new BigInt64Array([BigInt(offsetMs), BigInt(ratePpm), sinceNs]);
    writeSync(handle, new Uint8Array(numbers.buffer), 0, numbers.byteLength, 0);
  }

  return {
    /** The wall clock is wrong by so much from now on. @param {number} offsetMs */
    jump(offsetMs) {
      write(offsetMs);
      jumps.push({ ...trueTime(undefined), offsetMs });
    },
    /** The latest moment that the clock showed until then, or would have shown so long after a jump. @param {{ us: number, ms: number }} moment @param {number} [moreMs] */
    reachedMs({ us, ms }, moreMs = 0) {
      const past = jumps.filter((jump) => jump.us <= us);
      return Math.max(...past.map(({ offsetMs }, at) => Math.min(ms, (past[at + 1]?.ms ?? ms) + moreMs) + offsetMs));
    },
    /** @param {{ us: number, ms: number }} moment */
    shownMs: ({ us, ms }) => ms + (jumps.findLast((jump) => jump.us <= us)?.offsetMs ?? 0),
    close: () => closeSync(handle),
  };
}

/**
 * The true time of a process whose own clock may be wrong.
 *
 * @param {string | undefined} file of its clock
 */
export function trueTime(file) {
  const us = Number(process.hrtime.bigint() / 1000n);
  const ms = Date.now();
  if (file === undefined) return { us, ms };
  const [offsetMs = 0n, ratePpm = 0n, sinceNs = 0n] = new BigInt64Array(new Uint8Array(readFileSync(file)).buffer);
  const gainedUs = (us - Number(sinceNs) / 1000) * (1 - 1e6 / (1e6 + Number(ratePpm)));
  return { us: Math.round(us - gainedUs), ms: Math.round(ms - Number(offsetMs) - gainedUs / 1000) };
}
