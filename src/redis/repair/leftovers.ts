/**
 * What the keys of a namespace hold of queues, processes, requests and schedules that are gone (I19). Each of these keys has a
 * bound that holds without this: a process that adds an entry takes old entries away, or the entries have a TTL, or the leader
 * finds them. So an entry found here was written by somebody else, or by a call that died half-way a moment ago.
 *
 * A finding counts only when it is seen again two seconds later. Each repair looks once more, in the step that carries it out.
 */
import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { memberOf } from '../connection/cluster/members.ts';
import type { Redis } from '../connection/connect.ts';
import { controlKeys, IDEMPOTENCY_MS, type PartitionRef, SESSION_MS } from '../keys.ts';
import { forget, LISTED_FEW, withoutBeat } from '../scripts/presence.ts';
import { dropSetting, settingsWithoutQueue } from '../scripts/queues.ts';
import { disarm, goneSchedules } from '../scripts/schedules.ts';
import { TOKENS_MAX } from '../scripts/tokens.ts';
import { type Flaw, flawOf } from './flaws.ts';

/** What is left, as a repair needs it. */
type Left =
  | { readonly kind: 'ownerless'; readonly queue: string; readonly setting: string }
  | { readonly kind: 'lost'; readonly ids: readonly string[] }
  | { readonly kind: 'endless'; readonly key: string; readonly ttlMs: number }
  | { readonly kind: 'gone'; readonly ref: PartitionRef; readonly name: string; readonly state: string };

export interface Leftover {
  readonly flaw: Flaw;
  /** Undefined: nobody can say what of it may go. */
  readonly left: Left | undefined;
}

/** How many there are of each, and how many of those are in excess. */
export interface Bookkeeping {
  readonly settings: number;
  readonly settingsWithoutQueue: number;
  readonly tokens: number;
  readonly tokensMax: number;
  readonly processes: number;
  readonly processesWithoutBeat: number;
  /** Undefined where this user may not use SCAN. */
  readonly sessions: number | undefined;
  readonly idempotencyKeys: number | undefined;
  readonly withoutTtl: number | undefined;
  readonly firedSchedules: number;
  readonly firedSchedulesGone: number;
}

export interface Leftovers {
  readonly counts: Bookkeeping;
  readonly found: readonly Leftover[];
}

interface Of {
  readonly namespace: string;
  /** Whose schedules are looked at. */
  readonly refs: readonly PartitionRef[];
  readonly clock: Clock;
}

const APART_MS = 2000;
const PAGE = 1000;
/** Keys that are looked at for those without a TTL: a Redis that others share may have very many. */
const SCANNED_MAX = 1_000_000;
/** As many flaws of a kind are kept; the rest is for the next look. */
const FLAWS_MAX = 1000;

export async function leftovers(redis: Redis, of: Of): Promise<Leftovers> {
  const first = await look(redis, of);
  if (first.found.length === 0) return first;
  await of.clock.sleep(APART_MS);
  const seen = new Set(first.found.map(({ flaw }) => nameOf(flaw)));
  const second = await look(redis, of);
  return { counts: second.counts, found: second.found.filter(({ flaw }) => seen.has(nameOf(flaw))) };
}

/** @returns whether it is gone. What is in use again stays. */
export async function removeLeftover(redis: Redis, namespace: string, left: Left): Promise<boolean> {
  switch (left.kind) {
    case 'ownerless':
      return dropSetting(redis, namespace, left);
    case 'lost':
      await forget(redis, namespace, ...left.ids);
      return true;
    case 'endless':
      // LT: one that has a TTL by now keeps it.
      return (await redis.pexpire(left.key, left.ttlMs, 'LT')) === 1;
    case 'gone':
      return (await disarm(redis, left.ref, left.name, left.state)) === 'ok';
  }
}

async function look(redis: Redis, { namespace, refs }: Of): Promise<Leftovers> {
  const settings = await settingsWithoutQueue(redis, namespace);
  const tokens = await redis.hlen(controlKeys(namespace).tokens);
  const processes = await lostProcesses(redis, namespace);
  const timed = await endlessKeys(redis, namespace);
  const schedules = await gone(redis, namespace, refs);
  const counts: Bookkeeping = {
    settings: settings.all,
    settingsWithoutQueue: settings.without.length,
    tokens,
    tokensMax: TOKENS_MAX,
    processes: processes.all,
    processesWithoutBeat: processes.lost.length,
    sessions: timed?.session,
    idempotencyKeys: timed?.idempotency,
    withoutTtl: timed?.endless.length,
    firedSchedules: schedules.all,
    firedSchedulesGone: schedules.gone.length,
  };
  const crowded = flawOf('crowded', controlKeys(namespace).tokens, `${tokens} tokens`);
  const found = [
    ...settings.without
      .slice(0, FLAWS_MAX)
      .map((one) => leftover(`${one.queue}:${one.setting}`, { kind: 'ownerless', ...one })),
    ...(tokens > TOKENS_MAX ? [{ flaw: crowded, left: undefined }] : []),
    ...tooManyLost(namespace, processes),
    ...(timed?.endless ?? []).slice(0, FLAWS_MAX).map((one) => leftover(one.key, { kind: 'endless', ...one })),
    ...schedules.gone
      .slice(0, FLAWS_MAX)
      .map((one) => leftover(`${one.ref.queue}:${one.ref.partition} ${one.name}`, { kind: 'gone', ...one })),
  ];
  return { counts, found };
}

const nameOf = ({ what, name }: Flaw): string => `${what} ${name}`;

function leftover(name: string, left: Left): Leftover {
  return { flaw: flawOf(left.kind, name), left };
}

interface Processes {
  readonly all: number;
  readonly lost: readonly string[];
}

async function lostProcesses(redis: Redis, namespace: string): Promise<Processes> {
  const ids = await redis.smembers(controlKeys(namespace).alive);
  return { all: ids.length, lost: await withoutBeat(redis, namespace, ids) };
}

/** Some are listed for people to see; more than a hundred and than there are living ones, nobody needs. */
function tooManyLost(namespace: string, { all, lost }: Processes): readonly Leftover[] {
  if (lost.length <= Math.max(LISTED_FEW, all - lost.length)) return [];
  const flaw = flawOf('lost', controlKeys(namespace).alive, `${lost.length} of ${all}`);
  return [{ flaw, left: { kind: 'lost', ids: lost } }];
}

interface Timed {
  session: number;
  idempotency: number;
  readonly endless: { readonly key: string; readonly ttlMs: number }[];
}

const TIMED = { session: SESSION_MS, idempotency: IDEMPOTENCY_MS } as const;

/** Undefined where this user may not use SCAN, which no process needs. */
async function endlessKeys(redis: Redis, namespace: string): Promise<Timed | undefined> {
  const keys = controlKeys(namespace);
  const node = memberOf(redis, keys.tokens);
  const counts: Timed = { session: 0, idempotency: 0, endless: [] };
  const names = Object.keys(TIMED) as readonly (keyof typeof TIMED)[];
  try {
    for (const name of names) {
      let [cursor, scanned] = ['0', 0];
      do {
        const [next, page] = await node.scan(cursor, 'MATCH', keys[name]('*'), 'COUNT', PAGE);
        counts[name] += page.length;
        const ttls = await Promise.all(page.map((key) => node.pttl(key)));
        const endless = page.filter((_, at) => ttls[at] === ENDLESS || Number(ttls[at]) > TIMED[name]);
        counts.endless.push(...endless.map((key) => ({ key, ttlMs: TIMED[name] })));
        cursor = next;
        scanned += PAGE;
      } while (cursor !== '0' && scanned < SCANNED_MAX);
    }
  } catch (error) {
    if (/^NOPERM/.test(messageOf(error))) return undefined;
    throw error;
  }
  return counts;
}

/** What PTTL says of a key that has no TTL. */
const ENDLESS = -1;

async function gone(redis: Redis, namespace: string, refs: readonly PartitionRef[]) {
  const found: { readonly ref: PartitionRef; readonly name: string; readonly state: string }[] = [];
  let all = 0;
  for (const ref of refs) {
    for (let cursor: string | undefined = '0'; cursor !== undefined; ) {
      const page = { namespace, among: 'all', cursor, limit: PAGE } as const;
      const { next, looked, gone: some } = await goneSchedules(redis, ref, page);
      all += looked;
      found.push(...some.map((one) => ({ ref, ...one })));
      cursor = next;
    }
  }
  return { all, gone: found };
}
