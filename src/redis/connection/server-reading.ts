/** How the servers themselves do: how full they are, and how far their clocks are from ours. */
import type { Clock } from '../../kernel/clock.ts';
import { askAll } from './cluster/members.ts';
import type { Redis } from './connect.ts';
import { timeAt } from './server-clock.ts';

/** Of a cluster: the master that is worst off. */
export interface ServerReading {
  /** Used memory by `maxmemory`: 1 is full. Undefined without a limit, and where INFO is forbidden. */
  readonly memoryRatio: number | undefined;
  /** The time of Redis minus the time of this machine, ms; wrong by at most half of a round trip. */
  readonly clockOffsetMs: number;
}

/** Two short commands for each master. @throws what TIME failed with */
export async function readServers(redis: Redis, clock: Clock): Promise<ServerReading> {
  const all = await askAll(redis, async (member) => {
    const [memoryRatio, clockOffsetMs] = await Promise.all([ratioAt(member), offsetAt(member, clock)]);
    return { memoryRatio, clockOffsetMs };
  });
  const ratios = all.flatMap(({ memoryRatio }) => memoryRatio ?? []);
  const offsets = all.map(({ clockOffsetMs }) => clockOffsetMs).sort((a, b) => Math.abs(b) - Math.abs(a));
  return { memoryRatio: ratios.length === 0 ? undefined : Math.max(...ratios), clockOffsetMs: offsets[0] ?? 0 };
}

async function ratioAt(redis: Redis): Promise<number | undefined> {
  const info = await redis.info('memory').catch(() => '');
  const [used, limit] = ['used_memory', 'maxmemory'].map((name) =>
    Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0),
  );
  return used === undefined || limit === undefined || limit === 0 ? undefined : used / limit;
}

async function offsetAt(redis: Redis, clock: Clock): Promise<number> {
  const sentMs = clock.wallMs();
  const serverMs = await timeAt(redis);
  return serverMs - (sentMs + clock.wallMs()) / 2;
}
