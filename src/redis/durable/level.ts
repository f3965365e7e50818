/**
 * How many servers must have a write before its call resolves. `WAIT` asks for the memory of replicas, `WAITAOF` for disks:
 * that of the primary, and those of so many replicas.
 */

import type { Redis } from '../connection/connect.ts';
import { isReply } from '../connection/connection-error.ts';

export interface Level {
  /** The primary has written it to its disk, and each counted replica to its own. */
  readonly fsynced: boolean;
  /** `all`: as many as the primary has when the write is made. */
  readonly replicas: number | 'all';
  /** How long Redis waits for them. */
  readonly timeoutMs: number;
}

/** Replicas that a write needs while the primary has so many. `all` of none would promise nothing. */
export function neededOf({ replicas }: Level, connected: number): number {
  return replicas === 'all' ? Math.max(1, connected) : replicas;
}

/** How many replicas follow this server now, also those that are still loading. */
export async function replicasOf(redis: Redis): Promise<number> {
  return countOf(await redis.info('replication'));
}

export interface Confirmed {
  readonly isEnough: boolean;
  /** Who has it and who should, for an error. */
  readonly said: string;
  /** Replicas that the primary had just before it waited. Undefined where none is needed. */
  readonly connected: number | undefined;
}

/**
 * Asks who has the last write of this connection, and whom Redis waited for in vain. It is to go in one write with what it
 * is about: behind another write it would ask for that one.
 *
 * @throws what Redis or the connection said; then nobody knows
 */
export async function confirm(redis: Redis, level: Level, expected: number): Promise<Confirmed> {
  const counted = level.replicas === 0 ? undefined : replicasOf(redis);
  const asked = askWho(redis, level, expected);
  const [connected, reply] = await bothOf(counted, asked);
  const [disks, replicas] = level.fsynced ? pairOf(reply) : [1, Number(reply)];
  const needed = neededOf(level, connected ?? 0);
  const isEnough = replicas >= needed && disks >= 1;
  const disk = level.fsynced ? `the disk of the primary ${disks >= 1 ? 'has' : 'has not got'} it, and ` : '';
  const where = level.fsynced ? 'the disks of ' : '';
  return { isEnough, connected, said: `${disk}${where}${replicas} of ${needed} replicas have it` };
}

/** Nothing is left without a listener when one of them fails. */
async function bothOf<T>(
  first: Promise<number> | undefined,
  second: Promise<T>,
): Promise<readonly [number | undefined, T]> {
  return Promise.all([first, second]);
}

/** WAIT or WAITAOF as this level has it. */
export function askWho(redis: Redis, { fsynced, timeoutMs }: Level, replicas: number): Promise<unknown> {
  return fsynced ? redis.call('WAITAOF', 1, replicas, timeoutMs) : redis.call('WAIT', replicas, timeoutMs);
}

function countOf(info: string): number {
  return Number(/^connected_slaves:(\d+)/m.exec(info)?.[1] ?? 0);
}

function pairOf(reply: unknown): readonly [disks: number, replicas: number] {
  const [disks, replicas] = Array.isArray(reply) ? reply : [];
  return [Number(disks), Number(replicas)];
}

/** What a server lacks for this level, and what to do; undefined where it lacks nothing. @throws an outage */
export async function lackOf(redis: Redis, level: Level): Promise<string | undefined> {
  const command = level.fsynced ? 'WAITAOF' : 'WAIT';
  // This connection has written nothing, so there is nothing to wait for.
  const refusal = await askWho(redis, { ...level, timeoutMs: 1 }, 0).then(
    () => undefined,
    (error: unknown) => {
      if (isReply(error) && !/^(LOADING|BUSY|MASTERDOWN)\b/.test(error.message)) return error.message;
      throw error;
    },
  );
  if (refusal !== undefined) return reasonOf(refusal, command);
  const connected = level.replicas === 0 ? 0 : await replicasOf(redis);
  const needed = neededOf(level, connected);
  if (connected >= needed) return undefined;
  return `it has ${connected} replicas, and ${needed} must have each write: connect ${needed - connected} more with REPLICAOF, or ask for less durability`;
}

function reasonOf(refusal: string, command: string): string {
  if (/^ERR unknown command/i.test(refusal)) {
    const since = command === 'WAITAOF' ? ', which Redis 7.2 and Valkey 7.2 have' : '';
    return `it has no command ${command}${since}: use a server that has it, or ask for less durability`;
  }
  if (/appendonly/i.test(refusal))
    return 'its append-only file is off: set "appendonly yes", or ask for less durability';
  if (/^NOPERM/.test(refusal)) return `this user may not send ${command}: add +${command.toLowerCase()} to its rules`;
  return `it refused ${command} (${refusal}): connect to a primary, or ask for less durability`;
}
