/** What each consumer of a partition holds, and what it runs. For people: bounded, and not one moment in time. */
import { decodeRun, idOf } from '../../job/codec.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';
import { type ConsumerInfo, consumers, ownPending, readEntries } from '../scripts/ready.ts';

/** A job that a consumer holds. */
export interface Held {
  readonly id: string;
  readonly bare: boolean;
  /** Undefined: delivered, and not started by this consumer yet. */
  readonly attempt: number | undefined;
  /** Tokens grow with the server's clock in µs, so the token of a start says when it was. */
  readonly startedMs: number | undefined;
}

export interface Holding extends ConsumerInfo {
  /** The oldest jobs it holds, at most as many as were asked for. */
  readonly jobs: readonly Held[];
}

/** Every consumer of the group with its oldest entries. */
export async function holdings(redis: Redis, ref: PartitionRef, limit: number): Promise<readonly Holding[]> {
  if ((await redis.exists(ref.keys.ready)) === 0) return [];
  const all: Holding[] = [];
  for (const consumer of await consumers(redis, ref.keys)) {
    const jobs = consumer.pending === 0 ? [] : await heldBy(redis, ref, { consumer: consumer.name, limit });
    all.push({ ...consumer, jobs });
  }
  return all;
}

async function heldBy(
  redis: Redis,
  { keys }: PartitionRef,
  of: { readonly consumer: string; readonly limit: number },
): Promise<readonly Held[]> {
  const entries = await readEntries(redis, keys, await ownPending(redis, keys, { ...of, idleMs: 0 }));
  if (entries.length === 0) return [];
  const runs = await redis.hmget(keys.runs, ...entries.map(({ member }) => member));
  return entries.map(({ entry, member }, at) => {
    const run = decodeRun(runs[at] ?? '');
    const own = run?.owner === of.consumer && run.entry === entry ? run : undefined;
    const startedMs = own === undefined ? undefined : Math.floor(Number(own.token) / 1000);
    return { ...idOf(member), attempt: own?.attempts, startedMs };
  });
}
