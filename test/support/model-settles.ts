/** How a running job ends on the model, and what every end has in common: see `model.ts`. */
import type { Claim, CommitReply, Heir, SettleReply } from '../../src/redis/replies.ts';
import { count, type Entry, type Job, jobOf, type Letter, type Model, nudge, type Run, stubOf } from './model.ts';

/** The run a settle speaks of, or why it is refused. */
function claimed(model: Model, { entry, member, token }: Claim): Run | 'already' | 'gone' | 'fenced' {
  const { run, stub } = jobOf(model, member);
  if (!run) return stub?.token === token ? 'already' : 'gone';
  if (run.token === token && !run.entry) return 'already';
  return run.token === token && run.entry?.id === entry ? run : 'fenced';
}

/** A completion is `already` there only if it was this very one. */
function completing(model: Model, claim: Claim): Run | 'already' | 'gone' | 'fenced' | 'cancelled' {
  const { run, stub } = jobOf(model, claim.member);
  if (run) return run.entry && typeof claimed(model, claim) !== 'string' ? run : 'fenced';
  if (stub?.token !== claim.token) return 'gone';
  return stub.outcome === 'c' ? 'cancelled' : stub.outcome === 'd' ? 'already' : 'gone';
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
  if (windowMs > 0) job.overMs ??= model.nowMs;
  else job.stub = job.overMs = undefined;
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
  if (run === 'gone' && jobOf(model, claim.member).stub?.token === claim.token) {
    return jobOf(model, claim.member).stub?.outcome === 'x' ? 'already' : 'gone';
  }
  if (typeof run === 'string') return run;
  if (run.cancel) return finish(model, { claim, run, windowMs, outcome: 'd' });
  if (refused && effects === 0) throw new Error(REFUSAL);
  model.effects += effects;
  if (!refused) return finish(model, { claim, run, windowMs, outcome: 'd' });
  const message = `command ${effects + 1} of the commit was refused: ${REFUSAL}`;
  const line = JSON.stringify({ t: model.nowMs, a: run.attempts, k: 'failure', m: message });
  const history = [...run.history, line].slice(-5);
  const letter = letterOf(claim.member, jobOf(model, claim.member), { reason: 'half-committed', history });
  model.letters.push(letter);
  finish(model, { claim, run, windowMs, outcome: 'x', letter });
  return `half ${effects + 1} ${REFUSAL}`;
}

/** A job that failed or was put aside waits again, where nobody has put it meanwhile. */
export function again(
  model: Model,
  claim: Claim,
  call: { windowMs: number; delayMs: number; error?: string },
): SettleReply {
  const run = claimed(model, claim);
  if (typeof run === 'string') return run;
  const job = jobOf(model, claim.member);
  const due = model.nowMs + call.delayMs;
  if (run.cancel) {
    end(model, job, { stub: stubOf(job, 'c'), windowMs: call.windowMs });
    count(model, 'cancelled');
  } else {
    if (run.entry) drop(model, [run.entry]);
    job.due ??= due;
    // One start costs one budget: its crash may be counted already.
    run.failures += call.error === undefined || run.owner === undefined ? 0 : 1;
    if (call.error !== undefined) run.history = [...run.history, call.error].slice(-5);
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

export function bury(
  model: Model,
  claim: Claim,
  call: { windowMs: number; reason: string; error: string; heir?: Heir | undefined },
): SettleReply {
  const run = claimed(model, claim);
  if (typeof run === 'string') return run;
  const { reason, error, heir } = call;
  const history = [...run.history, ...(error === '' ? [] : [error])].slice(-5);
  const letter = run.cancel ? undefined : letterOf(claim.member, jobOf(model, claim.member), { reason, history });
  if (letter) model.letters.push(letter);
  if (heir && letter && inherit(model, heir)) nudge(model, model.nowMs);
  return finish(model, { claim, run, windowMs: call.windowMs, outcome: 'x', letter });
}

/** A job that takes half-done effects back is due at once, unless there is one or was one. */
export function inherit(model: Model, heir: Heir): boolean {
  const job = jobOf(model, heir.member);
  if (job.record !== undefined || job.stub) return false;
  Object.assign(job, { record: heir.record, due: model.nowMs });
  count(model, 'scheduled');
  return true;
}

interface Finish {
  readonly claim: Claim;
  readonly run: Run;
  readonly windowMs: number;
  readonly outcome: 'd' | 'x';
  readonly letter?: Letter | undefined;
  readonly hold?: boolean;
}

function finish(model: Model, { claim, run, windowMs, outcome, letter, hold = false }: Finish): SettleReply {
  const job = jobOf(model, claim.member);
  const isHeld = hold && job.due === undefined && !run.cancel;
  if (run.entry && !isHeld) drop(model, [run.entry]);
  if (isHeld) Object.assign(job, { stub: stubOf(job, outcome), record: undefined, run: undefined });
  else if (job.due === undefined) end(model, job, { stub: stubOf(job, run.cancel ? 'c' : outcome, letter), windowMs });
  // Somebody put the member again meanwhile: it stays live.
  else {
    count(model, 'adopted');
    job.run = undefined;
  }
  count(model, run.cancel ? 'cancelled' : outcome === 'd' ? 'done' : 'dead');
  return run.cancel ? 'cancelled' : 'ok';
}

export function letterOf(member: string, job: Job, of: { reason: string; history: readonly string[] }): Letter {
  const { token = '0', attempts = 0, generation = 0 } = job.run ?? {};
  return { member, record: job.record ?? '', token, attempts, generation, ...of };
}

/** A job is over: a stub is left for the window. */
export function end(model: Model, job: Job, { stub, windowMs }: { stub: Job['stub']; windowMs: number }): void {
  Object.assign(job, { record: undefined, run: undefined, stub: windowMs > 0 ? stub : undefined });
  if (windowMs > 0) job.overMs = model.nowMs;
}

export function drop(model: Model, gone: readonly Entry[]): void {
  model.entries = model.entries.filter((entry) => !gone.includes(entry));
}
