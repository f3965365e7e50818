/**
 * What happens now: the daemon looks once a second for all who watch, and sends it. Looks have numbers, so a gap is seen; a
 * viewer who pauses asks for nothing.
 */
import { useEffect, useState } from 'preact/hooks';
import { ask, urlOf } from './api.ts';

export interface Rates {
  readonly scheduled: number;
  readonly promoted: number;
  readonly started: number;
  readonly ended: number;
}

export interface LiveQueue {
  readonly queue: string;
  readonly partitions: number;
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
  readonly paused: boolean;
  readonly oldestDueAgeMs: number;
  readonly workers: number;
  readonly leaders: readonly (string | null)[];
  readonly perSecond: Rates;
}

export interface Bucket {
  readonly fromMs: number;
  readonly jobs: number;
  /** Of these: jobs that wait in Redis. */
  readonly scheduled: number;
  /** Of these: jobs that schedules will make. */
  readonly coming: number;
}

export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly saw: string;
  readonly advice?: string;
}

export interface Now {
  readonly nowMs: number;
  readonly queues: readonly LiveQueue[];
  readonly total: Omit<LiveQueue, 'queue' | 'partitions' | 'paused' | 'workers' | 'leaders'>;
  readonly processes: {
    readonly daemons: number;
    readonly workers: number;
    readonly leaders: number;
    readonly partitions: number;
    readonly led: number;
  };
  readonly redis?: {
    readonly usedBytes: number;
    readonly maxBytes: number;
    readonly policy: string;
    readonly durability: string;
  };
  readonly forecast?: {
    readonly nextHour: number;
    readonly scheduled: number;
    readonly coming: number;
    readonly busiest?: Bucket;
    readonly buckets: readonly Bucket[];
  };
  readonly doctor?: { readonly atMs: number; readonly ok: boolean; readonly findings: readonly Finding[] };
}

export interface Live {
  readonly now: Now | undefined;
  readonly state: 'connecting' | 'live' | 'paused' | 'away' | 'ended';
  /** Looks were missed, or another daemon answers: what the page had asked for before may be old. */
  readonly hasGap: boolean;
  /** Why it is away or has ended, in words. */
  readonly why: string;
}

/** After which time a stream that has ended is asked for again. */
const AGAIN_MS = 3000;

const FAREWELLS: Readonly<Record<string, string>> = {
  stopping: 'The daemon stops. Another one may answer soon.',
  revoked: 'The token was revoked.',
  slow: 'This browser did not keep up.',
};

let live: Live = { now: undefined, state: 'connecting', hasGap: false, why: '' };
let source: EventSource | undefined;
let again: ReturnType<typeof setTimeout> | undefined;
let lastId = '';
const watchers = new Set<(live: Live) => void>();

/** Opens the stream with the first part of a page that looks, and closes it with the last. */
export function useLive(): Live {
  const [value, setValue] = useState(live);
  useEffect(() => {
    watchers.add(setValue);
    if (watchers.size === 1 && live.state !== 'paused') open();
    setValue(live);
    return () => {
      watchers.delete(setValue);
      if (watchers.size === 0) close();
    };
  }, []);
  return value;
}

export function pauseLive(): void {
  close();
  tell({ state: 'paused', why: '' });
}

export function resumeLive(): void {
  lastId = '';
  tell({ state: 'connecting', why: '' });
  open();
}

function tell(change: Partial<Live>): void {
  live = { ...live, ...change };
  for (const watcher of watchers) watcher(live);
}

function open(): void {
  close();
  source = new EventSource(urlOf('live'), { withCredentials: true });
  source.addEventListener('now', ({ data, lastEventId }) => {
    const hasGap = live.hasGap || isGap(lastId, lastEventId);
    lastId = lastEventId;
    tell({ now: JSON.parse(data), state: 'live', hasGap, why: '' });
  });
  source.addEventListener('away', () => tell({ state: 'away', why: 'Redis does not answer the daemon.' }));
  source.addEventListener('bye', ({ data }) => {
    const { code } = JSON.parse(data);
    tell({ state: 'ended', why: FAREWELLS[code] ?? '' });
    reopen();
  });
  source.addEventListener('error', () => {
    if (source?.readyState !== EventSource.CLOSED) return tell({ state: 'connecting' });
    // A stream cannot say why it was refused: a look that is refused sends to the login.
    ask('GET queues').catch(() => undefined);
    tell({ state: 'away', why: 'The daemon does not answer.' });
    reopen();
  });
}

function close(): void {
  clearTimeout(again);
  source?.close();
  source = undefined;
}

function reopen(): void {
  close();
  again = setTimeout(open, AGAIN_MS);
}

/** Ids are `<name of the daemon's run>-<number>`. */
function isGap(before: string, id: string): boolean {
  if (before === '') return false;
  const [run, number] = split(before);
  const [runNow, numberNow] = split(id);
  return run !== runNow || numberNow !== number + 1;
}

function split(id: string): readonly [run: string, number: number] {
  const at = id.lastIndexOf('-');
  return [id.slice(0, at), Number(id.slice(at + 1))];
}
