/** What happens now: is anything late, how fast it goes, what comes due, who works, and what `doctor` found. */

import { useCallback, useState } from 'preact/hooks';
import type { Schemas } from '../api-types.ts';
import * as calls from '../calls.ts';
import { isUnserved, type LiveQueue, type Now as Look, useEvery, useLive } from '../live.ts';
import { useAsked } from '../parts/asked.ts';
import { TimeChart } from '../parts/chart.tsx';
import { ProblemNote, Unread } from '../parts/problem.tsx';
import { Table } from '../parts/table.tsx';
import { bytesText, countText, latenessText, numberText, percentileText } from '../parts/words.ts';

/** Later than this is late: below it a job may be on its way. */
const LATE_MS = 1000;

export function Now() {
  const { now, state, why } = useLive();
  const isAway = state === 'away' || state === 'ended';
  return (
    <>
      <h1>Now</h1>
      {isAway ? (
        <p class="problem" role="alert">
          {why}
          {now === undefined ? '' : ' What you see is from before.'}
        </p>
      ) : null}
      {state === 'polling' ? <p class="quiet">{why}</p> : null}
      {now === undefined ? null : <Seen now={now} />}
      {now === undefined && !isAway ? <p role="status">Looking …</p> : null}
    </>
  );
}

function Seen({ now }: { readonly now: Look }) {
  return (
    <>
      <Headline queues={now.queues} />
      <Unread unread={now.unread} />
      <Tiles now={now} />
      <Queues queues={now.queues} />
      <Lateness />
      <Coming forecast={now.forecast} />
      <Health now={now} />
    </>
  );
}

function Headline({ queues }: { readonly queues: readonly LiveQueue[] }) {
  const late = queues
    .filter(({ oldestDueAgeMs }) => oldestDueAgeMs > LATE_MS)
    .sort((a, b) => b.oldestDueAgeMs - a.oldestDueAgeMs);
  if (late.length === 0) {
    return (
      <p class="headline good" role="status">
        Nothing is late.
      </p>
    );
  }
  return (
    <p class="headline bad">
      {late.length === 1 ? '1 queue is late: ' : `${late.length} queues are late: `}
      {late.slice(0, 5).map(({ queue, oldestDueAgeMs, oldestInLine }, at) => (
        <span key={queue}>
          {at > 0 ? ', ' : ''}
          <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a> by {seconds(oldestDueAgeMs)}
          {oldestInLine ? ' (in line)' : ''}
        </span>
      ))}
      {late.length > 5 ? ' and others' : ''}
    </p>
  );
}

/** A number that changes each second stays readable when it is short. */
const seconds = (ms: number): string => {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1000)} s`;
  return ms < 36_000_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
};

function Tiles({ now: { total, processes } }: { readonly now: Look }) {
  const { daemons, workers, led, partitions, versions } = processes;
  const isAlone = isUnserved({ ...total, workers });
  return (
    <dl class="tiles">
      <Tile name="Started per second" value={numberText(total.perSecond.started)} />
      <Tile name="Scheduled per second" value={numberText(total.perSecond.scheduled)} />
      <Tile name="Wait for their time" value={numberText(total.scheduled)} />
      <Tile name="Ready" value={numberText(total.ready)} />
      <Tile name="Running" value={numberText(total.running)} />
      <Tile name="Dead letters" value={numberText(total.dead)} isBad={total.dead > 0} />
      <Tile name="Workers" value={numberText(workers)} isBad={isAlone} />
      <Tile name="Daemons" value={numberText(daemons)} />
      {versions.length > 1 ? <Tile name="Versions run" value={numberText(versions.length)} isBad /> : null}
      <Tile name="Partitions with a leader" value={`${led} of ${partitions}`} isBad={led < partitions} />
    </dl>
  );
}

function Tile({
  name,
  value,
  isBad = false,
}: {
  readonly name: string;
  readonly value: string;
  readonly isBad?: boolean;
}) {
  return (
    <div class={isBad ? 'tile bad' : 'tile'}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Queues({ queues }: { readonly queues: readonly LiveQueue[] }) {
  if (queues.length === 0) {
    return (
      <section aria-label="Queues">
        <h2>Queues</h2>
        <p>
          No queue was used yet. The first job makes one: <code>duestream schedule emails --delay 1m</code>
        </p>
      </section>
    );
  }
  const isGated = queues.some(({ limits }) => limits !== undefined);
  return (
    <section aria-label="Queues">
      <h2>Queues</h2>
      <Table
        of="queues"
        columns={[
          'Queue',
          ...(isGated ? ['Limits', { number: 'In line' }] : []),
          { number: 'Scheduled' },
          { number: 'Ready' },
          { number: 'Running' },
          { number: 'Dead' },
          { number: 'Oldest waits' },
          { number: 'Starts/s' },
          { number: 'Workers' },
        ]}
      >
        {queues.map((one) => (
          <QueueRow key={one.queue} queue={one} isGated={isGated} />
        ))}
      </Table>
    </section>
  );
}

/** @param of.isGated a queue of the list has limits */
function QueueRow({ queue: one, isGated }: { readonly queue: LiveQueue; readonly isGated: boolean }) {
  const { queue, scheduled, waiting, ready, running, dead, oldestDueAgeMs, perSecond, workers, paused, limits } = one;
  const name = encodeURIComponent(queue);
  const jobs = (state: string, count: number, most?: number) => (
    <td class="number">
      <a href={state === 'dead' ? `#/dead/${name}` : `#/jobs/${name}?state=${state}`}>{numberText(count)}</a>
      {most === undefined ? null : ` of ${numberText(most)}`}
    </td>
  );
  return (
    <tr>
      <th scope="row">
        <a href={`#/queue/${name}`}>{queue}</a>
        {paused ? <em class="badge">paused</em> : null}
      </th>
      {isGated ? <td>{limits?.text ?? '–'}</td> : null}
      {isGated ? jobs('waiting', waiting) : null}
      {jobs('scheduled', scheduled)}
      {jobs('ready', ready)}
      {jobs('running', running, limits?.concurrency)}
      {jobs('dead', dead)}
      <td class={oldestDueAgeMs > LATE_MS ? 'number bad' : 'number'}>
        {oldestDueAgeMs === 0 ? '–' : seconds(oldestDueAgeMs)}
      </td>
      <td class="number">{numberText(perSecond.started)}</td>
      <td class={isUnserved(one) ? 'number bad' : 'number'}>{numberText(workers)}</td>
    </tr>
  );
}

/** How late jobs started in the last hour: all queues together, and queue by queue. */
const QUEUES_MAX = 20;
const LATENESS_EVERY_MS = 60_000;
type LastHour = Schemas['LastHour'];

function Lateness() {
  const { value, problem, reload } = useAsked(calls.lateness, {});
  useEvery(LATENESS_EVERY_MS, useCallback(reload, [reload]));
  if (value?.queues.length === 0 && value.unread.length === 0) return null;
  return (
    <section aria-label="Lateness of the last hour">
      <h2>Lateness of the last hour</h2>
      <ProblemNote problem={problem} />
      <Unread unread={value?.unread} />
      {value === undefined ? null : value.on ? (
        <>
          <All start={value.start} />
          <Each queues={value.queues} />
        </>
      ) : (
        <p>
          There is no lateness by the minute yet. The first comes within two minutes, if a daemon that leads a queue has
          the role <code>http</code> or <code>http.minutes: on</code>.
        </p>
      )}
    </section>
  );
}

function All({ start: { count, p50Ms, p99Ms, maxMs } }: Pick<LastHour, 'start'>) {
  return (
    <dl class="tiles">
      <div class="tile">
        <dt>Lateness p50</dt>
        <dd>{percentileText(p50Ms)}</dd>
      </div>
      <div class="tile">
        <dt>Lateness p99</dt>
        <dd>{percentileText(p99Ms)}</dd>
      </div>
      <div class="tile">
        <dt>Lateness, longest</dt>
        <dd>{latenessText(maxMs)}</dd>
      </div>
      <div class="tile">
        <dt>Started in the last hour</dt>
        <dd>{numberText(count)}</dd>
      </div>
    </dl>
  );
}

function Each({ queues }: Pick<LastHour, 'queues'>) {
  const shown = queues.slice(0, QUEUES_MAX);
  return (
    <>
      <Table
        of="lateness"
        columns={['Queue', { number: 'Started' }, { number: 'p50' }, { number: 'p99' }, { number: 'Longest' }]}
      >
        {shown.map(({ queue, start: { count, p50Ms, p99Ms, maxMs } }) => (
          <tr key={queue}>
            <th scope="row">
              <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>
            </th>
            <td class="number">{numberText(count)}</td>
            <td class="number">{percentileText(p50Ms)}</td>
            <td class="number">{percentileText(p99Ms)}</td>
            <td class="number">{latenessText(maxMs)}</td>
          </tr>
        ))}
      </Table>
      {queues.length > shown.length ? <p class="quiet">The other queues have it on their own pages.</p> : null}
    </>
  );
}

const DAY_MS = 86_400_000;
const COMING_EVERY_MS = 60_000;

function Coming({ forecast }: { readonly forecast: Look['forecast'] }) {
  if (forecast === undefined) return null;
  const { nextHour, scheduled, coming, buckets, backlogs } = forecast;
  return (
    <section aria-label="What comes due">
      <h2>What comes due</h2>
      <p>
        In the next hour {countText(nextHour, 'job')}: {numberText(scheduled)} wait now, {numberText(coming)} come from
        schedules.
      </p>
      <Backlogs backlogs={backlogs} atMs={forecast.atMs} />
      <Bars title="The next hour, by minute" buckets={buckets} />
      <NextDay />
    </section>
  );
}

/** When rates will be through with what waits in line. */
function Backlogs({ backlogs, atMs }: { readonly backlogs: readonly Schemas['Backlog'][]; readonly atMs: number }) {
  if (backlogs.length === 0) return null;
  return (
    <ul>
      {backlogs.map(({ queue, rate, waiting, waitingThroughMs, throughMs, left }) => (
        <li key={queue}>
          <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>: {countText(waiting, 'job')} wait in line, and
          the rate {rate} takes {seconds(waitingThroughMs - atMs)} for them at the least; with what becomes due{' '}
          {throughMs === undefined
            ? `${numberText(left)} still wait in an hour.`
            : `all are through in ${seconds(throughMs - atMs)}.`}
        </li>
      ))}
    </ul>
  );
}

function NextDay() {
  const [until, setUntil] = useState(dayFromNow);
  const { value, problem } = useAsked(calls.forecast, { until, by: 'hour' });
  useEvery(
    COMING_EVERY_MS,
    useCallback(() => setUntil(dayFromNow()), []),
  );
  return (
    <>
      <ProblemNote problem={problem} />
      <Unread unread={value?.unread} />
      {value === undefined ? null : <Bars title="The next day, by hour" buckets={value.buckets} />}
    </>
  );
}

const dayFromNow = (): string => new Date(Date.now() + DAY_MS).toISOString();

/** The bars of what waits stand in front of those of all. */
function Bars({ title, buckets }: { readonly title: string; readonly buckets: readonly Schemas['ForecastBucket'][] }) {
  return (
    <TimeChart
      title={title}
      kind="bars"
      atMs={buckets.map(({ fromMs }) => fromMs)}
      lines={[
        { name: 'all, with those from schedules', values: buckets.map(({ jobs }) => jobs), colour: 2 },
        { name: 'wait now', values: buckets.map((one) => one.scheduled), colour: 1 },
      ]}
      text={numberText}
    />
  );
}

const KEEPS: Readonly<Record<string, string>> = {
  always: 'AOF, synced with each write: no acknowledged write is lost',
  everysec: 'AOF, synced every second: a power failure can lose the last two seconds',
  unknown: 'AOF; how often it is synced is not visible',
  no: 'AOF, synced by the system: a power failure can lose half a minute',
  snapshots: 'snapshots only: a crash loses what came after the last one',
  none: 'nothing is kept: a restart loses every job',
};

function Health({ now: { redis, doctor } }: { readonly now: Look }) {
  if (redis === undefined && doctor === undefined) return null;
  return (
    <section aria-label="Health">
      <h2>Redis, and what doctor found</h2>
      {redis === undefined ? null : (
        <dl class="facts">
          <dt>Memory</dt>
          <dd>{memoryText(redis)}</dd>
          <dt>When it is full</dt>
          <dd>{redis.policy}</dd>
          <dt>What it keeps</dt>
          <dd>{KEEPS[redis.durability] ?? redis.durability}</dd>
        </dl>
      )}
      {doctor === undefined ? null : <Findings findings={doctor.findings} />}
    </section>
  );
}

function memoryText({ usedBytes, maxBytes }: NonNullable<Look['redis']>): string {
  if (maxBytes === 0) return `${bytesText(usedBytes)}, no limit`;
  return `${bytesText(usedBytes)} of ${bytesText(maxBytes)} (${Math.round((usedBytes / maxBytes) * 100)} %)`;
}

function Findings({ findings }: { readonly findings: readonly Schemas['Finding'][] }) {
  if (findings.length === 0) return <p class="good">doctor found nothing to mend.</p>;
  return (
    <ul class="findings">
      {findings.map(({ check, status, saw, advice }) => (
        <li key={check} class={status}>
          <strong>{check}</strong> {saw}
          {advice === undefined ? null : <span class="quiet"> – {advice}</span>}
        </li>
      ))}
    </ul>
  );
}
