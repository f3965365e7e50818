/**
 * Our instants against two others who know cron and time zones, instant by instant. Where their policy at a clock change
 * is another, a rule says which, and ours is asked under theirs; no instant is forgiven.
 *
 *  croner    its own grammar; time zones by the Node that runs, as we
 *  croniter  its own grammar; time zones by Python's zoneinfo, with a time zone database of its own
 */
import { Cron as Croner } from 'croner';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cron, parseCron } from '../../src/time/cron.ts';
import { type Occurrence, occurrences, type Recurrence } from '../../src/time/recurrence.ts';
import { DEFAULT_DST, type DstPolicy, parseZone } from '../../src/time/zone.ts';
import { type Answers, askCroniter, type Question } from '../support/oracle-ask.ts';
import {
  aroundChanges,
  changesOf,
  ROWS,
  type Row,
  type Span,
  spanOf,
  wholeYears,
  yearsOf,
  ZONES,
} from '../support/oracle-table.ts';
import { isSlice } from '../tiers.mjs';

/** `npm run oracle` compares whole years everywhere, `npm run verify` in every eighth zone; a slice, around clock changes alone. */
const isWhole = process.env.ORACLE === 'all';
const isEighth = (zone: string) => ZONES.indexOf(zone) % 8 === 1;
const asked = isSlice ? ZONES.filter(isEighth) : ZONES;
const seen = { croner: 0, croniter: 0 };
const differences: string[] = [];
let tz = 'unknown';

/** What an expression names in UTC is the same for every zone, so it is computed once. */
const crons = new Map<string, Cron>();
function cronOf(text: string): Cron {
  const known = crons.get(text);
  if (known) return known;
  const cron = parseCron(text, 'seed');
  const next = new Map<number, number | undefined>();
  const remembered = (wallMs: number) => {
    if (!next.has(wallMs)) next.set(wallMs, cron.next(wallMs));
    return next.get(wallMs);
  };
  crons.set(text, { ...cron, next: remembered });
  return crons.get(text) ?? cron;
}

const recurrenceOf = (zone: string, text: string, dst: DstPolicy): Recurrence => ({
  rule: { cron: cronOf(text) },
  zone: parseZone(zone),
  dst,
});

interface Ours {
  readonly zone: string;
  readonly cron: string;
  readonly dst: DstPolicy;
  /** What another makes of a time in a gap, which we shift; undefined: it drops it. */
  readonly shifted?: (occurrence: Occurrence) => number | undefined;
}

function oursOf({ zone, cron, dst, shifted = ({ atMs }) => atMs }: Ours, { fromMs, toMs }: Span): readonly number[] {
  const found = new Set<number>();
  for (const occurrence of occurrences(recurrenceOf(zone, cron, dst), fromMs)) {
    if (occurrence.atMs > toMs) break;
    // One that meets a regular one after it was shifted is fired, as that one.
    if (occurrence.dropped && occurrence.dropped !== 'coincides') continue;
    const atMs = occurrence.dst === 'shifted' ? shifted(occurrence) : occurrence.atMs;
    if (atMs !== undefined) found.add(atMs);
  }
  return [...found].sort((a, b) => a - b);
}

function spansOf(zone: string, row: Row): readonly Span[] {
  const years = isWhole || (isEighth(zone) && !isSlice) ? wholeYears(zone, row) : [];
  return [...years, ...aroundChanges(zone)];
}

const where = (zone: string, cron: string, { fromMs }: Span) =>
  `${zone}: ${cron} from ${new Date(fromMs).toISOString()}`;
const dayOf = (wallMs: number) => Math.floor(wallMs / 86_400_000);
const inUtc = (instants: readonly number[]) => instants.map((atMs) => new Date(atMs).toISOString());

/** Compares numbers, and spells them out only where they differ. */
function expectSame(theirs: readonly number[], ours: readonly number[], what: string): void {
  if (theirs.length === ours.length && theirs.every((atMs, at) => atMs === ours[at])) return;
  const [they, we] = [new Set(theirs), new Set(ours)];
  const only = { theirs: theirs.filter((atMs) => !we.has(atMs)), ours: ours.filter((atMs) => !they.has(atMs)) };
  expect({ theirs: inUtc(only.theirs), ours: inUtc(only.ours) }, what).toEqual({ theirs: [], ours: [] });
}

describe('croner', () => {
  /**
   * Rule 1: croner moves a time in a gap to the end of the gap, we by the length of the gap.
   * Rule 2: "on the same day", as croner's documentation says: a time of a day that is missing altogether is dropped.
   * Rule 3: croner counts an expression with a step in seconds, minutes or hours as running all the time: nothing of it
   * is moved out of a gap, and all of it runs twice in an overlap. That is our policy `skip` and `both`. We go by the
   * hours alone, so that a nightly `*\/30 1 * * *` runs twice a night, not four times.
   */
  function underTheirPolicy(zone: string, { cron }: Row): Ours {
    const fields = cron.split(' ');
    const times = fields.length === 6 ? fields.slice(0, 3) : fields.slice(0, 2);
    if (times.some((field) => /[*?/]/.test(field))) return { zone, cron, dst: { gap: 'skip', overlap: 'both' } };
    const endOfGap = ({ atMs, wallMs }: Occurrence) => {
      const { fromMs, offsetMs } = parseZone(zone).stretchAt(atMs);
      return dayOf(fromMs + offsetMs) === dayOf(wallMs) ? fromMs : undefined;
    };
    return { zone, cron, dst: DEFAULT_DST, shifted: endOfGap };
  }

  function theirs(zone: string, { cron, croner = cron }: Row, { fromMs, toMs }: Span): readonly number[] {
    const job = new Croner(croner, { timezone: zone, fixedTimeRule: 'no-wildcard', paused: true });
    const found: number[] = [];
    for (let run = job.nextRun(new Date(fromMs)); run !== null && run.getTime() <= toMs; run = job.nextRun(run)) {
      found.push(run.getTime());
    }
    return found;
  }

  test.each(asked)('in %s', (zone) => {
    for (const row of ROWS) {
      for (const span of spansOf(zone, row)) {
        const instants = theirs(zone, row, span);
        expectSame(instants, oursOf(underTheirPolicy(zone, row), span), where(zone, row.cron, span));
        seen.croner += instants.length;
      }
    }
  });
});

describe('croniter with zoneinfo', () => {
  const OTHERS: readonly DstPolicy[] = [
    { gap: 'skip', overlap: 'second' },
    { gap: 'shift', overlap: 'both' },
  ];
  const spans = asked.flatMap((zone) => yearsOf(zone).map((year) => ({ zone, ...spanOf(year) })));
  const cases = asked.flatMap((zone) =>
    ROWS.flatMap((row) => [
      ...spansOf(zone, row).map((span) => ({ zone, row, dst: DEFAULT_DST, ...span })),
      ...OTHERS.flatMap((dst) => aroundChanges(zone).map((span) => ({ zone, row, dst, ...span }))),
    ]),
  );
  let answers: Answers;

  /** croniter knows no policies. The process applies the one that it is told; intervals run whenever the clock shows them. */
  const questionOf = ({ zone, row, dst, fromMs, toMs }: (typeof cases)[number]): Question => ({
    zone,
    cron: row.croniter ?? row.cron,
    fromMs,
    toMs,
    ...(row.everyHour ? { gap: 'skip', overlap: 'both' } : dst),
  });

  beforeAll(async () => {
    answers = await askCroniter({ cases: cases.map(questionOf), changes: spans });
    tz = answers.tz;
  });

  /** The first instant of a year from which the two time zone databases disagree about a zone. */
  function partsAt(zone: string, year: number): number {
    const at = spans.findIndex((span) => span.zone === zone && span.fromMs === spanOf(year).fromMs);
    const theirs = (answers.changes[at] ?? []).map(([atSeconds, offset]) => `${atSeconds * 1000} ${offset * 1000}`);
    const ours = changesOf(zone, spanOf(year)).map(([atMs, offsetMs]) => `${atMs} ${offsetMs}`);
    const alone = [...theirs, ...ours].filter((change) => !(theirs.includes(change) && ours.includes(change)));
    return Math.min(...alone.map((change) => Number(change.split(' ')[0])));
  }

  test('reads the same time zones, but for changes between the versions of the database', () => {
    for (const zone of asked) {
      for (const year of yearsOf(zone)) {
        const fromMs = partsAt(zone, year);
        if (Number.isFinite(fromMs)) differences.push(`${zone} from ${new Date(fromMs).toISOString()}`);
      }
    }
    if (tz === process.versions.tz) expect(differences).toEqual([]);
  });

  test.each(asked)('in %s', (zone) => {
    for (const [at, one] of cases.entries()) {
      if (one.zone !== zone) continue;
      const { row, dst } = one;
      // A time of the day before may be meant by the new rules already.
      const untilMs = Math.min(partsAt(zone, new Date(one.fromMs).getUTCFullYear()) - 2 * 86_400_000, one.toMs);
      const theirs = (answers.fires[at] ?? []).map((atSeconds) => atSeconds * 1000).filter((atMs) => atMs <= untilMs);
      const ours = oursOf({ zone, cron: row.cron, dst }, { fromMs: one.fromMs, toMs: untilMs });
      expectSame(theirs, ours, `${where(zone, row.cron, one)} ${JSON.stringify(dst)}`);
      seen.croniter += theirs.length;
    }
  });
});

afterAll(() => {
  console.info(
    [
      `${asked.length} zones × ${ROWS.length} expressions: ${seen.croner} instants as croner, ${seen.croniter} as croniter`,
      `time zone databases: ${process.versions.tz} (Node), ${tz} (Python)`,
      `differences between these versions: ${differences.length === 0 ? 'none' : differences.join(', ')}`,
    ].join('\n'),
  );
});
