/**
 * Tells the story as it happens: milestones stay with their time, and below them one line of progress that is rewritten
 * in place on a terminal. Elsewhere (a log, a pipe) progress is a line now and then.
 */

const TERMINAL_EVERY_MS = 100;
const LOG_EVERY_MS = 5000;
const CLEAR_LINE = '\r\x1b[2K';

/** @param {Pick<NodeJS.WriteStream, 'write'> & { isTTY?: boolean, columns?: number }} [out] */
export function createNarrator(out = process.stdout) {
  const startMs = performance.now();
  const everyMs = out.isTTY ? TERMINAL_EVERY_MS : LOG_EVERY_MS;
  let shownMs = 0;
  let live = '';

  /** @param {string} line */
  const print = (line) => {
    out.write(out.isTTY && live !== '' ? `${CLEAR_LINE}${line}\n${live}` : `${line}\n`);
  };
  const stamp = () => `t+${((performance.now() - startMs) / 1000).toFixed(1)}s`.padStart(7);

  return {
    print,
    /** A milestone with its time. @param {string} line */
    say: (line) => print(`${stamp()}  ${line}`),
    /** What stands below a milestone. @param {string} line */
    detail: (line) => print(`         ${line}`),
    /** @param {() => string} text asked only when it is time to show it */
    progress(text) {
      const nowMs = performance.now();
      if (nowMs - shownMs < everyMs) return;
      shownMs = nowMs;
      const line = `${stamp()}  ${text()}`;
      if (!out.isTTY) return void out.write(`${line}\n`);
      live = line.slice(0, (out.columns ?? 100) - 1);
      out.write(`${CLEAR_LINE}${live}`);
    },
    /** Takes the live line away. */
    endProgress() {
      if (live !== '') out.write(CLEAR_LINE);
      live = '';
    },
  };
}

/**
 * @param {number} done
 * @param {number} all
 */
export function bar(done, all) {
  const width = 24;
  const full = all === 0 ? 0 : Math.min(width, Math.floor((done / all) * width));
  return `[${'#'.repeat(full)}${'.'.repeat(width - full)}]`;
}
