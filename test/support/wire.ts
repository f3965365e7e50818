/**
 * The golden vectors with their shapes, and a stage on which their stories are played: raw commands and the shipped
 * scripts, called as a client in any language would call them, not through our own typed door.
 */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Backoff } from '../../src/job/backoff.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import golden from '../golden/wire-v1.json' with { type: 'json' };
import type { TestRedis } from './redis.ts';
import { read } from './repository.ts';

interface ScheduleCall {
  readonly now: string;
  readonly generation: string;
  readonly mode: string;
  readonly horizon: string;
  readonly bytes: string;
  /** How many keys the call names. Default: as many as in the first release. */
  readonly keys?: number;
  /** Member, record, due. */
  readonly jobs: readonly (readonly string[])[];
}

interface CancelCall {
  readonly now: string;
  readonly generation: string;
  readonly window: string;
  readonly keys?: number;
  readonly members: readonly string[];
}

export interface Step {
  readonly command?: readonly string[];
  readonly schedule?: ScheduleCall;
  readonly cancel?: CancelCall;
  readonly reply?: unknown;
  readonly nudges?: readonly string[];
}

interface Grammar {
  readonly valid: readonly string[];
  readonly invalid: readonly string[];
}

interface Vectors {
  readonly keys: readonly {
    readonly namespace: string;
    readonly queue: string;
    readonly partition: number;
    readonly keys: Readonly<Record<string, string>>;
    readonly control: Readonly<Record<string, string>>;
  }[];
  readonly names: Readonly<Record<string, Grammar>>;
  readonly groups: readonly { readonly member: string; readonly group: string | null }[];
  readonly ids: readonly {
    readonly ms: number;
    readonly sequence: number;
    readonly random: string;
    readonly id: string;
  }[];
  readonly members: readonly { readonly id: string; readonly bare: boolean; readonly member: string }[];
  readonly partitions: readonly {
    readonly id: string;
    readonly text: string;
    readonly crc16: number;
    readonly of: Readonly<Record<string, number>>;
  }[];
  readonly base36: readonly { readonly number: number; readonly text: string }[];
  readonly records: readonly {
    readonly dueMs: number;
    readonly name?: string;
    readonly data?: unknown;
    readonly options?: { readonly a?: number; readonly t?: number; readonly b?: Backoff };
    readonly header?: Readonly<Record<string, string>>;
    readonly headers?: Readonly<Record<string, string>>;
    /** It counts in its group. */
    readonly counts?: boolean;
    readonly record: string;
    readonly bytes: number;
    readonly digest: string;
  }[];
  readonly unreadable: readonly string[];
  readonly tombstones: readonly { readonly tombstone: string; readonly deadLetter: string | null }[];
  readonly registry: readonly {
    readonly value: string;
    readonly partitions: number | null;
    readonly generation: number | null;
  }[];
  readonly limits: readonly {
    readonly setting: 'rate' | 'concurrency' | 'perGroup' | 'fair';
    readonly value: string;
    readonly means: unknown;
  }[];
  readonly scores: readonly { readonly score: string; readonly dueMs: number; readonly isWaiting: boolean }[];
  readonly nudges: readonly { readonly wake: string | null; readonly dueMs: number; readonly publish: string | null }[];
  readonly dues: readonly {
    readonly score: string;
    readonly nowMs: number;
    readonly becomes: string;
    readonly record?: string;
  }[];
  readonly stories: readonly { readonly title: string; readonly steps: readonly Step[] }[];
}

export const vectors: Vectors = golden as unknown as Vectors;

/** An empty database with ears on the wake channel of one partition. */
export async function createStage(server: TestRedis, { keys }: PartitionRef) {
  const redis = await server.client();
  const subscriber = await server.client();
  const heard: string[] = [];
  let plays = 0;
  await redis.flushall();
  subscriber.on('smessage', (_channel: string, message: string) => heard.push(message));
  await subscriber.ssubscribe(keys.wake);

  function send({ command, schedule, cancel }: Step): Promise<unknown> {
    if (command) {
      const [name = '', ...args] = command.map((part) => part.replace(/^K:/, keys.scheduled.replace(/scheduled$/, '')));
      return redis.call(name, ...args);
    }
    if (schedule) {
      const { now, generation, mode, horizon, bytes, jobs, keys: count = 7 } = schedule;
      const old = [keys.scheduled, keys.jobs, keys.runs, keys.done, keys.meta, keys.wake, keys.stale];
      const names = [...old, keys.tags, keys.ready, keys.line].slice(0, count);
      return evaluate(redis, 'schedule', names, [now, generation, mode, horizon, bytes, ...jobs.flat()]);
    }
    if (cancel) {
      const { now, generation, window, members, keys: count = 6 } = cancel;
      const old = [keys.scheduled, keys.jobs, keys.runs, keys.done, keys.meta, keys.stale];
      const names = [...old, keys.tags, keys.line].slice(0, count);
      return evaluate(redis, 'cancel', names, [now, generation, window, ...members]);
    }
    throw new Error('a step is a command, a schedule or a cancel');
  }

  return {
    /** One step of a story: what Redis replied, and what was published meanwhile. */
    async play(step: Step): Promise<{ readonly reply: unknown; readonly nudges: readonly string[] }> {
      const reply = await send(step);
      plays += 1;
      const end = `end ${plays}`;
      // Messages of a channel arrive in order, so after this one all others are here.
      await redis.spublish(keys.wake, end);
      await expect.poll(() => heard.at(-1), { interval: 1 }).toBe(end);
      return { reply, nudges: heard.splice(0).slice(0, -1) };
    },
  };
}

/** As the page says: SCRIPT LOAD, then EVALSHA by the SHA-1 of the file. */
async function evaluate(
  redis: Redis,
  verb: string,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const text = read(`lua/${verb}.lua`);
  const sha = createHash('sha1').update(text).digest('hex');
  expect(await redis.script('LOAD', text)).toBe(sha);
  return redis.evalsha(sha, keys.length, ...keys, ...args);
}
