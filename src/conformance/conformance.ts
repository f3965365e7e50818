/**
 * `duestream conformance`: plays what can go wrong against a client that is not ours, and says rule by rule what held. All of it is of the
 * run: a Redis in a temporary folder, two daemons in processes of their own, and a line to each of them that plays the faults.
 *
 *  program ──▶ line ──▶ daemon ──┐
 *     │     └▶ line ──▶ daemon ──┴──▶ Redis        trial after trial ──▶ verdicts ──▶ a row for each rule
 *     └─ prints what its handlers do
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient } from '../client/client.ts';
import { resolveRedis } from '../embedded/resolve.mjs';
import { startEmbedded } from '../embedded/server.mjs';
import { createAbort } from '../kernel/abort.ts';
import { systemClock } from '../kernel/clock.ts';
import { DuestreamError } from '../kernel/errors.ts';
import { FaultyLine } from './faulty-line.ts';
import type { Verdict } from './judge.ts';
import { againQueue } from './orders.ts';
import { DaemonProcess } from './processes.ts';
import { type ClientRule, clientRules, type RuleName } from './rules.ts';
import type { Stage } from './scene.ts';
import { play, type Trial, trials } from './trials.ts';

export interface WorkerInput {
  /** A line for the shell, which starts the program. */
  readonly command: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Only these rules; empty: all. */
  readonly only: readonly RuleName[];
  /** The whole run ends about then. */
  readonly withinMs: number;
  /** Aborts when somebody interrupts. */
  readonly signal: AbortSignal;
  /** For people: what happens now. */
  readonly onStep: (text: string) => void;
}

export interface RuleRow {
  readonly rule: RuleName;
  readonly status: Verdict['status'];
  /** What was seen: of a rule that failed, how. */
  readonly saw: string;
  /** The rule in words. */
  readonly says: string;
  /** What becomes of jobs; where the rule failed. */
  readonly else?: string;
}

export interface Conformance {
  /** Nothing failed. What was not tried is in the rows. */
  readonly ok: boolean;
  readonly command: string;
  readonly tookMs: number;
  /** The time was up before all trials had their turn. */
  readonly timeIsUp: boolean;
  readonly rows: readonly RuleRow[];
}

export const ruleNames = Object.keys(clientRules).filter((name): name is RuleName => name in clientRules);

/** @throws DuestreamError `unavailable` without a redis-server, `failed` when a daemon does not come up */
export async function conformWorker({
  command,
  env,
  only,
  withinMs,
  signal,
  onStep,
}: WorkerInput): Promise<Conformance> {
  const startedMs = systemClock.monotonicMs();
  const over = createAbort();
  const callOff = systemClock.timer(withinMs, () =>
    over.abort(new Ended('the time is up: give it more with --seconds')),
  );
  const interrupt = () => over.abort(new Ended('interrupted'));
  signal.addEventListener('abort', interrupt, { once: true });
  if (signal.aborted) interrupt();
  const seen: (readonly Verdict[])[] = [];
  let stopped = '';
  try {
    await onStage({ command, env, signal: over.signal, onStep }, async (stage) => {
      const isAsked = (rule: RuleName) => only.length === 0 || only.includes(rule);
      const some = trials.filter(({ rules, also = [] }) => [...rules, ...also].some(isAsked));
      let begun = 0;
      await playAll(some, over, async (trial) => {
        begun += 1;
        onStep(`${begun} of ${some.length}: ${trial.doing}`);
        seen[some.indexOf(trial)] = await play(trial, stage);
      });
      // A machine that stands still for a while fails a trial too: a failure is one that was seen twice, the second time alone.
      for (const [at, trial] of some.entries()) {
        if (!seen[at]?.some(({ status }) => status === 'failed')) continue;
        onStep(`again, and alone: ${trial.doing}`);
        seen[at] = await play(trial, stage, againQueue(trial.queue));
      }
    });
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
    stopped = error.message;
  } finally {
    callOff();
    signal.removeEventListener('abort', interrupt);
  }
  const verdicts = seen.flat();
  const asked = only.length === 0 ? ruleNames : only;
  const rows = asked.map((rule) => rowOf(rule, verdicts, stopped));
  const tookMs = Math.round(systemClock.monotonicMs() - startedMs);
  const timeIsUp = over.signal.aborted && !signal.aborted;
  return { ok: rows.every(({ status }) => status !== 'failed'), command, tookMs, timeIsUp, rows };
}

class Ended extends Error {}

/** Trials mostly wait, so several are played at a time: each has a queue and programs of its own. */
const AT_ONCE = 6;

/** Those that are played alone come last. The first error ends all. */
async function playAll(some: readonly Trial[], over: AbortController, playOne: (trial: Trial) => Promise<void>) {
  const lane = async (turns: Iterable<Trial>) => {
    try {
      for (const trial of turns) {
        over.signal.throwIfAborted();
        await playOne(trial);
      }
    } catch (error) {
      over.abort(error);
    }
  };
  // All lanes take from the same turns.
  const turns = some.filter(({ isAlone }) => isAlone !== true).values();
  await Promise.all(Array.from({ length: AT_ONCE }, () => lane(turns)));
  await lane(some.filter(({ isAlone }) => isAlone === true));
  over.signal.throwIfAborted();
}

/** A rule fails with the first verdict that does; what was seen is that, or all. */
export function rowOf(rule: RuleName, verdicts: readonly Verdict[], stopped = ''): RuleRow {
  const { says, else: otherwise }: ClientRule = clientRules[rule];
  const own = verdicts.filter((verdict) => verdict.rule === rule);
  const [failure] = own.filter(({ status }) => status === 'failed');
  if (failure) return { rule, status: 'failed', saw: failure.saw, says, else: otherwise };
  const good = own.filter(({ status }) => status === 'held');
  if (good.length > 0) return { rule, status: 'held', saw: shortOf(good), says };
  return { rule, status: 'not tried', saw: own[0]?.saw ?? (stopped || 'no trial came to it'), says };
}

/** Rules that are judged in each trial have many verdicts: two say enough. */
const shortOf = (good: readonly Verdict[]): string => [...new Set(good.map(({ saw }) => saw))].slice(0, 2).join('; ');

type StageInput = Pick<Stage, 'command' | 'env' | 'signal'> & Pick<WorkerInput, 'onStep'>;

async function onStage(
  { command, env, signal, onStep }: StageInput,
  act: (stage: Stage) => Promise<void>,
): Promise<void> {
  const ends: (() => unknown)[] = [];
  try {
    onStep('a Redis and two daemons start');
    const orders = { redis: await openRedis({ env, onStep }, ends), namespace: 'conformance' };
    const daemons: (DaemonProcess | undefined)[] = [];
    ends.push(() => Promise.all(daemons.map(async (daemon) => daemon?.kill())));
    for (let at = 0; at < DAEMONS; at += 1) daemons.push(await DaemonProcess.start(orders));
    const lines = daemons.map((_, at) => new FaultyLine(at, () => daemons[at]?.url));
    const urls: string[] = [];
    for (const line of lines) {
      ends.push(() => line.close());
      urls.push(await line.open());
    }
    const client: Client = createClient({ redis: orders.redis, namespace: orders.namespace, name: 'conformance' });
    ends.push(() => client.close());
    await act({ command, env, orders, client, daemons, lines, urls, signal });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

const DAEMONS = 2;
/** From here on a free port is looked for. */
const FIRST_PORT = 17_400;

/** A Redis of the run alone, whose data go with it. */
async function openRedis(
  { env, onStep }: Pick<WorkerInput, 'env' | 'onStep'>,
  ends: (() => unknown)[],
): Promise<string> {
  const found = await resolveRedis({ env: { ...env, DUESTREAM_REDIS_URL: undefined }, log: onStep });
  if (found.kind === 'url')
    throw new DuestreamError('unavailable', 'a run needs a redis-server of its own; install one');
  const dataDir = await mkdtemp(join(tmpdir(), 'duestream-conformance-'));
  ends.push(() => rm(dataDir, { recursive: true, force: true }));
  const server = await startEmbedded({ binary: found.path, dataDir, port: FIRST_PORT, persistence: false });
  ends.push(() => server.stop());
  return server.url;
}
