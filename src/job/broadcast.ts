/**
 * Queues whose jobs go to every process that subscribes, and how much of what was sent they keep for those who are behind.
 * It is stored in the registry of queues, so that every process knows it.
 */

import { broadcastRanges, checkNames, durationIn, wholeNumber } from '../kernel/checks.ts';
import { type DurationInput, show } from '../kernel/duration.ts';
import { DuestreamError } from '../kernel/errors.ts';

/** How much of what was sent is kept for subscribers that are behind; whichever bound is reached first counts. */
export interface BroadcastOptions {
  /** At most so many jobs: 1 to 1,000,000. Default 10,000. Each partition has its share. */
  readonly max?: number | undefined;
  /** At most so many bytes: 1024 to 1 GiB. Default 16 MiB. Each partition has its share. The latest job is kept in any case. */
  readonly bytes?: number | undefined;
  /** None for longer: `1s` to `7d`. Default `1h`. */
  readonly age?: DurationInput | undefined;
}

/** What holds for a queue. */
export interface Broadcast {
  /** False: its jobs go to workers, each to one. */
  readonly isOn: boolean;
  readonly max: number;
  readonly bytes: number;
  readonly ageMs: number;
}

const BROADCAST_OPTIONS: readonly string[] = Object.keys({
  max: 0,
  bytes: 0,
  age: 0,
} satisfies Record<keyof BroadcastOptions, number>);

const ON: Broadcast = Object.freeze({
  isOn: true,
  max: broadcastRanges.max.default,
  bytes: broadcastRanges.bytes.default,
  ageMs: broadcastRanges.ageMs.default,
});

/** @throws DuestreamError `bad-input` */
export function parseBroadcast(input: BroadcastOptions | boolean | undefined): Broadcast | undefined {
  if (input === undefined) return undefined;
  if (typeof input === 'boolean') return input ? ON : Object.freeze({ ...ON, isOn: false });
  if (typeof input !== 'object' || input === null) {
    throw new DuestreamError('bad-input', `broadcast is ${show(input)}; allowed: true, false or { max, bytes, age }`);
  }
  checkNames(input, BROADCAST_OPTIONS, 'broadcast', 'bad-input');
  const { max = ON.max, bytes = ON.bytes, age } = input;
  return Object.freeze({
    isOn: true,
    max: wholeNumber(max, { what: 'broadcast.max', ...broadcastRanges.max }),
    bytes: wholeNumber(bytes, { what: 'broadcast.bytes', ...broadcastRanges.bytes }),
    ageMs: age === undefined ? ON.ageMs : durationIn(age, 'broadcast.age', broadcastRanges.ageMs),
  });
}

/** As it stands in the registry of queues. */
export const encodeBroadcast = ({ isOn, max, bytes, ageMs }: Broadcast): string =>
  JSON.stringify({ on: isOn, max, bytes, ageMs });

/** What cannot be read was written by somebody else: the queue is one of workers then. */
export function decodeBroadcast(text: string | null | undefined): Broadcast | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    const { on, max, bytes, ageMs } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const isSane = [max, bytes, ageMs].every((one) => Number.isInteger(one) && Number(one) > 0);
    if (!isSane) return undefined;
    return Object.freeze({ isOn: on === true, max: Number(max), bytes: Number(bytes), ageMs: Number(ageMs) });
  } catch {
    return undefined;
  }
}

/** The part of the bounds that one of several partitions has. */
export const broadcastShare = (broadcast: Broadcast, partitions: number): Broadcast =>
  partitions === 1
    ? broadcast
    : Object.freeze({
        ...broadcast,
        max: Math.ceil(broadcast.max / partitions),
        bytes: Math.ceil(broadcast.bytes / partitions),
      });
