/** Commands on texts, hashes, sets, sorted sets and keys. */
import { integer } from './keyspace.mjs';
import { OK, Refusal, Status } from './replies.mjs';
import { boundOf, printed, SortedSet, scoreOf } from './sorted-set.mjs';
import { Stream } from './stream.mjs';

/** @typedef {import('./keyspace.mjs').Keyspace} Keyspace */
/** @typedef {import('./replies.mjs').Reply} Reply */
/** @typedef {(db: Keyspace, ...args: string[]) => Reply} Command */

/** @template T @param {readonly T[]} list @returns {(readonly [T, T])[]} */
const paired = (list) =>
  list.flatMap((one, at) => (at % 2 === 0 ? [/** @type {const} */ ([one, /** @type {T} */ (list[at + 1])])] : []));

/** @param {readonly { member: string, score: number }[]} found @param {readonly string[]} options @returns {Reply[]} */
function listed(found, options) {
  const words = options.map((word) => word.toUpperCase());
  const at = words.indexOf('LIMIT');
  const [from, count] = at === -1 ? [0, found.length] : [integer(options[at + 1]), integer(options[at + 2])];
  const some = found.slice(from, count < 0 ? undefined : from + count);
  return some.flatMap(({ member, score }) => (words.includes('WITHSCORES') ? [member, printed(score)] : [member]));
}

/** @typedef {readonly { member: string, score: number }[]} Ranked */

/**
 * A range by bytes: `[a` with its text, `(a` without it, `-` and `+` everything.
 *
 * @param {SortedSet | undefined} set
 * @param {string} from
 * @param {string} to
 * @returns {Ranked}
 */
function byLex(set, from, to) {
  const [first, last] = [from.slice(1), to.slice(1)];
  if (!set || from === '+' || to === '-') return [];
  return set.lexBetween(
    (member) => from === '-' || (from.startsWith('[') ? member >= first : member > first),
    (member) => to !== '+' && (to.startsWith('[') ? member > last : member >= last),
  );
}

/** @param {number} at @param {number} size */
const fromEnd = (at, size) => (at < 0 ? Math.max(0, size + at) : at);

/** @type {Readonly<Record<string, Command>>} */
export const plain = {
  GET: (db, key) => db.text(key) ?? null,
  GETEX(db, key, _px, ms) {
    const text = db.text(key) ?? null;
    const stored = db.at(key);
    if (stored) stored.expiresMs = db.nowMs() + integer(ms);
    return text;
  },
  MGET: (db, ...keys) => keys.map((key) => (typeof db.at(key)?.content === 'string' ? (db.text(key) ?? null) : null)),
  SET(db, key, value, ...options) {
    const words = options.map((word) => word.toUpperCase());
    const there = db.at(key) !== undefined;
    if ((words.includes('NX') && there) || (words.includes('XX') && !there)) return null;
    const px = words.indexOf('PX');
    const ex = words.indexOf('EX');
    const ttlMs = px !== -1 ? integer(options[px + 1]) : ex !== -1 ? 1000 * integer(options[ex + 1]) : undefined;
    if (ttlMs !== undefined && ttlMs <= 0) throw new Refusal("ERR invalid expire time in 'set' command");
    db.all.set(key, { content: value, expiresMs: ttlMs === undefined ? undefined : db.nowMs() + ttlMs });
    return OK;
  },
  INCR: (db, key) => plain.INCRBY?.(db, key, '1') ?? null,
  INCRBY(db, key, by) {
    const value = integer(db.text(key) ?? '0') + integer(by);
    db.all.set(key, { content: String(value), expiresMs: db.at(key)?.expiresMs });
    return value;
  },
  DEL: (db, ...keys) => keys.filter((key) => db.remove(key)).length,
  UNLINK: (db, ...keys) => keys.filter((key) => db.remove(key)).length,
  EXISTS: (db, ...keys) => keys.filter((key) => db.at(key)).length,
  KEYS: (db) => db.keys(),
  TYPE(db, key) {
    const content = db.at(key)?.content;
    if (content === undefined) return new Status('none');
    if (typeof content === 'string') return new Status('string');
    const kinds = /** @type {const} */ ([
      [Map, 'hash'],
      [Set, 'set'],
      [SortedSet, 'zset'],
      [Stream, 'stream'],
    ]);
    return new Status(kinds.find(([kind]) => content instanceof kind)?.[1] ?? 'none');
  },
  PTTL(db, key) {
    const stored = db.at(key);
    if (!stored) return -2;
    return stored.expiresMs === undefined ? -1 : stored.expiresMs - db.nowMs();
  },
  PEXPIRE(db, key, ms) {
    const stored = db.at(key);
    if (!stored) return 0;
    stored.expiresMs = db.nowMs() + integer(ms);
    return 1;
  },
  PERSIST(db, key) {
    const stored = db.at(key);
    if (stored?.expiresMs === undefined) return 0;
    stored.expiresMs = undefined;
    return 1;
  },
  FLUSHALL(db) {
    db.all.clear();
    return OK;
  },

  HGET: (db, key, field) => db.hash(key)?.get(field) ?? null,
  HMGET: (db, key, ...fields) => fields.map((field) => db.hash(key)?.get(field) ?? null),
  HGETALL: (db, key) => [...(db.hash(key) ?? [])].flat(),
  HKEYS: (db, key) => [...(db.hash(key)?.keys() ?? [])],
  HLEN: (db, key) => db.hash(key)?.size ?? 0,
  HSTRLEN: (db, key, field) => (db.hash(key)?.get(field) ?? '').length,
  HEXISTS: (db, key, field) => (db.hash(key)?.has(field) ? 1 : 0),
  HSCAN: (db, key) => ['0', [...(db.hash(key) ?? [])].flat()],
  HSET(db, key, ...rest) {
    const hash = db.needHash(key);
    const before = hash.size;
    for (const [field, value] of paired(rest)) hash.set(field, value);
    return hash.size - before;
  },
  HSETNX(db, key, field, value) {
    const hash = db.needHash(key);
    if (hash.has(field)) return 0;
    hash.set(field, value);
    return 1;
  },
  HDEL(db, key, ...fields) {
    const gone = fields.filter((field) => db.hash(key)?.delete(field)).length;
    db.tidy(key);
    return gone;
  },
  HINCRBY(db, key, field, by) {
    const more = integer(by);
    const hash = db.needHash(key);
    const value = integer(hash.get(field) ?? '0') + more;
    hash.set(field, String(value));
    return value;
  },

  SADD(db, key, ...members) {
    const set = db.needSet(key);
    const before = set.size;
    for (const member of members) set.add(member);
    return set.size - before;
  },
  SREM(db, key, ...members) {
    const gone = members.filter((member) => db.set(key)?.delete(member)).length;
    db.tidy(key);
    return gone;
  },
  SMEMBERS: (db, key) => [...(db.set(key) ?? [])],
  SRANDMEMBER: (db, key, count) => [...(db.set(key) ?? [])].slice(0, integer(count)),

  ZADD(db, key, ...rest) {
    const first = rest.findIndex((word) => !/^(NX|XX|CH|GT|LT)$/i.test(word));
    const flags = rest.slice(0, first).map((word) => word.toUpperCase());
    const wanted = paired(rest.slice(first)).map(([score, member]) => ({ score: scoreOf(score), member }));
    const found = db.find(SortedSet, key);
    const apt = wanted.filter(({ member, score }) => {
      const before = found?.scores.get(member);
      if (before === undefined) return !flags.includes('XX');
      if (flags.includes('GT') || flags.includes('LT')) return flags.includes('GT') ? score > before : score < before;
      return !flags.includes('NX');
    });
    if (apt.length === 0) return 0;
    const set = db.need(SortedSet, key);
    return apt.filter(({ member, score }) => set.add(member, score)).length;
  },
  ZREM(db, key, ...members) {
    const gone = members.filter((member) => db.find(SortedSet, key)?.remove(member)).length;
    db.tidy(key);
    return gone;
  },
  ZCARD: (db, key) => db.find(SortedSet, key)?.scores.size ?? 0,
  ZSCORE(db, key, member) {
    const score = db.find(SortedSet, key)?.scores.get(member);
    return score === undefined ? null : printed(score);
  },
  ZMSCORE: (db, key, ...members) => members.map((member) => plain.ZSCORE?.(db, key, member) ?? null),
  ZCOUNT: (db, key, from, to) => db.find(SortedSet, key)?.between(boundOf(from), boundOf(to)).length ?? 0,
  ZLEXCOUNT: (db, key, from, to) => byLex(db.find(SortedSet, key), from, to).length,
  ZRANGE(db, key, from, to, ...options) {
    const set = db.find(SortedSet, key);
    const words = options.map((word) => word.toUpperCase());
    const isBack = words.includes('REV');
    // From the end, the larger edge comes first.
    const [low, high] = isBack ? [to, from] : [from, to];
    const inTurn = (/** @type {Ranked} */ found) => listed(isBack ? [...found].reverse() : found, options);
    if (words.includes('BYLEX')) return inTurn(byLex(set, low, high));
    if (words.includes('BYSCORE')) return inTurn(set?.between(boundOf(low), boundOf(high)) ?? []);
    if (isBack) return plain.ZREVRANGE?.(db, key, from, to, ...options) ?? null;
    const sorted = set?.sorted ?? [];
    const last = integer(to) < 0 ? sorted.length + integer(to) : integer(to);
    return listed(sorted.slice(fromEnd(integer(from), sorted.length), last + 1), options);
  },
  ZREVRANGE(db, key, from, to, ...options) {
    const sorted = [...(db.find(SortedSet, key)?.sorted ?? [])].reverse();
    const last = integer(to) < 0 ? sorted.length + integer(to) : integer(to);
    return listed(sorted.slice(fromEnd(integer(from), sorted.length), last + 1), options);
  },
  ZRANGEBYSCORE: (db, key, from, to, ...options) =>
    listed(db.find(SortedSet, key)?.between(boundOf(from), boundOf(to)) ?? [], options),
  ZSCAN: (db, key) => [
    '0',
    (db.find(SortedSet, key)?.sorted ?? []).flatMap(({ member, score }) => [member, printed(score)]),
  ],
};
