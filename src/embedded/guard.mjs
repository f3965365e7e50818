/**
 * Starts a server that cannot outlive us. A process that gets SIGKILL cleans up nothing, so the server is started by a
 * shell that leaves a watcher behind: the watcher reads from a pipe that only we hold open, and when we are gone, in
 * whatever way, the pipe closes and the watcher tells the server to go.
 *
 *     we ──pipe──▶ watcher (cat) ──SIGTERM when the pipe closes──▶ server
 *
 * The shell then becomes the server (`exec`), so the child's pid and exit are the server's own. The server gets its
 * own session: Ctrl-C reaches us alone, and we decide when the server may stop.
 */
import { spawn } from 'node:child_process';

/** The second subshell hands the watcher to init, so that the server never meets a child it did not start. */
const GUARD = `
exec 3<&0 </dev/null
( ( cat <&3; kill -TERM $$; kill -CONT $$ ) >/dev/null 2>&1 & )
exec "$@" 3<&-
`;

/**
 * @typedef {object} GuardedCommand
 * @property {string} path the program
 * @property {readonly string[]} args
 */

/**
 * The child's stdout and stderr must be read or resumed by the caller.
 *
 * @param {GuardedCommand} command
 * @returns {import('node:child_process').ChildProcessWithoutNullStreams}
 */
export function spawnGuarded({ path, args }) {
  const child = spawn('/bin/sh', ['-c', GUARD, 'guard', path, ...args], {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  // The pipe breaks when the watcher goes first; the child's exit tells the same story.
  child.stdin.on('error', () => {});
  child.once('exit', () => child.stdin.destroy());
  return child;
}

/** The watcher reads from a pipe of its own: Node closes its end of a child's input when the shell ends, and a program may live on. */
const LINE = 3;
const FOREIGN_GUARD = `
( ( trap "" TERM; cat <&${LINE}; kill -s KILL -- -$$ ) >/dev/null 2>&1 & )
exec /bin/sh -c "$1" ${LINE}<&-
`;

/**
 * Starts a program that is not ours, in a group of its own. When we are gone, it is killed with all that it has started. Signals go to
 * the group; the watcher minds none but SIGKILL.
 *
 * @param {string} command a line for the shell
 * @param {Readonly<Record<string, string | undefined>>} env
 */
export function spawnForeign(command, env) {
  const child = spawn('/bin/sh', ['-c', FOREIGN_GUARD, 'guard', command], {
    detached: true,
    env: { ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  child.stdio[LINE]?.on('error', () => {});
  return child;
}

/**
 * Ends the watch, and what is left of the program.
 *
 * @param {ReturnType<typeof spawnForeign>} child
 */
export const letGo = (child) => void child.stdio[LINE]?.destroy();
