/**
 * One method per transition of a job, named by its verb. Those of a job that waits are here, those that a worker calls in
 * `worker-jobs.ts`, those that change a job in `edits.ts`. Each method calls one script on one partition and gives its reply a
 * type. A refusal is a value, never an exception.
 */

import { serverNowMs } from '../connection/call-end.ts';
import type { Redis } from '../connection/connect.ts';
import { keepsHistory, type PartitionRef } from '../keys.ts';
import { changed } from './edits.ts';
import { type CastPass, type LeadersPass, LINE_MAX, type PromoteReply, promoteReply } from './passes.ts';
import {
  type AwaitReply,
  awaitReply,
  type CancelReply,
  type CloseTagReply,
  cancelReply,
  closeTagReply,
  type Moved,
  moved,
  type ReplayReply,
  replayReply,
  type ScheduleItem,
  type ScheduleReply,
  scheduleReply,
} from './replies.ts';
import { scripts } from './script-table.ts';
import { list, run, text } from './scripts.ts';
import { changesOfSets } from './sets.ts';
import { ended, given, together } from './worker-jobs.ts';

interface Aged {
  /**
   * When the layout was read. `remembered`: a partition without a generation is answered `moved`, as its queue may have
   * been removed since. `fresh`: just now, so the partition gets its generation. Without it none is asked for.
   */
  readonly layoutAge?: 'remembered' | 'fresh';
}

/**
 * The sends of one call. The first one is no repeat, so a job of the same call that was cancelled is another one, of before. A
 * repeat says when the first was sent: what was cancelled after that may have been made by it.
 */
export interface Sends {
  /** A send before this one may have been carried out. */
  isRepeat: boolean;
  /** By the clock of the server; undefined of a repeat: nobody knows. */
  firstMs: number | undefined;
}

export interface ScheduleSettings extends Aged {
  /** Undefined: the call is recognised by what it says alone. */
  readonly sends?: Sends;
  readonly mode: 'keep' | 'replace' | 'update' | 'debounce';
  readonly horizonMs: number;
  readonly bytesMax: number;
  readonly nowMs?: number;
}

/** Tags are closed until a time, or opened. */
export type TagsChange = Aged &
  (
    | { readonly mode: 'open' }
    | {
        readonly mode: 'close';
        readonly untilMs: number;
        /** When, by whom and why, as JSON. */
        readonly text: string;
        /** So many tags of the partition may be closed. */
        readonly most: number;
      }
  );

const LAYOUT_SIGNS = { remembered: '=', fresh: '+' } as const;

const generationOf = ({ layoutGeneration }: PartitionRef, layoutAge: Aged['layoutAge']): string =>
  `${layoutAge === undefined ? '' : LAYOUT_SIGNS[layoutAge]}${layoutGeneration}`;

/** The transitions of a job on one connection. `nowMs` is for tests; without it the server's clock decides. */
export function createJobs(redis: Redis) {
  return {
    ...waiting(redis),
    ...ofTags(redis),
    ...changesOfSets(redis),
    ...changed(redis),
    ...given(redis),
    ...together(redis),
    ...ended(redis),
  };
}

export type Jobs = ReturnType<typeof createJobs>;

/** As `lua/lib/clock.lua` reads it. */
const firstText = (sends: Sends | undefined): string => {
  if (sends === undefined || (sends.isRepeat && sends.firstMs === undefined)) return '';
  return sends.isRepeat ? `@${Math.floor(sends.firstMs ?? 0)}` : '@';
};

const NOT_CLOSED = { untilMs: 0, text: '', most: 0 };

/** Of tags, and so of all jobs that have them. */
function ofTags(redis: Redis) {
  return {
    /** At most 500 tags a call. */
    async closeTags(
      ref: PartitionRef,
      tags: readonly string[],
      change: TagsChange,
    ): Promise<readonly CloseTagReply[] | Moved> {
      const { untilMs: until, text: why, most } = change.mode === 'close' ? change : NOT_CLOSED;
      const generation = generationOf(ref, change.layoutAge);
      const args = { generation, mode: change.mode, until, text: why, most };
      const reply = list(await run(redis, scripts.closeTags, { keys: ref.keys, args, each: tags }));
      return moved(reply) ?? reply.map((item) => closeTagReply(text(item)));
    },
  };
}

/** Of jobs that wait for their time, or are over. */
function waiting(redis: Redis) {
  return {
    /** What is answered `later` is to be sent again. */
    async schedule(
      ref: PartitionRef,
      items: readonly ScheduleItem[],
      { mode, horizonMs, bytesMax, layoutAge, nowMs, sends }: ScheduleSettings,
    ): Promise<readonly ScheduleReply[] | Moved> {
      const generation = generationOf(ref, layoutAge);
      if (sends?.isRepeat === false) sends.firstMs = serverNowMs(redis, ref.keys.jobs);
      const args = { now: `${nowMs ?? ''}${firstText(sends)}`, generation, mode, horizon: horizonMs, bytes: bytesMax };
      const each: string[] = [];
      for (const { member, record, dueMs } of items) each.push(member, record, String(dueMs));
      const reply = list(await run(redis, scripts.schedule, { keys: ref.keys, args, each }));
      return moved(reply) ?? reply.map((item) => scheduleReply(text(item)));
    },

    /**
     * What is answered `later` is to be asked again. A member may have a zero byte and what was seen of it behind it. `forgets`:
     * whoever schedules after it never repeats what was scheduled before it.
     */
    async cancel(
      ref: PartitionRef,
      members: readonly string[],
      { windowMs, nowMs, forgets = false }: { windowMs: number; nowMs?: number; forgets?: boolean },
    ): Promise<readonly CancelReply[] | Moved> {
      const args = { now: `${nowMs ?? ''}${forgets ? '@' : ''}`, generation: ref.layoutGeneration, window: windowMs };
      const reply = list(
        await run(redis, scripts.cancel, { keys: ref.keys, keeps: keepsHistory(ref), args, each: members }),
      );
      return moved(reply) ?? reply.map((item) => cancelReply(text(item)));
    },

    /** Marks jobs as waited for, at most `AWAIT_JOBS_MAX`. The same call again changes nothing. */
    async await(ref: PartitionRef, members: readonly string[]): Promise<readonly AwaitReply[] | Moved> {
      const args = { generation: ref.layoutGeneration };
      const reply = list(await run(redis, scripts.await, { keys: ref.keys, args, each: members }));
      return moved(reply) ?? reply.map((item) => awaitReply(text(item)));
    },

    async promote(
      ref: PartitionRef,
      { term, leaseMs, limit, cap, lineMax = LINE_MAX, aheadMs, nowMs }: LeadersPass & { readonly nowMs?: number },
    ): Promise<PromoteReply> {
      const args = { now: nowMs ?? '', term, lease: leaseMs ?? '', limit, cap, lineMax, ahead: aheadMs ?? '' };
      return promoteReply(list(await run(redis, scripts.promote, { keys: ref.keys, args })));
    },

    /** What `promote` is to other queues: due jobs go to every subscriber, and are over. */
    async cast(
      ref: PartitionRef,
      { term, leaseMs, limit, windowMs, broadcast, nowMs }: CastPass & { readonly nowMs?: number },
    ): Promise<PromoteReply> {
      const bounds = { entries: broadcast.max, bytes: broadcast.bytes, age: broadcast.ageMs };
      const args = { now: nowMs ?? '', term, lease: leaseMs ?? '', limit, window: windowMs, ...bounds };
      return promoteReply(list(await run(redis, scripts.cast, { keys: ref.keys, keeps: keepsHistory(ref), args })));
    },

    async replay(
      ref: PartitionRef,
      deadLetter: string,
      { dueMs, nowMs }: { dueMs?: number; nowMs?: number } = {},
    ): Promise<ReplayReply> {
      const args = { now: nowMs ?? '', generation: ref.layoutGeneration, deadLetter, due: dueMs ?? '' };
      return replayReply(list(await run(redis, scripts.replay, { keys: ref.keys, args })));
    },
  };
}
