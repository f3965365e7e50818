/** The transitions with which somebody changes a job that waits: its due time, or its record. Both are many jobs per call. */
import { digestOf } from '../../job/record-header.ts';
import { type OverState, outcomeLetters } from '../../job/state.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { type Held, type Moved, moved } from './replies.ts';
import { scripts } from './script-table.ts';
import { dueOf, list, run, score, text } from './scripts.ts';

/**
 * Another due time. `seen`: the token of its last start as the caller saw it, `0` for none, or all that was seen of it, as
 * `seenText` says; left out: any.
 */
export interface RescheduleItem {
  readonly member: string;
  /** 0: now. */
  readonly dueMs: number;
  /** Only if that is earlier, or later, than it is due now. */
  readonly mode: 'any' | 'earlier' | 'later';
  readonly seen?: string;
}

export interface RescheduleSettings {
  readonly horizonMs: number;
  /** For tests. */
  readonly nowMs?: number;
}

/** Another record, and the digest of the one from which it was made, or all that was seen of the job (`seenText`). */
export interface EditItem {
  readonly member: string;
  readonly before: string;
  readonly record: string;
  /** Its new due time; undefined: it stays. */
  readonly dueMs?: number | undefined;
}

/** Why a job was not changed: it does not wait any more, or was started since the caller looked. */
export type NotWaiting =
  | { readonly kind: 'running' | 'unknown' | 'started' }
  | { readonly kind: 'over'; readonly over: OverState | undefined };

export type RescheduleReply =
  /** `wasMs`: undefined for a job that was in ready. */
  | {
      readonly kind: 'ok';
      readonly wasMs: number | undefined;
      readonly dueMs: number;
      /** See `Rescheduled`; no script says it. */
      readonly waitingBehind?: number;
    }
  | { readonly kind: 'already' | 'kept'; readonly dueMs: number }
  /** By the new due time it would be too late to start. */
  | { readonly kind: 'expires'; readonly expiresAtMs: number }
  /** `changed`: it is not what was seen, only where all was seen of it · `later`: to be sent again. */
  | { readonly kind: 'ready' | 'changed' }
  | { readonly kind: 'later' }
  | Held
  | { readonly kind: 'bad-due'; readonly nowMs: number }
  | NotWaiting;

/**
 * All that was seen of a job, for a change that holds only if it is still so: the digest of its record, `-` without one;
 * the token of its last start; and its due time as Redis printed it, also while it is in line,
 * `ready` or `running`. `lua/lib/seen.lua` says the same.
 */
export const seenText = (job: { readonly digest: string; readonly token: string; readonly place: string }): string =>
  `${job.digest} ${job.token} ${job.place}`;

/** The same of what is stored of a job. `due`: its score in scheduled, where it has one. */
export function seenIn({
  record,
  run,
  due,
}: {
  readonly record: string | undefined;
  readonly run:
    | { readonly token: string; readonly owner?: string | undefined; readonly nextDueMs?: number | undefined }
    | undefined;
  readonly due: string | undefined;
}): string {
  const { dueMs, isWaiting } = dueOf(due ?? '');
  const asked = isWaiting ? String(dueMs) : due;
  const place = run?.owner === undefined ? (asked ?? 'ready') : String(run.nextDueMs ?? 'running');
  return seenText({ digest: record === undefined ? '-' : digestOf(record), token: run?.token ?? '0', place });
}

const EDIT_KINDS = ['ok', 'already', 'changed', 'bad-record', 'too-large', 'later', 'held'] as const;

/** `later`: the call had read its share · `held`: its worker lets it go. It has to be sent again for this job. */
export type EditReply = { readonly kind: (typeof EDIT_KINDS)[number] } | NotWaiting;

/** Of jobs that wait, on one connection. */
export function changed(redis: Redis) {
  return {
    async reschedule(
      ref: PartitionRef,
      items: readonly RescheduleItem[],
      { horizonMs, nowMs }: RescheduleSettings,
    ): Promise<readonly RescheduleReply[] | Moved> {
      const args = { now: nowMs ?? '', generation: ref.layoutGeneration, horizon: horizonMs };
      const each = items.flatMap(({ member, dueMs, mode, seen = '' }) => [member, String(dueMs), mode, seen]);
      const reply = list(await run(redis, scripts.reschedule, { keys: ref.keys, args, each }));
      return moved(reply) ?? reply.map((item) => rescheduleReply(text(item)));
    },

    async edit(
      ref: PartitionRef,
      items: readonly EditItem[],
      { bytesMax, nowMs }: { readonly bytesMax: number; readonly nowMs?: number },
    ): Promise<readonly EditReply[] | Moved> {
      const args = { now: nowMs ?? '', generation: ref.layoutGeneration, bytes: bytesMax };
      const dueIn = (dueMs: number | undefined) => (dueMs === undefined ? '' : `\0${dueMs} ${nowMs ?? ''}`);
      const each = items.flatMap(({ member, before, record, dueMs }) => [member, before + dueIn(dueMs), record]);
      const reply = list(await run(redis, scripts.edit, { keys: ref.keys, args, each }));
      return moved(reply) ?? reply.map((item) => editReply(text(item)));
    },
  };
}

function rescheduleReply(reply: string): RescheduleReply {
  const [kind, first = '', second = ''] = reply.split(' ');
  if (kind === 'ok') return { kind, wasMs: first === '-' ? undefined : score(first), dueMs: Number(second) };
  if (kind === 'already' || kind === 'kept') return { kind, dueMs: score(first) };
  if (kind === 'expires') return { kind, expiresAtMs: Number(first) };
  if (kind === 'bad-due') return { kind, nowMs: Number(first) };
  if (kind === 'ready' || kind === 'changed' || kind === 'later' || kind === 'held') return { kind };
  return notWaiting(kind, first);
}

function editReply(reply: string): EditReply {
  const [kind, letter = ''] = reply.split(' ');
  const found = EDIT_KINDS.find((one) => one === kind);
  return found === undefined ? notWaiting(kind, letter) : { kind: found };
}

function notWaiting(kind: string | undefined, letter: string): NotWaiting {
  return kind === 'over' ? { kind, over: outcomeLetters[letter] } : { kind: kind as 'running' | 'unknown' | 'started' };
}
