/**
 * What a Redis must be like to keep jobs, as a list of checks. Each looks at one thing, says what it saw and, unless
 * all is well, what to do. Where looking is forbidden (CONFIG often is), the check warns instead of guessing.
 */

import { systemClock } from '../../kernel/clock.ts';
import { span } from '../../kernel/humanize.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { membersOf } from '../../redis/connection/cluster/members.ts';
import { describe, type Redis } from '../../redis/connection/connect.ts';
import { createServerClock } from '../../redis/connection/server-clock.ts';
import { partitionRef } from '../../redis/keys.ts';
import { stats } from '../../redis/read/inspect.ts';
import { scriptOptions } from '../../redis/scripts/scripts.ts';
import { done } from './check-done.ts';
import { patches, versionOf } from './check-patches.ts';
import { rights } from './check-rights.ts';
import { dueTimes, members } from './check-scheduled.ts';
import { schedules } from './check-schedules.ts';
import { schema } from './check-schema.ts';
import { workers } from './check-workers.ts';
import type { Check, Finding, Info, Subject } from './finding.ts';

export const checks: readonly Check[] = [
  { name: 'reachable', look: reachable },
  { name: 'version', needsInfo: true, perServer: true, look: ({ info }) => version(info) },
  { name: 'patches', needsInfo: true, perServer: true, look: ({ info }) => patches(info) },
  { name: 'role', needsInfo: true, perServer: true, look: ({ info }) => role(info) },
  { name: 'eviction', needsInfo: true, perServer: true, look: ({ info }) => eviction(info) },
  { name: 'persistence', needsInfo: true, perServer: true, look: persistence },
  { name: 'clock', perServer: true, look: clock },
  { name: 'rights', perServer: true, look: rights },
  { name: 'scripts', look: scripts },
  { name: 'schema', look: schema },
  { name: 'workers', look: workers },
  { name: 'scores', look: dueTimes },
  { name: 'members', look: members },
  { name: 'schedules', look: schedules },
  { name: 'done', look: done },
];

export async function readInfo(redis: Redis): Promise<Info> {
  const lines = (await redis.info()).split(/\r?\n/).filter((text) => text.includes(':'));
  return new Map(lines.map((text) => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)]));
}

async function reachable({ redis }: Subject): Promise<Finding> {
  const startedMs = systemClock.monotonicMs();
  await redis.ping();
  const tookMs = systemClock.monotonicMs() - startedMs;
  const saw = `${describe(redis)} answers in ${tookMs.toFixed(1)} ms`;
  if (tookMs < SLOW_MS) return { status: 'ok', saw };
  return {
    status: 'warn',
    saw,
    advice: 'run daemons and workers closer to Redis: every start and every end of a job waits this long',
  };
}

const SLOW_MS = 50;

function version(info: Info): Finding {
  const { product, version: found } = versionOf(info);
  const [major = 0, minor = 0] = found.split('.').map(Number);
  const minorMin = product === 'Valkey' ? 2 : 0;
  const saw = `${product} ${found}`;
  if (major > 7 || (major === 7 && minor >= minorMin)) return { status: 'ok', saw };
  return { status: 'fail', saw, advice: 'upgrade to Redis 7.0 or later, or Valkey 7.2 or later' };
}

function role(info: Info): Finding {
  const is = info.get('role') ?? 'unknown';
  if (is === 'master') return { status: 'ok', saw: 'primary' };
  return { status: 'fail', saw: is === 'slave' ? 'replica' : is, advice: 'name the primary: a replica takes no jobs' };
}

function eviction(info: Info): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown';
  const limit = Number(info.get('maxmemory') ?? 0);
  const saw = `${policy}, ${limit === 0 ? 'no memory limit' : `limit ${Math.round(limit / 2 ** 20)} MiB`}`;
  if (policy === 'noeviction') return { status: 'ok', saw };
  const advice = 'CONFIG SET maxmemory-policy noeviction: any other policy may delete jobs when memory is short';
  return { status: limit === 0 ? 'warn' : 'fail', saw, advice };
}

async function persistence({ redis, info }: Subject): Promise<Finding> {
  if (info.get('aof_enabled') === '1') {
    if (info.get('aof_last_write_status') === 'err') {
      const advice = 'free space on the disk of Redis, or repair it: it cannot write';
      return { status: 'fail', saw: 'AOF, but its last write failed', advice };
    }
    return synced(await setting(redis, 'appendfsync'));
  }
  const save = await setting(redis, 'save');
  if (save === '') {
    const advice = 'CONFIG SET appendonly yes: without it no job survives a restart of Redis';
    return { status: 'fail', saw: 'none', advice };
  }
  const advice =
    'CONFIG SET appendonly yes: without it a crash loses every job that was scheduled or ended since that snapshot';
  return { status: 'warn', saw: `${save === undefined ? 'no AOF' : 'snapshots only'}, ${sinceSnapshot(info)}`, advice };
}

function synced(fsync: string | undefined): Finding {
  if (fsync === 'always') return { status: 'ok', saw: 'AOF, fsync always: no acknowledged write is lost' };
  if (fsync === 'everysec')
    return { status: 'ok', saw: 'AOF, fsync everysec: a power failure can lose the last two seconds' };
  if (fsync === undefined) {
    return { status: 'warn', saw: 'AOF, fsync not visible', advice: 'check that appendfsync is everysec or always' };
  }
  const advice = 'CONFIG SET appendfsync everysec: without it a power failure can lose half a minute';
  return { status: 'warn', saw: `AOF, fsync ${fsync}`, advice };
}

function sinceSnapshot(info: Info): string {
  const savedMs = Number(info.get('rdb_last_save_time') ?? 0) * 1000;
  const changes = info.get('rdb_changes_since_last_save') ?? '?';
  return `last snapshot ${span(systemClock.wallMs() - savedMs)} ago, ${changes} changes since`;
}

/** A setting, '' when it is empty, or undefined when CONFIG is forbidden. */
async function setting(redis: Redis, name: string): Promise<string | undefined> {
  try {
    const reply = await redis.config('GET', name);
    return Array.isArray(reply) ? String(reply[1] ?? '') : undefined;
  } catch {
    return undefined;
  }
}

/** Only what is certain counts: the line may be slow. */
async function clock({ redis }: Subject): Promise<Finding> {
  const server = createServerClock(redis, systemClock);
  await server.measure();
  const [atMs, hereMs] = [systemClock.monotonicMs(), systemClock.wallMs()];
  const offsetMs = server.nowMs(atMs) - hereMs;
  const errorMs = (server.latestMs(atMs) - server.earliestMs(atMs)) / 2;
  const saw = `Redis is ${span(offsetMs)} ${offsetMs < 0 ? 'behind' : 'ahead of'} this machine`;
  if (Math.abs(offsetMs) - errorMs <= OFFSET_MAX_MS) return { status: 'ok', saw };
  const advice =
    'set both clocks by NTP: due times count by the clock of Redis, but this machine reads an --at by its own';
  return { status: 'warn', saw, advice };
}

const OFFSET_MAX_MS = 500;

/** Loads every script, and runs the one that only reads. */
async function scripts({ redis, namespace }: Subject): Promise<Finding> {
  const all = Object.values(scriptOptions);
  try {
    for (const server of membersOf(redis)) for (const { lua } of all) await server.script('LOAD', lua);
    await stats(redis, partitionRef(namespace, { queue: 'doctor', partition: 0, layoutGeneration: 0 }));
    return { status: 'ok', saw: `${all.length} scripts load, and one was run` };
  } catch (error) {
    const advice = 'allow EVAL, EVALSHA, SCRIPT LOAD and the keys of the namespace to this user';
    return { status: 'fail', saw: reasonOf(error), advice };
  }
}
