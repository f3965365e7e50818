/**
 * Schedules that fire at the same instants, found by what is written in them and without computing anything: the rule
 * with its zone, policies, calendar and bounds. Those with `maxRuns` stand alone. Those with `H` differ by their names only,
 * which spreads them evenly: of very many, the first stand for all.
 */
import type { Definitions } from './schedule-places.ts';

export interface Alike {
  /** One of them. */
  readonly name: string;
  readonly content: string;
  /** How many they are; not a whole number where some stand for others. */
  readonly count: number;
}

export interface Groups {
  readonly alike: readonly Alike[];
  readonly paused: number;
  readonly unreadable: number;
  /** Schedules that are in `alike` only by others that stand for them. */
  readonly estimated: number;
}

type Written = Readonly<Record<string, unknown>>;

/** Of schedules that differ by `H` only, so many are computed. */
const SPREAD_MAX = 2000;

interface Found {
  readonly spread: boolean;
  readonly some: { readonly name: string; readonly content: string }[];
  count: number;
}

/** The groups among the schedules of a queue, or of all. */
export async function groupsOf(definitions: Definitions, queue: string | undefined): Promise<Groups> {
  const found = new Map<string, Found>();
  const seen = new Set<string>();
  const told = { paused: 0, unreadable: 0 };
  for await (const page of definitions()) {
    for (const [name, content] of page.filter(([one]) => !seen.has(one))) {
      seen.add(name);
      const kind = kindOf(name, content, queue);
      if (kind === 'other') continue;
      if (kind === 'paused' || kind === 'unreadable') told[kind] += 1;
      else addTo(found, kind, { name, content });
    }
  }
  const groups = [...found.values()];
  const estimated = groups.reduce((sum, { spread, some, count }) => sum + (spread ? count - some.length : 0), 0);
  const alike = groups.flatMap(({ some, count }) => some.map((one) => ({ ...one, count: count / some.length })));
  return { alike, estimated, ...told };
}

function addTo(
  found: Map<string, Found>,
  { key, spread }: { readonly key: string; readonly spread: boolean },
  one: Found['some'][number],
): void {
  const group = found.get(key) ?? { spread, some: [], count: 0 };
  group.count += 1;
  if (group.some.length < (spread ? SPREAD_MAX : 1)) group.some.push(one);
  found.set(key, group);
}

function kindOf(name: string, content: string, queue: string | undefined) {
  const { since, anchor: pinned, schedule } = read(content);
  if (schedule === undefined) return 'unreadable';
  if (queue !== undefined && schedule.queue !== queue) return 'other';
  if (isPaused(schedule.paused)) return 'paused';
  const { cron, every, align, zone, dst, start, end, calendar, maxRuns } = schedule;
  const spread = maxRuns === undefined && typeof cron === 'string' && /(^|[\s,])H/.test(cron);
  const anchor = align === 'start' && start === undefined ? (pinned ?? since) : undefined;
  const alone = maxRuns === undefined ? '' : name;
  return { key: JSON.stringify([cron, every, align, zone, dst, start, end, calendar, anchor, alone]), spread };
}

const isPaused = (paused: unknown): boolean => paused !== undefined && paused !== false;

function read(content: string): { readonly since?: unknown; readonly anchor?: unknown; readonly schedule?: Written } {
  try {
    const value: unknown = JSON.parse(content);
    if (!isWritten(value)) return {};
    return {
      since: value.since,
      anchor: value.anchor,
      ...(isWritten(value.schedule) ? { schedule: value.schedule } : {}),
    };
  } catch {
    return {};
  }
}

const isWritten = (value: unknown): value is Written => typeof value === 'object' && value !== null;
