/** Three faults that harm nobody: replies that are lost, a worker that is killed, and a leader that is killed. */
import { type Client, createClient } from '../client/client.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { span } from '../kernel/humanize.ts';
import { partitionRef } from '../redis/keys.ts';
import { type PartitionStats, stats } from '../redis/read/inspect.ts';
import type { Actor } from './cast.ts';
import { LossyLine, withIdentity } from './lossy-line.ts';
import { type Outcome, until } from './row.ts';
import { enter, type Stage, up } from './stage.ts';

const idsOf = ({ said }: Actor, kind: 'ran' | 'done'): readonly string[] =>
  said.flatMap((one) => (one.kind === kind ? [one.id] : []));

const statsOf = ({ redis, namespace }: Stage, queue: string): Promise<PartitionStats> =>
  stats(redis, partitionRef(namespace, { queue, partition: 0, layoutGeneration: 0 }));

// Lost replies. Producer, daemon and worker each have a line of their own, so that each of them loses some.

/** Of each of them. */
const LOSSES = 5;
const LOST_SPREAD_MS = 3000;
/** A connection is dialled again within 2.5 s, a call repeated for 10 s, and an end that nobody heard of is asked for again. */
const LOST_WITHIN_MS = 30_000;
const PARALLEL = 10;
const CALLS_MAX = 10;

export async function lostReplies(stage: Stage): Promise<Outcome> {
  const { redis, address, namespace, jobs, signal } = stage;
  const queue = 'lost';
  const lines = { producer: new LossyLine(LOSSES), daemon: new LossyLine(LOSSES), worker: new LossyLine(LOSSES) };
  const to = (line: LossyLine) => line.open(redis, address);
  let client: Client | undefined;
  try {
    client = createClient({ redis: withIdentity(await to(lines.producer)), namespace, name: 'prove' });
    const daemon = enter(stage, { role: 'daemon', queue, ...(await to(lines.daemon)) });
    const worker = enter(stage, { role: 'worker', queue, ...(await to(lines.worker)) });
    await up(stage, daemon, worker);
    for (const line of Object.values(lines)) line.arm();
    await scheduleAll(client, { queue, jobs, signal });
    const isOver = () => new Set(idsOf(worker, 'done')).size >= jobs;
    await until(isOver, { boundMs: LOST_WITHIN_MS, signal });
    const ran = idsOf(worker, 'ran');
    const { counters, dead } = await statsOf(stage, queue);
    const lost = Object.fromEntries(Object.entries(lines).map(([who, line]) => [`${who}Lost`, line.lost]));
    return judgedLost({ jobs, done: counters.done ?? 0, dead, twice: ran.length - new Set(ran).size, lost });
  } finally {
    for (const line of Object.values(lines)) line.close();
    await client?.close();
  }
}

/** As an application does whose call ended in doubt: it makes the call again, with the same id. */
async function scheduleAll(
  client: Client,
  { queue, jobs, signal }: { readonly queue: string; readonly jobs: number; readonly signal: AbortSignal },
): Promise<void> {
  const left = Array.from({ length: jobs }, (_, at) => at);
  const one = async () => {
    for (let at = left.shift(); at !== undefined; at = left.shift()) {
      const job = { id: `lost-${at}`, delay: Math.floor((LOST_SPREAD_MS * at) / jobs) };
      signal.throwIfAborted();
      for (let calls = 1; !(await isScheduled(client, { queue, ...job }, calls)); calls += 1) signal.throwIfAborted();
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, one));
}

async function isScheduled(
  client: Client,
  { queue, id, delay }: { readonly queue: string; readonly id: string; readonly delay: number },
  calls: number,
): Promise<boolean> {
  try {
    await client.schedule(queue, { id }, { id, delay });
    return true;
  } catch (error) {
    const isInDoubt = error instanceof DuestreamError && ['indeterminate', 'unavailable'].includes(error.code);
    if (isInDoubt && calls < CALLS_MAX) return false;
    throw error;
  }
}

export interface LostSeen {
  readonly jobs: number;
  readonly done: number;
  readonly dead: number;
  readonly twice: number;
  readonly lost: Readonly<Record<string, number>>;
}

/** Of what Redis counted and a worker said. */
export function judgedLost({ jobs, done, dead, twice, lost }: LostSeen): Outcome {
  const figures = { jobs, done, dead, twice, ...lost };
  const replies = Object.values(lost).reduce((sum, count) => sum + count, 0);
  const saw = `${replies} replies lost; ${done} of ${jobs} jobs done once, ${Math.max(0, jobs - done)} lost, ${dead} dead, ${twice} started twice`;
  if (done !== jobs || dead > 0 || twice > 0) {
    const advice =
      'look whether somebody else removes keys, or a proxy before Redis repeats or drops calls; then run this again';
    return { status: 'failed', saw, figures, advice };
  }
  const unharmed = Object.entries(lost).filter(([, count]) => count === 0);
  if (unharmed.length === 0) return { status: 'held', saw, figures };
  return {
    status: 'not tried',
    saw: `${saw}; none of ${unharmed.map(([who]) => who.replace('Lost', '')).join(', ')}: give it more --jobs`,
    figures,
  };
}

// A worker is killed while it runs jobs, and another one takes them over.

const HELD = 5;
/** Its heartbeat ends after 2 s, it must be missing for 1 s, and its leases end after 3 s; the rest is for the machine. */
export const RECOVER_MAX_MS = 10_000;
const START_WITHIN_MS = 10_000;

export async function workerKilled(stage: Stage): Promise<Outcome> {
  const { address, namespace, signal } = stage;
  const queue = 'worker';
  const client = createClient({ redis: address, namespace, name: 'prove' });
  try {
    const doomed = enter(stage, { role: 'worker', queue, hangs: true });
    await up(stage, doomed, enter(stage, { role: 'daemon', queue }));
    await client.scheduleMany(
      queue,
      Array.from({ length: HELD }, (_, at) => ({ id: `held-${at}`, data: { at } })),
    );
    const isRunning = await until(() => idsOf(doomed, 'ran').length === HELD, { boundMs: START_WITHIN_MS, signal });
    if (!isRunning)
      return { status: 'failed', saw: `${idsOf(doomed, 'ran').length} of ${HELD} jobs started`, advice: LOOK };
    const heir = enter(stage, { role: 'worker', queue });
    await up(stage, heir);
    await doomed.kill();
    const killedMs = systemClock.monotonicMs();
    await until(() => idsOf(heir, 'done').length >= HELD, { boundMs: RECOVER_MAX_MS, signal });
    const tookMs = Math.round(systemClock.monotonicMs() - killedMs);
    const { counters } = await statsOf(stage, queue);
    return judgedKilled({ done: counters.done ?? 0, jobs: HELD, tookMs });
  } finally {
    await client.close();
  }
}

const LOOK = 'look at the rows above; then run this again with nothing else on this machine';

export function judgedKilled({
  done,
  jobs,
  tookMs,
}: {
  readonly done: number;
  readonly jobs: number;
  readonly tookMs: number;
}): Outcome {
  const figures = { jobs, done, tookMs, boundMs: RECOVER_MAX_MS };
  const saw = `a worker was killed with ${jobs} running jobs; another one had done ${done} of them after ${span(tookMs)}, bound ${span(RECOVER_MAX_MS)}`;
  if (done === jobs && tookMs <= RECOVER_MAX_MS) return { status: 'held', saw, figures };
  return { status: 'failed', saw, figures, advice: LOOK };
}

// The leader is killed, and another daemon leads.

const LED = 20;
const LED_SPREAD_MS = 4000;
/** The lease of the dead leader ends after 2 s, and its heir is elected then; the rest is for the machine. */
export const LEAD_MAX_MS = 6000;

export async function leaderKilled(stage: Stage): Promise<Outcome> {
  const { address, namespace, signal } = stage;
  const queue = 'leader';
  const client = createClient({ redis: address, namespace, name: 'prove' });
  const leads = (actor: Actor) => actor.said.some((said) => said.kind === 'leads' && said.queue === queue);
  try {
    const worker = enter(stage, { role: 'worker', queue });
    const doomed = enter(stage, { role: 'daemon', queue });
    await up(stage, worker, doomed);
    if (!(await until(() => leads(doomed), { boundMs: START_WITHIN_MS, signal }))) {
      return { status: 'failed', saw: 'no daemon took the lead', advice: LOOK };
    }
    const heir = enter(stage, { role: 'daemon', queue });
    await up(stage, heir);
    const delays = Array.from({ length: LED }, (_, at) => Math.floor((LED_SPREAD_MS * at) / LED));
    await client.scheduleMany(
      queue,
      delays.map((delay, at) => ({ id: `led-${at}`, data: { at }, delay })),
    );
    await doomed.kill();
    const killedMs = systemClock.monotonicMs();
    await until(() => leads(heir), { boundMs: LEAD_MAX_MS, signal });
    const tookMs = Math.round(systemClock.monotonicMs() - killedMs);
    await until(() => idsOf(worker, 'done').length >= LED, { boundMs: LED_SPREAD_MS + LEAD_MAX_MS, signal });
    const { counters } = await statsOf(stage, queue);
    return judgedLed({ done: counters.done ?? 0, tookMs, isLed: leads(heir) });
  } finally {
    await client.close();
  }
}

export interface LedSeen {
  readonly done: number;
  /** Until another daemon led. */
  readonly tookMs: number;
  readonly isLed: boolean;
}

export function judgedLed({ done, tookMs, isLed }: LedSeen): Outcome {
  const figures = { jobs: LED, done, tookMs, boundMs: LEAD_MAX_MS };
  const led = isLed ? `another daemon led after ${span(tookMs)}` : `no other daemon led within ${span(tookMs)}`;
  const saw = `the leader was killed; ${led}; ${done} of ${LED} jobs done, bound ${span(LEAD_MAX_MS)}`;
  if (isLed && done === LED && tookMs <= LEAD_MAX_MS) return { status: 'held', saw, figures };
  return { status: 'failed', saw, figures, advice: LOOK };
}
