/**
 * A run by a title (`-t`) that no test has is red: all its tests are skipped, which looks as if they had passed.
 *
 * What the compiler of this file does not know of vitest:
 * @typedef {{ config: { testNamePattern?: RegExp }, state: { getFiles: () => readonly Task[] } }} Vitest
 * @typedef {{ mode?: string, result?: { state: string }, tasks?: readonly Task[] }} Task
 */

/** What vitest calls before a run, and what this returns after it. @param {{ vitest: Vitest }} project */
export function setup({ vitest }) {
  return () => {
    const { testNamePattern } = vitest.config;
    const files = vitest.state.getFiles();
    // A file that could not be loaded is red already. Each project of the configuration calls this.
    if (!testNamePattern || process.exitCode || files.some((file) => hasRun(file) || file.result?.state === 'fail'))
      return;
    process.stderr.write(`\nNo test has a title that fits ${testNamePattern}: nothing was tried.\n`);
    process.exitCode = 1;
  };
}

/** @param {Task} task @returns {boolean} */
function hasRun({ mode, tasks, result }) {
  return tasks ? tasks.some(hasRun) : mode === 'run' && result !== undefined;
}
