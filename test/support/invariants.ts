/**
 * The invariants I1 to I12, I15, I16 and I20 of the design over one whole partition, read at one moment by one read-only script. A
 * snapshot is plain data, so the checker itself is tested by planting what it has to find.
 *
 * I1, I7 and I9 speak of more than one moment: `Since` brings what was before, and what should have happened by now.
 */
import { decodeRun, decodeTombstone, isTombstone, type Run } from '../../src/job/codec.ts';
import { decodeHeader, entriesOfRecord } from '../../src/job/record-header.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionKeys } from '../../src/redis/keys.ts';
import { fieldsOf, list, type Reply, score, text } from '../../src/redis/scripts/scripts.ts';
import { hollowNodes } from './streams.mjs';

export interface Snapshot {
  readonly scheduled: ReadonlyMap<string, number>;
  /** Member → record or tombstone. */
  readonly jobs: ReadonlyMap<string, string>;
  readonly runs: ReadonlyMap<string, string>;
  readonly ready: readonly { readonly entry: string; readonly member: string; readonly due: number }[];
  /** Entry → consumer. */
  readonly pending: ReadonlyMap<string, string>;
  /** The last entry that was delivered; undefined without a group. */
  readonly delivered: string | undefined;
  readonly dead: readonly { readonly deadLetter: string; readonly fields: ReadonlyMap<string, string> }[];
  readonly done: ReadonlyMap<string, number>;
  readonly stale: ReadonlyMap<string, number>;
  /** Entries of the index of tags: tag, zero byte, member. */
  readonly tags: readonly string[];
  /** Id → how its job ended. */
  readonly past: ReadonlyMap<string, string>;
  readonly ended: ReadonlyMap<string, number>;
  /** Closed tag → its end, and its text. */
  readonly closed: ReadonlyMap<string, number>;
  readonly why: ReadonlyMap<string, string>;
  readonly meta: ReadonlyMap<string, string>;
  readonly leader: string;
  readonly leaderTtlMs: number;
  /** Streams with a node that has no live entry, which newer servers do not load. */
  readonly hollow: readonly string[];
  /** Times to live of the keys that have none; all of them -1 or -2. */
  readonly ttls: readonly number[];
}

export interface Since {
  /** What the partition was before the last call. */
  readonly before?: Snapshot;
  /** Nothing due before this moment may still be scheduled. */
  readonly promotedUpTo?: number;
  /** Somebody destroyed the group, and nobody has made it again yet. */
  readonly groupless?: boolean;
  /** The group was made again: what one consumer runs may have been given to another, which start will resolve. */
  readonly regrouped?: boolean;
  /** The lease was spoiled from outside. */
  readonly spoiled?: boolean;
  /** Members that somebody else put without what belongs to them. */
  readonly foreign?: ReadonlySet<string>;
  /** The queue keeps a history, and always did. */
  readonly keeps?: boolean;
  /** A call was cut off: what it added is there twice, what it counted or had still to remove is not yet right. */
  readonly cutOff?: boolean;
}

const LIVE_KEYS = ['scheduled', 'jobs', 'runs', 'ready', 'dead', 'done', 'leader', 'meta', 'stale', 'tags'] as const;
export const SNAPSHOT_KEYS = [...LIVE_KEYS, 'past', 'ended', 'closed', 'why'] as const;
export const SNAPSHOT_LUA = `#!lua flags=no-writes
local scheduled, jobs, runs, ready, dead, done, leader, meta, stale, tags, past, ended, closed, why = unpack(KEYS)
local delivered, pending, ttls = '', {}, {}
if redis.call('EXISTS', ready) == 1 then
  for _, group in ipairs(redis.call('XINFO', 'GROUPS', ready)) do
    if group[2] == 'workers' then delivered, pending = group[8], redis.call('XPENDING', ready, 'workers', '-', '+', 10000) end
  end
end
for _, key in ipairs({ scheduled, jobs, runs, ready, dead, done, meta, stale, tags, past, ended, closed, why }) do ttls[#ttls + 1] = redis.call('PTTL', key) end
return { redis.call('ZRANGE', scheduled, 0, -1, 'WITHSCORES'), redis.call('HGETALL', jobs), redis.call('HGETALL', runs),
  redis.call('XRANGE', ready, '-', '+'), pending, delivered, redis.call('XRANGE', dead, '-', '+'),
  redis.call('ZRANGE', done, 0, -1, 'WITHSCORES'), redis.call('HGETALL', meta), redis.call('GET', leader) or '',
  redis.call('PTTL', leader), ttls, redis.call('ZRANGE', stale, 0, -1, 'WITHSCORES'), redis.call('ZRANGE', tags, 0, -1),
  redis.call('HGETALL', past), redis.call('ZRANGE', ended, 0, -1, 'WITHSCORES'),
  redis.call('ZRANGE', closed, 0, -1, 'WITHSCORES'), redis.call('HGETALL', why) }`;

export async function takeSnapshot(redis: Redis, keys: PartitionKeys): Promise<Snapshot> {
  const names = SNAPSHOT_KEYS.map((name) => keys[name]);
  const reply = list((await redis.call('EVAL_RO', SNAPSHOT_LUA, names.length, ...names)) as Reply);
  const [scheduled, jobs, runs, ready, pending, delivered, dead, done, meta, leader, ttl, ttls, stale, ...indexes] =
    reply;
  const [tags, past, ended, closed, why] = indexes;
  const streams = [keys.ready, keys.dead];
  const nodes = await Promise.all(streams.map((key) => hollowNodes(redis, key)));
  const stream = (part: Reply | undefined) =>
    list(part).map((item) => ({ id: text(list(item)[0]), fields: fieldsOf(list(item)[1]) }));
  const scores = (part: Reply | undefined) =>
    new Map([...fieldsOf(part)].map(([member, at]) => [member, score(at)] as const));
  return {
    scheduled: scores(scheduled),
    jobs: fieldsOf(jobs),
    runs: fieldsOf(runs),
    ready: stream(ready).map(({ id, fields }) => ({
      entry: id,
      member: fields.get('member') ?? '',
      due: Number(fields.get('due')),
    })),
    pending: new Map(list(pending).map((item) => [text(list(item)[0]), text(list(item)[1])] as const)),
    delivered: delivered === '' ? undefined : text(delivered),
    dead: stream(dead).map(({ id, fields }) => ({ deadLetter: id, fields })),
    done: scores(done),
    stale: scores(stale),
    tags: list(tags).map(text),
    past: fieldsOf(past),
    ended: scores(ended),
    closed: scores(closed),
    why: fieldsOf(why),
    meta: fieldsOf(meta),
    leader: text(leader),
    leaderTtlMs: Number(ttl),
    hollow: streams.filter((_, at) => nodes[at] !== 0),
    ttls: list(ttls).map(Number),
  };
}

/** Sentences of the design that do not hold, each beginning with its number. */
export function broken(now: Snapshot, since: Since = {}): readonly string[] {
  const all = [places, kept, stream, owners, growth, promotion, times, sums, tagged, closings, loadable];
  return all.flatMap((check) => check(now, since));
}

const isLive = (content: string | undefined) => content !== undefined && !isTombstone(content);

/** The sentences that hold. */
const said = (sentences: readonly (string | false | undefined)[]) =>
  sentences.filter((sentence): sentence is string => typeof sentence === 'string');

/** I2, I3, I12: whatever has a part of a job has all of it. */
function places(now: Snapshot, { foreign, cutOff = false }: Since): readonly string[] {
  const ready = new Set(now.ready.map(({ member }) => member));
  const contents = [...now.jobs].flatMap(([member, content]) => {
    // A set, which is no job.
    if (member.startsWith('\0')) return [];
    const isReady = ready.has(member);
    if (isLive(content))
      return said([!isReady && !now.scheduled.has(member) && `I2 ${member} is lost: it has a record and is nowhere`]);
    return said([
      decodeTombstone(content) === undefined && `I2 the tombstone of ${member} cannot be read`,
      !cutOff && !now.done.has(member) && !isReady && `I2 the tombstone of ${member} is never swept`,
    ]);
  });
  const indexed = [...now.scheduled.keys()].map((member) => {
    const isOurs = member.startsWith('j:') && !foreign?.has(member);
    return !cutOff && isOurs && !isLive(now.jobs.get(member)) && `I3 ${member} is scheduled without a record`;
  });
  const runs = [...now.runs].flatMap(([member, value]) => [
    decodeRun(value) === undefined && `I12 the run of ${member} cannot be read`,
    !cutOff && !isLive(now.jobs.get(member)) && `I12 the run of ${member} has no record`,
  ]);
  return [...contents, ...said(indexed), ...said(runs)];
}

/** I16: a record has its place in the order of ends, and every end its record. A dead letter about nonsense is no end. */
function kept(now: Snapshot, { keeps = false, cutOff = false }: Since): readonly string[] {
  const placed = [...now.past.keys()].map((id) => !now.ended.has(id) && `I16 the record of ${id} is never swept`);
  const recorded = [...now.ended.keys()].map(
    (id) => !cutOff && !now.past.has(id) && `I16 ${id} has ended without a record`,
  );
  const over = [...now.jobs].map(([member, content]) => {
    const tombstone = isTombstone(content) ? decodeTombstone(content) : undefined;
    if (!keeps || !tombstone || (tombstone.outcome === 'dead' && tombstone.token === '0')) return false;
    const end = ` ${content.slice(1, 2)} ${tombstone.token} ${tombstone.attempts} `;
    return !now.past.get(member)?.includes(end) && `I16 nothing is kept of the end of ${member}`;
  });
  return said([...placed, ...recorded, ...over]);
}

/** I4, I5, I6: the entries, and who holds them. */
function stream(now: Snapshot, { groupless = false, cutOff = false }: Since): readonly string[] {
  const entries = new Set(now.ready.map(({ entry }) => entry));
  const { delivered } = now;
  // Between XDEL and XACK a call that was cut off leaves an I4; whoever adopts or reclaims the entry ends it.
  const pending = [...now.pending.keys()].map(
    (entry) => !cutOff && !entries.has(entry) && `I4 ${entry} is pending and not in ready`,
  );
  if (delivered === undefined)
    return said([...pending, now.ready.length > 0 && !groupless && 'I6 ready has entries and no group']);
  const stuck = now.ready
    .filter(({ entry }) => compareIds(entry, delivered) <= 0 && !now.pending.has(entry))
    .map(({ entry, member }) => `I5 ${entry} of ${member} was acknowledged and is still in ready`);
  return [...said(pending), ...stuck];
}

/** I1: who runs a job has its entry, and nobody else has. */
function owners(now: Snapshot, { regrouped = false, cutOff = false }: Since): readonly string[] {
  const entries = new Map(now.ready.map(({ entry, member }) => [entry, member]));
  return [...now.runs].flatMap(([member, value]) => {
    const { entry = '', owner } = decodeRun(value) ?? {};
    if (owner === undefined) return [];
    const holder = now.pending.get(entry) ?? owner;
    return said([
      entry === '' && `I1 ${member} is owned and has no entry`,
      !cutOff && entries.get(entry) !== member && `I1 ${member} runs under an entry that is not its own`,
      !regrouped && holder !== owner && `I1 ${member} runs with ${owner}, but ${holder} holds it`,
    ]);
  });
}

/** I7: tokens and epochs only grow, and within a generation so do failures, crashes and attempts. */
function growth(now: Snapshot, { before }: Since): readonly string[] {
  const metaOf = (snapshot: Snapshot | undefined, name: string) => Number(snapshot?.meta.get(name) ?? 0);
  const fell = ['token', 'epoch']
    .filter((name) => metaOf(now, name) < metaOf(before, name))
    .map((name) => `I7 the last ${name} of the partition fell`);
  const runs = [...now.runs].flatMap(([member, value]) => {
    const run = decodeRun(value);
    const was = decodeRun(before?.runs.get(member) ?? '');
    if (!run) return [];
    // One call of relay may end a bare job that was put again, and start its next life.
    const isNext = !member.startsWith('j:') && metaOf(now, 'n.adopted') > metaOf(before, 'n.adopted');
    const isAhead =
      Number(run.token) > metaOf(now, 'token') && `I7 ${member} has a token that the partition has yet to give`;
    return [...said([isAhead]), ...(was && !isNext ? fallen(member, { run, was }) : [])];
  });
  return [...fell, ...runs];
}

function fallen(member: string, { run, was }: { run: Run; was: Run }): readonly string[] {
  if (run.generation !== was.generation)
    return said([run.generation < was.generation && `I7 the generation of ${member} fell`]);
  const names = (['attempts', 'failures', 'crashes'] as const).filter((name) => run[name] < was[name]);
  return said([
    Number(run.token) < Number(was.token) && `I7 the token of ${member} fell`,
    names.length > 0 && `I7 of ${member} fell within a generation: ${names.join(', ')}`,
    // One start may count as both: its worker was believed dead, and settled in time all the same.
    Math.max(run.failures, run.crashes) > run.attempts && `I7 ${member} failed more often than it was started`,
  ]);
}

/** I8, I9: never early, never forgotten. */
function promotion(now: Snapshot, { before, promotedUpTo }: Since): readonly string[] {
  if (!before || promotedUpTo === undefined) return [];
  const old = new Set(before.ready.map(({ entry }) => entry));
  const early = now.ready
    .filter(({ entry, due }) => !old.has(entry) && due > promotedUpTo)
    .map(({ member }) => `I8 ${member} was promoted before it was due`);
  const overdue = [...now.scheduled].filter(([, due]) => due <= promotedUpTo);
  return [...early, ...overdue.map(([member]) => `I9 ${member} is overdue`)];
}

/** I10: nothing expires but what should. */
function times({ leader, leaderTtlMs, ttls }: Snapshot, { spoiled = false }: Since): readonly string[] {
  const leaseMs = Number(leader.split(':')[2]);
  const isSane = leaderTtlMs >= 0 && leaderTtlMs <= leaseMs;
  return said([
    leader !== '' && !spoiled && !isSane && `I10 the lease lives for ${leaderTtlMs} of ${leaseMs} ms`,
    ttls.some((ttl) => ttl >= 0) && 'I10 a key that should stay expires',
  ]);
}

/** I11: what came in is what is live and what went out. */
function sums(now: Snapshot, { cutOff = false }: Since): readonly string[] {
  if (cutOff) return [];
  const sum = (...names: string[]) => names.reduce((total, name) => total + Number(now.meta.get(`n.${name}`) ?? 0), 0);
  const live = [...now.jobs.values()].filter(isLive).length;
  const into = sum('scheduled', 'replayed', 'adopted');
  const out = sum('done', 'dead', 'cancelled', 'expired');
  return said([into !== live + out && `I11 ${into} came in, ${live} are live and ${out} went out`]);
}

/** The entries that the index of tags should have. */
export const tagEntries = (jobs: Iterable<readonly [member: string, content: string]>): readonly string[] =>
  [...jobs].flatMap(([member, content]) => {
    if (member.startsWith('\0set\0')) return [`=sets${member.slice(4)}`];
    const isTagged = isLive(content) && decodeHeader(content);
    return isTagged ? entriesOfRecord(content).map((tag) => `${tag}\0${member}`) : [];
  });

/** I15: tags agree with live records. A call that was cut off may leave an entry too many, and never one too few. */
function tagged(now: Snapshot, { cutOff = false }: Since): readonly string[] {
  const wanted = new Set(tagEntries(now.jobs));
  const there = new Set(now.tags);
  const told = (entry: string) => entry.replace('\0', ' of ');
  const lost = [...wanted]
    .filter((entry) => !there.has(entry))
    .map((entry) => `I15 ${told(entry)} is not in the index`);
  const astray = now.tags.filter((entry) => !wanted.has(entry)).map((entry) => `I15 ${told(entry)} is in the index`);
  return [...lost, ...(cutOff ? [] : astray)];
}

/** I20: whoever looks at `meta` knows that tags are closed, and each of them has its text, unless a call was cut off. */
function closings({ closed, why, meta }: Snapshot, { cutOff = false }: Since): readonly string[] {
  return said([
    closed.size > 0 && !meta.has('closed') && 'I20 tags are closed and nobody knows',
    ...[...why.keys()].map((tag) => !closed.has(tag) && `I20 ${tag} has a text and is open`),
    ...[...closed.keys()].map((tag) => !cutOff && !why.has(tag) && `I20 ${tag} is closed without a text`),
  ]);
}

/** A server that is stricter than ours must load every state. */
function loadable({ hollow }: Snapshot): readonly string[] {
  return hollow.map((key) => `a node of ${key} has no live entry`);
}

export function compareIds(one: string, other: string): number {
  const [ms = 0, sequence = 0] = one.split('-').map(Number);
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number);
  return ms - otherMs || sequence - otherSequence;
}
