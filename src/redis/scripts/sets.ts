/** What somebody does to a whole set of jobs: it begins, is sealed, is there no longer. What its members do, their scripts tell it. */
import type { Redis } from '../connection/connect.ts';
import { naming } from '../connection/wrong-type.ts';
import type { PartitionRef } from '../keys.ts';
import { type Moved, moved } from './replies.ts';
import { scripts } from './script-table.ts';
import { list, type Reply, run, text } from './scripts.ts';

export type SetChange =
  | {
      readonly kind: 'gather';
      readonly name: string;
      readonly callback: SetCallback;
      /** See `schedule`. */
      readonly layoutAge?: 'remembered' | 'fresh';
    }
  | { readonly kind: 'seal'; readonly name: string; readonly member: string }
  | { readonly kind: 'disband'; readonly name: string };

/** The one job that a set leads to, as it is kept until then. */
export interface SetCallback {
  readonly member: string;
  /** Its asked due time is 0 until it is made. */
  readonly record: string;
  /** From the end of the last member. */
  readonly delayMs: number;
}

/**
 * `exists`: with another callback. `over`: its callback was made, and its end is remembered. `unknown`: there is no such set.
 * `lives`: a member of an earlier set of this name is not over.
 */
export interface SetReply {
  readonly kind: 'ok' | 'already' | 'exists' | 'over' | 'lives' | 'unknown';
}

const SIGNS = { remembered: '=', fresh: '+' } as const;

export function changesOfSets(redis: Redis) {
  const call = ({ keys, layoutGeneration }: PartitionRef, change: SetChange, now: number | ''): Promise<Reply> => {
    const { name: set } = change;
    switch (change.kind) {
      case 'gather': {
        const { layoutAge, callback } = change;
        const generation = `${layoutAge === undefined ? '' : SIGNS[layoutAge]}${layoutGeneration}`;
        return run(redis, scripts.gather, { keys, args: { now, generation, set, callback: callbackText(callback) } });
      }
      case 'seal':
        return run(redis, scripts.seal, {
          keys,
          args: { now, generation: layoutGeneration, set, member: change.member },
        });
      case 'disband':
        return run(redis, scripts.disband, { keys, args: { generation: layoutGeneration, set } });
    }
  };
  return {
    async changeSet(
      ref: PartitionRef,
      change: SetChange,
      { nowMs }: { readonly nowMs?: number } = {},
    ): Promise<SetReply | Moved> {
      const reply = await call(ref, change, nowMs ?? '');
      if (Array.isArray(reply)) return moved(list(reply)) ?? { kind: 'unknown' };
      return { kind: text(reply) as SetReply['kind'] };
    },
  };
}

const callbackText = ({ delayMs, member, record }: SetCallback): string => `.${delayMs} ${member} ${record}`;

/** As `gather` keeps it; undefined for another text. */
export function callbackOf(kept: string): SetCallback | undefined {
  const [, delay, member, record] = /^\.(\d+) (\S+) (.*)$/s.exec(kept) ?? [];
  return member === undefined || record === undefined ? undefined : { delayMs: Number(delay), member, record };
}

/** Of the leader: sets whose last member is over, and whose callback a call that was cut off did not make. */
export async function tendSets(
  redis: Redis,
  { keys }: PartitionRef,
  { term, after, limit, nowMs }: { term: string; after: string; limit: number; nowMs?: number },
): Promise<{ readonly over: number; readonly next: string } | 'fenced'> {
  const args = { now: nowMs ?? '', term, after, limit };
  const [over, next] = list(await run(redis, scripts.tend, { keys, args }));
  return over === -1 ? 'fenced' : { over: Number(over), next: text(next) };
}

/** Whether the partition has any set: one command, where `tend` takes four. */
export async function hasSets(redis: Redis, { keys }: PartitionRef): Promise<boolean> {
  return (await naming(redis, [keys], redis.zlexcount(keys.tags, '[=sets\0', '(=sets\x01'))) > 0;
}
