/** What happened to a job, in the order of time: its starts and ends, and between them who changed it, from what to what, and why. */
import type { ComponentChildren } from 'preact';
import { relativeText, spanText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Change, Report } from './life.ts';
import { isFailed } from './life.ts';
import { When } from './when.tsx';

type Moment = Report['timeline'][number];

const said = words.job.story;

interface Event {
  readonly atMs: number;
  readonly key: string;
  readonly isLast: boolean;
  readonly isBad: boolean;
  readonly text: ComponentChildren;
}

/** @param changes the newest first; undefined where the caller may not see them */
export function Story({ job, changes }: { readonly job: Report; readonly changes: readonly Change[] | undefined }) {
  const ended = (changes ?? []).find(({ verb }) => verb === 'jobs.cancel' && job.state === 'cancelled');
  const moments = job.timeline
    .filter(isNews)
    .filter(isReached(job))
    .map((one, at) => momentOf(job, one, { at, ended }));
  const events = [...moments, ...(changes ?? []).filter((one) => one !== ended).map(changeOf)];
  return (
    <section aria-labelledby="story" class="axis-section">
      <header class="sec">
        <h2 id="story">{said.title}</h2>
      </header>
      <ol class="story">
        {events
          .toSorted((one, other) => one.atMs - other.atMs)
          .map(({ key, atMs, isLast, isBad, text }) => (
            <li key={key} class={`${isLast ? 'last' : ''}${isBad ? ' bad' : ''}`}>
              <When atMs={atMs} />
              {text}
            </li>
          ))}
      </ol>
      {changes === undefined ? <p class="quiet">{said.hidden}</p> : null}
    </section>
  );
}

/** A job that is due when it was asked for says so once. */
const isNews = ({ kind, atMs }: Moment, _: number, all: readonly Moment[]): boolean =>
  kind !== 'asked-due' || !all.some((one) => one.kind === 'due' && one.atMs === atMs);

/** Of a job that ended before it was due, its due time never came. */
const isReached =
  ({ overMs }: Report) =>
  ({ kind, atMs }: Moment): boolean =>
    kind !== 'asked-due' || overMs === undefined || atMs <= overMs;

interface Place {
  readonly at: number;
  /** The change that ended the job. */
  readonly ended: Change | undefined;
}

const OVER: ReadonlySet<string> = new Set(['done', 'cancelled', 'expired', 'dead']);

function momentOf(job: Report, moment: Moment, { at, ended }: Place): Event {
  const { kind, atMs, outcome, message } = moment;
  const by = kind === 'cancelled' ? ended : undefined;
  return {
    atMs,
    key: `${at} ${kind}`,
    isLast: OVER.has(kind),
    isBad: isFailed(moment) || kind === 'dead',
    text: (
      <>
        <b class="kind">{said.kinds[kind]}</b>
        {outcome === undefined ? null : ` ${words.states[outcome]}`}
        {kind === 'due' ? `, ${relativeText(atMs, job.nowMs)}` : null}
        {by === undefined ? null : <By change={by} />}
        <span class="quiet">{detailOf(moment)}</span>
        {message === undefined ? null : <span class="diff said">{message}</span>}
      </>
    ),
  };
}

function detailOf({ attempt, owner, tookMs }: Moment): string {
  const parts = [
    attempt === undefined || attempt === 0 ? '' : said.attempt(attempt),
    owner === undefined ? '' : said.worker(owner),
    tookMs === undefined ? '' : said.took(spanText(tookMs)),
  ].filter((part) => part !== '');
  return parts.map((part) => ` · ${part}`).join('');
}

const changeOf = (change: Change): Event => ({
  atMs: change.atMs,
  key: change.entry,
  isLast: false,
  isBad: false,
  text: (
    <>
      <b class="kind">{said.verbs[change.verb] ?? change.verb}</b>
      <By change={change} />
    </>
  ),
});

/** By whom and by which way, what is different since then, and why. */
function By({ change }: { readonly change: Change }) {
  const { who, way, count, target = '', before, after, reason } = change;
  const [was, is] = [before?.dueMs, after?.dueMs];
  const changed = after?.changed;
  return (
    <>
      {' '}
      {said.by(who, said.ways[way])}
      {count > 1 ? <span class="quiet">, {said.of(target, count)}</span> : null}
      {typeof is === 'number' ? (
        <span class="diff">
          {typeof was === 'number' ? (
            <>
              <s>
                <When atMs={was} />
              </s>
              {' → '}
            </>
          ) : null}
          <When atMs={is} />
        </span>
      ) : null}
      {Array.isArray(changed) ? <span class="diff">{said.changed(changed.join(', '))}</span> : null}
      <span class="diff">
        {reason === undefined ? null : `“${reason}” `}
        <a href="#/audit">{said.audit}</a>
      </span>
    </>
  );
}
