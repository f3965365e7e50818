/**
 * A Redis with the users of `docs/how-to/secure-redis.md` and nobody else: its lines are read from there, so that what is
 * documented is what is tried. Who looks on has a user of his own; `default` is off.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';

/** @typedef {'duestream' | 'shop' | 'onlooker'} User of the how-to */
/** @typedef {{ readonly reason: string, readonly object: string, readonly user: string, readonly client: string }} Refusal */

const HOW_TO = fileURLToPath(new URL('../../../docs/how-to/secure-redis.md', import.meta.url));
/** The queue of the how-to's example, and those of ours that its application is let into. */
const EXAMPLE = 'emails';
const QUEUES = ['chaos', 'load'];
/** The twin of each user tries what is forbidden; Redis keeps one entry for all refusals of a command to one user. */
const TWIN = '-trespassing';

/** @param {User} user */
export const passwordOf = (user) => `secret-of-${user}`;

/** @param {User} user @param {number} port @param {'redis' | 'rediss'} [scheme] */
export const urlOf = (user, port, scheme = 'redis') => `${scheme}://${user}:${passwordOf(user)}@127.0.0.1:${port}`;

/**
 * @param {string} folder
 * @param {'redis' | 'rediss'} [scheme] with TLS the port is left to whoever has the certificates
 * @returns {Promise<import('../stage/server.mjs').Special & { port: number, login: { username: string, password: string } }>}
 */
export async function withUsers(folder, scheme = 'redis') {
  const port = await freePort();
  const login = { username: 'harness', password: 'secret-of-harness' };
  const lines = [...linesOf('duestream'), ...linesOf('shop'), ...linesOf('onlooker')];
  const others = [`user ${login.username} reset on >${login.password} ~* &* +@all`, 'user default reset off'];
  const aclfile = join(folder, 'users.acl');
  writeFileSync(aclfile, `${[...lines, ...others].join('\n')}\n`);
  return {
    port,
    settings: { port: String(port), bind: '127.0.0.1', aclfile },
    login,
    urls: {
      daemon: urlOf('duestream', port, scheme),
      worker: urlOf('duestream', port, scheme),
      producer: urlOf('shop', port, scheme),
    },
  };
}

/** As an ACL file has it, and its twin. @param {User} user */
function linesOf(user) {
  const line = new RegExp(`^ACL SETUSER (${user} .*)$`, 'm').exec(readFileSync(HOW_TO, 'utf8'))?.[1];
  if (!line) throw new Error(`the how-to has no user ${user}`);
  const words = line.replace(/>\S+/, `>${passwordOf(user)}`).split(' ');
  const there = words.flatMap((word) =>
    word.includes(EXAMPLE) ? QUEUES.map((queue) => word.replace(EXAMPLE, queue)) : [word],
  );
  return [user, `${user}${TWIN}`].map((name) => ['user', name, ...there.slice(1)].join(' '));
}

/**
 * Commands that got through, one line for each.
 *
 * @param {User} user
 * @param {number} port
 * @param {readonly (readonly string[])[]} commands
 */
export async function trespass(user, port, commands) {
  const redis = new Redis({ port, username: `${user}${TWIN}`, password: passwordOf(user) });
  /** @type {string[]} */
  const through = [];
  for (const [name = '', ...args] of commands) {
    const said = await redis.call(name, ...args).then(
      () => 'done',
      (/** @type {Error} */ error) => error.message,
    );
    if (!/NOPERM|ACL failure|can't (run|access)/.test(said))
      through.push(`${user}: ${name} ${args.join(' ')}: ${said}`);
  }
  redis.disconnect();
  return through;
}

/**
 * What Redis refused to anybody but the twins.
 *
 * @param {Redis} redis
 * @returns {Promise<readonly Refusal[]>}
 */
export async function refusals(redis) {
  const entries = /** @type {readonly (readonly unknown[])[]} */ (await redis.call('ACL', 'LOG', '1000'));
  return entries
    .map((entry) => {
      const of = (/** @type {string} */ field) => String(entry[entry.indexOf(field) + 1]);
      const client = /\bname=(\S*)/.exec(of('client-info'))?.[1] ?? '';
      return { reason: of('reason'), object: of('object'), user: of('username'), client };
    })
    .filter(({ user }) => !user.endsWith(TWIN));
}

/** @returns {Promise<number>} that nobody else listens on now */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
