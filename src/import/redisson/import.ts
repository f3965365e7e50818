/**
 * An import of the delayed queues of Redisson: each element becomes a job that is due at its time, to the millisecond. Values that
 * are due and wait for a consumer stay: they are in a queue like any other, and its consumers take them.
 *
 *   element ──take──▶ taken ──(duestream has it)──▶ gone
 *
 * Nothing is made twice: the number of an element makes the id of its job.
 */
import type { Queue } from '../../job/queue.ts';
import { systemClock } from '../../kernel/clock.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { isFlaw } from '../flaw.ts';
import { CHANGED, CUT_SHORT, type Here, type JobCall, type KeptCall, Maker, type Manner, UNSURE } from '../making.ts';
import { type NameMap, queueName } from '../names.ts';
import { type Said, type Sums, Tally } from '../tally.ts';
import { type DelayedKeys, dataOf, delayedKeys, nameIn, readElement, TIMEOUTS_PATTERN } from './layout.ts';

export interface DelayedParts extends Here {
  /** Of Redisson. */
  readonly redis: Redis;
}

export interface DelayedOptions extends Manner {
  /** Default: every queue with delayed elements. */
  readonly queues: readonly string[];
  readonly names: NameMap;
  /** Also values that only Java reads. */
  readonly base64: boolean;
}

/** What became of one queue. */
export interface ImportedDelayed extends Sums {
  /** Its name there, and here. */
  readonly from: string;
  readonly to: string;
  /** Elements that were taken there and are not made here: the next import tries again. */
  readonly taken: number;
  /** Values that are due, which stay. */
  readonly due: number;
}

const PAGE = 200;
const PLACE = 'delayed';

/** @throws DuestreamError `not-found` where nothing is delayed, `bad-input` for two queues with one name here */
export async function importRedisson(
  parts: DelayedParts,
  options: DelayedOptions,
): Promise<readonly ImportedDelayed[]> {
  const names = options.queues.length > 0 ? [...new Set(options.queues)] : await delayedQueues(parts.redis);
  if (names.length === 0) {
    throw new DuestreamError('not-found', 'there is no RDelayedQueue with elements; allowed: a Redis of Redisson');
  }
  const found = new Map<string, string>();
  for (const from of names) {
    const to = queueName(from, options.names);
    if (found.has(to)) {
      throw new DuestreamError(
        'bad-input',
        `queues ${found.get(to)} and ${from} would both be ${to} here; allowed: a name for each, with --map, or one of them with --queue`,
      );
    }
    found.set(to, from);
  }
  const done: ImportedDelayed[] = [];
  for (const [to, from] of found) done.push(await importDelayed(parts, options, { from, target: parts.queueOf(to) }));
  return done;
}

async function delayedQueues(redis: Redis): Promise<readonly string[]> {
  const names = new Set<string>();
  for (const node of membersOf(redis)) {
    let cursor = '0';
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', TIMEOUTS_PATTERN, 'COUNT', 500);
      for (const key of keys) names.add(nameIn(key));
      cursor = next;
    } while (cursor !== '0');
  }
  return [...names].sort();
}

/** The work on one queue. */
interface Work {
  readonly redis: Redis;
  readonly keys: DelayedKeys;
  readonly options: DelayedOptions;
  readonly maker: Maker;
  readonly tally: Tally;
}

async function importDelayed(
  parts: DelayedParts,
  options: DelayedOptions,
  { from, target }: { readonly from: string; readonly target: Queue },
): Promise<ImportedDelayed> {
  const { redis } = parts;
  const keys = delayedKeys(from);
  const maker = new Maker(parts, options, { target, nowMs: systemClock.wallMs() });
  const work: Work = { redis, keys, options, maker, tally: new Tally() };
  if (options.mode === 'move') await goOn(work);
  const size = await redis.zcard(keys.timeouts);
  let [looked, passed] = [0, 0];
  while (looked < size) {
    const page = await pageOf(work, passed, Math.min(PAGE, size - looked));
    if (page.length === 0) break;
    looked += page.length;
    passed += page.length - (await importPage(work, page));
  }
  const [taken, due] = await Promise.all([redis.hlen(keys.taken), redis.llen(from)]);
  return { from, to: target.name, taken, due, ...work.tally.sums() };
}

/** An element as it is stored, and its call here. */
interface ElementCall extends JobCall {
  readonly bytes: Buffer;
  readonly kept: KeptCall;
}

interface Stored {
  readonly bytes: Buffer;
  readonly dueMs: number;
}

async function pageOf({ redis, keys }: Work, from: number, count: number): Promise<readonly Stored[]> {
  const found = await redis.zrangeBuffer(keys.timeouts, String(from), String(from + count - 1), 'WITHSCORES');
  return pairsIn(found).map(([bytes, score]) => ({ bytes, dueMs: Math.floor(Number(score.toString())) }));
}

function pairsIn(found: readonly Buffer[]): readonly (readonly [Buffer, Buffer])[] {
  return Array.from({ length: found.length / 2 }, (_, at) => [found[2 * at] ?? NONE, found[2 * at + 1] ?? NONE]);
}

const NONE = Buffer.alloc(0);

/** @returns how many have left their place */
async function importPage(work: Work, page: readonly Stored[]): Promise<number> {
  const { options, maker, tally } = work;
  const calls: ElementCall[] = [];
  for (const stored of page) {
    const call = callOf(work, stored, maker.nowMs);
    if ('text' in call) tally.leave(PLACE, call, {});
    else calls.push(call);
  }
  if (options.mode === 'dry-run') {
    tally.add(PLACE, 'imported', calls.length);
    return 0;
  }
  if (options.mode === 'copy') {
    await makeJobs(work, PLACE, calls);
    return 0;
  }
  const taken = await take(work, calls);
  if (taken.length < calls.length) tally.leave(PLACE, CHANGED, { count: calls.length - taken.length });
  await makeJobs(work, PLACE, taken);
  return taken.length;
}

/** The same element is the same call, whenever it is made. */
function callOf({ options, maker }: Work, { bytes, dueMs }: Stored, takenMs: number): ElementCall | Said {
  const element = readElement(bytes);
  if (isFlaw(element)) return { kind: 'packed', text: `an element cannot be read: ${element.flaw}` };
  const content = dataOf(element.value, options.base64);
  if (isFlaw(content)) return { kind: 'codec', text: `an element cannot be read: ${content.flaw}` };
  const id = `redisson:${element.number}`;
  const call = { bytes, data: content.data, options: { id, at: new Date(dueMs) }, kept: { id, dueMs, takenMs } };
  return maker.unfit(call) ?? call;
}

/** Makes the jobs here, and removes there what is confirmed. @throws DuestreamError in an outage: the next import goes on */
async function makeJobs(work: Work, place: string, calls: readonly ElementCall[]): Promise<void> {
  const { redis, keys, options, maker, tally } = work;
  const fates = await maker.make(calls);
  const settled: Buffer[] = [];
  for (const [at, call] of calls.entries()) {
    const fate = fates[at] ?? CHANGED;
    if (typeof fate === 'object') tally.leave(place, fate, { id: call.kept.id });
    else {
      tally.add(place, fate);
      settled.push(call.bytes);
    }
  }
  if (options.mode === 'move' && settled.length > 0) await redis.hdel(keys.taken, ...settled);
}

/** @returns those that were there, and are taken now */
async function take({ redis, keys }: Work, calls: readonly ElementCall[]): Promise<readonly ElementCall[]> {
  if (calls.length === 0) return [];
  const each = calls.flatMap(({ bytes, kept }) => [bytes, `${kept.dueMs} ${kept.takenMs}`]);
  const reply: unknown = await redis.eval(TAKE, 3, keys.timeouts, keys.elements, keys.taken, ...each);
  const places = new Set(Array.isArray(reply) ? reply.map(Number) : []);
  return calls.filter((_, at) => places.has(at));
}

/** What an import has taken that was cut short. */
async function goOn(work: Work): Promise<void> {
  const { redis, keys, tally } = work;
  let cursor = '0';
  do {
    const [next, found] = await redis.hscanBuffer(keys.taken, cursor, 'COUNT', PAGE);
    const calls: ElementCall[] = [];
    for (const [bytes, text] of pairsIn(found)) {
      const [dueMs = 0, takenMs = 0] = text.toString().split(' ').map(Number);
      const call = callOf(work, { bytes, dueMs }, takenMs);
      // It did fit when it was taken, and does no more.
      if ('text' in call) tally.leave(CUT_SHORT, call, {});
      else if (await isCallable(work, call)) calls.push(call);
    }
    await makeJobs(work, CUT_SHORT, calls);
    cursor = next.toString();
  } while (cursor !== '0');
}

/** Whether the call may be made again. One whose job is known to be here is over with. */
async function isCallable({ redis, keys, maker, tally }: Work, { bytes, kept }: ElementCall): Promise<boolean> {
  const known = await maker.known(kept);
  if (known === 'unsure') tally.leave(CUT_SHORT, UNSURE, { id: kept.id });
  if (known === 'there') {
    tally.add(CUT_SHORT, 'there');
    await redis.hdel(keys.taken, bytes);
  }
  return known === 'callable';
}

/** KEYS: due times, elements, taken. ARGV: element, and what is kept. Returns the places of those that were there, from 0. */
const TAKE = `
local places = {}
for at = 1, #ARGV, 2 do
  if redis.call('ZREM', KEYS[1], ARGV[at]) > 0 then
    redis.call('LREM', KEYS[2], 1, ARGV[at])
    redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
    places[#places + 1] = (at - 1) / 2
  end
end
return places
`;
