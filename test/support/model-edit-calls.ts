/** Changes of jobs that wait, on Redis and on the model: see `model-commands.ts`. */
import { editRecord } from '../../src/job/record-edit.ts';
import { digestOf } from '../../src/job/record-header.ts';
import type { EditItem, RescheduleItem } from '../../src/redis/scripts/edits.ts';
import { MEMBERS, pick, seenFor, TAGS } from './model-calls.ts';
import type { Resolve } from './model-commands.ts';
import * as verbs from './model-edits.ts';
import { LIMITS } from './model-verbs.ts';

const MOVED = { kind: 'moved', layoutGeneration: 0 };
const OFFSETS = [100, 40, 2000, 0, -100, 100, LIMITS.horizonMs, LIMITS.horizonMs + 1];
/** Seconds, the first that is none, and now. */
const DUES = new Map([
  [20, 1e11],
  [21, 99_999_999_999],
  [22, 0],
]);
const MODES = ['any', 'earlier', 'later'] as const;

const reschedule: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const itemOf = (nth: number, off: number): RescheduleItem => {
    const member = pick(MEMBERS, nth) ?? 'j:a';
    const dueMs = DUES.get(off) ?? model.nowMs + (pick(OFFSETS, off) ?? 0);
    const token = model.jobs.get(member)?.run?.token ?? '0';
    const seen = c % 8 === 7 ? '1' : (seenFor(world, member, c) ?? token);
    return { member, dueMs, mode: pick(MODES, c) ?? 'any', ...(c > 15 ? {} : { seen }) };
  };
  const items = [itemOf(a, b), ...(c > 18 ? [itemOf(1, c)] : [])];
  const generation = b === 23 ? 1 : 0;
  return {
    verb: 'reschedule',
    real: () =>
      jobs.reschedule({ ...ref, layoutGeneration: generation }, items, {
        horizonMs: LIMITS.horizonMs,
        nowMs: model.nowMs,
      }),
    model: () => (generation === 0 ? verbs.reschedule(model, items) : MOVED),
  };
};

/** What becomes of a record: other data, an option more or less, as large as it may be (b is 19), and larger. */
function madeOf(read: string, { b, c, dueMs }: { b: number; c: number; dueMs: number }): string {
  const tags = c % 4 === 3 ? { tags: b % 3 === 0 ? null : (pick(TAGS, b) ?? null) } : {};
  const options = { ...(c % 5 === 4 ? { maxLateness: c % 2 === 0 ? null : 50 } : {}), ...tags };
  const withData = (data: string) => editRecord(read, { hasData: true, data, options, dueMs }) ?? read;
  if (b !== 19 && b !== 22) return withData(`e${c % 3}`);
  return withData('x'.repeat(Math.max(0, LIMITS.bytesMax - withData('').length + b - 19)));
}

/** Also what somebody sends who has read another record, or who does not keep the mark of the first. */
const edit: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const itemOf = (nth: number): EditItem => {
    const member = pick(MEMBERS, nth) ?? 'j:a';
    const read = model.jobs.get(member)?.record ?? `1${model.nowMs.toString(36)}|{}`;
    const made = madeOf(read, { b, c, dueMs: model.nowMs });
    const record = b === 21 ? `2${made}` : b === 20 ? made.replace(/;m=[^;|]+/, '') : made;
    return {
      member,
      before: b % 6 === 5 ? '0123456789abcdef' : (seenFor(world, member, c) ?? digestOf(read)),
      record,
      ...(b % 4 === 2 ? { dueMs: model.nowMs + (pick(OFFSETS.slice(0, 3), c) ?? 40) } : {}),
    };
  };
  const items = [itemOf(a), ...(c > 18 ? [itemOf(1)] : [])];
  const generation = b === 23 ? 1 : 0;
  return {
    verb: 'edit',
    real: () =>
      jobs.edit({ ...ref, layoutGeneration: generation }, items, { bytesMax: LIMITS.bytesMax, nowMs: model.nowMs }),
    model: () => (generation === 0 ? verbs.edit(model, items) : MOVED),
  };
};

export const editing = { reschedule, edit };
