/**
 * What rarely happens to a partition, as its diary (`K:diary`) tells it: single changes, and the times within which something
 * held. Nothing is guessed. Processes of older versions write no entry, so a time may have no known beginning; what ends a
 * time says since when it held, where Redis knew that.
 *
 *     paused ──▶ resumed      closed ──▶ opened, or its end      resigned, silence ──▶ elected      unserved ──▶ served
 */
import type { QueueSettingOptions } from './queue-settings.ts';

/** What an entry tells. `set`: settings are others now. */
export const DIARY_WORDS = [
  ...(['paused', 'resumed', 'closed', 'opened', 'set', 'resigned', 'elected', 'unserved', 'served'] as const),
];
export type DiaryWord = (typeof DIARY_WORDS)[number];

/** A change, by the clock of Redis. */
export interface DiaryEntry {
  /** Its id in the stream. */
  readonly entry: string;
  readonly atMs: number;
  readonly what: DiaryWord;
  /** The name of a token, or the user of a machine; of `elected` and `resigned` the process. Undefined: a handler, or nobody knows. */
  readonly by?: string | undefined;
  readonly why?: string | undefined;
  /** Of a closing: the group that is meant; undefined: the queue. */
  readonly group?: string | undefined;
  /** Of a closing: its end, as it was said. */
  readonly untilMs?: number | undefined;
  /** Since when it was so, where that is not the time of the entry. */
  readonly fromMs?: number | undefined;
  /** Of `set`: the settings that are others now, as they were and as they are. */
  readonly before?: QueueSettingOptions | undefined;
  readonly after?: QueueSettingOptions | undefined;
}

/** `leaderless`: nobody moved jobs. `unserved`: no worker of the queue lived. */
export type DiaryState = 'paused' | 'closed' | 'leaderless' | 'unserved';

/** A time within which something held. */
export interface DiaryInterval {
  readonly what: DiaryState;
  /** Undefined: its beginning is not told. */
  readonly fromMs: number | undefined;
  /** Undefined: it still holds. Of a closing it may lie ahead. */
  readonly toMs: number | undefined;
  readonly by?: string | undefined;
  readonly why?: string | undefined;
  /** Of a closing: the group that is meant; undefined: the queue. */
  readonly group?: string | undefined;
}

/** Undefined for what a newer version wrote, or somebody else. */
export function diaryEntry(entry: string, fields: ReadonlyMap<string, string>): DiaryEntry | undefined {
  const what = DIARY_WORDS.find((word) => word === fields.get('what'));
  const atMs = Number(entry.split('-')[0]);
  if (what === undefined || !Number.isSafeInteger(atMs)) return undefined;
  return {
    entry,
    atMs,
    what,
    by: fields.get('by'),
    why: fields.get('why'),
    group: fields.get('group'),
    untilMs: msOf(fields.get('until')),
    fromMs: msOf(fields.get('from')),
    before: settingsOf(fields.get('before')),
    after: settingsOf(fields.get('after')),
  };
}

function msOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : undefined;
}

function settingsOf(text: string | undefined): QueueSettingOptions | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '');
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

type Begun = Pick<DiaryEntry, 'by' | 'why' | 'group'> & {
  readonly what: DiaryState;
  readonly fromMs: number;
  readonly untilMs?: number | undefined;
};

const BEGINS: Readonly<Partial<Record<DiaryWord, DiaryState>>> = {
  paused: 'paused',
  closed: 'closed',
  resigned: 'leaderless',
  unserved: 'unserved',
};
const ENDS: Readonly<Partial<Record<DiaryWord, DiaryState>>> = {
  resumed: 'paused',
  opened: 'closed',
  elected: 'leaderless',
  served: 'unserved',
};

/**
 * The times of one partition by their beginnings, those without one first. A change that is told twice counts once.
 *
 * @param entries of one partition, the oldest first
 */
export function intervalsOf(entries: readonly DiaryEntry[]): readonly DiaryInterval[] {
  const open = new Map<string, Begun>();
  const found: DiaryInterval[] = [];
  for (const entry of entries) {
    const [begins, ends] = [BEGINS[entry.what], ENDS[entry.what]];
    if (begins) found.push(...begin(open, begins, entry));
    if (ends) found.push(...end(open, ends, entry));
  }
  for (const begun of open.values()) found.push(intervalOf(begun, begun.untilMs));
  return found.sort((one, other) => (one.fromMs ?? 0) - (other.fromMs ?? 0));
}

type Open = Map<string, Begun>;

const keyOf = (what: DiaryState, { group = '' }: DiaryEntry): string => `${what} ${group}`;

const intervalOf = ({ untilMs: _, ...begun }: Begun, toMs: number | undefined): DiaryInterval => ({ ...begun, toMs });

/** What was over before: a closing whose end has come. */
function overBy(begun: Begun | undefined, atMs: number): readonly DiaryInterval[] {
  const untilMs = begun?.untilMs;
  return begun && untilMs !== undefined && untilMs <= atMs ? [intervalOf(begun, untilMs)] : [];
}

function begin(open: Open, what: DiaryState, entry: DiaryEntry): readonly DiaryInterval[] {
  const key = keyOf(what, entry);
  const before = open.get(key);
  const over = overBy(before, entry.atMs);
  open.set(key, prolonged(what, over.length > 0 ? undefined : before, entry));
  return over;
}

function end(open: Open, what: DiaryState, entry: DiaryEntry): readonly DiaryInterval[] {
  const key = keyOf(what, entry);
  const before = open.get(key);
  open.delete(key);
  const over = overBy(before, entry.atMs);
  if (over.length > 0) return over;
  if (before) return [intervalOf(before, entry.atMs)];
  return what === 'closed' ? [] : [endedOnly(what, entry)];
}

/** What holds already goes on; the end of a closing is the later one. */
function prolonged(
  what: DiaryState,
  held: Begun | undefined,
  { atMs, fromMs = atMs, by, why, group, untilMs }: DiaryEntry,
): Begun {
  if (!held) return { what, fromMs, by, why, group, untilMs };
  return { ...held, untilMs: untilMs === undefined ? held.untilMs : Math.max(untilMs, held.untilMs ?? 0) };
}

/** An end without a beginning: an older process began it, or the entry was pushed out. */
const endedOnly = (what: DiaryState, { atMs, fromMs, why }: DiaryEntry): DiaryInterval => ({
  what,
  fromMs,
  toMs: atMs,
  why,
});
