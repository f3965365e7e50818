/** What comes due in the next day: a line for each queue, a column for each half hour, and the herds by name. */
import type { Schemas } from '../../api-types.ts';
import type { LiveQueue } from '../../live.ts';
import { timeText, utcText, weekTimeText } from '../../parts/clock.ts';
import { Axis, Bars, Cells, hourTicks } from '../../parts/plot.tsx';
import { ratesOf, timeFor } from '../../parts/rates.ts';
import { durationText, numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { whereOf } from '../jobs/filters.ts';
import { columnsFromMs, columnsToMs, HALF_MS, herdsIn, levelOf, type Step, stepsOf } from './saying.ts';

const said = words.now;
/** More lines than these say less. */
const LINES_MAX = 12;
const TICK_HOURS = 3;

interface Map {
  readonly forecast: Schemas['Forecast'];
  readonly queues: readonly LiveQueue[];
}

export function Due({ forecast, queues }: Map) {
  const steps = stepsOf(forecast);
  const all = sum(steps.map(({ jobs }) => jobs));
  return (
    <section class="heat-map" id="due" tabIndex={-1} aria-label={said.ahead}>
      <header class="sec">
        <h2>{said.ahead}</h2>
        <p>{all === 0 ? said.noneKnown : <Worst steps={steps} queues={queues} all={all} />}</p>
        {all === 0 ? null : <Scale forecast={forecast} />}
      </header>
      {all === 0 ? null : <Heat forecast={forecast} steps={steps} all={all} />}
    </section>
  );
}

const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0);
const mostIn = ({ queues = [] }: Schemas['Forecast']): number => Math.max(1, ...queues.flatMap(({ jobs }) => jobs));
const queueAddress = (queue: string): string => `#/queue/${encodeURIComponent(queue)}`;

/** The worst half hour, whose it mostly is, and how long its rate takes for that. */
function Worst({
  steps,
  queues,
  all,
}: {
  readonly steps: readonly Step[];
  readonly queues: readonly LiveQueue[];
  readonly all: number;
}) {
  const worst = steps.reduce((most, one) => (one.jobs > most.jobs ? one : most));
  const { queue = '', ofQueue } = worst;
  const limits = queues.find((one) => one.queue === queue)?.limits;
  const tookMs = timeFor(limits, ofQueue);
  const link = <a href={`#/simulate/${encodeURIComponent(queue)}`}>{queue}</a>;
  return (
    <>
      {said.known(all, numberText(all))} {said.worstHalf(weekTimeText(worst.fromMs), numberText(worst.jobs))}
      {ofQueue * 2 > worst.jobs ? said.mostOf(<a href={queueAddress(queue)}>{queue}</a>) : null}
      {tookMs < TOLD_MS ? null : said.takes(link, ratesOf(limits).map(rateText).join(' + '), durationText(tookMs))}.
    </>
  );
}

const TOLD_MS = 60_000;
const MINUTE_MS = 60_000;
const rateText = ({ limit, perMs }: { readonly limit: number; readonly perMs: number }): string =>
  perMs === 1000
    ? `${numberText(limit)}/${words.units.s}`
    : `${numberText(limit)}/${perMs === MINUTE_MS ? words.units.min : durationText(perMs)}`;

function Scale({ forecast }: Pick<Map, 'forecast'>) {
  return (
    <span class="scale" aria-hidden="true">
      {said.scaleFrom}
      {[1, 2, 3, 4, 5].map((level) => (
        <i key={level} class={`l${level}`} />
      ))}
      {numberText(mostIn(forecast))}
    </span>
  );
}

function Heat({
  forecast,
  steps,
  all,
}: Pick<Map, 'forecast'> & { readonly steps: readonly Step[]; readonly all: number }) {
  const { queues = [] } = forecast;
  const most = mostIn(forecast);
  const [shown, rest] = [queues.slice(0, LINES_MAX), queues.slice(LINES_MAX)];
  const others = steps.map((_, at) => sum(rest.map(({ jobs }) => jobs[at] ?? 0)));
  return (
    <div class="heat">
      <Herds steps={steps} />
      <div class="all">
        <span>{said.allTogether}</span>
        <Bars values={steps.map(({ jobs }) => Math.sqrt(jobs))} label={said.allLabel(numberText(all))} />
        <b>{numberText(all)}</b>
      </div>
      {shown.map(({ queue, jobs }) => (
        <div key={queue} class="line">
          <a href={queueAddress(queue)}>{queue}</a>
          <Line name={queue} jobs={jobs} most={most} />
        </div>
      ))}
      {rest.length === 0 ? null : (
        <div class="line">
          <span>{said.otherQueues(rest.length)}</span>
          <Line name={said.otherQueues(rest.length)} jobs={others} most={most} />
        </div>
      )}
      <div class="line foot">
        <span />
        <Axis ticks={hourTicks(columnsFromMs(steps), columnsToMs(steps), TICK_HOURS)} />
        <b />
      </div>
    </div>
  );
}

function Line({
  name,
  jobs,
  most,
}: {
  readonly name: string;
  readonly jobs: readonly number[];
  readonly most: number;
}) {
  const label = said.rowLabel(name, numberText(sum(jobs)), numberText(Math.max(...jobs)));
  return (
    <>
      <Cells levels={jobs.map((one) => levelOf(one, most))} label={label} />
      <b>{numberText(sum(jobs))}</b>
    </>
  );
}

/** Names stand beside their columns, so a name ends where the next one begins. */
function Herds({ steps }: { readonly steps: readonly Step[] }) {
  const herds = herdsIn(steps);
  const inOrder = herds.toSorted((a, b) => a.at - b.at);
  const place = (at: number) => (at / steps.length) * 100;
  return (
    <div class="herds">
      {inOrder.map(({ at, fromMs, jobs, queue = '' }, nth) => {
        const next = inOrder[nth + 1]?.at ?? steps.length;
        return (
          <a
            key={at}
            href={`#/${whereOf({ state: 'scheduled', dueFrom: utcText(fromMs), dueTo: utcText(fromMs + HALF_MS) })}`}
            class={at === herds[0]?.at ? 'main' : undefined}
            style={{ '--left': `${place(at).toFixed(2)}%`, '--room': `${(place(next) - place(at) - 0.6).toFixed(1)}%` }}
          >
            <b>{timeText(fromMs)}</b> {numberText(jobs)}
            <span>{said.mostlyOf(queue)}</span>
          </a>
        );
      })}
    </div>
  );
}
