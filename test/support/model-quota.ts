/** Limits of a queue on the model: what `lua/lib/quota.lua` and `lua/lib/weight.lua` do. */
import type { Quota } from '../../src/job/quota.ts';
import type { ScheduleItem, ScheduleReply } from '../../src/redis/scripts/replies.ts';
import { jobOf, type Model } from './model.ts';

/** What there is room for, as one call of `schedule` sees it. */
export interface Room extends Quota {
  there: number;
  weight: number;
  /** Of how many jobs the weight is known. */
  known: number;
  isChanged: boolean;
}

export const thereIn = ({ jobs, entries, stale }: Model): number =>
  [...jobs.values()].filter(({ due }) => due !== undefined).length + Math.max(0, entries.length - stale.size);

export function roomOf(model: Model): Room | undefined {
  const { quota, held } = model;
  if (!quota) return undefined;
  const there = thereIn(model);
  const { weight, count } = (quota.bytes > 0 ? held : undefined) ?? { weight: 0, count: 0 };
  const known = Math.min(there, count);
  const sum = known < count ? Math.floor((weight * there) / count) : weight;
  return { ...quota, there, weight: sum, known, isChanged: false };
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

/** Scripts that give bare members a record: each was a job before, of 0 bytes. */
const ADOPTING = ['promote'];
/** `schedule` notes what its room has become, and `relay` makes two steps. */
const BY_THEMSELVES = ['schedule', 'relay'];

/** Carries a call out on the model, and keeps the sum of the records that come, change and go. */
export function reweighed<T>(model: Model, verb: string, call: () => T): T {
  const before = model.held && recordsOf(model);
  const reply = call();
  if (!before || !model.held || BY_THEMSELVES.includes(verb)) return reply;
  const after = recordsOf(model);
  const heavier = bytesOf(after) - bytesOf(before);
  const come = [...after.keys()].filter((member) => !before.has(member) && !ADOPTING.includes(verb));
  const gone = [...before.keys()].filter((member) => !after.has(member));
  const { weight, count } = model.held;
  model.held = {
    weight: Math.max(0, weight + heavier),
    count: Math.max(0, count + come.length - gone.length),
  };
  return reply;
}

const bytesOf = (records: ReadonlyMap<string, number>): number =>
  [...records.values()].reduce((sum, size) => sum + size, 0);

const recordsOf = ({ jobs }: Model): ReadonlyMap<string, number> =>
  new Map(
    [...jobs].flatMap(([member, { record }]) => (record === undefined ? [] : [[member, record.length] as const])),
  );
