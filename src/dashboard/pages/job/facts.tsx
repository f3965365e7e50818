/** What a job is and carries: the facts of its report, its options, data and result, and the earlier lives of its id. */
import type { ComponentChildren } from 'preact';
import { type FactKey, jobFacts } from '../../../job/job-facts.ts';
import type { Schemas } from '../../api-types.ts';
import { Id } from '../../parts/table.tsx';
import { Tree } from '../../parts/tree.tsx';
import { bytesText, relativeText, spanText, targetText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Report } from './life.ts';
import { When } from './when.tsx';

const said = words.job.facts;
const kept = words.job.data;

/** Undefined: it is not shown. */
type Shown = ComponentChildren;

const VALUES: Readonly<Record<FactKey, (job: Report) => Shown>> = {
  name: ({ name }) => name,
  tags: ({ queue, tags = [] }) => (tags.length === 0 ? undefined : <Tags queue={queue} tags={tags} />),
  attempts: ({ attempts, failures, crashes }) =>
    attempts === 0 && failures + crashes === 0 ? said.none : said.started(attempts, failures, crashes),
  lastStart: ({ account }) =>
    account && (account.lateMs < LATE_MS ? said.onTime : said.lateBy(spanText(account.lateMs))),
  aside: ({ deferred }) => (deferred?.times ? said.times(deferred.times, deferred.reason ?? '') : undefined),
  // A bar and a sentence above say these.
  progress: () => undefined,
  newer: () => undefined,
  starts: () => undefined,
  worker: ({ owner }) =>
    owner && (
      <a href="#/workers">
        <Id text={owner} />
      </a>
    ),
  reason: ({ reason = '' }) => (words.job.reasons as Readonly<Record<string, string>>)[reason] ?? reason,
  partition: ({ partition, generation }) => said.generation(partition, generation),
};

/** Below it nobody asks why. */
const LATE_MS = 50;

export function Facts({ job }: { readonly job: Report }) {
  const { queue, dueMs, askedDueMs, token, bare } = job;
  const rows: readonly (readonly [string, Shown])[] = [
    [said.id, <Id text={job.id} isWhole />],
    [said.queue, <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>],
    [said.due, dueMs === undefined ? undefined : <When atMs={dueMs} />],
    [said.askedDue, askedDueMs === undefined || dueMs === askedDueMs ? undefined : <When atMs={askedDueMs} />],
    ...jobFacts.map(({ key }) => [said[key], VALUES[key](job)] as const),
    ...relatives(job),
    [said.token, token && <code>{token}</code>],
    ['', bare ? said.bare : undefined],
  ];
  return (
    <aside class="job-facts" aria-label={words.job.heading}>
      <dl>
        {rows.map(([term, value]) =>
          value === undefined || value === '' ? null : (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      <Options options={job.options} />
      <Data job={job} />
      <Past job={job} />
    </aside>
  );
}

const OVER: ReadonlySet<string> = new Set(['done', 'cancelled', 'expired', 'dead']);

function Tags({ queue, tags }: { readonly queue: string; readonly tags: readonly string[] }) {
  return (
    <>
      {tags.map((tag) => (
        <a key={tag} class="chip" href={`#/jobs/${encodeURIComponent(queue)}?tag=${encodeURIComponent(tag)}`}>
          {tag}
        </a>
      ))}
    </>
  );
}

/** The schedule that made it, its group, and its set. */
function relatives({ queue, id, options, past }: Report): readonly (readonly [string, Shown])[] {
  const group = /^\{([^}]+)\}/.exec(id)?.[1];
  const set = options.set ?? past[0]?.set;
  const [, schedule] = /^schedule:(.+)$/.exec(group ?? '') ?? [];
  const part = encodeURIComponent;
  return [
    [said.schedule, schedule === undefined ? undefined : <a href={`#/schedule/${part(schedule)}`}>{schedule}</a>],
    [
      said.group,
      group === undefined || schedule !== undefined || group.startsWith('set:') ? undefined : (
        <a href={`#/groups/${part(queue)}/${part(group)}`}>{group}</a>
      ),
    ],
    [said.set, set === undefined ? undefined : <a href={`#/sets/${part(queue)}`}>{set}</a>],
  ];
}

type OptionsOf = Report['options'];

function Options({ options }: { readonly options: OptionsOf }) {
  const told = words.job.options;
  const {
    attempts,
    backoff,
    timeoutMs,
    priority,
    cost,
    target,
    expiresAtMs,
    maxLatenessMs,
    onLate,
    tags: _,
    set: __,
    ...others
  } = options;
  const rows: readonly (readonly [string, Shown])[] = [
    [told.budget, attempts === undefined ? undefined : told.attempts(attempts)],
    [told.backoff, backoff && backoffText(backoff)],
    [told.timeout, timeoutMs === undefined ? undefined : spanText(timeoutMs)],
    [told.priority, priority],
    [told.cost, cost === undefined ? undefined : told.turns(cost)],
    [told.target, target && <code>{targetText(target)}</code>],
    [told.expires, expiresAtMs === undefined ? undefined : <When atMs={expiresAtMs} />],
    [told.lateness, maxLatenessMs === undefined ? undefined : spanText(maxLatenessMs)],
    [told.onLate, onLate && told.late[onLate]],
    // The compiler says when there is an option more.
    ...Object.entries(others satisfies Record<never, never>).map(([name, value]) => [name, String(value)] as const),
  ];
  const shown = rows.filter(([, value]) => value !== undefined);
  if (shown.length === 0) return null;
  return (
    <section aria-labelledby="options">
      <h2 id="options">{told.title}</h2>
      <dl>
        {shown.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** @example backoffText({ kind: 'ladder', stepsMs: [30_000, 120_000], jitter: 'none' }) // 30 s, 2 min, then as the last */
function backoffText({
  kind,
  delayMs = 0,
  maxMs,
  factor = 2,
  stepsMs = [],
}: NonNullable<OptionsOf['backoff']>): string {
  const told = words.job.options;
  const most = maxMs === undefined ? '' : told.most(spanText(maxMs));
  switch (kind) {
    case 'fixed':
      return told.fixed(spanText(delayMs));
    case 'linear':
      return `${told.linear(spanText(delayMs))}${most}`;
    case 'exponential':
      return `${told.exponential(spanText(delayMs), factor)}${most}`;
    case 'ladder':
      return told.ladder(stepsMs.map(spanText).join(', '));
  }
}

function Data({ job }: { readonly job: Report }) {
  const { headers, result, hidden, state } = job;
  return (
    <>
      <section aria-labelledby="data">
        <h2 id="data">{kept.title}</h2>
        {hidden ? <p class="hidden-data">{kept.hidden}</p> : <DataOf job={job} />}
      </section>
      {headers === undefined ? null : (
        <section aria-labelledby="headers">
          <h2 id="headers">{kept.headers}</h2>
          <Tree value={headers} />
        </section>
      )}
      {result === undefined || state !== 'done' ? null : (
        <section aria-labelledby="result">
          <h2 id="result">{kept.result}</h2>
          <ResultOf result={result} hidden={hidden} />
        </section>
      )}
    </>
  );
}

/** Of a job that is over nobody keeps the data, but for a dead letter. */
function DataOf({ job: { data, state, deadLetter, readable, unreadable } }: { readonly job: Report }) {
  if (!readable) return <p>{unreadable ?? kept.unreadable}</p>;
  if (data === undefined && OVER.has(state) && deadLetter === undefined) return <p class="quiet">{kept.gone}</p>;
  return <Tree value={data ?? null} />;
}

function ResultOf({ result, hidden }: { readonly result: Schemas['KeptResult']; readonly hidden: boolean }) {
  if (result.kind === 'none') return <p class="quiet">{kept.nothing}</p>;
  if (result.kind === 'too-large') return <p>{kept.large(bytesText(result.bytes ?? 0))}</p>;
  if (hidden) return <p class="hidden-data">{kept.hiddenResult}</p>;
  return result.kind === 'kept' ? <Tree value={result.value} /> : <p>{kept.noJson(result.why ?? '')}</p>;
}

function Past({ job: { past: ends, result, hidden, nowMs } }: { readonly job: Report }) {
  // The end of its present life is told above, with its result.
  const past = result === undefined ? ends : ends.slice(1);
  if (past.length === 0) return null;
  return (
    <section aria-labelledby="past">
      <h2 id="past">{words.job.past.title}</h2>
      <ol class="past">
        {past.map(({ outcome, overMs, attempts, owner, tookMs, result: ofPast }) => (
          <li key={`${overMs} ${outcome}`}>
            <b>{words.states[outcome]}</b> <When atMs={overMs} />
            <span class="quiet">
              {' '}
              {relativeText(overMs, nowMs)}, {words.job.past.starts(attempts)}
              {owner === undefined ? '' : `, ${words.job.story.worker(owner)}`}
              {tookMs === undefined ? '' : `, ${words.job.story.took(spanText(tookMs))}`}
            </span>
            {outcome === 'done' ? <ResultOf result={ofPast} hidden={hidden} /> : null}
          </li>
        ))}
      </ol>
    </section>
  );
}
