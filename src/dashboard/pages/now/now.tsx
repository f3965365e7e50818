/** What happens now: is anything late, how fast it goes, what comes due, who works, and what `doctor` found. */

import { type LiveQueue, type Now as Look, useLive } from '../../live.ts';
import { Table } from '../../parts/table.tsx';
import { numberText } from '../../parts/words.ts';
import { Coming } from './coming.tsx';
import { Health } from './health.tsx';
import { Lateness } from './lateness.tsx';

/** Later than this is late: below it a job may be on its way. */
const LATE_MS = 1000;

export function Now() {
  const { now, state, why } = useLive();
  return (
    <>
      <h1>Now</h1>
      {state === 'away' || state === 'ended' ? (
        <p class="problem" role="alert">
          {why} What you see is from before.
        </p>
      ) : null}
      {state === 'polling' ? <p class="quiet">{why}</p> : null}
      {now === undefined ? <p role="status">Looking …</p> : <Seen now={now} />}
    </>
  );
}

function Seen({ now }: { readonly now: Look }) {
  return (
    <>
      <Headline queues={now.queues} />
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
      {late.slice(0, 5).map(({ queue, oldestDueAgeMs }, at) => (
        <span key={queue}>
          {at > 0 ? ', ' : ''}
          <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a> by {seconds(oldestDueAgeMs)}
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
  return (
    <dl class="tiles">
      <Tile name="Started per second" value={numberText(total.perSecond.started)} />
      <Tile name="Scheduled per second" value={numberText(total.perSecond.scheduled)} />
      <Tile name="Wait for their time" value={numberText(total.scheduled)} />
      <Tile name="Ready" value={numberText(total.ready)} />
      <Tile name="Running" value={numberText(total.running)} />
      <Tile name="Dead letters" value={numberText(total.dead)} isBad={total.dead > 0} />
      <Tile name="Workers" value={numberText(workers)} isBad={workers === 0 && partitions > 0} />
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
  return (
    <section aria-label="Queues">
      <h2>Queues</h2>
      <Table
        of="queues"
        columns={[
          'Queue',
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
          <QueueRow key={one.queue} {...one} />
        ))}
      </Table>
    </section>
  );
}

function QueueRow({ queue, scheduled, ready, running, dead, oldestDueAgeMs, perSecond, workers, paused }: LiveQueue) {
  const name = encodeURIComponent(queue);
  const jobs = (state: string, count: number) => (
    <td class="number">
      <a href={state === 'dead' ? `#/dead/${name}` : `#/jobs/${name}?state=${state}`}>{numberText(count)}</a>
    </td>
  );
  return (
    <tr>
      <th scope="row">
        <a href={`#/queue/${name}`}>{queue}</a>
        {paused ? <em class="badge">paused</em> : null}
      </th>
      {jobs('scheduled', scheduled)}
      {jobs('ready', ready)}
      {jobs('running', running)}
      {jobs('dead', dead)}
      <td class={oldestDueAgeMs > LATE_MS ? 'number bad' : 'number'}>
        {oldestDueAgeMs === 0 ? '–' : seconds(oldestDueAgeMs)}
      </td>
      <td class="number">{numberText(perSecond.started)}</td>
      <td class={workers === 0 ? 'number bad' : 'number'}>{numberText(workers)}</td>
    </tr>
  );
}
