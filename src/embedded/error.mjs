/**
 * The one error of this folder, with the exit status a command should end with: 69 when there is no Redis, 78 when a
 * setting makes no sense. It stands apart from the catalogue in `src/kernel`, which does not exist before the build.
 */

/** What a person can do about it. */
const REMEDY =
  'Get one with "sudo apt-get install redis-server", "brew install redis" or "docker run -d -p 6379:6379 redis:7-alpine", or name one: --redis redis://host:6379, DUESTREAM_REDIS_SERVER_BIN=/path/to/redis-server. Needed: Redis 7.0 or Valkey 7.2, or later.';

export class EmbeddedRedisError extends Error {
  /** @type {'unavailable' | 'bad-config'} */
  code;
  /** For `process.exitCode`. */
  exitCode;

  /**
   * @param {'unavailable' | 'bad-config'} code
   * @param {string} message
   * @param {ErrorOptions} [options]
   */
  constructor(code, message, options) {
    super(message, options);
    this.name = 'EmbeddedRedisError';
    this.code = code;
    this.exitCode = code === 'unavailable' ? 69 : 78;
  }
}

/**
 * @param {readonly string[]} tried one line per step: what it was and why it gave nothing
 * @param {string} [forced] the only step that was allowed
 */
export function noRedis(tried, forced) {
  const head = forced
    ? `No Redis to run: DUESTREAM_REDIS_SOURCE=${forced} allows this step alone, and it gave nothing.`
    : 'No Redis to run. What was tried:';
  const lines = tried.map((line) => `  ${line}`);
  return new EmbeddedRedisError('unavailable', [head, ...lines, REMEDY].join('\n'));
}
