/**
 * Whether somebody serves every queue in which jobs are due: a worker that runs them, and a daemon that promotes them. A
 * queue without them loses nothing and does nothing, and no job of it ever fails: nothing else would tell.
 */

import { show } from '../../kernel/duration.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { oldestDueAge, stats } from '../../redis/read/inspect.ts';
import { listQueues, partitionsOf, type QueueLayout } from '../../redis/scripts/queues.ts';
import { type ProcessesById, processesOf, workersOf } from '../processes.ts';
import type { Finding, Subject } from './finding.ts';

const QUEUES_MAX = 256;
/** A leader that was away for a moment is no finding. */
const UNLED_MS = 5000;
const EXAMPLES_MAX = 5;

interface Idle {
  readonly text: string;
  readonly advice: string;
}

export async function workers({ redis, namespace }: Subject): Promise<Finding> {
  const layouts = (await listQueues(redis, namespace)).slice(0, QUEUES_MAX);
  const processes = await processesOf(redis, namespace);
  const found: Idle[] = [];
  for (const layout of layouts) found.push(...(await idleIn(redis, { namespace, layout, processes })));
  if (found.length === 0) {
    return { status: 'ok', saw: `${counted(layouts.length, 'queue')}; all due jobs have a worker and a daemon` };
  }
  const texts = found.slice(0, EXAMPLES_MAX).map(({ text }) => text);
  const more = found.length > EXAMPLES_MAX ? [`and ${found.length - EXAMPLES_MAX} more`] : [];
  const advice = [...new Set(found.map((one) => one.advice))].join('; ');
  return { status: 'warn', saw: [...texts, ...more].join('; '), advice };
}

async function idleIn(
  redis: Redis,
  of: { readonly namespace: string; readonly layout: QueueLayout; readonly processes: ProcessesById },
): Promise<readonly Idle[]> {
  const { queue } = of.layout;
  const refs = partitionsOf(of.namespace, of.layout);
  const all = await Promise.all(refs.map((ref) => stats(redis, ref)));
  const ageMs = Math.max(...(await Promise.all(refs.map((ref) => oldestDueAge(redis, ref)))));
  const entries = all.reduce((sum, { ready, running }) => sum + ready + running, 0);
  const unled = all.some(
    ({ term, paused, headDueMs = Number.POSITIVE_INFINITY, nowMs }) =>
      term === undefined && !paused && headDueMs < nowMs - UNLED_MS,
  );
  const since = ageMs > 0 ? `, the oldest due for ${span(ageMs)}` : '';
  const found: Idle[] = [];
  if (of.layout.broadcast?.isOn) found.push(...leftForWorkers(queue, entries, workersOf(queue, of.processes)));
  else if (workersOf(queue, of.processes) === 0 && (entries > 0 || ageMs > 0)) {
    const what = entries > 0 ? `${counted(entries, 'job')} ready` : 'jobs that are due';
    found.push({
      text: `${show(queue)} has ${what} but no worker${since}`,
      advice: 'start a worker with "duestream worker <module>"',
    });
  }
  if (unled) {
    found.push({
      text: `${show(queue)} has jobs that are due but no daemon that promotes them${since}`,
      advice: 'start a daemon with "duestream start"',
    });
  }
  return found;
}

/** Of a broadcast queue: what only processes of an older release do. */
function leftForWorkers(queue: string, entries: number, serving: number): readonly Idle[] {
  if (entries === 0 && serving === 0) return [];
  const what = [
    ...(entries > 0 ? [`${counted(entries, 'job')} ready for workers`] : []),
    ...(serving > 0 ? [counted(serving, 'worker')] : []),
  ];
  return [
    {
      text: `${show(queue)} is a broadcast and has ${what.join(' and ')}`,
      advice: 'update all daemons, and stop the workers of a queue that is a broadcast',
    },
  ];
}
