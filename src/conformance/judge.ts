/** Judges of what happened in a trial. Each looks at one rule; those of `everyTrial` hold whatever the trial does to the program. */
import { isDeepStrictEqual } from 'node:util';
import { type Call, type Happenings, jobsIn, runOf, runsIn } from './record.ts';
import type { RuleName } from './rules.ts';

/** What one trial says of one rule. */
export interface Verdict {
  readonly rule: RuleName;
  /** `not tried`: nothing is known. */
  readonly status: 'held' | 'failed' | 'not tried';
  readonly saw: string;
}

export const held = (rule: RuleName, saw: string): Verdict => ({ rule, status: 'held', saw });
export const failed = (rule: RuleName, saw: string): Verdict => ({ rule, status: 'failed', saw });
export const notTried = (rule: RuleName, saw: string): Verdict => ({ rule, status: 'not tried', saw });
export const judged = (rule: RuleName, isSo: boolean, saw: { readonly so: string; readonly not: string }): Verdict =>
  isSo ? held(rule, saw.so) : failed(rule, saw.not);

export const everyTrial = (happened: Happenings): readonly Verdict[] => [
  ...nameVerdicts(happened),
  ...numberVerdicts(happened),
  ...tokenVerdicts(happened),
];

const NAME = /^h-[a-z0-9][a-z0-9._-]{0,31}-[0-9a-f]{32}$/;

export const namesIn = ({ calls }: Happenings): readonly string[] => [
  ...new Set(calls.map(({ body }) => String(body.worker))),
];

function nameVerdicts(happened: Happenings): readonly Verdict[] {
  const names = namesIn(happened);
  const wrong = names.filter((name) => !NAME.test(name));
  if (names.length === 0) return [];
  const [first] = wrong;
  return [first === undefined ? held('name', `${names[0]}`) : failed('name', `a worker is called ${first}`)];
}

/** The same claim is the same number and the same words. */
export function numberVerdicts({ calls }: Happenings): readonly Verdict[] {
  const claims = calls.filter(({ verb }) => verb === 'claim');
  if (claims.length === 0) return [];
  const last = new Map<string, Call[]>();
  for (const claim of claims) {
    const { worker, lane = 0 } = claim.body;
    const key = `${String(worker)} ${String(lane)}`;
    const before = last.get(key) ?? [];
    const why = misnumbered(claim, before);
    if (why !== undefined) return [failed('number', why)];
    last.set(key, before[0]?.body.seq === claim.body.seq ? [...before, claim] : [claim]);
  }
  const repeated = claims.filter(({ body }) => body.again === true).length;
  return [held('number', `${claims.length} claims, ${repeated} of them sent again`)];
}

/** @param before the sends of the claim before, or of this one */
function misnumbered({ nth, body }: Call, before: readonly Call[]): string | undefined {
  const seq = Number(body.seq);
  const [first] = before;
  const known = Number(first?.body.seq ?? 0);
  if (first !== undefined && seq === known) {
    if (body.again !== true) return `claim ${seq} was sent once more without again`;
    return isSameCall(body, first.body) ? undefined : `claim ${seq} was sent once more with other fields`;
  }
  if (body.again === true) return `claim ${seq} said again where it was sent first`;
  if (first === undefined) return seq === 1 ? undefined : `the first claim of a lane has the number ${seq}`;
  if (seq !== known + 1) return `claim ${seq} came after claim ${known}`;
  const wasRead = before.some(({ answer }) => answer?.status === 200 && answer.nth < nth);
  return wasRead ? undefined : `claim ${seq} came before claim ${known} had an answer`;
}

const isSameCall = (one: Call['body'], other: Call['body']): boolean =>
  isDeepStrictEqual({ ...one, again: true }, { ...other, again: true });

/** A program says `began <id> <token>`. */
function tokenVerdicts(happened: Happenings): readonly Verdict[] {
  const handed = happened.calls.flatMap(jobsIn);
  const began = happened.said('began');
  if (began.length === 0) return [];
  const wrong = began.find(({ words: [, id, token] }) => !handed.some((job) => job.id === id && job.token === token));
  if (wrong === undefined) return [held('token', `${began.length} starts with their tokens`)];
  return [failed('token', `a handler printed "${wrong.words.join(' ')}", and no answer had this job with this token`)];
}

/** Of a call that must be sent again; beats may be sent with other runs, for a later one says the same. */
const REPEATED = new Set(['claim', 'settle', 'complete', 'fail', 'defer', 'begin', 'leave']);
/** The shortest pause: 50 ms with its jitter. */
const PAUSE_MS = 20;
/** A pause that `Retry-After` asks for may be as much shorter, by what the line takes. */
const EARLY_MS = 100;

/**
 * Every call that was lost or put off was made again, after a pause, and not at the same daemon alone: threads that share the turn
 * may bring one call to the same daemon twice.
 */
export function repeatVerdict({ calls }: Happenings): Verdict {
  const some = calls.filter(({ verb }) => REPEATED.has(verb));
  const lost = some.filter((call) => call.isLost || isPutOff(call));
  let elsewhere = 0;
  for (const call of lost) {
    const next = some.find(
      ({ nth, verb, body }) => nth > call.nth && verb === call.verb && isSameCall(body, call.body),
    );
    if (next === undefined) return failed('repeat', `a call ${call.verb} that had no answer was not sent again`);
    const pausedMs = Math.round(next.atMs - (call.answer?.atMs ?? call.atMs));
    const leastMs = call.answer?.retryAfter ? call.answer.retryAfter * 1000 - EARLY_MS : PAUSE_MS;
    if (pausedMs < leastMs) return failed('repeat', `a call ${call.verb} was sent again after ${pausedMs} ms`);
    if (next.daemon !== call.daemon) elsewhere += 1;
  }
  if (lost.length === 0) return notTried('repeat', 'no call was lost');
  if (elsewhere === 0) return failed('repeat', `${lost.length} calls without an answer never went to the other daemon`);
  return held('repeat', `${lost.length} calls without an answer were sent again`);
}

const isPutOff = ({ answer }: Call): boolean => answer !== undefined && (answer.status >= 500 || answer.status === 429);

/** The longest time between the calls that named this run, from the answer that handed it out; undefined: it was not named. */
export function longestSilenceMs(happened: Happenings, id: string): number | undefined {
  const run = runOf(happened, id);
  const handed = happened.calls.findLast((call) => jobsIn(call).some((job) => job.id === id));
  const beats = happened.calls.filter((call) => runsIn(call).some((one) => one.kind === 'beat' && one.run === run));
  const times = [handed?.answer?.atMs, ...beats.map(({ atMs }) => atMs)].filter((ms) => ms !== undefined);
  if (beats.length === 0) return undefined;
  return Math.max(...times.slice(1).map((ms, at) => ms - (times[at] ?? ms)));
}

/** How a run ended, as a call said it, with the word that it got. */
export interface Told {
  readonly call: Call;
  readonly end: string;
  readonly word: string;
}

/** What calls said of how one of these runs ended, `begin` left out. */
export const settlesOf = ({ calls }: Happenings, runs: ReadonlySet<string>, afterNth = 0): readonly Told[] =>
  calls
    .filter(({ nth }) => nth > afterNth)
    .flatMap((call) =>
      runsIn(call)
        .filter(({ kind, end, run }) => kind === 'settle' && end !== 'begin' && runs.has(run))
        .map(({ end, word }) => ({ call, end, word })),
    );
