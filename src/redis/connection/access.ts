/**
 * What a user of Redis must be allowed, by what it is for, and nothing else: one table, from which `doctor` makes its
 * advice and with which the how-to on a Redis of many users is compared. Scripts run with the rights of their caller, so
 * each role has what its scripts use besides what its processes send. Nobody needs FLUSHALL, CONFIG, KEYS, DEBUG, ACL,
 * SCRIPT FLUSH, or a key or channel outside the namespace.
 *
 * `info` tells whether Redis loads its data or may evict jobs; `type` names the key that somebody else has put in our way.
 */
import { controlKeys, placeOf, placeOfQueue } from '../keys.ts';

export type AccessRole = 'service' | 'producer' | 'reader';

export interface Access {
  readonly namespace: string;
  /** For a producer: those it may put jobs into. Default: all. */
  readonly queues?: readonly string[];
}

/** Whoever connects and runs a script. */
const EVERYBODY = words('client|setname evalsha eval script|load hget hstrlen info ping time type');

const COMMANDS: Readonly<Record<AccessRole, readonly string[]>> = {
  /** Daemons, workers, schedules from code, and every verb of the command line. */
  service: words(`client|id client|unblock del exists get getex hdel hgetall hincrby hlen hmget hscan hset hsetnx mget
    pexpire pttl sadd set smembers spublish srandmember srem ssubscribe sunsubscribe
    unlink
    xack xadd xclaim xdel xgroup|create xgroup|createconsumer xgroup|delconsumer xinfo|consumers xinfo|groups
    xinfo|stream xlen xpending xrange xreadgroup xrevrange xtrim zadd zcard zcount zlexcount zmscore zrange zrangebyscore zrem zscan
    zscore`),
  /** An application that schedules, cancels, changes and replays jobs, and finds them. */
  producer:
    words(`exists hdel hgetall hincrby hmget hscan hset hsetnx spublish xdel xlen xpending xrange xrevrange zadd zcard
    zcount zlexcount zmscore zrange zrem zscore`),
  /** The verbs of the command line that change nothing. */
  reader: words(`exists get hgetall hlen hmget hscan mget pttl smembers xinfo|consumers xinfo|groups xinfo|stream
    xlen xpending xrange xrevrange zcard zcount zlexcount zmscore zrange zrangebyscore zscan zscore`),
};

/** What a service may not have at all: then nobody is told of jobs, and a stop takes up to 2 s (docs/how-to/managed-redis.md). */
export const DISPENSABLE: readonly string[] = [
  ...['client|id', 'client|unblock', 'spublish', 'ssubscribe', 'sunsubscribe'],
];

/** What each role needs besides where Redis is a cluster. */
export const CLUSTER_COMMANDS: readonly string[] = ['asking', 'cluster|slots'];

/** What the user of the sentinels needs there: they are asked for the primary and for each other, and tell of a new one. */
export const SENTINEL_COMMANDS: readonly string[] = [
  ...['sentinel|get-master-addr-by-name', 'sentinel|sentinels', 'subscribe'],
];

/** The channel on which they tell. */
export const SENTINEL_CHANNEL = '+switch-master';

/** As ACL names them, `xinfo|groups`, in the order of the alphabet. */
export function commandsOf(role: AccessRole): readonly string[] {
  return [...EVERYBODY, ...COMMANDS[role]].sort();
}

/** Keys, channels and commands as `ACL SETUSER` and an ACL file take them. */
export function ruleOf(role: AccessRole, { namespace, queues }: Access): string {
  return [
    ...placesOf(role, { namespace, ...(queues ? { queues } : {}) }),
    ...commandsOf(role).map((name) => `+${name}`),
  ].join(' ');
}

function placesOf(role: AccessRole, { namespace, queues }: Access): readonly string[] {
  const all = placeOf(namespace);
  // Who changes nothing tells nobody anything.
  if (role === 'reader') return [`~${all}*`];
  if (role === 'service' || queues === undefined) return [`~${all}*`, `&${all}*`];
  const control = controlKeys(namespace);
  const own = queues.map((queue) => `${placeOfQueue(namespace, queue)}*`);
  return [
    `~${control.queues}`,
    ...own.map((place) => `~${place}`),
    `&${control.wake}`,
    ...own.map((place) => `&${place}`),
  ];
}

function words(text: string): readonly string[] {
  return text.split(/\s+/);
}
