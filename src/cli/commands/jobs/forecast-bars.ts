/** A forecast as bars in 80 columns. A bucket that holds anything is never shown as empty; long rests are one line. */

import type { Forecast, ForecastBucket } from '../../../client/schedules/forecast.ts';
import { counted } from '../../../kernel/humanize.ts';
import type { Paint } from '../../terminal/paint.ts';

const BAR_CHARS = 48;
const WAITING = '█';
const COMING = '░';
/** So many empty buckets in a row are told, not shown. */
const REST_MIN = 4;

export function barsOf(paint: Paint, { buckets, by }: Pick<Forecast, 'buckets' | 'by'>): readonly string[] {
  const most = Math.max(...buckets.map(({ jobs }) => jobs));
  if (most === 0) return ['no job becomes due'];
  const perChar = scaleOf(most);
  const width = Math.max(4, String(most).length);
  const legend = `${WAITING} waits now  ${COMING} from schedules; one character is ${counted(perChar, 'job')}`;
  const head = paint.dim(`${`by ${by}, UTC`.padEnd(16)}  ${'jobs'.padStart(width)}  ${legend}`);
  const rows: string[] = [];
  for (let at = 0; at < buckets.length; ) {
    const rest = restFrom(buckets, at);
    if (rest >= REST_MIN)
      rows.push(paint.dim(`${' '.repeat(16)}  ${'0'.padStart(width)}  ${rest} ${by}s without a job`));
    else rows.push(...buckets.slice(at, at + Math.max(1, rest)).map((bucket) => row(bucket, perChar, width)));
    at += Math.max(1, rest);
  }
  return [head, ...rows];
}

/** 1, 2 or 5 times a power of ten, so that the longest bar fits. */
function scaleOf(most: number): number {
  for (let power = 1; ; power *= 10) {
    const fits = [1, 2, 5].find((digit) => most / (digit * power) <= BAR_CHARS - 1);
    if (fits !== undefined) return fits * power;
  }
}

function restFrom(buckets: readonly ForecastBucket[], from: number): number {
  const next = buckets.findIndex(({ jobs }, at) => at >= from && jobs > 0);
  return (next < 0 ? buckets.length : next) - from;
}

function row({ fromMs, jobs, scheduled, coming }: ForecastBucket, perChar: number, width: number): string {
  const bar = WAITING.repeat(Math.ceil(scheduled / perChar)) + COMING.repeat(Math.ceil(coming / perChar));
  const time = new Date(fromMs).toISOString().slice(0, 16).replace('T', ' ');
  return `${time}  ${String(jobs).padStart(width)}  ${bar}`.trimEnd();
}
