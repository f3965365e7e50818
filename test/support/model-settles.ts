/** How a running job ends on the model, and what every end has in common: see `model.ts`. */
import type { Claim, CommitReply, Compensation, SettleReply } from '../../src/redis/scripts/replies.ts';
import {
  askedOf,
  count,
  type DeadLetter,
  dropNote,
  type Entry,
  type Job,
  jobOf,
  linesOf,
  type Model,
  noteStale,
  nudge,
  type Run,
  type Tombstone,
  tellEnd,
  tombstoneOf,
} from './model.ts';
import { freshRun } from './model-verbs.ts';

/** The run a settle speaks of, or why it is refused. */
function claimed(model: Model, { entry, member, token }: Claim): Run | 'already' | 'gone' | 'fenced' | 'cancelled' {
  const { run, tombstone } = jobOf(model, member);
  if (!run && tombstone?.token !== token) return 'gone';
  if (!run) return tombstone?.outcome === 'c' ? 'cancelled' : 'already';
  if (run.token === token && !run.entry) return 'already';
  return run.token === token && run.entry?.id === entry ? run : 'fenced';
}

/** A completion is `already` there only if it was this very one. */
function completing(model: Model, claim: Claim): Run | 'already' | 'gone' | 'fenced' | 'cancelled' {
  const { run, tombstone } = jobOf(model, claim.member);
  if (run?.entry && typeof claimed(model, claim) !== 'string') return run;
  // It lives on with newer data since.
  if (run) return run.token === claim.token && run.attempts === 0 ? 'already' : 'fenced';
  if (tombstone?.token !== claim.token) return 'gone';
  return tombstone.outcome === 'c' ? 'cancelled' : tombstone.outcome === 'd' ? 'already' : 'gone';
}

/** With `hold` an entry stays with its consumer: the proof that its start is over, until the same call without hold. */
export function complete(
  model: Model,
  claims: readonly Claim[],
  { windowMs, hold }: { windowMs: number; hold: boolean },
): readonly SettleReply[] {
  const settled = new Map<string, string>();
  return claims.map((claim) => {
    const earlier = settled.get(claim.member);
    if (earlier !== undefined) return earlier === claim.token ? 'already' : 'gone';
    const run = completing(model, claim);
    if (typeof run === 'string') {
      if (run === 'already' && !hold) letGo(model, claim, windowMs);
      return run;
    }
    settled.set(claim.member, claim.token);
    return finish(model, { claim, run, windowMs, outcome: 'd', hold });
  });
}

function letGo(model: Model, { entry, member }: Claim, windowMs: number): void {
  const held = model.entries.find(({ id }) => id === entry);
  if (held?.member !== member) return;
  const job = jobOf(model, member);
  drop(model, [held]);
  dropNote(model, member);
  if (windowMs > 0) job.overMs ??= model.nowMs;
  else job.tombstone = job.overMs = undefined;
}

/** What Redis says to a command that it refuses, and that the calls of the model bring now and then. */
export const REFUSAL = 'ERR value is not an integer or out of range';

/** `effects` are accepted; the one after them is refused, if there is one. */
export function commit(
  model: Model,
  claim: Claim,
  { windowMs, effects, refused }: { windowMs: number; effects: number; refused: boolean },
): CommitReply {
  const run = completing(model, claim);
  if (run === 'gone') return halfBefore(model, claim) ?? run;
  if (typeof run === 'string') return run;
  if (run.cancel) return finish(model, { claim, run, windowMs, outcome: 'd' });
  if (refused && effects === 0) throw new Error(REFUSAL);
  model.effects += effects;
  if (!refused) return finish(model, { claim, run, windowMs, outcome: 'd' });
  if (run.again) {
    finish(model, { claim, run, windowMs, outcome: 'x' });
    return `half ${effects + 1} ${REFUSAL}`;
  }
  const message = `command ${effects + 1} of the commit was refused: ${REFUSAL}`;
  const line = JSON.stringify({ t: model.nowMs, a: run.attempts, k: 'failure', m: message });
  const history = fail(run, line);
  const deadLetter = deadLetterOf(claim.member, jobOf(model, claim.member), {
    reason: 'half-committed',
    history,
    failures: run.failures + (run.owner === undefined ? 0 : 1),
  });
  model.deadLetters.push(deadLetter);
  finish(model, { claim, run, windowMs, outcome: 'x', deadLetter });
  return `half ${effects + 1} ${REFUSAL}`;
}

/** One error more. What was said of progress is over. */
export function fail(run: Run, line: string): string[] {
  run.history = [...run.history, line].slice(-5);
  run.progress = undefined;
  return run.history;
}

/** What the same call was told before: its dead letter says it. */
function halfBefore(model: Model, claim: Claim): CommitReply | undefined {
  const { tombstone } = jobOf(model, claim.member);
  const named = tombstone?.token === claim.token && tombstone.outcome === 'x' ? tombstone.deadLetter : undefined;
  const found = named && model.deadLetters.includes(named) ? named : deadLetterBy(model, claim);
  const [, nth] = /command (\d+) of the commit was refused/.exec(found?.history.at(-1) ?? '') ?? [];
  return found?.reason === 'half-committed' ? `half ${nth} ${REFUSAL}` : undefined;
}

/** Scripts look at the newest eight. */
const deadLetterBy = (model: Model, { member, token }: Claim): DeadLetter | undefined =>
  model.deadLetters.slice(-8).findLast((one) => one.member === member && one.token === token);

/** A job that failed or was put aside waits again, where nobody has put it meanwhile. */
export function again(
  model: Model,
  claim: Claim,
  call: { windowMs: number; delayMs: number; error?: string; why?: string },
): SettleReply {
  const run = claimed(model, claim);
  if (typeof run === 'string') return run;
  const job = jobOf(model, claim.member);
  const due = model.nowMs + call.delayMs;
  if (run.cancel) {
    count(model, 'cancelled');
    if (run.again) liveAgain(model, job, run);
    else end(model, job, { tombstone: tombstoneOf(job, 'c'), windowMs: call.windowMs });
  } else {
    if (run.entry) drop(model, [run.entry]);
    job.due ??= due;
    // One start costs one budget: its crash may be counted already.
    run.failures += call.error === undefined || run.owner === undefined ? 0 : 1;
    if (call.error !== undefined) fail(run, call.error);
    if (call.error === undefined) putAside(run, call.why ?? '', model.nowMs);
    Object.assign(run, { entry: undefined, owner: undefined, next: due, cancel: false });
    count(model, call.error === undefined ? 'deferred' : 'retried');
    nudge(model, due);
    return 'ok';
  }
  drop(
    model,
    model.entries.filter(({ id }) => id === claim.entry),
  );
  return 'cancelled';
}

/** The newest deferral, and in it the four before that. Who stops gives its jobs back, which is told and not counted. */
function putAside(run: Run, why: string, nowMs: number): void {
  const owner = run.owner ?? '-';
  const own = why === '' ? { t: nowMs, m: `worker ${owner} stopped`, k: 'back', w: owner } : JSON.parse(why);
  const { e: before = [], ...last } = JSON.parse(run.deferred?.why ?? '{}');
  const e = run.deferred ? [last, ...before].slice(0, 4) : undefined;
  const times = (run.deferred?.times ?? 0) + (why === '' ? 0 : 1);
  run.deferred = { times, why: JSON.stringify({ a: run.attempts, ...own, e }) };
}

export function bury(
  model: Model,
  claim: Claim,
  call: { windowMs: number; reason: string; error: string; compensation?: Compensation | undefined },
): SettleReply {
  const run = claimed(model, claim);
  if (run === 'gone' && deadLetterBy(model, claim)) return 'already';
  if (typeof run === 'string') return run;
  const { reason, error, compensation } = call;
  const history = error === '' || run.cancel ? run.history : fail(run, error);
  const isFailure = error !== '' && run.owner !== undefined && !error.includes('"k":"refused"');
  const deadLetter =
    run.cancel || run.again
      ? undefined
      : deadLetterOf(claim.member, jobOf(model, claim.member), {
          reason,
          history,
          failures: run.failures + (isFailure ? 1 : 0),
        });
  if (deadLetter) model.deadLetters.push(deadLetter);
  if (compensation && !run.cancel && inherit(model, compensation)) nudge(model, model.nowMs);
  return finish(model, { claim, run, windowMs: call.windowMs, outcome: 'x', deadLetter });
}

/** A job that takes half-done effects back is due at once, unless there is one or was one. */
export function inherit(model: Model, compensation: Compensation): boolean {
  const job = jobOf(model, compensation.member);
  if (job.record !== undefined || job.tombstone) return false;
  Object.assign(job, { record: compensation.record, due: model.nowMs });
  count(model, 'scheduled');
  return true;
}

interface Finish {
  readonly claim: Claim;
  readonly run: Run;
  readonly windowMs: number;
  readonly outcome: 'd' | 'x';
  readonly deadLetter?: DeadLetter | undefined;
  readonly hold?: boolean;
}

function finish(model: Model, { claim, run, windowMs, outcome, deadLetter, hold = false }: Finish): SettleReply {
  const job = jobOf(model, claim.member);
  const isHeld = hold && job.due === undefined && !run.cancel && !run.again;
  if (run.entry && !isHeld) drop(model, [run.entry]);
  if (isHeld) noteStale(model, claim.member);
  if (run.again) liveAgain(model, job, run);
  else if (isHeld) {
    const tombstone = tombstoneOf(job, outcome);
    tellEnd(model, job, tombstone);
    Object.assign(job, { tombstone, record: undefined, run: undefined });
  } else if (job.due === undefined)
    end(model, job, { tombstone: tombstoneOf(job, run.cancel ? 'c' : outcome, deadLetter), windowMs });
  // Somebody put the member again meanwhile: it stays live.
  else {
    count(model, 'adopted');
    job.run = undefined;
  }
  count(model, run.cancel ? 'cancelled' : outcome === 'd' ? 'done' : 'dead');
  return run.cancel ? 'cancelled' : 'ok';
}

/** Newer data came while it ran: its record has them, and the next life begins. */
function liveAgain(model: Model, job: Job, { token, generation, waited = false }: Run): void {
  const due = Number.parseInt(askedOf(job.record ?? ''), 36);
  job.due ??= due;
  job.run = { ...freshRun({ token, generation: generation + 1, next: due }), waited };
  count(model, 'scheduled');
  nudge(model, due);
}

export function deadLetterOf(
  member: string,
  job: Job,
  of: { reason: string; history: readonly string[]; failures?: number },
): DeadLetter {
  const { token = '0', attempts = 0, generation = 0, failures = 0, crashes = 0, deferred, progress } = job.run ?? {};
  const told = { ...of, history: linesOf({ deferred, progress, history: [...of.history] }) };
  return { member, record: job.record ?? '', token, attempts, generation, failures, crashes, ...told };
}

/** A job is over: a tombstone is left for the window. */
export function end(model: Model, job: Job, { tombstone, windowMs }: { tombstone: Tombstone; windowMs: number }): void {
  tellEnd(model, job, tombstone);
  Object.assign(job, { record: undefined, run: undefined, tombstone: windowMs > 0 ? tombstone : undefined });
  if (windowMs > 0) job.overMs = model.nowMs;
}

export function drop(model: Model, gone: readonly Entry[]): void {
  model.entries = model.entries.filter((entry) => !gone.includes(entry));
}
