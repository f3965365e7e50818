/** The sentence of a job: its state, since when, and why. Below it one or two more, where there is more to say. */
import type { ComponentChildren } from 'preact';
import { heldText } from '../../../job/state.ts';
import { State, type StateName } from '../../parts/state.tsx';
import { relativeText, spanText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Change, Report } from './life.ts';
import { isFailed, type Life, mostOf, sumsOfLife } from './life.ts';
import { When } from './when.tsx';

const { said, because, lines, before } = words.job;

interface Saying {
  readonly job: Report;
  readonly life: Life | undefined;
  /** The newest first. */
  readonly changes: readonly Change[];
}

export function Said({ job, life, changes }: Saying) {
  const { state, attempts, overMs } = job;
  return (
    <section class="say">
      <p class="over">
        <State of={shownState(job)} />
        <span class="quiet">
          {overMs === undefined ? null : (
            <>
              <When atMs={overMs} />
              {', '}
            </>
          )}
          {attempts > 0 ? words.job.attempts.one(attempts) : overMs === undefined ? '' : before}
        </span>
      </p>
      <h1>{sentenceOf(job, life, changes)}</h1>
      {state === 'cancelled' ? <WouldBeDue job={job} changes={changes} /> : null}
      <Below job={job} life={life} isOver={state === 'done' || state === 'dead'} />
    </section>
  );
}

export const shownState = (job: Report): StateName =>
  job.state === 'scheduled' && lastEnd(job) !== undefined && isRetry(job) ? 'retry' : job.state;

const isRetry = (job: Report): boolean => {
  const end = lastEnd(job);
  return end !== undefined && isFailed(end);
};

/** The last start that ended, of a job that goes on. */
const lastEnd = ({ timeline }: Report) =>
  timeline.findLast((one) => isFailed(one) || one.kind === 'deferred' || one.kind === 'handed-back');

function sentenceOf(job: Report, life: Life | undefined, changes: readonly Change[]): ComponentChildren {
  const { state, attempts, nowMs, startedMs } = job;
  const ranText = spanText(Math.max(0, nowMs - (startedMs ?? nowMs)));
  switch (state) {
    case 'scheduled':
      return <Scheduled job={job} />;
    case 'waiting':
      return sinceDue(job) === undefined ? said.waits : said.waiting(sinceDue(job) ?? '');
    case 'ready':
      return sinceDue(job) === undefined ? said.readyNow : said.ready(sinceDue(job) ?? '');
    case 'running':
      if (heldText(job, nowMs) !== undefined) return <Ahead text={said.held} job={job} />;
      return job.cancelRequested ? said.stopping(ranText, attempts) : said.running(ranText, attempts);
    case 'done':
      return doneText(life);
    case 'cancelled':
      return <Cancelled change={cancelOf(changes)} />;
    case 'expired':
      return said.expired;
    case 'dead':
      return said.dead(attempts);
  }
}

function Scheduled({ job }: { readonly job: Report }) {
  const { dueMs = 0, nowMs, attempts } = job;
  if (dueMs <= nowMs) return <>{said.late(spanText(nowMs - dueMs))}</>;
  const end = lastEnd(job);
  if (end === undefined) return <Ahead text={said.scheduled} job={job} />;
  return <Ahead text={isFailed(end) ? said.retry(attempts) : said.aside} job={job} />;
}

/** `Due Fri 27 Nov 09:00:00, in 16 h 18 min.` */
function Ahead({ text, job: { dueMs = 0, nowMs } }: { readonly text: string; readonly job: Report }) {
  return (
    <>
      {text} <When atMs={dueMs} />, {relativeText(dueMs, nowMs)}.
    </>
  );
}

/** Below it nobody waits. */
const SHORT_MS = 1000;

function sinceDue({ dueMs, askedDueMs, attempts, nowMs }: Report): string | undefined {
  const fromMs = dueMs ?? (attempts === 0 ? askedDueMs : undefined);
  return fromMs === undefined || nowMs - fromMs < SHORT_MS || fromMs < SHORT_MS ? undefined : spanText(nowMs - fromMs);
}

function doneText(life: Life | undefined): string {
  if (life === undefined) return said.doneThen;
  const text = spanText(life.toMs - life.fromMs);
  const why = mostOf(life);
  if (why === undefined || (why === 'run' && life.attempts.length === 1)) return onTimeOr(life, text);
  return said.mostly(said.done(text), because[why]);
}

/** Its wait was short beside its run, or both were. */
function onTimeOr(life: Life, text: string): string {
  const waitedMs = sumsOfLife(life).reduce((sum, { why, ms }) => sum + (why === 'run' ? 0 : ms), 0);
  return waitedMs < SHORT_MS ? said.onTime(text) : `${said.done(text)}.`;
}

const cancelOf = (changes: readonly Change[]): Change | undefined => changes.find(({ verb }) => verb === 'jobs.cancel');

/** `Cancelled by grace, with 2 others: “customer asked for quiet”.` */
function Cancelled({ change }: { readonly change: Change | undefined }) {
  if (change === undefined) return <>{said.cancelled}.</>;
  const { who, count, reason = '' } = change;
  return (
    <>
      {said.cancelled} {said.by} <a href="#/audit">{who}</a>
      {count > 1 ? said.withOthers(count - 1) : ''}
      {reason === '' ? '.' : `: “${reason}”.`}
    </>
  );
}

/** What moved it last stands in the audit alone: whoever may not read that is told nothing, and nothing wrong. */
function WouldBeDue({ job: { askedDueMs, overMs = 0 }, changes }: Pick<Saying, 'job' | 'changes'>) {
  if (changes.length === 0) return null;
  const moved = changes.find(({ after }) => typeof after?.dueMs === 'number')?.after?.dueMs;
  const dueMs = typeof moved === 'number' ? moved : askedDueMs;
  if (dueMs === undefined || dueMs <= overMs) return null;
  return (
    <p>
      {words.job.wouldBeDue} <When atMs={dueMs} />.
    </p>
  );
}

interface More {
  readonly job: Report;
  readonly life: Life | undefined;
  readonly isOver: boolean;
}

function Below({ job, life, isOver }: More) {
  const { state, reason, starts, waitsFor, nextLifeMs } = job;
  const message = lastEnd(job)?.message;
  // Why it died may be a word of ours; then its last error says more.
  const died = reason !== undefined && Object.hasOwn(words.job.reasons, reason) && message !== undefined;
  const error = state === 'dead' ? (died ? message : reason) : state === 'scheduled' ? message : undefined;
  return (
    <>
      {error === undefined ? null : <p class="said">{error}</p>}
      {nextLifeMs === undefined ? null : (
        <p>
          {lines.newer} <When atMs={nextLifeMs} />.
        </p>
      )}
      {starts === undefined ? null : <p>{starts.text}</p>}
      {starts === undefined && waitsFor !== undefined ? <p>{waitsFor.text}</p> : null}
      {isOver && life !== undefined ? <Causes life={life} /> : null}
    </>
  );
}

/** The next causes behind the first, as far as they count. */
const CAUSES_SAID = 2;

function Causes({ life }: { readonly life: Life }) {
  const wholeMs = life.toMs - life.fromMs;
  if (wholeMs < SHORT_MS) return null;
  const sums = sumsOfLife(life);
  const ran = sums.find(({ why }) => why === 'run');
  const told = sums.filter(({ why, ms }) => why !== 'run' && ms >= SHORT_MS).slice(0, CAUSES_SAID);
  return (
    <p>
      {told
        .map(({ why, ms, isAbout }) => lines.cause(isAbout ? lines.about(spanText(ms)) : spanText(ms), because[why]))
        .join(' ')}{' '}
      {ran === undefined || told.length === 0 ? null : lines.runs(spanText(ran.ms))}
    </p>
  );
}
