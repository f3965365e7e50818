/**
 * What a Redis must be like to keep jobs, as a list of checks. Each looks at one thing, says what it saw and, unless
 * all is well, what to do. Where looking is forbidden (CONFIG often is), the check warns instead of guessing.
 */
import { systemClock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { span } from '../../kernel/humanize.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { lineOf } from '../../kernel/version.ts';
import { CLUSTER_COMMANDS, ruleOf } from '../../redis/connection/access.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import { describe, type Redis } from '../../redis/connection/connect.ts';
import { createServerClock, OFFSET_MAX_MS, offsetOf } from '../../redis/connection/server-clock.ts';
import { controlKeys, GROUP, partitionKeys, partitionRef, placeOf } from '../../redis/keys.ts';
import { stats } from '../../redis/read/inspect.ts';
import { scriptOptions } from '../../redis/scripts/scripts.ts';
import type { Check, Finding, Info, Subject } from './check.ts';
import { lateness } from './check-lateness.ts';
import { limits } from './check-limits.ts';
import { dueTimes, members } from './check-members.ts';
import { closedTags, done, schema, streams, unsealedSets } from './check-namespace.ts';
import { policies } from './check-policies.ts';
import { processes, workers } from './check-processes.ts';
import { schedules } from './check-schedules.ts';
import { targetSecrets } from './check-targets.ts';

export const checks: readonly Check[] = [
  { name: 'reachable', look: reachable },
  { name: 'version', needsInfo: true, perServer: true, look: ({ info }) => version(info) },
  { name: 'patches', needsInfo: true, perServer: true, look: ({ info }) => patches(info) },
  { name: 'role', needsInfo: true, perServer: true, look: ({ info }) => role(info) },
  { name: 'eviction', needsInfo: true, perServer: true, look: ({ info }) => eviction(info) },
  { name: 'persistence', needsInfo: true, perServer: true, look: persistence },
  { name: 'clock', perServer: true, look: clock },
  { name: 'rights', perServer: true, look: rights },
  { name: 'scripts', look: scripts },
  { name: 'offers', look: offers },
  { name: 'schema', look: schema },
  { name: 'workers', look: workers },
  { name: 'processes', look: processes },
  { name: 'policies', look: policies },
  { name: 'limits', look: limits },
  { name: 'lateness', look: lateness },
  { name: 'scores', look: dueTimes },
  { name: 'members', look: members },
  { name: 'schedules', look: schedules },
  { name: 'streams', look: streams },
  { name: 'done', look: done },
  { name: 'closed', look: closedTags },
  { name: 'sets', look: unsealedSets },
  { name: 'targets', look: targetSecrets },
];

export async function readInfo(redis: Redis): Promise<Info> {
  const lines = (await redis.info()).split(/\r?\n/).filter((text) => text.includes(':'));
  return new Map(lines.map((text) => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]));
}

async function reachable({ redis }: Subject): Promise<Finding> {
  const startedMs = systemClock.monotonicMs();
  await redis.ping();
  const tookMs = systemClock.monotonicMs() - startedMs;
  const saw = `${describe(redis)} answers in ${tookMs.toFixed(1)} ms`;
  if (tookMs < SLOW_MS) return { status: 'ok', saw };
  return {
    status: 'warn',
    saw,
    advice: 'run daemons and workers closer to Redis: every start and every end of a job waits this long',
  };
}

const SLOW_MS = 50;

function version(info: Info): Finding {
  const { product, version: found } = versionOf(info);
  const [major = 0, minor = 0] = found.split('.').map(Number);
  const minorMin = product === 'Valkey' ? 2 : 0;
  const saw = `${product} ${found}`;
  if (major > 7 || (major === 7 && minor >= minorMin)) return { status: 'ok', saw };
  return { status: 'fail', saw, advice: 'upgrade to Redis 7.0 or later, or Valkey 7.2 or later' };
}

function role(info: Info): Finding {
  const is = info.get('role') ?? 'unknown';
  if (is === 'master') return { status: 'ok', saw: 'primary' };
  return { status: 'fail', saw: is === 'slave' ? 'replica' : is, advice: 'name the primary: a replica takes no jobs' };
}

function eviction(info: Info): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown';
  const limit = Number(info.get('maxmemory') ?? 0);
  const saw = `${policy}, ${limit === 0 ? 'no memory limit' : `limit ${Math.round(limit / 2 ** 20)} MiB`}`;
  if (policy === 'noeviction') return { status: 'ok', saw };
  const advice = 'CONFIG SET maxmemory-policy noeviction: any other policy may delete jobs when memory is short';
  return { status: limit === 0 ? 'warn' : 'fail', saw, advice };
}

async function persistence({ redis, info }: Subject): Promise<Finding> {
  if (info.get('aof_enabled') === '1') {
    if (info.get('aof_last_write_status') === 'err') {
      const advice = 'free space on the disk of Redis, or repair it: it cannot write';
      return { status: 'fail', saw: 'AOF, but its last write failed', advice };
    }
    return synced(await setting(redis, 'appendfsync'));
  }
  const save = await setting(redis, 'save');
  if (save === '') {
    const advice = 'CONFIG SET appendonly yes: without it no job survives a restart of Redis';
    return { status: 'fail', saw: 'none', advice };
  }
  const advice =
    'CONFIG SET appendonly yes: without it a crash loses every job that was scheduled or ended since that snapshot';
  return { status: 'warn', saw: `${save === undefined ? 'no AOF' : 'snapshots only'}, ${sinceSnapshot(info)}`, advice };
}

function synced(fsync: string | undefined): Finding {
  if (fsync === 'always') return { status: 'ok', saw: 'AOF, fsync always: no acknowledged write is lost' };
  if (fsync === 'everysec')
    return { status: 'ok', saw: 'AOF, fsync everysec: a power failure can lose the last two seconds' };
  if (fsync === undefined) {
    return { status: 'warn', saw: 'AOF, fsync not visible', advice: 'check that appendfsync is everysec or always' };
  }
  const advice = 'CONFIG SET appendfsync everysec: without it a power failure can lose half a minute';
  return { status: 'warn', saw: `AOF, fsync ${fsync}`, advice };
}

function sinceSnapshot(info: Info): string {
  const savedMs = Number(info.get('rdb_last_save_time') ?? 0) * 1000;
  const changes = info.get('rdb_changes_since_last_save') ?? '?';
  return `last snapshot ${span(systemClock.wallMs() - savedMs)} ago, ${changes} changes since`;
}

/** A setting, '' when it is empty, or undefined when CONFIG is forbidden. */
async function setting(redis: Redis, name: string): Promise<string | undefined> {
  try {
    const reply = await redis.config('GET', name);
    return Array.isArray(reply) ? String(reply[1] ?? '') : undefined;
  } catch {
    return undefined;
  }
}

/** Only what is certain counts: the line may be slow. */
async function clock({ redis }: Subject): Promise<Finding> {
  const server = createServerClock(redis, systemClock);
  await server.measure();
  const { offsetMs, errorMs } = offsetOf(server, systemClock);
  const saw = `Redis is ${span(offsetMs)} ${offsetMs < 0 ? 'behind' : 'ahead of'} this machine`;
  if (Math.abs(offsetMs) - errorMs <= OFFSET_MAX_MS) return { status: 'ok', saw };
  const advice =
    'set both clocks by NTP: due times count by the clock of Redis, but this machine reads an --at by its own';
  return { status: 'warn', saw, advice };
}

/** Whether there is Lua at all; then it loads every script, and runs the one that only reads. */
async function scripts({ redis, namespace }: Subject): Promise<Finding> {
  const all = Object.values(scriptOptions());
  const refusal = await refused(redis, ['EVAL', 'return 1', '0']);
  if (refusal !== undefined && NOT_THERE.test(refusal)) {
    const advice =
      'use a server that runs Lua scripts: each transition of a job is one. Some are built without the Lua engine';
    return { status: 'fail', saw: `EVAL is not offered: ${refusal}`, advice };
  }
  try {
    for (const server of membersOf(redis)) for (const { lua } of all) await server.script('LOAD', lua);
    await stats(redis, partitionRef(namespace, { queue: 'doctor', partition: 0, layoutGeneration: 0 }));
    return { status: 'ok', saw: `${all.length} scripts load, and one was run` };
  } catch (error) {
    const advice = 'allow EVAL, EVALSHA, SCRIPT LOAD and the keys of the namespace to this user';
    return { status: 'fail', saw: reasonOf(error), advice };
  }
}

/**
 * What a managed or serverless Redis may leave out, each tried in a form that changes nothing, with what follows. Nothing of it
 * is needed, so this check only warns.
 */
async function offers({ redis, namespace, info }: Subject): Promise<Finding> {
  // A write would end the connection to a replica.
  if (info.get('role') === 'slave') return { status: 'ok', saw: 'not asked of a replica' };
  const { wake, ready } = partitionKeys({ namespace, queue: 'doctor', partition: 0 });
  const read = ['GROUP', GROUP, 'doctor', 'BLOCK', '1', 'STREAMS', ready, '>'];
  const tried: readonly (readonly [what: string, command: Command, advice: string])[] = [
    ['reads that block', ['XREADGROUP', ...read], 'set worker.read to poll'],
    ['sharded channels', ['SPUBLISH', wake, '0'], CHANNELS],
    ['WAIT', ['WAIT', '0', '1'], 'durable calls that wait for replicas are refused'],
    ['CLIENT ID', ['CLIENT', 'ID'], 'a worker that stops waits until its read ends, 2 s at most'],
    ['CONFIG GET', ['CONFIG', 'GET', 'save'], 'look at persistence in the console of the service'],
  ];
  const [first = redis] = membersOf(redis);
  const missing: { readonly what: string; readonly advice: string }[] = [];
  for (const [what, command, advice] of tried) {
    const refusal = await refused(OF_KEYS.has(what) ? redis : first, command);
    if (refusal !== undefined && NOT_THERE.test(refusal)) missing.push({ what, advice });
  }
  if (missing.length === 0) return { status: 'ok', saw: tried.map(([what]) => what).join(', ') };
  const advice = missing.map((one) => `${one.what}: ${one.advice}`).join('; ');
  return { status: 'warn', saw: `not offered: ${missing.map(({ what }) => what).join(', ')}`, advice };
}

const OF_KEYS: ReadonlySet<string> = new Set(['reads that block', 'sharded channels']);
const CHANNELS =
  'nobody is told of jobs, so leaders, workers and subscribers find them when they look: a leader each second, a worker after worker.pollEvery';

/** What a server says to a command that it does not have, or a service that refuses it; what a user may not is in `rights`. */
const NOT_THERE = /unknown (sub)?command|not (allowed|supported|available)|disabled|scripting engine/i;

/** How Redis refused a command; undefined: it was carried out. */
async function refused(redis: Redis, [name = '', ...args]: Command): Promise<string | undefined> {
  try {
    await redis.call(name, ...args);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/*
 * Versions with known vulnerabilities by which a user or a stranger gets hold of a server. The versions come from release notes
 * and CVE records. A distribution may have patched an older version without a new number, so this check only warns.
 */

interface Hole {
  readonly cve: string;
  readonly what: string;
  readonly product: 'Redis' | 'Valkey';
  /** The first version that has it. */
  readonly from: string;
  /** The first version without it, one per line of releases. Later lines never had it. */
  readonly fixed: readonly string[];
}

const IN_ALL = '0.0.0';
const LUA = { cve: 'CVE-2025-49844', what: 'a script can take over the server', from: IN_ALL } as const;
const UNBLOCKED = { cve: 'CVE-2026-23479', what: 'a client that is unblocked can take over the server' } as const;
const RESTORED = { cve: 'CVE-2026-25243', what: 'RESTORE can take over the server', from: IN_ALL } as const;
// Redis 6.2 has no such scripts.
const SYNCED = {
  cve: 'CVE-2026-23631',
  what: 'a replica that takes writes can be taken over while a script runs',
  from: '7.0.0',
} as const;

/**
 * Sources: release notes of Redis of October 2025, May and July 2026, and of Valkey of October 2025, February, May and July
 * 2026; the CVE records of CVE-2026-23631, CVE-2026-66373, CVE-2026-81934 and CVE-2025-67733. Modules are left out.
 */
const HOLES: readonly Hole[] = [
  { ...LUA, product: 'Redis', fixed: ['6.2.20', '7.2.11', '7.4.6', '8.0.4', '8.2.2'] },
  { ...LUA, product: 'Valkey', fixed: ['7.2.11', '8.0.6', '8.1.4'] },
  {
    cve: 'CVE-2025-67733',
    what: 'a script can forge replies to others on its connection',
    product: 'Valkey',
    from: IN_ALL,
    fixed: ['7.2.12', '8.0.7', '8.1.6', '9.0.2'],
  },
  ...[{ ...UNBLOCKED, from: '7.2.0' }, SYNCED, RESTORED].flatMap((hole): Hole[] => [
    { ...hole, product: 'Redis', fixed: ['7.2.14', '7.4.9', '8.2.6', '8.4.3', '8.6.3'] },
    // 8.0.8 was withdrawn.
    { ...hole, product: 'Valkey', fixed: ['7.2.13', '8.0.9', '8.1.7', '9.0.4'] },
  ]),
  {
    cve: 'CVE-2026-66373',
    what: 'RESTORE of a stream can take over the server',
    product: 'Redis',
    from: IN_ALL,
    fixed: ['7.2.15', '7.4.10', '8.2.8', '8.4.5', '8.6.5'],
  },
  {
    cve: 'CVE-2026-81934',
    what: 'whoever reaches its TLS port can take over the server',
    product: 'Redis',
    from: IN_ALL,
    fixed: ['7.2.16', '7.4.11', '8.2.9', '8.4.6', '8.6.6', '8.8.2', '8.10.1'],
  },
  ...[
    { cve: 'CVE-2026-56684', what: 'CLIENT KILL of a TLS connection can take over the server' },
    { cve: 'CVE-2026-63639', what: 'a forged stream in RESTORE or an RDB file can take over the server' },
  ].map(
    (hole): Hole => ({
      ...hole,
      product: 'Valkey',
      from: IN_ALL,
      fixed: ['7.2.14', '8.0.10', '8.1.9', '9.0.5', '9.1.1'],
    }),
  ),
];

export function patches(info: Info): Finding {
  const { product, version } = versionOf(info);
  const open = HOLES.filter((hole) => hole.product === product && isOpen(version, hole));
  const saw = `${product} ${version}`;
  if (open.length === 0) return { status: 'ok', saw: `${saw} has none of the vulnerabilities that we know` };
  const holes = open.map(({ cve, what }) => `${cve} (${what})`).join(', ');
  const advice = `upgrade to ${remedy(product, version)} or later, unless your distribution has patched this version`;
  return { status: 'warn', saw: `${saw} has known vulnerabilities: ${holes}`, advice };
}

export function versionOf(info: Info): { readonly product: Hole['product']; readonly version: string } {
  const valkey = info.get('valkey_version');
  if (valkey !== undefined) return { product: 'Valkey', version: valkey };
  return { product: 'Redis', version: info.get('redis_version') ?? '0.0.0' };
}

function isOpen(version: string, { from, fixed }: Hole): boolean {
  if (compare(version, from) < 0) return false;
  const own = fixed.find((candidate) => lineOf(candidate) === lineOf(version));
  if (own !== undefined) return compare(version, own) < 0;
  return compare(version, fixed.at(-1) ?? '') < 0;
}

/** The next version that has none of the holes: of its own line of releases, or of the next that was repaired. */
function remedy(product: Hole['product'], version: string): string {
  const holes = HOLES.filter((hole) => hole.product === product);
  const later = holes.flatMap(({ fixed }) => fixed).filter((candidate) => compare(candidate, version) > 0);
  return later.sort(compare).find((candidate) => !holes.some((hole) => isOpen(candidate, hole))) ?? 'the newest';
}

function compare(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split('.').map((part) => Number.parseInt(part, 10) || 0));
  for (const at of [0, 1, 2]) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/*
 * Whether this user may run every command that clients, daemons and workers send, on the keys and channels of the
 * namespace. The check asks by ACL DRYRUN, which runs nothing. If the user may not ask, the advice is the rule that an
 * administrator needs.
 */

type Command = readonly string[];

/** What `access.ts` gives a service, but for what it can do without, each command in a form that is accepted. */
export function commandsUsed(namespace: string): readonly Command[] {
  const k = partitionKeys({ namespace, queue: 'doctor', partition: 0 });
  const c = controlKeys(namespace);
  return `ping; time; client id; client unblock 1; script load x; evalsha x 1 ${k.meta}; eval x 1 ${k.meta}
    zadd ${k.scheduled} 1 m; zrem ${k.scheduled} m; zcard ${k.scheduled}; zcount ${k.scheduled} 0 1; zlexcount ${k.line} - +
    zscore ${k.scheduled} m; zmscore ${k.scheduled} m; zrange ${k.scheduled} 0 1
    zrangebyscore ${k.scheduled} 0 1; hget ${k.jobs} m; hset ${k.jobs} m x; hdel ${k.jobs} m; hmget ${k.jobs} m
    hgetall ${k.meta}; hincrby ${k.meta} m 1; hlen ${k.runs}; hstrlen ${k.jobs} m; hscan ${k.jobs} 0; zscan ${k.done} 0; hsetnx ${c.queues} m x
    xadd ${k.ready} * m x; xack ${k.ready} ${GROUP} 1-1; xdel ${k.ready} 1-1; xlen ${k.ready}; xtrim ${k.ready} minid 0
    xrange ${k.ready} - +; xrevrange ${k.dead} + -; xpending ${k.ready} ${GROUP}; xclaim ${k.ready} ${GROUP} c 0 1-1
    xgroup create ${k.ready} ${GROUP} 0 mkstream; xgroup createconsumer ${k.ready} ${GROUP} c; xgroup delconsumer ${k.ready} ${GROUP} c
    xinfo groups ${k.ready}; xinfo stream ${k.ready}; xinfo consumers ${k.ready} ${GROUP}; xreadgroup group ${GROUP} c streams ${k.ready} >
    get ${k.leader}; getex ${k.leader} px 1; set ${k.leader} x; del ${k.leader}; pexpire ${k.leader} 1; pttl ${k.leader}; exists ${k.ready}; type ${k.ready}
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
