/**
 * Whether each queue with due jobs has a daemon that promotes them and a worker that runs them. Jobs of a queue without
 * them never fail; they wait, and nothing but this check says so.
 */
import { type ProcessesById, processesOf, versionsOf, versionsText, workersOf } from '../../client/queues/processes.ts';
import { show } from '../../kernel/duration.ts';
import { counted, span } from '../../kernel/humanize.ts';
import { lineOf, version } from '../../kernel/version.ts';
import type { Redis } from '../../redis/connection/connect.ts';
import { askEach } from '../../redis/read/each-queue.ts';
import { oldestDueAge, stats } from '../../redis/read/inspect.ts';
import { listQueues, partitionsOf, type QueueLayout, workersBeside } from '../../redis/scripts/queues.ts';
import { EXAMPLES_MAX, type Finding, leavingOut, type Subject } from './check.ts';

const QUEUES_MAX = 256;
/** A leader that was away for a moment is no finding. */
const UNLED_MS = 5000;

interface Idle {
  readonly text: string;
  readonly advice: string;
}

export async function workers({ redis, namespace }: Subject): Promise<Finding> {
  const layouts = (await listQueues(redis, namespace)).slice(0, QUEUES_MAX);
  const processes = await processesOf(redis, namespace);
  const answered = await askEach({ all: layouts, unread: [] }, (layout) =>
    idleIn(redis, { namespace, layout, processes }),
  );
  const [found, unread] = [answered.found.flat(), answered.unread];
  if (found.length === 0) {
    const well = `${counted(answered.found.length, 'queue')}; all due jobs have a worker and a daemon`;
    return leavingOut({ status: 'ok', saw: well }, unread);
  }
  const texts = found.slice(0, EXAMPLES_MAX).map(({ text }) => text);
  const more = found.length > EXAMPLES_MAX ? [`and ${found.length - EXAMPLES_MAX} more`] : [];
  const advice = [...new Set(found.map((one) => one.advice))].join('; ');
  return leavingOut({ status: 'warn', saw: [...texts, ...more].join('; '), advice }, unread);
}

/** Whether all processes that live have the minor version of the process that asks. */
export async function processes({ redis, namespace }: Subject): Promise<Finding> {
  const there = versionsOf(await processesOf(redis, namespace));
  const known = there.flatMap((one) => one.version ?? []);
  const seen = there.length === 0 ? 'no process lives' : versionsText(there);
  const saw = known.length === 1 && known[0] === version ? seen : `${seen}; asked by ${version}`;
  if (new Set([version, ...known].map(lineOf)).size === 1) return { status: 'ok', saw };
  const advice =
    'bring all processes, clients and this command to one version: two of them work side by side, and what is new in one the other does not know';
  return { status: 'warn', saw, advice };
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
    const [whom, advice] = of.layout.target
      ? ['dispatcher', 'add the role dispatcher to a daemon: duestream start --roles mover,http,dispatcher']
      : ['worker', 'start a worker with "duestream worker <module>"'];
    found.push({ text: `${show(queue)} has ${what} but no ${whom}${since}`, advice });
  }
  if (of.layout.target) found.push(...besideDispatchers(queue, of.processes));
  if (unled) {
    found.push({
      text: `${show(queue)} has jobs that are due but no daemon that promotes them${since}`,
      advice: 'start a daemon with "duestream start"',
    });
  }
  return found;
}

/** Workers of a queue whose jobs call a URL: they started in the moment in which it got its target, or are of a version that knows none. */
function besideDispatchers(queue: string, processes: ProcessesById): readonly Idle[] {
  const living = [...processes].map(([id, identity]) => ({ id, identity }));
  const [one] = workersBeside(living, queue);
  if (!one) return [];
  return [
    {
      text: `${show(queue)} has a target, and ${one.role} ${show(one.id)} on ${show(one.host)} runs jobs of it without a call`,
      advice: 'stop that process',
    },
  ];
}

/** Of a broadcast queue: jobs and workers that it had before it was one. */
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
