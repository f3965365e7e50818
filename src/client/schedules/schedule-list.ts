/**
 * Many schedules as people look at them, by name. Pages are read one after the other, and of each schedule only what is
 * asked for is computed: the text is enough to leave one out, and what is beyond the limit is counted, never parsed.
 */
import { quietly } from '../../kernel/callbacks.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { inTurns, oneStep } from '../../kernel/steps.ts';
import { type Definition, decodeDefinition } from '../../schedule/text.ts';
import type { Definitions } from './schedule-places.ts';
import type { ScheduleStore } from './schedule-store.ts';
import { type ScheduleView, viewOf } from './schedule-view.ts';

/** Which schedules `schedules.list` returns. */
export interface ListOptions {
  readonly queue?: string | undefined;
  readonly tag?: string | undefined;
  /** Only the first so many, by name. Default all. */
  readonly limit?: number | undefined;
  /** Told of definitions that nobody can read, which are left out; with `limit`, of those among the first. */
  readonly onUnreadable?: ((name: string, error: DuestreamError) => void) | undefined;
  /** Told how many there are besides those that `limit` lets through. */
  readonly onMore?: ((count: number) => void) | undefined;
}

export interface ListParts {
  readonly definitions: Definitions;
  readonly store: Pick<ScheduleStore, 'nowMs' | 'findAll'>;
}

export async function listSchedules(
  { definitions, store }: ListParts,
  { limit = Number.POSITIVE_INFINITY, onUnreadable, onMore, ...filter }: ListOptions,
): Promise<readonly ScheduleView[]> {
  const tellUnreadable = quietly('onUnreadable', onUnreadable);
  const contents = new Map<string, string>();
  for await (const page of definitions()) {
    for (const [name, content] of page) if (isWanted(content, filter)) contents.set(name, content);
  }
  const shown: Definition[] = [];
  let unreadable = 0;
  for (const name of [...contents.keys()].sort()) {
    if (shown.length >= limit) break;
    const found = await inTurns(oneStep(() => read(name, contents.get(name) ?? '')));
    if (found instanceof DuestreamError) {
      unreadable += 1;
      tellUnreadable?.(name, found);
    } else shown.push(found);
  }
  const more = contents.size - unreadable - shown.length;
  if (more > 0 && shown.length >= limit) quietly('onMore', onMore)?.(more);
  contents.clear();
  const nowMs = await store.nowMs();
  const views: ScheduleView[] = [];
  for (const stored of await store.findAll(shown)) views.push(await inTurns(viewOf(stored, nowMs)));
  return views.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function read(name: string, content: string): Definition | DuestreamError {
  try {
    return decodeDefinition(name, content);
  } catch (error) {
    return error instanceof DuestreamError ? error : new DuestreamError('failed', reasonOf(error), { cause: error });
  }
}

/** By what is written. One that says neither queue nor tags in a way that can be read is told to be unreadable. */
function isWanted(content: string, { queue, tag }: Pick<ListOptions, 'queue' | 'tag'>): boolean {
  if (queue === undefined && tag === undefined) return true;
  try {
    const { schedule }: { schedule?: { queue?: unknown; tags?: unknown } } = JSON.parse(content);
    if (typeof schedule?.queue !== 'string') return true;
    const { tags } = schedule;
    return (
      (queue === undefined || schedule.queue === queue) &&
      (tag === undefined || (Array.isArray(tags) && tags.includes(tag)))
    );
  } catch {
    return true;
  }
}
