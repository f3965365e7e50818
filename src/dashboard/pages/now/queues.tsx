/** The queues as one list, those in trouble at the top, with why below them. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import type { LiveQueue, Now as Look } from '../../live.ts';
import { timeText } from '../../parts/clock.ts';
import { Bars, Spark } from '../../parts/plot.tsx';
import { durationText, latenessText, numberText, percentileText } from '../../parts/words.ts';
import { byTrouble, LATE_MS, troubleOf } from '../../trouble.ts';
import { words } from '../../words/words.ts';

const said = words.now;
const heads = said.columns;
/** More than these are shown when somebody asks for them. */
const SHOWN_MAX = 50;
const COLUMNS = 11;

interface Rows {
  readonly now: Look;
  readonly day: Schemas['Day'] | undefined;
}

export function Queues({ now, day }: Rows) {
  const [isAll, setAll] = useState(false);
  const queues = byTrouble(now.queues);
  const shown = isAll ? queues : queues.slice(0, SHOWN_MAX);
  const days = new Map(day?.queues.map((one) => [one.queue, one]));
  const due = new Map(now.forecast?.perQueue.map(({ queue, jobs }) => [queue, jobs]));
  return (
    <section aria-label={said.queues}>
      <header class="sec">
        <h2>{said.queues}</h2>
        <p>{said.troubleFirst}</p>
      </header>
      <table class="list queues-table">
        <Heads />
        <tbody>
          {shown.map((one) => (
            <Row
              key={one.queue}
              queue={one}
              day={days.get(one.queue)}
              hours={day}
              due={now.forecast === undefined ? undefined : (due.get(one.queue) ?? 0)}
            />
          ))}
        </tbody>
      </table>
      {shown.length < queues.length ? (
        <button type="button" class="ghost" onClick={() => setAll(true)}>
          {said.allQueues(numberText(queues.length))}
        </button>
      ) : null}
    </section>
  );
}

function Heads() {
  return (
    <thead>
      <tr>
        <th scope="col">{heads.queue}</th>
        <th scope="col" class="n" title={heads.lateMeans}>
          {heads.late}
        </th>
        <th scope="col" class="n" title={heads.p99Means}>
          {heads.p99}
        </th>
        <th scope="col">{heads.lateness}</th>
        <th scope="col">{heads.starts}</th>
        {[heads.perSecond, heads.line, heads.running, heads.due, heads.dead, heads.workers].map((name) => (
          <th key={name} scope="col" class="n">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}

interface RowOf {
  readonly queue: LiveQueue;
  readonly day: Schemas['QueueDay'] | undefined;
  /** When the hours of that day are. */
  readonly hours: Pick<Schemas['Day'], 'startMs' | 'stepMs'> | undefined;
  /** Undefined: nobody has told it yet. */
  readonly due: number | undefined;
}

function Row({ queue: one, day, hours, due }: RowOf) {
  const { queue, waiting, dead, workers, oldestDueAgeMs: lateMs, paused, obstacle, perSecond } = one;
  const { level } = troubleOf(one);
  const name = encodeURIComponent(queue);
  return (
    <>
      <tr class={level === 'none' ? undefined : level}>
        <th scope="row">
          <i class={`lamp ${level}`} aria-hidden="true" />
          <a href={`#/queue/${name}`}>{queue}</a>
        </th>
        <td class={lateMs > LATE_MS && !paused ? 'n late bad' : 'n late'}>
          {lateMs > LATE_MS ? durationText(lateMs) : <span class="none">{said.onTime}</span>}
        </td>
        <td class="n">{day?.hourP99Ms == null ? <Nothing /> : percentileText(day.hourP99Ms)}</td>
        <DayCells queue={queue} day={day} />
        <td class="n">{perSecond.started === 0 ? <Nothing /> : numberText(perSecond.started)}</td>
        <Count count={waiting} href={`#/jobs/${name}?state=waiting`} />
        <Running one={one} />
        <Count count={due} href={`#/jobs/${name}?state=scheduled`} />
        <Count count={dead} href={`#/dead/${name}`} />
        <td class={level === 'bad' && workers === 0 ? 'n bad' : 'n'}>{numberText(workers)}</td>
      </tr>
      {level === 'none' || (obstacle === undefined && dead === 0) ? null : (
        <tr class="why">
          <td colSpan={COLUMNS}>
            <p>{obstacle ?? <Died queue={queue} count={dead} day={day} hours={hours} />}</p>
          </td>
        </tr>
      )}
    </>
  );
}

interface DiedOf extends Pick<RowOf, 'day' | 'hours'> {
  readonly queue: string;
  readonly count: number;
}

/** When its dead letters came, where nothing else is wrong: are they of now, or does somebody only have to look at them? */
function Died({ queue, count, day, hours }: DiedOf) {
  const lately = day?.dead.reduce((sum, one) => sum + one, 0) ?? 0;
  const last = day?.dead.findLastIndex((one) => one > 0) ?? -1;
  const fromMs = hours && hours.startMs + last * hours.stepMs;
  return (
    <>
      {day === undefined || hours === undefined || fromMs === undefined
        ? null
        : lately === 0
          ? said.diedEarlier(count)
          : said.diedLately(numberText(lately), timeText(fromMs), timeText(fromMs + hours.stepMs))}{' '}
      <a href={`#/dead/${encodeURIComponent(queue)}`}>{said.whyDied}</a>
    </>
  );
}

const Nothing = () => <span class="none">–</span>;

function Count({ count, href }: { readonly count: number | undefined; readonly href: string }) {
  return (
    <td class="n">
      {count === undefined || count === 0 ? (
        <Nothing />
      ) : (
        <a class="plain" href={href}>
          {numberText(count)}
        </a>
      )}
    </td>
  );
}

/** Lateness is of ms and of hours, so each step up is a multiple: from 10 ms to half a day. */
const TOP = 5.6;
const heightOf = (ms: number): number => Math.log10(Math.max(ms, 10)) - 1;

function DayCells({ queue, day }: { readonly queue: string; readonly day: Schemas['QueueDay'] | undefined }) {
  if (day === undefined) {
    return (
      <>
        <td class="sp" />
        <td class="sp" />
      </>
    );
  }
  const most = Math.max(0, ...day.p99Ms.map((one) => one ?? 0));
  const all = day.starts.reduce((sum, one) => sum + one, 0);
  return (
    <>
      <td class="sp">
        <Spark
          values={day.p99Ms.map((one) => (one === null ? null : heightOf(one)))}
          max={TOP}
          bad={heightOf(LATE_MS)}
          label={said.latenessOf(queue, latenessText(most))}
        />
      </td>
      <td class="sp">
        <Bars values={day.starts} label={said.startsOf(queue, numberText(all))} />
      </td>
    </>
  );
}

/** Of as many as its limit or its workers allow, whichever is less. */
function Running({ one: { running, limits, slots } }: { readonly one: LiveQueue }) {
  const most = Math.min(limits?.concurrency ?? Number.POSITIVE_INFINITY, slots || Number.POSITIVE_INFINITY);
  if (!Number.isFinite(most)) return <td class="n run">{running === 0 ? <Nothing /> : numberText(running)}</td>;
  return (
    <td class="n run">
      {numberText(running)}
      <span class="of"> / {numberText(most)}</span>
      <meter
        class={running >= most ? 'mini full' : 'mini'}
        min={0}
        max={most}
        value={Math.min(running, most)}
        aria-label={said.runningOf(numberText(running), numberText(most))}
      />
    </td>
  );
}
