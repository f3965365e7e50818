/**
 * What happens now, and whether all is well: one sentence, the facts, the queues by their trouble, what came to be in the last
 * day, and what comes due in the next one. Counts come with the live view; the day and the forecast are asked for each minute.
 */
import { useCallback, useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { type LiveQueue, type Now as Look, useEvery, useLive } from '../../live.ts';
import { Advice } from '../../parts/advice.tsx';
import { useAsked } from '../../parts/asked.ts';
import { timeText, weekTimeText } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { useMay } from '../../parts/may.tsx';
import { ProblemNote, Unread } from '../../parts/problem.tsx';
import { bytesText, durationText, numberText, shareText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { Due } from './due.tsx';
import { Queues } from './queues.tsx';
import { type Named, namedIn, restOf, stepsOf, worstHour } from './saying.ts';
import { Today } from './today.tsx';
import '../../css/now.css';

const said = words.now;

export function Now() {
  const { now, state, why } = useLive();
  const isAway = state === 'away' || state === 'ended';
  return (
    <>
      {isAway ? (
        <p class="stale" role="alert">
          {why} {now === undefined ? '' : said.before}
        </p>
      ) : null}
      {state === 'polling' ? <p class="quiet">{why}</p> : null}
      {now === undefined ? (
        <h1 class="quiet" aria-busy={!isAway}>
          {isAway ? words.places.now : said.looking}
        </h1>
      ) : (
        <Seen now={now} />
      )}
    </>
  );
}

const EVERY_MS = 60_000;
const DAY_MS = 86_400_000;

function Seen({ now }: { readonly now: Look }) {
  const day = useAsked(calls.day, {});
  const maySeeAll = useMay({ scope: 'read' });
  useEvery(EVERY_MS, day.reload);
  if (now.queues.length === 0 && now.unread.length === 0) return <Empty />;
  return (
    <>
      <Sentence now={now} />
      <Unread unread={now.unread} />
      {maySeeAll ? <Ahead now={now} day={day.value} /> : <Body now={now} day={day.value} forecast={undefined} />}
      <ProblemNote problem={day.problem} />
      <System now={now} />
    </>
  );
}

function Empty() {
  return (
    <section class="empty">
      <h1>{said.emptyTitle}</h1>
      <p>{said.emptyWhat}</p>
      <pre>duestream schedule emails --delay 1m</pre>
    </section>
  );
}

interface Known {
  readonly now: Look;
  readonly day: Schemas['Day'] | undefined;
}

/** With the forecast, which is about all queues. */
function Ahead(known: Known) {
  const [until, setUntil] = useState(dayFromNow);
  const { value, problem } = useAsked(calls.forecast, { until, by: 'half-hour', perQueue: 'true' });
  useEvery(
    EVERY_MS,
    useCallback(() => setUntil(dayFromNow()), []),
  );
  return (
    <>
      <Body {...known} forecast={useLast(value)} />
      <ProblemNote problem={problem} />
    </>
  );
}

const dayFromNow = (): string => new Date(Date.now() + DAY_MS).toISOString();

/** Another minute is another address: what was there stays until the next answer has come. */
function useLast<Value>(value: Value | undefined): Value | undefined {
  const [last, setLast] = useState(value);
  if (value !== undefined && value !== last) setLast(value);
  return value ?? last;
}

function Body({ now, day, forecast }: Known & { readonly forecast: Schemas['Forecast'] | undefined }) {
  return (
    <>
      <Facts now={now} day={day} forecast={forecast} />
      {day?.on === false ? <p class="quiet">{said.uncounted}</p> : null}
      <div class="split">
        <Queues now={now} day={day} />
        <Today day={day} />
      </div>
      {forecast === undefined ? null : <Due forecast={forecast} queues={now.queues} />}
    </>
  );
}

// The sentence.

function Sentence({ now }: { readonly now: Look }) {
  const { named, more } = namedIn(now.queues);
  const failed = now.doctor?.findings.filter(({ status }) => status === 'fail') ?? [];
  const fails = failed.length;
  const isOnlyDoctor = fails > 0 && named.length === 0 && now.unread.length === 0;
  const isBad = fails > 0 || named.some(({ isCalm }) => !isCalm);
  const rest = restOf({ named: named.length, more, failures: fails, unread: now.unread.length });
  return (
    <section class={isBad ? 'say bad' : 'say'}>
      <h1>
        {rest === 'all-well' ? said.wellTitle : rest === 'unread' ? said.unreadTitle(now.unread.length) : null}
        {isOnlyDoctor ? said.noneLate : null}
        {named.map((one, at) => (
          <span key={one.queue}>
            {at > 0 ? ', ' : ''}
            <Noun one={one} />
          </span>
        ))}
        {more > 0 ? `, ${said.others(more, numberText(more))}` : ''}
        {fails > 0 ? `${named.length > 0 ? '; ' : ''}${said.doctorFails(fails)}` : ''}
        {named.length + fails > 0 ? '.' : ''} {rest === 'rest-well' ? said.restWell : ''}
      </h1>
      {isOnlyDoctor ? <p>{said.failed(failed.map(({ check }) => check).join(', '))}</p> : null}
      <Reason now={now} worst={named[0]} />
    </section>
  );
}

function Noun({ one: { queue, what, lateMs, isCalm } }: { readonly one: Named }) {
  return (
    <>
      <a href={queueAddress(queue)} class={isCalm ? 'calm' : undefined}>
        {queue}
      </a>{' '}
      {said.is[what](durationText(lateMs))}
    </>
  );
}

const queueAddress = (queue: string): string => `#/queue/${encodeURIComponent(queue)}`;

/** Why the worst queue is in trouble: what the daemon says, who fills its line, and when its rate will be through. */
function Reason({ now, worst }: { readonly now: Look; readonly worst: Named | undefined }) {
  const one = now.queues.find(({ queue }) => queue === worst?.queue);
  if (one?.obstacle === undefined) return null;
  const backlog = now.forecast?.backlogs.find(({ queue }) => queue === one.queue);
  return (
    <p>
      {sentenceOf(one.obstacle)} {one.waiting > 0 ? <TopGroup one={one} /> : null}{' '}
      {backlog?.throughMs === undefined ? '' : said.through(timeText(backlog.throughMs))}{' '}
      {one.limits?.rate === undefined ? null : (
        <a href={`#/simulate/${encodeURIComponent(one.queue)}`}>{said.tryRate}</a>
      )}
    </p>
  );
}

/** `74 jobs wait …` as the daemon says it; it is a sentence of its own here. */
const sentenceOf = (text: string): string => {
  const [first = '', ...rest] = text;
  return `${first.toUpperCase()}${rest.join('')}.`;
};

const MOST_OF_THE_LINE = 0.5;

/** Nothing where the line has no groups, or none of them is most of it. */
function TopGroup({ one: { queue, waiting } }: { readonly one: LiveQueue }) {
  const { value, reload } = useAsked(calls.groupsList, { queue, top: 'true', limit: 1 });
  useEvery(EVERY_MS, reload);
  const first = value?.groups[0];
  if (!first || first.waiting < waiting * MOST_OF_THE_LINE) return null;
  const all = Math.max(waiting, first.waiting);
  return <>{said.holds(first.group, numberText(first.waiting), numberText(all))}</>;
}

// The facts.

function Facts({ now, day, forecast }: Known & { readonly forecast: Schemas['Forecast'] | undefined }) {
  const { total, processes, redis } = now;
  const started = sum((day?.queues ?? []).flatMap(({ starts }) => starts));
  const inTime = sum((day?.queues ?? []).map((one) => one.inTime));
  const worst = forecast && worstHour(stepsOf(forecast));
  return (
    <dl class="facts-line">
      <Fact name={said.started}>{day === undefined ? '–' : numberText(started)}</Fact>
      <Fact name={said.inTime}>{started === 0 ? '–' : shareText(inTime / started)}</Fact>
      <Fact name={said.perSecond}>{numberText(total.perSecond.started)}</Fact>
      <Fact name={said.worstHour}>
        {worst === undefined ? (
          '–'
        ) : (
          <button type="button" class="plain" onClick={showDue}>
            {weekTimeText(worst.fromMs)}
          </button>
        )}
      </Fact>
      <Fact name={said.wait}>{numberText(total.scheduled)}</Fact>
      <Fact name={said.dead}>{numberText(total.dead)}</Fact>
      <Fact name={said.workers} isLess isBad={processes.workers === 0 && total.ready + total.waiting > 0}>
        <a href="#/workers">{numberText(processes.workers)}</a>
      </Fact>
      {redis === undefined ? null : (
        <Fact name={said.redis} isLess>
          {bytesText(redis.usedBytes)}
          {redis.maxBytes === 0 ? null : <span class="of"> {said.ofBytes(bytesText(redis.maxBytes))}</span>}
        </Fact>
      )}
    </dl>
  );
}

const sum = (all: readonly number[]): number => all.reduce((total, one) => total + one, 0);

/** The address has the page behind its #, so a link within the page cannot be one. */
function showDue(): void {
  const place = document.getElementById('due');
  place?.scrollIntoView();
  place?.focus({ preventScroll: true });
}

function Fact({
  name,
  isLess = false,
  isBad = false,
  children,
}: {
  readonly name: string;
  /** Left out on a phone. */
  readonly isLess?: boolean;
  readonly isBad?: boolean;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <div class={isLess ? 'less' : undefined}>
      <dt>{name}</dt>
      <dd class={isBad ? 'bad-text' : undefined}>{children}</dd>
    </div>
  );
}

// The system.

function System({ now: { redis, doctor, processes } }: { readonly now: Look }) {
  const { daemons, led, partitions, versions } = processes;
  const others = versions.map(({ version, processes: count }) => `${version ?? '?'} (${count})`).join(', ');
  return (
    <section aria-label={said.system}>
      <header class="sec">
        <h2>{said.system}</h2>
      </header>
      <ul class="checks">
        {redis === undefined ? null : (
          <Check name={said.redis} isWell={redis.durability !== 'none'}>
            {memoryText(redis)}, {redis.policy}, {said.keeps[redis.durability]}
          </Check>
        )}
        <Check name={said.daemons(daemons)} isWell={led === partitions}>
          {said.lead(numberText(led), numberText(partitions))}
        </Check>
        {versions.length > 1 ? (
          <Check name={said.versions(versions.length)} isWell={false}>
            {others}
          </Check>
        ) : null}
        {doctor === undefined ? null : <Findings findings={doctor.findings} />}
      </ul>
    </section>
  );
}

function Findings({ findings }: { readonly findings: readonly Schemas['Finding'][] }) {
  if (findings.length === 0) {
    return (
      <Check name="doctor" isWell>
        {said.doctorWell}
      </Check>
    );
  }
  return (
    <>
      {findings.map(({ check, status, saw, advice }) => (
        <Check key={check} name={check} isWell={false} isBad={status === 'fail'}>
          {saw}
          {advice === undefined ? null : (
            <>
              . <Advice text={advice} />
            </>
          )}
        </Check>
      ))}
    </>
  );
}

function Check({
  name,
  isWell,
  isBad = false,
  children,
}: {
  readonly name: string;
  readonly isWell: boolean;
  readonly isBad?: boolean;
  readonly children: preact.ComponentChildren;
}) {
  return (
    <li class={isBad ? 'bad' : isWell ? undefined : 'warn'}>
      <Icon name={isWell ? 's-done' : isBad ? 's-dead' : 'clock'} />
      <b>{name}</b> {children}
    </li>
  );
}

const memoryText = ({ usedBytes, maxBytes }: NonNullable<Look['redis']>): string =>
  maxBytes === 0 ? said.noLimit(bytesText(usedBytes)) : said.memory(bytesText(usedBytes), bytesText(maxBytes));
