/** The options of the methods of schedules, by name: one that nobody knows is refused before anything is sent. */
import { checkNames } from '../../kernel/checks.ts';
import type { IfMatchOption } from '../calls/etag.ts';
import type { ForecastOptions } from './forecast.ts';
import type { ListOptions } from './schedule-list.ts';
import type { BackfillOptions, PreviewOptions } from './schedule-view.ts';

const IF_MATCH = { ifMatch: 0 } satisfies Record<keyof IfMatchOption, number>;

/** What the methods take. */
const METHOD_OPTIONS = {
  list: { queue: 0, tag: 0, limit: 0, onUnreadable: 0, onMore: 0 } satisfies Record<keyof ListOptions, number>,
  preview: { next: 0, until: 0, from: 0, name: 0, onLeftOut: 0 } satisfies Record<keyof PreviewOptions, number>,
  put: IF_MATCH,
  remove: IF_MATCH,
  pause: IF_MATCH,
  resume: IF_MATCH,
  trigger: { id: 0, ...IF_MATCH },
  backfill: { from: 0, to: 0, dryRun: 0, limit: 0 } satisfies Record<keyof BackfillOptions, number>,
  forecast: { until: 0, by: 0, queue: 0 } satisfies Record<keyof ForecastOptions, number>,
} as const;

/** What was given to a method, under its name. */
export type GivenOptions = { readonly [Method in keyof typeof METHOD_OPTIONS]?: object };

/** @throws DuestreamError `bad-input` with the nearest name */
export function checkOptions(given: GivenOptions): void {
  for (const [method, options] of Object.entries(given)) {
    checkNames(options, Object.keys(METHOD_OPTIONS[method as keyof GivenOptions]), method, 'bad-input');
  }
}
