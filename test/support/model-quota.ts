/** Limits of a queue on the model: what `lua/lib/quota.lua` does. */
import type { Quota } from '../../src/core/quota.ts';
import type { ScheduleItem, ScheduleReply } from '../../src/redis/transitions/replies.ts';
import { jobOf, type Model } from './model.ts';

/** What there is room for, as one call of `schedule` sees it. */
export interface Room extends Quota {
  there: number;
  weight: number;
  /** Of how many jobs the weight is known. */
  known: number;
  isChanged: boolean;
}

const thereIn = ({ jobs, entries, stale }: Model): number =>
  [...jobs.values()].filter(({ due }) => due !== undefined).length + Math.max(0, entries.length - stale.size);

export function roomOf(model: Model): Room | undefined {
  const { quota, held } = model;
  if (!quota) return undefined;
  const there = thereIn(model);
  const isKnown = quota.bytes > 0 && held !== undefined && held.count > 0;
  const weight = isKnown ? Math.floor((held.weight * there) / held.count) : 0;
  return { ...quota, there, weight, known: isKnown ? there : 0, isChanged: false };
}

/** The reply, or a refusal in its place. */
export function roomFor(model: Model, { member, record }: ScheduleItem, reply: ScheduleReply, room: Room | undefined) {
  if (!room || (reply.kind !== 'ok' && reply.kind !== 'replaced')) return reply;
  const job = jobOf(model, member);
  const isNew = reply.kind === 'ok';
  const more = record.length - (isNew ? 0 : (job.record?.length ?? 0));
  if (isNew && room.pending > 0 && room.there >= room.pending && job.due === undefined) {
    return { kind: 'full', what: 'pending', limit: room.pending, there: room.there } as const;
  }
  if (room.bytes > 0 && more > 0 && room.weight + more > room.bytes) {
    return { kind: 'full', what: 'bytes', limit: room.bytes, there: room.weight } as const;
  }
  const count = isNew ? 1 : 0;
  Object.assign(room, { there: room.there + count, known: room.known + count, isChanged: true });
  room.weight = Math.max(0, room.weight + more);
  return reply;
}

export function noteRoom(model: Model, room: Room | undefined): void {
  if (!room?.isChanged || room.bytes === 0 || room.known === 0) return;
  model.held = { weight: room.weight, count: room.known };
}
