/** Dead letters that died alike, a row each: the error, when, how many, and replay beside it. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { useLive } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { Icon } from '../../parts/icon.tsx';
import { May } from '../../parts/may.tsx';
import { Axis, Bars, dayTicks, hourTicks } from '../../parts/plot.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { JobLink } from '../../parts/table.tsx';
import { spanText } from '../../parts/when.ts';
import { numberText, relativeText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { DeadChoice } from './choice.ts';
import { Question } from './question.tsx';

const say = words.dead;

type Overview = Schemas['DeadLetterOverview'];
export type Kind = Schemas['DeadLetterKind'];

const DAY_MS = 86_400_000;

/** Nobody has seen it before yesterday. */
export const isNew = ({ firstMs }: Kind, nowMs: number): boolean => nowMs - firstMs < DAY_MS;

/** Where the token may not read errors, kinds that differ by them are one. */
const nameOf = ({ error, reason }: Kind): string => [error, reason].find((text) => text) ?? say.hidden;

interface KindsOf {
  readonly overview: Overview;
  readonly queue: string | undefined;
  readonly choice: DeadChoice;
  readonly search: string;
  readonly done: (told: string) => void;
}

export function Kinds({ overview, queue, choice, search, done }: KindsOf) {
  const wanted = search.toLowerCase();
  const kinds = overview.kinds.filter((kind) => JSON.stringify(kind).toLowerCase().includes(wanted));
  const scale = scaleOf(overview);
  if (overview.kinds.length === 0) return <Nothing isAll={Object.keys(choice).length === 0} />;
  return (
    <section class="grps" aria-label={say.byError}>
      <div class="grp-head">
        <span>{say.error}</span>
        <div class="axis-top">
          <Axis ticks={ticksOf(scale)} />
        </div>
        <span>{say.when}</span>
        <span class="n">{say.jobs}</span>
      </div>
      {kinds.map((kind) => (
        <KindRow
          key={JSON.stringify([kind.reason, kind.error])}
          {...{ kind, queue, choice, scale, done }}
          isSure={overview.untilMs === undefined}
        />
      ))}
      {kinds.length === 0 ? <p>{say.nothingFound(search)}</p> : null}
      {overview.others === 0 ? null : <p class="quiet">{say.others(overview.others)}</p>}
    </section>
  );
}

function Nothing({ isAll }: { readonly isAll: boolean }) {
  return (
    <section class="empty">
      <h2>{isAll ? say.noneYet : say.noneSuch}</h2>
      <p>{isAll ? say.noneYetWhy : say.noneSuchWhy}</p>
    </section>
  );
}

// When they died, all kinds on one scale that ends now.

const BARS_MAX = 56;

interface Scale {
  readonly fromMs: number;
  readonly toMs: number;
  readonly stepMs: number;
}

/** From the first that died until now, at least a day; a bar stands for whole steps of the answer. */
function scaleOf({ kinds, stepMs }: Overview): Scale {
  const toMs = Date.now();
  const firstMs = Math.min(toMs - DAY_MS, ...kinds.flatMap(({ times }) => times.map(({ atMs }) => atMs)));
  const steps = Math.ceil((toMs - firstMs) / stepMs / BARS_MAX);
  const wideMs = Math.max(1, steps) * stepMs;
  return { fromMs: Math.floor(firstMs / wideMs) * wideMs, toMs, stepMs: wideMs };
}

function ticksOf({ fromMs, toMs }: Scale) {
  const days = (toMs - fromMs) / DAY_MS;
  return days <= 2 ? hourTicks(fromMs, toMs, 12) : dayTicks(fromMs, toMs, Math.max(1, Math.ceil(days / 3)));
}

function valuesOf({ times }: Kind, { fromMs, toMs, stepMs }: Scale): readonly number[] {
  const values = new Array<number>(Math.max(1, Math.ceil((toMs - fromMs) / stepMs))).fill(0);
  for (const { atMs, count } of times) {
    const at = Math.floor((atMs - fromMs) / stepMs);
    values[at] = (values[at] ?? 0) + count;
  }
  return values;
}

interface RowOf extends Pick<KindsOf, 'queue' | 'choice' | 'done'> {
  readonly kind: Kind;
  readonly scale: Scale;
  /** All dead letters were looked at: what was not there is new. */
  readonly isSure: boolean;
}

function KindRow({ kind, queue, choice, scale, isSure, done }: RowOf) {
  const [isOpen, setOpen] = useState(false);
  const [action, setAction] = useState<'replay' | 'purge'>();
  const { count, firstMs, lastMs, shares } = kind;
  const nowMs = Date.now();
  const named = queue === undefined ? shares.queue.map(({ value }) => value) : [queue];
  const queues = useAllQueues(named);
  const mine = choiceOf(kind, choice);
  const fresh = isSure && isNew(kind, nowMs);
  const where = [named.join(', '), ...shares.name.slice(0, 2).map(({ value }) => value)].join(' · ');
  return (
    <div class="grp-row">
      <details class="grp" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span class="what">
            <Icon name="chevron" />
            <span>
              <b>{nameOf(kind)}</b>
              <span class="quiet">{where}</span>
            </span>
          </span>
          <span class={fresh ? 'hist fresh' : 'hist'}>
            <Bars
              values={valuesOf(kind, scale)}
              label={say.bars(numberText(count), spanText(firstMs, lastMs, nowMs))}
            />
          </span>
          <span class="say-when">
            {spanText(firstMs, lastMs, nowMs)}
            <span class="quiet">{knownOf(kind, fresh)}</span>
          </span>
          <span class="n count">{numberText(count)}</span>
        </summary>
        {isOpen ? <Detail {...{ kind, named, queues, choice: mine }} purge={() => setAction('purge')} /> : null}
      </details>
      {mine === undefined ? null : (
        <Allowed scope="write" queues={queues}>
          <button type="button" onClick={() => setAction('replay')}>
            <Icon name="replay" />
            {say.replayMany(numberText(count))}
          </button>
        </Allowed>
      )}
      {action === undefined || mine === undefined ? null : (
        <Question
          {...{ action, queues, choice: mine, what: nameOf(kind) }}
          finish={(told) => {
            setAction(undefined);
            done(told);
          }}
          close={() => setAction(undefined)}
        />
      )}
    </div>
  );
}

/** So many queues of a kind are named. */
const NAMED_MAX = 10;

/** Of a kind that has as many as are named, others may have some too: each queue with dead letters is asked. */
function useAllQueues(named: readonly string[]): readonly string[] {
  const live = useLive().now?.queues ?? [];
  if (named.length < NAMED_MAX) return named;
  return [...new Set([...named, ...live.filter(({ dead }) => dead > 0).map(({ queue }) => queue)])];
}

/** What names the kind to the API; undefined where the token may not read by what it differs. */
function choiceOf({ error, reason }: Kind, choice: DeadChoice): DeadChoice | undefined {
  const named = { ...(reason ? { reason } : {}), ...(error ? { error } : {}) };
  return Object.keys(named).length === 0 ? undefined : { ...choice, ...named };
}

/** For all of the queues. */
function Allowed({
  scope,
  queues: [first, ...rest],
  children,
}: {
  readonly scope: 'write' | 'admin';
  readonly queues: readonly string[];
  readonly children: preact.ComponentChildren;
}) {
  if (first === undefined) return <>{children}</>;
  return (
    <May scope={scope} queue={first}>
      <Allowed scope={scope} queues={rest}>
        {children}
      </Allowed>
    </May>
  );
}

/** The most that is known in few words: whether it is new, what all of them share, when the last one died. */
function knownOf(kind: Kind, fresh: boolean): string {
  const shared = (['host', 'group', 'tag'] as const).flatMap((name) => {
    const [first] = kind.shares[name];
    return kind.count > 1 && first?.count === kind.count ? [`${say.shares[name]} ${first.value}`] : [];
  });
  return [fresh ? say.isNew : '', shared[0] ?? say.lastOf(relativeText(kind.lastMs, Date.now()))]
    .filter((text) => text !== '')
    .join(' · ');
}

interface DetailOf {
  readonly kind: Kind;
  /** The queues with most of them. */
  readonly named: readonly string[];
  readonly queues: readonly string[];
  readonly choice: DeadChoice | undefined;
  readonly purge: () => void;
}

function Detail({ kind, named, queues, choice, purge }: DetailOf) {
  return (
    <div class="detail">
      <Common kind={kind} />
      <Example kind={kind} />
      <footer>
        {choice === undefined
          ? null
          : named.map((queue) => (
              <a key={queue} class="btn" href={`#/dead/${encodeURIComponent(queue)}${queryOf(choice)}`}>
                {named.length === 1 ? say.seeThem : say.seeThemOf(queue)}
              </a>
            ))}
        {choice === undefined ? null : (
          <Allowed scope="admin" queues={queues}>
            <button type="button" class="danger" onClick={purge}>
              {say.purgeKind}
            </button>
          </Allowed>
        )}
      </footer>
    </div>
  );
}

/** Of each sort the values that most of them have: two at most, and none that few have. */
const SHARES_SHOWN = 2;
const SHARE_MIN = 0.1;
const SHARES = ['queue', 'name', 'group', 'tag', 'host', 'version'] as const;

function Common({ kind: { count, shares } }: Pick<DetailOf, 'kind'>) {
  const rows = SHARES.flatMap((name) =>
    shares[name]
      .filter((share) => share.count / count >= SHARE_MIN)
      .slice(0, SHARES_SHOWN)
      .map((share) => ({ name, ...share })),
  );
  return (
    <div>
      <h2>{say.common}</h2>
      <dl class="common">
        {rows.map(({ name, value, count: many }) => (
          <div key={`${name} ${value}`}>
            <dt>{say.shares[name]}</dt>
            <dd>{value}</dd>
            <dd class="p" aria-hidden="true">
              <i style={{ width: `${(many / count) * 100}%` }} />
            </dd>
            <dd class="n">{Math.round((many / count) * 100)} %</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Example({ kind: { example, lastMs } }: Pick<DetailOf, 'kind'>) {
  const { queue, deadLetter, id } = example;
  const { value, problem, isBusy } = useAsked(calls.deadGet, { queue, deadLetter });
  const last = value?.history.findLast(({ message, stack }) => message !== undefined || stack !== undefined);
  return (
    <div aria-busy={isBusy}>
      <h2>{say.lastError}</h2>
      <ProblemNote problem={problem} />
      {last === undefined ? null : <pre tabIndex={0}>{last.stack ?? last.message}</pre>}
      <p class="quiet">
        <JobLink queue={queue} id={id} bare={value?.bare ?? false} /> {relativeText(lastMs, Date.now())}
        {value === undefined ? '' : `, ${say.attempts(value.attempts, value.crashes)}`}
      </p>
    </div>
  );
}
