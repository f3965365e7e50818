/** Debounce calls on one partition, as producers with clocks of their own would make them, for the tests of `schedule`. */
import { decodeRecord, decodeRun, encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import { debounceLetter } from '../../src/job/debounce.ts';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { gateShare } from '../../src/job/gate.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { countedRecord, endMark } from '../../src/job/record-header.ts';
import { limit } from '../../src/redis/scripts/gates.ts';
import type { Claim, Delivery, ScheduleReply, StartReply } from '../../src/redis/scripts/replies.ts';
import { only, T0, type usePartition, WINDOW_MS } from './partition.ts';

export const J = 'j:a';
export const [WAIT, MAX] = [1000, 5000];

export interface Call {
  readonly id?: string;
  /** When it is made, by its own clock. */
  readonly atMs?: number;
  readonly order?: number;
  readonly data?: unknown;
  readonly late?: HeaderOptions;
  readonly waitMs?: number;
  readonly maxMs?: number;
  readonly isCounted?: boolean;
}

export function sent(call: Call = {}) {
  const { id = 'a', atMs = T0, order = atMs, data = order, late, waitMs = WAIT, maxMs = MAX, isCounted } = call;
  const letter = debounceLetter(order, { waitMs, maxMs });
  const record = encodeRecord(atMs + waitMs, encodeBody({ name: 'default', data }), late, letter);
  return { member: memberOf(id), record: isCounted ? countedRecord(record) : record, dueMs: atMs + waitMs };
}
export function begun({ entry, member }: Delivery, reply: StartReply) {
  if (!('record' in reply)) throw new Error(`it is ${reply.kind}`);
  const { token, record, attempts } = reply;
  return { entry, member, token, attempts, data: decodeRecord(record).data, mark: endMark(record, WINDOW_MS) };
}

/** The calls, and looks at what they left. */
export function debounceDesk(p: ReturnType<typeof usePartition>) {
  const sendAll = (calls: readonly Call[], nowMs = T0) =>
    p.scheduleAll(
      calls.map((call) => sent(call)),
      { mode: 'debounce', nowMs },
    );
  const send = async (call: Call = {}, nowMs = call.atMs ?? T0): Promise<ScheduleReply> =>
    only(await sendAll([call], nowMs));
  const scoreOf = async (member = J) => Number(await p.redis.zscore(p.keys.scheduled, member));
  const dataOf = async (member = J) => decodeRecord((await p.redis.hget(p.keys.jobs, member)) ?? '').data;
  const runOf = async (member = J) => decodeRun((await p.redis.hget(p.keys.runs, member)) ?? '');
  const started = async (nowMs: number, consumer = 'w1') => {
    const delivery = only(await p.deliver({ nowMs, consumer }));
    return begun(delivery, only(await p.start([delivery], { consumer, nowMs })));
  };
  /** A job that runs, with the data of a call at T0. */
  async function running() {
    await send();
    return started(T0 + WAIT);
  }
  const ends: readonly (readonly [verb: string, end: (claim: Claim & { mark?: string }) => Promise<unknown>])[] = [
    ['complete', async (claim) => only(await p.complete([claim], { nowMs: T0 + 2000 }))],
    ['commit', (claim) => p.commit(claim, [{ command: 'HSET', key: p.keys.meta, args: ['effect', '1'] }])],
    ['bury', (claim) => p.bury(claim)],
  ];
  async function limits(settings: GateSettings): Promise<void> {
    const share = gateShare(settings, { partition: 0, partitions: 1 });
    if (share) await limit(p.redis, p.ref, { share, nowMs: T0 });
  }
  return { sendAll, send, scoreOf, dataOf, runOf, started, running, ends, limits };
}
