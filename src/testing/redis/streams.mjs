/** Commands on streams. What a consumer reads with XREADGROUP is in `read`, because it may have to wait for it. */
import { integer } from './keyspace.mjs';
import { OK, Refusal } from './replies.mjs';
import { compare, edgeOf, held, idOf, nameOf, Stream } from './stream.mjs';

/** @typedef {import('./keyspace.mjs').Keyspace} Keyspace */
/** @typedef {import('./replies.mjs').Reply} Reply */
/** @typedef {import('./stream.mjs').Group} Group */
/** @typedef {import('./stream.mjs').Entry} Entry */

/** @param {Entry} entry @returns {Reply} */
const shown = ({ id, fields }) => [id, fields];

/** @param {Keyspace} db @param {string} key @param {string} name @returns {Group} */
function groupOf(db, key, name) {
  const group = db.find(Stream, key)?.groups.get(name);
  if (group) return group;
  throw new Refusal(`NOGROUP No such key '${key}' or consumer group '${name}'`);
}

/** @param {Keyspace} db @param {string} key @returns {Stream} */
function known(db, key) {
  const stream = db.find(Stream, key);
  if (stream) return stream;
  throw new Refusal('ERR no such key');
}

/** @param {Keyspace} db @param {string} key @param {string} from @param {string} to */
const between = (db, key, from, to) => db.find(Stream, key)?.between(edgeOf(from, 'from'), edgeOf(to, 'to')) ?? [];

/** @param {readonly string[]} options @returns {number} */
function countIn(options) {
  const at = options.findIndex((word) => /^count$/i.test(word));
  return at === -1 ? Number.POSITIVE_INFINITY : integer(options[at + 1]);
}

/** @type {Readonly<Record<string, import('./plain.mjs').Command>>} */
export const streams = {
  XADD: (db, key, ...words) => {
    const isThere = /^nomkstream$/i.test(words[0] ?? '');
    const isBounded = /^maxlen$/i.test(words[0] ?? '');
    // Redis may keep some more with `~`, and need not.
    const at = isBounded && /^[~=]$/.test(words[1] ?? '') ? 2 : 1;
    const [id = '', ...fields] = words.slice(isBounded ? at + 1 : Number(isThere));
    const most = isBounded ? integer(words[at]) : Number.POSITIVE_INFINITY;
    if (fields.length === 0 || fields.length % 2 === 1) {
      throw new Refusal("ERR wrong number of arguments for 'xadd' command");
    }
    if (isThere && !db.find(Stream, key)) return null;
    const stream = db.need(Stream, key);
    const added = stream.add(id, fields, db.nowMs());
    while (stream.entries.length > most) stream.remove(stream.entries[0]?.id ?? '');
    return added;
  },
  XLEN: (db, key) => db.find(Stream, key)?.entries.length ?? 0,
  XDEL: (db, key, ...ids) => ids.filter((id) => db.find(Stream, key)?.remove(id)).length,
  XTRIM: (db, key, how, id) => {
    if (how.toUpperCase() !== 'MINID') throw new Refusal('ERR syntax error');
    const stream = db.find(Stream, key);
    const gone = stream?.entries.filter((one) => compare(one.key, idOf(id)) < 0) ?? [];
    for (const one of gone) stream?.remove(one.id);
    return gone.length;
  },
  XRANGE: (db, key, from, to, ...options) => between(db, key, from, to).slice(0, countIn(options)).map(shown),
  XREVRANGE: (db, key, to, from, ...options) =>
    between(db, key, from, to).reverse().slice(0, countIn(options)).map(shown),
  XACK: (db, key, name, ...ids) => {
    const group = db.find(Stream, key)?.groups.get(name);
    return ids.filter((id) => group?.pending.delete(nameOf(idOf(id)))).length;
  },

  XPENDING(db, key, name, ...rest) {
    const group = groupOf(db, key, name);
    if (rest.length === 0) return summary(group);
    const idle = /^idle$/i.test(rest[0] ?? '') ? integer(rest[1]) : undefined;
    const [from = '-', to = '+', count, consumer] = idle === undefined ? rest : rest.slice(2);
    const [first, last] = [edgeOf(from, 'from'), edgeOf(to, 'to')];
    return held(group)
      .filter((one) => compare(one.key, first) >= 0 && compare(one.key, last) <= 0)
      .filter((one) => consumer === undefined || one.consumer === consumer)
      .filter((one) => idle === undefined || db.nowMs() - one.atMs >= idle)
      .slice(0, integer(count))
      .map((one) => [one.id, one.consumer, Math.max(0, db.nowMs() - one.atMs), one.count]);
  },

  XCLAIM(db, key, name, consumer, idle, ...rest) {
    const group = groupOf(db, key, name);
    const options = rest.findIndex((word) => /^[a-z]/i.test(word));
    const ids = options === -1 ? rest : rest.slice(0, options);
    const words = rest.slice(ids.length).map((word) => word.toUpperCase());
    const [force, justId, aged] = [words.includes('FORCE'), words.includes('JUSTID'), words.indexOf('IDLE')];
    const atMs = db.nowMs() - (aged === -1 ? 0 : integer(words[aged + 1]));
    /** @type {Reply[]} */
    const claimed = [];
    for (const id of ids.map((one) => nameOf(idOf(one)))) {
      const entry = db.find(Stream, key)?.find(id);
      const before = group.pending.get(id);
      if (!entry) group.pending.delete(id);
      if (!entry || !(before || force) || isYoung(before, integer(idle), db.nowMs())) continue;
      group.consumers.set(consumer, db.nowMs());
      const count = (before?.count ?? 1) + (justId ? 0 : 1);
      group.pending.set(id, { consumer, atMs, count });
      claimed.push(justId ? id : shown(entry));
    }
    return claimed;
  },

  XGROUP(db, verb, key, name, ...rest) {
    const stream = db.find(Stream, key);
    const make = verb.toUpperCase() === 'CREATE';
    if (!stream && !(make && rest.some((word) => /^mkstream$/i.test(word)))) {
      throw new Refusal(
        'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.',
      );
    }
    if (make) return createGroup(db.need(Stream, key), name, rest[0] ?? '$');
    const group = stream?.groups.get(name);
    if (verb.toUpperCase() === 'DESTROY') return stream?.groups.delete(name) ? 1 : 0;
    if (!group) throw new Refusal(`NOGROUP No such consumer group '${name}' for key name '${key}'`);
    return onGroup(group, verb.toUpperCase(), { consumer: rest[0] ?? '', nowMs: db.nowMs() });
  },

  XINFO(db, verb, key, name) {
    const stream = known(db, key);
    if (verb.toUpperCase() === 'GROUPS') return [...stream.groups].map(([one, group]) => groupInfo(one, group, stream));
    const group = stream.groups.get(name ?? '');
    if (!group) throw new Refusal(`NOGROUP No such consumer group '${name}' for key name '${key}'`);
    return [...group.consumers]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([consumer, seenMs]) => {
        const count = held(group).filter((one) => one.consumer === consumer).length;
        return ['name', consumer, 'pending', count, 'idle', Math.max(0, db.nowMs() - seenMs)];
      });
  },
};

/**
 * Zero asks for no age, and takes also what was delivered by a clock that has gone back since.
 *
 * @param {{ atMs: number } | undefined} held
 * @param {number} idleMs
 * @param {number} nowMs
 */
const isYoung = (held, idleMs, nowMs) => held !== undefined && idleMs > 0 && nowMs - held.atMs < idleMs;

/** @param {Stream} stream @param {string} name @param {string} from */
function createGroup(stream, name, from) {
  if (stream.groups.has(name)) throw new Refusal('BUSYGROUP Consumer Group name already exists');
  const last = from === '$' ? stream.last : idOf(from);
  stream.groups.set(name, { last, read: 0, pending: new Map(), consumers: new Map() });
  return OK;
}

/** @param {Group} group @param {string} verb @param {{ consumer: string, nowMs: number }} of @returns {Reply} */
function onGroup(group, verb, { consumer, nowMs }) {
  if (verb === 'CREATECONSUMER') {
    if (group.consumers.has(consumer)) return 0;
    group.consumers.set(consumer, nowMs);
    return 1;
  }
  if (verb !== 'DELCONSUMER') throw new Refusal(`ERR unknown subcommand '${verb}'. Try XGROUP HELP.`);
  const own = held(group).filter((one) => one.consumer === consumer);
  for (const { id } of own) group.pending.delete(id);
  group.consumers.delete(consumer);
  return own.length;
}

/** @param {Group} group @returns {Reply} */
function summary(group) {
  const all = held(group);
  const counts = new Map();
  for (const { consumer } of all) counts.set(consumer, (counts.get(consumer) ?? 0) + 1);
  const each = [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => [name, String(count)]);
  return all.length === 0 ? [0, null, null, null] : [all.length, all[0]?.id ?? '', all.at(-1)?.id ?? '', each];
}

/** @param {string} name @param {Group} group @param {Stream} stream @returns {Reply} */
function groupInfo(name, group, stream) {
  const lag = stream.entries.filter(({ key }) => compare(key, group.last) > 0).length;
  return [
    ...['name', name, 'consumers', group.consumers.size, 'pending', group.pending.size],
    ...['last-delivered-id', nameOf(group.last), 'entries-read', group.read, 'lag', lag],
  ];
}

/** @typedef {{ group: string, consumer: string, count: number, blockMs: number | undefined, keys: readonly string[] }} Reading */

/** The words of XREADGROUP. @param {readonly string[]} words @returns {Reading} */
export function readingOf(words) {
  const after = (/** @type {string} */ option) => {
    const at = words.findIndex((word) => word.toUpperCase() === option);
    return at === -1 ? undefined : words[at + 1];
  };
  const rest = words.slice(words.findIndex((word) => word.toUpperCase() === 'STREAMS') + 1);
  const keys = rest.slice(0, rest.length / 2);
  if (rest.slice(keys.length).some((id) => id !== '>')) throw new Refusal('ERR only new entries are read here');
  const block = after('BLOCK');
  return {
    group: words[1] ?? '',
    consumer: words[2] ?? '',
    keys,
    count: integer(after('COUNT') ?? '1000000'),
    blockMs: block === undefined ? undefined : integer(block),
  };
}

/**
 * Delivers what is new, or nothing.
 *
 * @param {Keyspace} db
 * @param {Reading} reading
 * @returns {Reply[]}
 */
export function read(db, { group: name, consumer, count, keys }) {
  const found = keys.map((key) => {
    const stream = db.find(Stream, key);
    const group = stream?.groups.get(name);
    if (stream && group) return { key, stream, group };
    const why = `NOGROUP No such key '${key}' or consumer group '${name}' in XREADGROUP with GROUP option`;
    throw new Refusal(why);
  });
  return found.flatMap(({ key, stream, group }) => {
    const entries = stream.after(group.last, count);
    if (entries.length === 0) return [];
    group.consumers.set(consumer, db.nowMs());
    for (const { id, key: last } of entries) {
      group.pending.set(id, { consumer, atMs: db.nowMs(), count: 1 });
      group.last = last;
    }
    group.read += entries.length;
    return [[key, entries.map(shown)]];
  });
}
