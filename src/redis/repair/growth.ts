/**
 * What only ever grows (I7): the last token and epoch of a partition, and within one generation of a job its token, its
 * failures and its crashes. Whether they did takes two states that somebody read some time apart.
 *
 * A job that is over may live again under its id and begins at nothing, so two runs are compared only when they tell of
 * the same life: the same generation, asked due time and digest.
 */
import { decodeRun } from '../../job/codec.ts';
import type { Redis } from '../connection/connect.ts';
import type { PartitionRef } from '../keys.ts';

export interface Growth {
  readonly token: number;
  readonly epoch: number;
  /** Member → its run as it is stored. */
  readonly runs: ReadonlyMap<string, string>;
}

export interface Shrunk {
  /** The member; empty for the partition. */
  readonly name: string;
  readonly what: string;
}

/** As many runs are remembered per partition; more are not compared. */
const RUNS_MAX = 10_000;
/** A run with its errors may have 4 KB. */
const PAGE = 100;

export async function growth(redis: Redis, { keys }: PartitionRef): Promise<Growth> {
  const runs = new Map<string, string>();
  let cursor = '0';
  do {
    const [next, flat] = await redis.hscan(keys.runs, cursor, 'COUNT', PAGE);
    for (let at = 0; at + 1 < flat.length; at += 2) runs.set(flat[at] ?? '', flat[at + 1] ?? '');
    cursor = next;
  } while (cursor !== '0' && runs.size < RUNS_MAX);
  const [token, epoch] = await redis.hmget(keys.meta, 'token', 'epoch');
  return { token: Number(token ?? 0), epoch: Number(epoch ?? 0), runs };
}

/** What fell from one state to a later one. */
export function shrunk(before: Growth, now: Growth): readonly Shrunk[] {
  const fell = (['token', 'epoch'] as const)
    .filter((name) => now[name] < before[name])
    .map((name) => ({ name: '', what: `the last ${name} fell from ${before[name]} to ${now[name]}` }));
  const runs = [...now.runs].flatMap(([name, value]) => {
    const what = fallen(before.runs.get(name), value);
    return what === undefined ? [] : [{ name, what }];
  });
  return [...fell, ...runs];
}

function fallen(earlier: string | undefined, value: string): string | undefined {
  if (earlier === undefined || lifeOf(earlier) !== lifeOf(value)) return undefined;
  const [was, is] = [decodeRun(earlier), decodeRun(value)];
  if (!was || !is || was.generation !== is.generation) return undefined;
  if (Number(is.token) < Number(was.token)) return `its token fell from ${was.token} to ${is.token}`;
  // Every start counts an attempt. A newer token without one: the same call came again after its window, a second life.
  if (is.attempts <= was.attempts && Number(is.token) > Number(was.token)) return undefined;
  const name = (['attempts', 'failures', 'crashes'] as const).find((count) => is[count] < was[count]);
  return name && `its ${name} fell from ${was[name]} to ${is[name]}`;
}

/** Asked due and digest of the record a run began with. */
function lifeOf(value: string): string {
  const [head = ''] = value.split('\n', 1);
  return head.split(' ').slice(9, 11).join(' ');
}
