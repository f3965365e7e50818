/**
 * What `cast` has to do, said a second time: from all that a partition holds before a call to all that it holds after it,
 * and the reply. The states come from the scripts that lead to them, so nothing but this one has to be modelled.
 */
import { createHash } from 'node:crypto';
import { decodeRun, isTombstone } from '../../src/job/codec.ts';
import { isTooLate } from '../../src/job/fields.ts';
import { decodeHeader, markOf } from '../../src/job/record-header.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionKeys } from '../../src/redis/keys.ts';
import type { CastPass, PromoteReply } from '../../src/redis/scripts/passes.ts';

interface Sent {
  readonly count: number;
  readonly before: number;
  readonly member: string;
  readonly due: number;
  readonly record: string;
}
export interface Held {
  scheduled: [member: string, score: number][];
  jobs: Record<string, string>;
  runs: Record<string, string>;
  /** What nobody has read, then what somebody has. */
  ready: [member: string, due: number][];
  readonly given: readonly string[];
  dead: string[];
  done: Record<string, number>;
  meta: Record<string, string>;
  cast: Sent[];
  readonly stale: readonly string[];
  tags: string[];
  /** Member → outcome and token. */
  past: Record<string, string>;
  readonly leader: string | null;
  nudges: number;
}

export async function heldIn(redis: Redis, keys: PartitionKeys): Promise<Held> {
  const entries = await redis.xrange(keys.ready, '-', '+');
  const groups = entries.length === 0 ? [] : ((await redis.xinfo('GROUPS', keys.ready)) as unknown[][]);
  const last = String(groups[0]?.[(groups[0] ?? []).indexOf('last-delivered-id') + 1] ?? '0-0');
  const isRead = (id: string) => groups.length > 0 && key(id) <= key(last);
  const field = (fields: string[], name: string) => fields[fields.indexOf(name) + 1] ?? '';
  const past = Object.entries(await redis.hgetall(keys.past));
  return {
    scheduled: pairs(await redis.zrange(keys.scheduled, '0', '-1', 'WITHSCORES')),
    jobs: await redis.hgetall(keys.jobs),
    runs: await redis.hgetall(keys.runs),
    ready: entries
      .filter(([id]) => !isRead(id))
      .map(([, fields]) => [field(fields, 'member'), Number(field(fields, 'due'))]),
    given: entries.filter(([id]) => isRead(id)).map(([, fields]) => field(fields, 'member')),
    dead: (await redis.xrange(keys.dead, '-', '+')).map(
      ([, all]) => `${field(all, 'member')}: ${field(all, 'reason')}`,
    ),
    done: Object.fromEntries(pairs(await redis.zrange(keys.done, '0', '-1', 'WITHSCORES'))),
    meta: await redis.hgetall(keys.meta),
    cast: (await redis.xrange(keys.cast, '-', '+')).map(([, fields]) => ({
      count: Number(field(fields, 'count')),
      before: Number(field(fields, 'before')),
      member: field(fields, 'member'),
      due: Number(field(fields, 'due')),
      record: field(fields, 'record'),
    })),
    stale: await redis.zrange(keys.stale, '0', '-1'),
    tags: await redis.zrange(keys.tags, '0', '-1'),
    past: Object.fromEntries(past.map(([member, text]) => [member, text.split(' ').slice(1, 3).join(' ')])),
    leader: await redis.get(keys.leader),
    nudges: 0,
  };
}

const key = (id: string) =>
  id
    .split('-')
    .map((part) => part.padStart(16, '0'))
    .join('-');
const pairs = (flat: readonly string[]): [string, number][] =>
  flat.flatMap((member, at) => (at % 2 === 0 ? [[member, Number(flat[at + 1])] as [string, number]] : []));

type Call = CastPass & { readonly nowMs: number; readonly keeps: boolean };

/** What is held after the call; the same object, changed. */
export function castOf(held: Held, call: Call): PromoteReply {
  const { nowMs, limit } = call;
  if (held.leader !== call.term) return { kind: 'fenced' };
  const isPaused = 'paused' in held.meta;
  const told = { deadLetters: 0, lateness: [] as [number, number][] };
  if (limit > 0 && !isPaused) {
    takeBack(held, limit, nowMs);
    const due = held.scheduled.filter(([, score]) => score <= nowMs).slice(0, limit);
    for (const one of due) castOne(held, call, one, told);
    sort(held);
  }
  const isMore = keepBounds(held, call, told.lateness.length);
  if (limit === 0) return { ...EMPTY, kind: 'promoted', nowMs, backlog: isMore ? 1 : 0 };
  const head = held.scheduled[0]?.[1];
  const look = isPaused ? 0 : (head ?? Number.MAX_SAFE_INTEGER);
  held.meta.wake = String(Math.max(0, look));
  if (told.lateness.length > 0) add(held, 'promoted', told.lateness.length);
  held.nudges = told.lateness.length;
  const nextMs = head === undefined ? undefined : Math.max(0, head);
  return { ...EMPTY, kind: isPaused ? 'paused' : 'promoted', nowMs, nextMs, count: told.lateness.length, ...told };
}

const EMPTY = { nextMs: undefined, backlog: 0, deadLetters: 0, count: 0, lateness: [] as [number, number][] };

function sort(held: Held): void {
  held.scheduled.sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
}

function add(held: Held, name: string, count = 1): void {
  held.meta[`n.${name}`] = String(Number(held.meta[`n.${name}`] ?? 0) + count);
}

function takeBack(held: Held, limit: number, nowMs: number): void {
  for (const [member, due] of held.ready.splice(0, limit)) {
    // It was cancelled when it was ready, and its tombstone waited for this entry.
    if (isTombstone(held.jobs[member] ?? '')) held.done[member] ??= nowMs;
    else if (!held.scheduled.some(([other]) => other === member)) held.scheduled.push([member, due || nowMs]);
  }
  sort(held);
}

type Told = { deadLetters: number; readonly lateness: [number, number][] };

interface Due {
  readonly held: Held;
  readonly call: Call;
  readonly member: string;
  readonly due: number;
  readonly run: ReturnType<typeof decodeRun>;
  readonly told: Told;
}

function castOne(held: Held, call: Call, [member, score]: readonly [string, number], told: Told): void {
  const due = score === 0 ? call.nowMs : Math.floor(score);
  const run = decodeRun(held.runs[member] ?? '');
  const one = { held, call, member, due, run, told };
  if (score !== 0 && score < 1e11) nonsense(one);
  else if (!member.startsWith('j:') && run?.entry !== undefined) later(one, 1000);
  else judge(one);
}

function later({ held, call, member }: Due, ms: number): void {
  const at = held.scheduled.findIndex(([one]) => one === member);
  held.scheduled.splice(at, 1, [member, call.nowMs + ms]);
}

function leave({ held, member }: Due): void {
  held.scheduled = held.scheduled.filter(([one]) => one !== member);
}

function letter({ held, member, told }: Due, reason: string, counter: string): void {
  held.dead.push(`${member}: ${reason}`);
  add(held, counter);
  told.deadLetters += 1;
}

/** It takes a record that lives under the member with it, unless that runs. */
function nonsense(one: Due): void {
  const { held, call, member, run } = one;
  const record = run?.entry === undefined ? held.jobs[member] : undefined;
  const isLive = record !== undefined && !isTombstone(record);
  letter(one, 'bad-due', isLive ? 'dead' : 'refused');
  leave(one);
  if (!isLive) return;
  held.jobs[member] = `.x${markOf(record) || laterMark(record)} 0 0 letter`;
  held.done[member] = call.nowMs;
  delete held.runs[member];
  dropTags(held, member, record);
}

/** Those that the header of its record names, if it is of this version. */
function dropTags(held: Held, member: string, record: string): void {
  const [, tags = ''] = /^1\w+[^|]*;t=([^;|]+)/.exec(record) ?? [];
  const gone = tags.split(',').map((tag) => `${tag}\0${member}`);
  held.tags = held.tags.filter((entry) => !gone.includes(entry));
}

/** Of a record of a later version. */
const laterMark = (record: string): string =>
  `${/^\d(\w+)/.exec(record)?.[1] ?? '0'} ${createHash('sha1').update(record).digest('hex').slice(0, 16)}`;

function judge(one: Due): void {
  const { held, call, member, due, run, told } = one;
  if (!member.startsWith('j:') && isTombstone(held.jobs[member] ?? '.')) {
    held.jobs[member] = `1${due.toString(36)};b=1|{}`;
    delete held.done[member];
    add(held, 'adopted');
  }
  const record = held.jobs[member];
  if (record?.startsWith('2')) {
    later(one, 4000);
    return;
  }
  leave(one);
  if (record === undefined) {
    if (!held.stale.includes(member)) letter(one, 'record-missing', 'refused');
    delete held.runs[member];
  } else if (isTombstone(record)) over(one);
  else end(held, call, { member, due, record, run }, told);
}

function over({ held, call, member }: Due): void {
  if (call.windowMs > 0) {
    held.done[member] ??= call.nowMs;
    return;
  }
  delete held.done[member];
  delete held.jobs[member];
}

interface Ending {
  readonly member: string;
  readonly due: number;
  readonly record: string;
  readonly run: ReturnType<typeof decodeRun>;
}

function outcomeOf({ due, record, run }: Ending, nowMs: number): 'd' | 'e' | 'x' {
  const header = decodeHeader(record);
  const sinceMs = run?.nextDueMs ?? (header?.askedDueMs || due);
  if (header === undefined || !isTooLate(header, { nowMs, sinceMs })) return 'd';
  return header.onLate === 'dead' ? 'x' : 'e';
}

const COUNTERS = { d: 'done', e: 'expired', x: 'dead' } as const;

function end(held: Held, call: Call, ending: Ending, told: Told): void {
  const { member, record, run } = ending;
  const { nowMs, windowMs, keeps } = call;
  const outcome = outcomeOf(ending, nowMs);
  const token = outcome === 'd' ? sent(held, ending) : String(run?.token ?? 0);
  if (outcome === 'd') told.lateness.push([nowMs - ending.due, 1]);
  add(held, COUNTERS[outcome]);
  if (outcome === 'x') {
    held.dead.push(`${member}: expired`);
    told.deadLetters += 1;
  }
  const letter = outcome === 'x' ? 'letter' : '-';
  if (windowMs > 0) {
    held.jobs[member] = `.${outcome}${markOf(record)} ${token} ${run?.attempts ?? 0} ${letter}`;
    held.done[member] = nowMs;
  } else {
    delete held.jobs[member];
  }
  delete held.runs[member];
  dropTags(held, member, record);
  if (keeps) held.past[member] = `${outcome} ${token}`;
}

/** Its number. */
function sent(held: Held, { member, due, record }: Ending): string {
  const [count = 0, total = 0] = (held.meta.cast ?? '0 0').split(' ').map(Number);
  held.cast.push({ count: count + 1, before: total, member, due, record });
  held.meta.cast = `${count + 1} ${total + member.length + record.length}`;
  return String(count + 1);
}

function keepBounds(held: Held, { nowMs, broadcast }: Call, sent: number): boolean {
  const total = Number((held.meta.cast ?? '0 0').split(' ')[1]);
  let rest = 200 + sent;
  for (let oldest = held.cast[0]; oldest; oldest = held.cast[0]) {
    const isTooMuch = held.cast.length > broadcast.max || total - oldest.before > broadcast.bytes;
    const isOld = nowMs - broadcast.ageMs > NOBODY_IS_OLDER_MS;
    if (!isOld && !(held.cast.length > 1 && isTooMuch)) return false;
    if (rest === 0) return true;
    held.cast.shift();
    rest -= 1;
  }
  return false;
}

/** Entries have ids of the server's clock: in the model all are young, or all are old. */
export const NOBODY_IS_OLDER_MS = 9e12;
