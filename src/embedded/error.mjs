/**
 * The one error of this folder, with the exit status a command should end with: 69 when there is no Redis, 78 when a
 * setting makes no sense. It stands apart from the catalogue in `src/kernel`, which does not exist before the build.
 */

/** What a person can do about it, by system; the first lines need no installation. */
const REMEDIES = `
Any one of these helps:
  a Redis that runs already    --redis redis://host:6379, or DUESTREAM_REDIS_URL=redis://host:6379
  a program you have           DUESTREAM_REDIS_SERVER_BIN=/path/to/redis-server
  Debian, Ubuntu               sudo apt-get install redis-server   (or let duestream unpack it: it needs apt-get,
                               dpkg-deb and a reachable mirror, not root)
  macOS                        brew install redis   (or valkey)
  Fedora, RHEL                 sudo dnf install valkey
  Alpine                       apk add redis
  Windows                      wsl --install, and run duestream in there; or a Redis of Docker
  Docker                       docker run -d -p 6379:6379 redis:7-alpine
                               DUESTREAM_REDIS_URL=redis://127.0.0.1:6379
Needed: Redis 7.0 or later, or Valkey 7.2 or later.`;

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
  return new EmbeddedRedisError('unavailable', [head, ...lines, REMEDIES].join('\n'));
}
