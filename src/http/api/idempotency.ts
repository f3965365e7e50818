/**
 * An `Idempotency-Key` becomes the id of the job. That alone would not be enough: a delay counts from now, so the same
 * request later would be another call, and a second job once the first is over. So Redis keeps, for a day, which due time the
 * key was first answered with, and a digest of what was asked; who comes again makes the very same call.
 *
 * Two requests with one key at one moment: the first to write decides, the other reads. A crash between the key and the job
 * leaves a key whose job is scheduled by the next request, at the due time of the first.
 */
import { hash } from 'node:crypto';
import type { ScheduleOptions } from '../../client/client.ts';
import { dataJson } from '../../job/data-json.ts';
import { parseJobId } from '../../job/job.ts';
import { durationMs } from '../../kernel/duration.ts';
import { controlKeys, IDEMPOTENCY_MS } from '../../redis/keys.ts';
import type { Backend } from './backend.ts';
import { Problem } from './problem.ts';

interface Asked {
  readonly queue: string;
  readonly key: string;
  readonly data: unknown;
  readonly options: ScheduleOptions;
}

/**
 * The order of keys means nothing in JSON: another program, or the same one later, may write another. The record has them
 * sorted too, because what a job is known by is its text. How deep a body may be
 * was checked when it was read.
 */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, one]) => [name, sorted(one)]));
}

/** The key, if there is one. @throws DuestreamError `bad-input`, Problem `bad-input` for a key beside another id */
export function checkedIdempotency(key: string | undefined, id: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (id !== undefined && id !== key) {
    throw new Problem('bad-input', { detail: 'Idempotency-Key and body.id differ; allowed: one of them, or the same' });
  }
  return parseJobId(key);
}

/**
 * The data and the options with which the request is the same call as the first one with its key.
 *
 * @throws Problem `reused`
 */
export async function sameCall(
  backend: Backend,
  { queue, key, data: given, options }: Asked,
): Promise<Pick<Asked, 'data' | 'options'>> {
  const { delay, ...rest } = options;
  // Headers do not count when calls are compared.
  const { headers: _, ...compared } = options;
  const { redis, namespace, server } = await backend.place();
  await server.settle();
  const data = sorted(given ?? null);
  const dueMs = options.at === undefined ? server.latestMs() + durationMs(delay ?? 0, 'delay') : undefined;
  const digest = hash('sha256', `${dataJson(data)}${JSON.stringify(sorted([queue, compared]))}`).slice(0, 32);
  const name = controlKeys(namespace).idempotency(hash('sha256', `${queue} ${key}`).slice(0, 32));
  const mine = `${dueMs === undefined ? '-' : Math.ceil(dueMs)} ${digest}`;
  const before = await redis.set(name, mine, 'PX', IDEMPOTENCY_MS, 'NX', 'GET');
  const [due = '-', known = ''] = (before ?? mine).split(' ');
  if (known !== digest) {
    throw new Problem('reused', {
      detail: 'this Idempotency-Key was used for another request; allowed: the same request, or another key',
    });
  }
  const at = due === '-' ? options.at : new Date(Number(due));
  return { data, options: { ...rest, at, id: key } };
}
