/**
 * A partition on a real Redis beside its model. `make` carries a call out on both and compares the reply, everything
 * that is stored, and the invariants. What a worker process knows (its deliveries and claims) is kept here, so that it
 * can be forgotten, as by a crash, or never be learned, as with a lost reply.
 */
import { isDeepStrictEqual } from 'node:util';
import { parseSettings } from '../../src/job/queue-settings.ts';
import { messageOf } from '../../src/kernel/errors.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { type PartitionRef, partitionRef } from '../../src/redis/keys.ts';
import { createJobs, type Jobs } from '../../src/redis/scripts/jobs.ts';
import type { Claim, Delivery, ScheduleItem } from '../../src/redis/scripts/replies.ts';
import { scriptsByVerb } from '../../src/redis/scripts/script-table.ts';
import { scriptOptions } from '../../src/redis/scripts/scripts.ts';
import { broken, type Snapshot, takeSnapshot } from './invariants.ts';
import { bind, createModel, type Model, render, stored } from './model.ts';
import { movesOf, rows } from './model-moves.ts';
import { reweighed } from './model-quota.ts';
import { NO_GROUP } from './model-worker.ts';

/** The moment at which every run begins. */
export const T0 = 1_763_719_000_000;

/** One call with all its arguments but the time, so that it can be repeated. */
export interface Call {
  readonly verb: string;
  readonly real: () => Promise<unknown>;
  /** The reply the model expects, carried out on the model. Tokens are taken from the reply of Redis. */
  readonly model: (reply: unknown) => unknown;
  /** What the caller knows once it has the reply. */
  readonly learn?: (reply: unknown) => void;
  /** All that is due has moved when this call says so. */
  readonly promotes?: boolean;
  /** Somebody deletes keys under us: tokens and counters begin anew. */
  readonly wipes?: boolean;
  /** Members that it moved although nothing shows it but the reply. */
  readonly touched?: (reply: unknown) => readonly string[];
  /** What its caller does without a reply, where that is not the same call once more. */
  readonly otherwise?: () => Promise<unknown>;
  /** The done window of whoever does what it left undone. */
  readonly windowMs?: number;
  /** Nobody repeats it: it is a fault and no call. */
  readonly once?: boolean;
}

/** A start that a consumer knows of, with the record that it was given. */
export interface Claimed {
  readonly consumer: string;
  readonly claim: Claim;
  readonly record: string;
}

export interface World {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly jobs: Jobs;
  readonly model: Model;
  /** Everything consumers were ever given and have not forgotten. */
  deliveries: { readonly consumer: string; readonly delivery: Delivery }[];
  claims: Claimed[];
  items: readonly ScheduleItem[];
  terms: string[];
  calls: Call[];
  loseNext: boolean;
  /** How long from now the next call may be carried out that may carry an end. Before it comes: ms below 0. */
  endsInMs: number | undefined;
  last: Snapshot | undefined;
  /** The rows of the table of transitions that were seen. */
  readonly moves: Set<string>;
}

/** What Redis and the model disagree about, or what does not hold. */
export class Disagreement extends Error {}

export const effectKey = (ref: PartitionRef): string => ref.keys.meta.replace(/:meta$/, ':effects');

/** Long and large enough that no sweep of a list ends it. */
const history = parseSettings({ history: { keep: '365d', max: 10_000_000 } }).history;

export function createWorld(redis: Redis, namespace: string): World {
  const ref = partitionRef(namespace, { queue: 'q', partition: 0, layoutGeneration: 0, ...(history && { history }) });
  const known = { deliveries: [], claims: [], items: [], terms: [], calls: [] };
  return {
    redis,
    ref,
    jobs: createJobs(redis),
    model: createModel(T0),
    ...known,
    loseNext: false,
    endsInMs: undefined,
    last: undefined,
    moves: new Set(),
  };
}

/** @throws Disagreement */
export async function make(world: World, call: Call): Promise<void> {
  const { model } = world;
  const { reply, isLate } = await sent(world, call);
  const snapshot = await takeSnapshot(world.redis, world.ref.keys);
  const expected = isLate ? LATE : expectedOf(model, call, reply);
  bind(model, snapshot);
  same(`${call.verb} replied`, reply, expected);
  const [real, wanted] = [stored(snapshot), render(model)];
  for (const part of Object.keys(wanted)) same(`after ${call.verb}, ${part}`, real[part], wanted[part]);
  const before = call.wipes ? undefined : world.last;
  const all =
    call.promotes && typeof reply === 'object' && reply !== null && 'kind' in reply && reply.kind === 'promoted';
  const promotedUpTo = all ? model.nowMs : undefined;
  const foreign = new Set(['j:ghost']);
  const faults = {
    foreign,
    spoiled: model.leader?.sane === false,
    groupless: !model.group,
    regrouped: model.regrouped,
  };
  const wrong = broken(snapshot, {
    keeps: true,
    ...faults,
    ...(before ? { before } : {}),
    ...(promotedUpTo ? { promotedUpTo } : {}),
  });
  if (wrong.length > 0) throw new Disagreement(`after ${call.verb}: ${wrong.join('; ')}`);
  if (world.last && !isLate) recordMoves(world, { call, reply, before: world.last, after: snapshot });
  world.last = snapshot;
  if (!call.once) world.calls = [call, ...world.calls].slice(0, 8);
  if (world.loseNext) world.loseNext = false;
  else if (!isLate) call.learn?.(reply);
}

/** Such a call does nothing, and its reply is this word and the time. */
const LATE = 'LATE';

async function sent(world: World, call: Call): Promise<{ readonly reply: unknown; readonly isLate: boolean }> {
  const { endsInMs } = world;
  const late = scriptsByVerb.get(call.verb)?.late;
  if (endsInMs === undefined || late !== 'refused') return { reply: await call.real().catch(refused), isLate: false };
  world.endsInMs = undefined;
  return { reply: await withEnd(world, call, endsInMs).catch(refused), isLate: endsInMs < 0 };
}

/** Carries a call out with an end behind its time, so many ms from now. What is sent again has that end as well. */
async function withEnd({ redis, model }: World, { verb, real }: Call, endsInMs: number): Promise<unknown> {
  const name = `duestream_${verb}`;
  const { numberOfKeys } = scriptOptions()[name] ?? {};
  const method = Reflect.get(redis, name) as (...parts: readonly unknown[]) => unknown;
  Reflect.set(redis, name, (...parts: readonly unknown[]) => {
    const at = numberOfKeys ?? 1 + Number(parts[0]);
    const [given = ''] = String(parts[at]).split('<');
    // Without a time of its own it goes by the clock of the server, of which it cannot name a certain millisecond.
    const endMs = given === '' ? Date.now() + (endsInMs < 0 ? -3_600_000 : 3_600_000) : model.nowMs + endsInMs;
    return method.call(redis, ...parts.with(at, `${given}<${endMs}`));
  });
  try {
    return await real();
  } finally {
    Reflect.set(redis, name, method);
  }
}

interface Made {
  readonly call: Call;
  readonly reply: unknown;
  readonly before: Snapshot;
  readonly after: Snapshot;
}

/** What a script did to jobs must be a row of the table of transitions. */
function recordMoves(world: World, { call: { verb, touched }, reply, ...between }: Made): void {
  if (!scriptsByVerb.has(verb)) return;
  const moves = movesOf(verb, { ...between, touched: touched?.(reply) ?? [] });
  const unknown = moves.filter((move) => !rows.has(move));
  if (unknown.length > 0) throw new Disagreement(`no row of the table of transitions: ${unknown.join('; ')}`);
  for (const move of moves) world.moves.add(move);
}

/** What was published, by channel. */
export interface Heard {
  readonly nudges: string[];
  readonly told: string[];
}

/** What can only be seen from outside: what was published, and effects that were committed. */
export async function settleUp(world: World, heard: Heard): Promise<void> {
  same('the nudges', heard.nudges, world.model.nudges);
  same('what was told of ends', heard.told, world.model.told);
  same('the effects', Number((await world.redis.get(effectKey(world.ref))) ?? 0), world.model.effects);
}

/** A model that throws expects Redis to refuse the call with these words, and nothing to change. */
function expectedOf(model: Model, call: Call, reply: unknown): unknown {
  try {
    return reweighed(model, call.verb, () => call.model(reply));
  } catch (error) {
    return messageOf(error);
  }
}

function refused(error: unknown): string {
  const message = messageOf(error);
  if (message.startsWith(`${LATE} `)) return LATE;
  return message.includes(NO_GROUP) ? NO_GROUP : message;
}

function same(what: string, real: unknown, expected: unknown): void {
  if (isDeepStrictEqual(real, expected) || isDeepStrictEqual(timeless(real), timeless(expected))) return;
  throw new Disagreement(`${what}: ${JSON.stringify(real)}\n  expected: ${JSON.stringify(expected)}`);
}

/** Without how long a dead worker was not heard of, which Redis tells by its own clock. */
const timeless = (value: unknown): unknown =>
  JSON.parse((JSON.stringify(value) ?? 'null').replace(/("signMs":|\\"i\\":)\d+/g, (_, name: string) => `${name}0`));
