/**
 * Whether this user may do what producers, daemons and workers do, on the keys and channels of the namespace. Redis is
 * asked with ACL DRYRUN, which carries nothing out. A user that may not ask gets the rule that an administrator needs.
 */
import { messageOf } from '../../kernel/errors.ts';
import { CLUSTER_COMMANDS, ruleOf } from '../../redis/connection/access.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { controlKeys, GROUP, partitionKeys, placeOf } from '../../redis/keys.ts';
import type { Finding, Subject } from './finding.ts';

type Command = readonly string[];

/** What `access.ts` gives a service, but for what it can do without, each command in a form that is accepted. */
export function commandsUsed(namespace: string): readonly Command[] {
  const k = partitionKeys({ namespace, queue: 'doctor', partition: 0 });
  const c = controlKeys(namespace);
  return `ping; time; client id; client unblock 1; script load x; evalsha x 1 ${k.meta}; eval x 1 ${k.meta}
    zadd ${k.scheduled} 1 m; zrem ${k.scheduled} m; zcard ${k.scheduled}; zcount ${k.scheduled} 0 1
    zscore ${k.scheduled} m; zmscore ${k.scheduled} m; zrange ${k.scheduled} 0 1
    zrangebyscore ${k.scheduled} 0 1; hget ${k.jobs} m; hset ${k.jobs} m x; hdel ${k.jobs} m; hmget ${k.jobs} m
    hgetall ${k.meta}; hincrby ${k.meta} m 1; hlen ${k.runs}; hstrlen ${k.jobs} m; hscan ${k.jobs} 0; zscan ${k.done} 0; hsetnx ${c.queues} m x
    xadd ${k.ready} * m x; xack ${k.ready} ${GROUP} 1-1; xdel ${k.ready} 1-1; xlen ${k.ready}; xtrim ${k.ready} minid 0
    xrange ${k.ready} - +; xrevrange ${k.dead} + -; xpending ${k.ready} ${GROUP}; xclaim ${k.ready} ${GROUP} c 0 1-1
    xgroup create ${k.ready} ${GROUP} 0 mkstream; xgroup createconsumer ${k.ready} ${GROUP} c; xgroup delconsumer ${k.ready} ${GROUP} c
    xinfo groups ${k.ready}; xinfo stream ${k.ready}; xinfo consumers ${k.ready} ${GROUP}; xreadgroup group ${GROUP} c streams ${k.ready} >
    get ${k.leader}; set ${k.leader} x; del ${k.leader}; pexpire ${k.leader} 1; pttl ${k.leader}; exists ${k.ready}; type ${k.ready}
    unlink ${k.jobs}; mget ${c.beat('m')}; sadd ${c.alive} m; srem ${c.alive} m; smembers ${c.alive}; srandmember ${c.alive} 1
    spublish ${k.wake} x; ssubscribe ${c.wake}; sunsubscribe ${c.wake}`
    .split(/[;\n]/)
    .map((command) => command.trim().split(' '));
}

export async function rights({ redis, namespace, info }: Subject): Promise<Finding> {
  const isNode = info.get('redis_mode') === 'cluster';
  const ofNode = isNode ? CLUSTER_COMMANDS.map((name) => name.split('|')) : [];
  const commands = [...commandsUsed(namespace), ...ofNode];
  const user = await whoAmI(redis);
  if (user === undefined) return unseen('who this user is', namespace);
  const refused = new Set<string>();
  for (const command of commands) {
    const reply = await dryRun(redis, user, command);
    if (reply === undefined) return unseen(`the rights of user ${user}`, namespace);
    if (reply !== 'OK') refused.add(refusalOf(reply, command));
  }
  if (refused.size === 0) {
    return { status: 'ok', saw: `user ${user} may use all ${commands.length} commands on keys ${placeOf(namespace)}*` };
  }
  const advice =
    `ACL SETUSER ${user} ~${placeOf(namespace)}* &${placeOf(namespace)}* ${rulesOf([...refused])}`.trimEnd();
  return { status: 'fail', saw: `user ${user} may not use ${[...refused].join(', ')}`, advice };
}

async function whoAmI(redis: Redis): Promise<string | undefined> {
  try {
    return String(await redis.call('ACL', 'WHOAMI'));
  } catch {
    return undefined;
  }
}

/** `OK`, or what is refused; undefined when this user may not ask, or this server cannot tell. */
async function dryRun(redis: Redis, user: string, command: Command): Promise<string | undefined> {
  try {
    return String(await redis.call('ACL', 'DRYRUN', user, ...command));
  } catch (error) {
    // A command this server does not know is one that nobody may use.
    return /not found/i.test(messageOf(error)) ? `the '${command[0]}' command` : undefined;
  }
}

/** `This user has no permissions to run the 'xadd' command` → `command xadd`; the same for keys and channels. */
function refusalOf(reply: string, [name = '']: Command): string {
  const [, what, kind] = /'([^']*)' (command|key|channel)/.exec(reply) ?? [];
  if (kind === undefined) return `command ${name}`;
  return kind === 'command' ? `command ${what}` : `${kind}s like ${what}`;
}

const rulesOf = (refused: readonly string[]) =>
  refused.flatMap((text) => (text.startsWith('command ') ? [`+${text.slice('command '.length)}`] : [])).join(' ');

function unseen(what: string, namespace: string): Finding {
  const advice = `ask an administrator whether the user of daemons and workers has ${ruleOf('service', { namespace })}`;
  return { status: 'warn', saw: `${what} cannot be seen: ACL DRYRUN is not allowed`, advice };
}
