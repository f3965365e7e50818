/**
 * Puts the dependencies there before a script that imports them is read: `node --import ./scripts/dependencies.mjs
 * bench/bench.mjs`. So each measurement of package.json runs on a fresh clone.
 */
import { Failed } from './run.mjs';
import { dependencies } from './steps.mjs';

try {
  await dependencies();
} catch (error) {
  if (!(error instanceof Failed)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(error.exitCode);
}
