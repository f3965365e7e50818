/** Schedules as the API tells them. */

export interface Schedule {
  readonly name: string;
  readonly queue: string;
  readonly source: string;
  readonly input: Readonly<Record<string, unknown>>;
  readonly hidden: boolean;
  readonly paused?: string;
  readonly nextMs?: number;
  readonly reachedMs?: number;
  readonly lastMs?: number;
  readonly runs: number;
  readonly skipped: number;
  readonly unreadable?: string;
}

export interface PreviewRow {
  readonly id?: string;
  readonly atMs: number;
  readonly local: string;
  readonly offset: string;
  readonly named?: string;
  readonly dst?: string;
  readonly calendar?: string;
  readonly dropped?: string;
  readonly dueMs?: number;
  readonly leftOut?: number;
}

export interface Preview {
  readonly name: string;
  readonly rows: readonly PreviewRow[];
}

/** `30 2 * * * Europe/Berlin`, `every 15m` */
export function ruleOf({ input: { cron, every, zone } }: Schedule): string {
  const rule = cron === undefined ? `every ${String(every ?? '?')}` : String(cron);
  return zone === undefined ? rule : `${rule} ${String(zone)}`;
}

const DST: Readonly<Record<string, string>> = {
  shifted: 'moved: the clock skips the named time',
  first: 'the first of two: the clock goes back',
  second: 'the second of two: the clock goes back',
  gap: 'lost: the clock skips the named time',
};

/** What a clock change did, in words. */
export const whatClocksDid = (dst: string | undefined): string | undefined => (dst === undefined ? dst : DST[dst]);

/** What was decided for an instant, in words; empty: nothing special. */
export function decisionOf({ dst, calendar, dropped, named, leftOut }: PreviewRow): string {
  const parts = [
    dst === undefined ? '' : (DST[dst] ?? dst),
    named === undefined ? '' : `named ${named}`,
    calendar === undefined ? '' : `calendar: ${calendar}`,
    dropped === undefined || dropped === dst ? '' : `makes no job: ${dropped}`,
    leftOut === undefined ? '' : `and ${leftOut} more`,
  ];
  return parts.filter((part) => part !== '').join('; ');
}
