/**
 * Cuts a script off before one of its writes, and lets a partition run dry afterwards as workers and movers would. A cut
 * counts every call that is not a reading one, so XDEL and XACK, counters and nudges are writes like any other.
 */

import { isTombstone } from '../../src/job/codec.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { GROUP, type PartitionRef } from '../../src/redis/keys.ts';
import { createJobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { ensureGroup, ownPending, readEntries, readNew, reclaim } from '../../src/redis/scripts/ready.ts';
import type { Delivery } from '../../src/redis/scripts/replies.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import type { Snapshot } from './invariants.ts';

const READING = [
  'TIME',
  'GET',
  'PTTL',
  'EXISTS',
  'HGET',
  'HMGET',
  'HGETALL',
  'HLEN',
  'HSCAN',
  'HSTRLEN',
  'ZSCORE',
  'ZMSCORE',
  'ZCARD',
  'ZLEXCOUNT',
];
READING.push('ZCOUNT', 'ZRANGE', 'ZRANGEBYSCORE', 'ZSCAN', 'XLEN', 'XRANGE', 'XREVRANGE', 'XPENDING', 'XINFO');

/**
 * Stands in the place of the first comment, so that lines keep their numbers. How many writes are allowed comes behind the
 * arguments: a text of its own for each number would stay in Redis, whose Lua then collects its garbage ever more slowly.
 */
const COUNTING =
  `local real, left, reading = redis, tonumber(table.remove(ARGV)), { ${READING.map((name) => `${name} = 1`).join(', ')} } ` +
  `local function cut(how) return function(command, ...) if not reading[command] then ` +
  `if left == 0 then error('cut off at ' .. command, 2) end left = left - 1 end return how(command, ...) end end ` +
  `local redis = { sha1hex = real.sha1hex, call = cut(real.call), pcall = cut(real.pcall) }`;

/** The command before which the script was cut off, and its line; undefined when it had no more writes and ended. */
export async function cutOff(
  redis: Redis,
  { verb, lua, allowed, call }: { verb: string; lua: string; allowed: number; call: () => Promise<unknown> },
): Promise<string | undefined> {
  const name = `duestream_${verb}`;
  const { numberOfKeys } = scriptOptions()[name] ?? {};
  const script = lua.split('\n').with(1, COUNTING).join('\n');
  const whole: unknown = Reflect.get(redis, name);
  const fixed = numberOfKeys === undefined ? [] : [numberOfKeys];
  Reflect.set(redis, name, (...parts: (string | number)[]) => redis.call('EVAL', script, ...fixed, ...parts, allowed));
  try {
    await call();
    return undefined;
  } catch (error) {
    const [, line, command] = /(?:user_script:(\d+): )?cut off at (\w+)/.exec(String(error)) ?? [];
    if (command === undefined) throw error;
    return `${verb}:${line ?? 'tail'} ${command}`;
  } finally {
    Reflect.set(redis, name, whole);
  }
}

export const luaOf = (verb: string): string => scriptOptions()[`duestream_${verb}`]?.lua ?? '';

/** Redis itself refuses a write of such a script. */
export function isReadOnly(verb: string): boolean {
  return luaOf(verb).startsWith('#!lua flags=no-writes\n');
}

/** Every write a script names, as `cutOff` names them. */
export function writesOf(verb: string): readonly string[] {
  const lines = luaOf(verb).split('\n');
  return lines.flatMap((line, at) =>
    [...line.matchAll(/(return )?redis\.p?call\s*\('([A-Z]+)'/g)]
      .filter(([, , command = '']) => !READING.includes(command))
      // Lua keeps no line of a call that is returned.
      .map(([, returned, command]) => `${verb}:${returned === undefined ? at + 1 : 'tail'} ${command}`),
  );
}

/** The text of the line that a write is in, as `cutOff` names it; of a call that is returned, ''. */
export const lineOf = (verb: string, site: string): string =>
  luaOf(verb).split('\n')[Number(/:(\d+)/.exec(site)?.[1]) - 1] ?? '';

/** What only a gated queue writes; `gates-cuts.ts` cuts that off. */
const OF_GATES = [
  /'(?:ZADD|ZREM)', (?:keys\.)?(?:line|lanes|holds)\b/,
  /\(?(?:keys\.)?meta, '(?:gate|turn)'|'HSET', meta, unpack\(words\)/,
  /'SPUBLISH', (?:keys\.)?work\b/,
  /'HSET', (?:keys\.)?groups\b/,
  /'(?:HSET|HDEL|DEL)', (?:keys\.)?order\b/,
  /keys\.meta, 'paused'|'paused', mark\)/,
  /(?:keys\.)?meta, 'closing'/,
  /'ZADD', keys\.scheduled, 'XX', unpack\(scores\)|'ZREM', keys\.scheduled, unpack\(members\)/,
];
/** Only what a gate lets through makes an entry in other scripts than those of the leader; and an edit that moves a job in line. */
const ENTRIES = /'XADD', ready, |'XGROUP', 'CREATE', ready/;
/** In these scripts only a lane that waits for a time, and who closes and opens, nudges the leader. */
const OF_TIME = /'wake', text|'SPUBLISH', wake, text/;
const TIMED_BY: readonly string[] = ['promote', 'relay', 'serve', 'complete', 'commit', 'expire', 'close'];
const OF_EDIT = /'wake'|'SPUBLISH', wake/;
export function isOfGates(verb: string, site: string): boolean {
  const line = lineOf(verb, site);
  if (OF_GATES.some((words) => words.test(line))) return true;
  if (TIMED_BY.includes(verb) && OF_TIME.test(line)) return true;
  return (verb === 'edit' && OF_EDIT.test(line)) || (!['promote', 'relay'].includes(verb) && ENTRIES.test(line));
}

/** What only newer data of a debounced job write; `test/redis/debounce.test.ts` cuts that off. */
const OF_DEBOUNCE = [
  /\bnews\.(?:run|score|record)\)/,
  /'ZADD', keys\.scheduled, 'NX', text, member\)|'HSET', keys\.runs, member,$|keys\.meta, 'n\.scheduled'/,
  /'ZADD', keys\.scheduled, 'XX', news\.score/,
];
export const isOfDebounce = (verb: string, site: string): boolean =>
  OF_DEBOUNCE.some((words) => words.test(lineOf(verb, site)));
/** What only a job writes that is handed out ahead, which the model does not; `test/redis/ahead.test.ts` cuts that off. */
const OF_AHEAD = [
  /'SPUBLISH', stop, |keys\.meta, 'ahead', |'n\.promoted', count\)/,
  /'ZREM', keys\.scheduled, (?:unpack\(begins\)|member\)$)|'HSET', keys\.runs, member, unboundText\(run, text\)/,
];
export const isOfAhead = (verb: string, site: string): boolean =>
  !['cancel', 'expire'].includes(verb) && OF_AHEAD.some((words) => words.test(lineOf(verb, site)));
/** What only lines of handlers write, which the model has not; `test/redis/log.test.ts` cuts that off. */
const OF_LOGS = /'(?:HDEL|HSET)', (?:keys\.)?(?:logs,|meta, 'logs')/;
export const isOfLogs = (verb: string, site: string): boolean => OF_LOGS.test(lineOf(verb, site));
/** What only a queue writes that shares a limit with others, which the model has not; `test/redis/lend.test.ts` cuts that off. */
export const isOfLending = (verb: string, site: string): boolean => /meta, 'lent'/.test(lineOf(verb, site));
/** Functions that only the end of a member of a set calls; `test/proof/sets.test.ts` cuts them off. */
const OF_SETS = /^ *local function (?:endInSet|callBack|keepSet|forgetSet|rejoin)\(/;
const MAKES_TAGS: readonly string[] = ['schedule', 'edit', 'replay', 'fire', 'mend-tags'];
const NUDGES_OF_SETS: readonly string[] = ['cancel', 'start', 'cast'];
export function isOfSets(verb: string, site: string): boolean {
  const [line, lines] = [lineOf(verb, site), luaOf(verb).split('\n')];
  if (!MAKES_TAGS.includes(verb) && line.includes("redis.call('ZADD', tags, unpack(words))")) return true;
  if (NUDGES_OF_SETS.includes(verb) && OF_TIME.test(line)) return true;
  const at = Number(/:(\d+)/.exec(site)?.[1]) - 1;
  return lines.some((first, from) => {
    const isIt = OF_SETS.test(first) || /^ *local function endTags\(/.test(first);
    if (!isIt || from > at) return false;
    const indent = /^ */.exec(first)?.[0] ?? '';
    const to = lines.indexOf(`${indent}end`, from);
    return at < to && !line.includes('dropTags');
  });
}

/** Everything in the database, and a way back to it. */
export async function savePoint(redis: Redis): Promise<() => Promise<void>> {
  const keys = await redis.keys('*');
  const saved = await Promise.all(
    keys.map(async (key) => ({ key, ttl: Math.max(0, await redis.pttl(key)), dump: await redis.dumpBuffer(key) })),
  );
  return async () => {
    await redis.flushall();
    await Promise.all(saved.map(({ key, ttl, dump }) => dump && redis.restore(key, ttl, dump)));
  };
}

const LATER_MS = 200_000;
const ROUNDS_MAX = 8;

/** Promotes, adopts, starts and completes until nothing is left to do. */
export async function drain(
  redis: Redis,
  ref: PartitionRef,
  { fromMs, windowMs = 600_000 }: { fromMs: number; windowMs?: number | undefined },
): Promise<void> {
  const jobs = createJobs(redis);
  const call = { windowMs, nowMs: fromMs + LATER_MS };
  await redis.hdel(ref.keys.meta, 'paused');
  await redis.del(ref.keys.leader);
  await ensureGroup(redis, ref.keys);
  const { term } = await elect(redis, ref, { processId: 'drain', leaseMs: 60_000, nowMs: call.nowMs });

  async function work(consumer: string, deliveries: readonly Delivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const starts = await jobs.start(ref, deliveries, { ...call, consumer, bytesMax: 1_000_000 });
    const late = deliveries.filter((_, at) => starts[at]?.kind === 'late');
    if (late.length > 0) await jobs.expire(ref, late, { ...call, consumer });
    const claims = deliveries.flatMap(({ entry, member }, at) => {
      const started = starts[at];
      return started && 'token' in started ? [{ entry, member, token: started.token }] : [];
    });
    if (claims.length > 0) await jobs.complete(ref, claims, call);
  }

  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    // The second worker is dead. The first takes what it had, and adopts what it does not know it has.
    await reclaim(redis, ref, { owner: 'w2', consumer: 'w1', idleMs: 0, limit: 100, nowMs: call.nowMs });
    const own = await ownPending(redis, ref.keys, { consumer: 'w1', idleMs: 0, limit: 100 });
    const deliveries = await readEntries(redis, ref.keys, own);
    const ghosts = own.filter((entry) => !deliveries.some((delivery) => delivery.entry === entry));
    if (ghosts.length > 0) await redis.xack(ref.keys.ready, GROUP, ...ghosts);
    await work('w1', deliveries);
    await jobs.promote(ref, { term, leaseMs: 60_000, limit: 500, cap: 10_000, nowMs: call.nowMs + 1000 * round });
    const read = await readNew(redis, [ref], { consumer: 'w1', count: 100, blockMs: 0 });
    const idle = read.length === 0 && (await redis.zcard(ref.keys.scheduled)) === 0;
    for (const { deliveries } of read) await work('w1', deliveries);
    if (idle) return;
  }
}

/** Dead letters about nonsense: who was cut off after one writes it again, and there is nothing in it to replay. */
const NONSENSE = ['bad-due', 'bad-member'];
/** Without a done window nothing says that an entry's job is over: what is left of a cut-off end becomes this dead letter. */
const NOTHING_LEFT = 'record-missing';

/** How every job ended; what has not ended is said to be somewhere. */
export function endsOf(snapshot: Snapshot): readonly string[] {
  const live = [...snapshot.jobs].filter(([, content]) => !isTombstone(content)).map(([member]) => `${member} is live`);
  const over = [...snapshot.jobs]
    .filter(([, content]) => isTombstone(content))
    // What it was asked for is told as well: by that a repeated call is known.
    .map(([member, tombstone]) => `${member} ${tombstone.split(' ', 2).join(' ')}`);
  const waiting = [...snapshot.scheduled.keys()].map((member) => `${member} is scheduled`);
  const entries = snapshot.ready.map(({ member }) => `${member} has an entry`);
  const dead = snapshot.dead.filter(({ fields }) => fields.get('reason') !== NOTHING_LEFT);
  const deadLetters = dead.map(({ fields }) => `dead letter of ${fields.get('member')}: ${fields.get('reason')}`);
  const once = deadLetters.filter(
    (deadLetter, at) => deadLetters.indexOf(deadLetter) === at || !NONSENSE.some((why) => deadLetter.endsWith(why)),
  );
  // Earlier lives stand behind the last. A call that is cut off may count one start more, and says another time.
  const past = [...snapshot.past].map(([id, text]) => `${id} ended ${text.split(' ', 2)[1]}`);
  return [...live, ...over, ...waiting, ...entries, ...once, ...past].sort();
}
