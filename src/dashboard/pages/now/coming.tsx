/** What comes due in the next hour and the next day; jobs that wait now and those that schedules will make apart. */
import { useCallback, useState } from 'preact/hooks';
import type { Bucket, Now } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { queryOf } from '../../parts/at.ts';
import { TimeChart } from '../../parts/chart.tsx';
import { useEvery } from '../../parts/every.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { countText, numberText } from '../../parts/words.ts';

const DAY_MS = 86_400_000;
const EVERY_MS = 60_000;

export function Coming({ forecast }: { readonly forecast: Now['forecast'] }) {
  if (forecast === undefined) return null;
  const { nextHour, scheduled, coming, buckets } = forecast;
  return (
    <section aria-label="What comes due">
      <h2>What comes due</h2>
      <p>
        In the next hour {countText(nextHour, 'job')}: {numberText(scheduled)} wait now, {numberText(coming)} come from
        schedules.
      </p>
      <Bars title="The next hour, by minute" buckets={buckets} />
      <NextDay />
    </section>
  );
}

function NextDay() {
  const [until, setUntil] = useState(dayFromNow);
  const { value, problem } = useAsked<{ readonly buckets: readonly Bucket[] }>(
    `forecast${queryOf({ until, by: 'hour' })}`,
  );
  useEvery(
    EVERY_MS,
    useCallback(() => setUntil(dayFromNow()), []),
  );
  return (
    <>
      <ProblemNote problem={problem} />
      {value === undefined ? null : <Bars title="The next day, by hour" buckets={value.buckets} />}
    </>
  );
}

const dayFromNow = (): string => new Date(Date.now() + DAY_MS).toISOString();

/** The bars of what waits stand in front of those of all. */
function Bars({ title, buckets }: { readonly title: string; readonly buckets: readonly Bucket[] }) {
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
