/** Why the queue holds, in one sentence that is true at this moment; below it what the daemon says to do. */
import type { ComponentChildren } from 'preact';
import type { Schemas } from '../../api-types.ts';
import type { LiveQueue } from '../../live.ts';
import { Advice } from '../../parts/advice.tsx';
import { dayMonthText, timeText } from '../../parts/clock.ts';
import { ratesText } from '../../parts/rates.ts';
import { durationText, numberText } from '../../parts/words.ts';
import { troubleOf } from '../../trouble.ts';
import { words } from '../../words/words.ts';
import type { Why } from './seen.ts';

type Reason = Why['reasons'][number];
type Diary = Schemas['QueueLate']['diary'];

interface Seen {
  readonly found: LiveQueue;
  readonly why: Why | undefined;
  readonly diary: Diary | undefined;
}

/** Something hinders the queue that no time takes away: a list of all that has to hold says more. */
export function isHindered(why: Why | undefined): boolean {
  const [first] = why?.reasons ?? [];
  return why?.moves === false && first !== undefined && first.code !== 'not-due' && first.code !== 'empty';
}

/** What the daemon says begins without a name, and stands alone here. */
export const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

const { say } = words.queue;
const DAY_MS = 86_400_000;

/** Without its day where that is no riddle. */
export const clockText = (atMs: number): string =>
  Math.abs(atMs - Date.now()) < DAY_MS / 2 ? timeText(atMs) : `${dayMonthText(atMs)}, ${timeText(atMs)}`;

export const jobsText = (count: number): string => words.queue.jobs(count, numberText(count));

export function Say({ children, ...seen }: Seen & { readonly children: ComponentChildren }) {
  const { found, why } = seen;
  const reasons = why?.reasons ?? [];
  const more = moreOf(found, reasons[0]);
  return (
    <section class={troubleOf(found).level === 'bad' ? 'say bad' : 'say'} aria-live="polite">
      <h1>
        {sentenceOf(seen)}
        <First found={found} />
      </h1>
      {more === '' ? null : <p>{more}</p>}
      {reasons.length === 0 || isHindered(why) ? null : (
        <ul class="notes">
          {reasons.map(({ text, advice }, at) => (
            <li key={text}>
              <p>
                <Advice text={sentence(at === 0 ? advice : `${withoutName(found.queue, text)} – ${advice}`)} />
              </p>
            </li>
          ))}
        </ul>
      )}
      {children}
    </section>
  );
}

/** Each reason of a queue begins with its name, which stands above. */
export const withoutName = (queue: string, text: string): string =>
  text.startsWith(`${queue}: `) ? text.slice(queue.length + 2) : text;

function sentenceOf({ found, why, diary }: Seen): string {
  if (found.paused) return pausedText(diary);
  const [reason] = why?.reasons ?? [];
  if (reason === undefined) return why === undefined ? words.queue.looking : say.moving;
  const { scheduled, waiting, ready, running } = found;
  switch (reason.code) {
    case 'waiting':
      return heldText(reason, found);
    case 'redis-full':
      return say.redisFull;
    case 'no-leader':
      return say.noLeader;
    case 'no-worker':
      return say.noWorker(jobsText(scheduled + waiting + ready + running));
    case 'ready-capped':
      return say.capped(jobsText(ready));
    case 'busy':
      return say.busy(jobsText(ready));
    case 'lingering':
      return say.lingering;
    case 'not-due':
      return say.quiet(durationText(Math.max(0, (reason.nextMs ?? Date.now()) - Date.now())));
    case 'empty':
      return say.empty;
    case 'paused':
      return pausedText(diary);
  }
}

/** Who paused it is told by the diary; a token without the scope `data` is told no reason. */
function pausedText(diary: Diary | undefined): string {
  const pause = diary?.intervals.findLast(({ what, toMs }) => what === 'paused' && toMs === undefined);
  const why = pause?.why === undefined || pause.why === '' ? '.' : `: “${pause.why}”.`;
  return `${say.paused(pause?.by, pause?.fromMs === undefined ? undefined : clockText(pause.fromMs))}${why}`;
}

function heldText({ heldBy, nextMs }: Reason, { waiting, limits }: LiveQueue): string {
  const jobs = jobsText(waiting);
  if (heldBy === undefined) return say.line(jobs);
  switch (heldBy) {
    case 'rate':
      return say.rate(jobs, ratesText(limits));
    case 'queue-full':
      return say.queueFull(jobs, numberText(limits?.concurrency ?? 0));
    case 'group-full':
      return say.groupFull(jobs);
    case 'shared':
      return say.shared(jobs);
    case 'queue-closed':
      return say.closed(jobs, nextMs === undefined ? '–' : clockText(nextMs));
  }
}

/** Of what is due, wherever it waits. */
function First({ found: { oldestDueAgeMs, waitMs, paused } }: { readonly found: LiveQueue }) {
  const ms = Math.max(oldestDueAgeMs, waitMs);
  if (ms < 1000) return null;
  return (
    <>
      {' '}
      {say.first} <b class={paused ? undefined : 'bad-text'}>{durationText(ms)}</b>.
    </>
  );
}

function moreOf(found: LiveQueue, reason: Reason | undefined): string {
  const { paused, oldestDueAgeMs, waitMs, perSecond, running } = found;
  if (paused) return Math.max(oldestDueAgeMs, waitMs) > 0 ? say.pausedWaits : say.pausedIdle;
  if (reason !== undefined) return '';
  return perSecond.started > 0 || running > 0 ? say.rateNow(numberText(perSecond.started)) : say.idle;
}
