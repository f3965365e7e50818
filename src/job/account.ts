/**
 * The account of a start: what passed between the due time of a job and the moment at which Redis started it, in parts that
 * add up to the millisecond.
 *
 *  due ─made-late─▶ made ─promotion─▶ joined ─in line─▶ let through ─worker─▶ started
 *                                                            │                   ▲
 *                                     a worker died under it └─worker─▶ began ─ran─▶ last sign of life ─unproven─▶ taken over ─worker
 *
 * The due time and the token of the start are times of Redis, and so is the id of the entry, which says when the job was let
 * through. Each boundary is kept between the one before it and the start, and each part is the difference of two boundaries. So
 * the sum is exact, whatever a clock did, and no part is below zero. A queue without limits has no line: there the job is
 * let through when it is promoted.
 *
 * The sum is exact, and causes in line are not: clocks of a partition tell them, which are read ten times a second. Where
 * nobody has told a cause, the part keeps the wider name (`promotion`, `worker`, `line`), and nothing is guessed.
 *
 * A job that was handed out before it was due (`ahead`) is started before its due time, and its worker holds it until then.
 * Its account ends at the due time, so it has no parts.
 */
interface CauseRow {
  /** In a stored account. Letters are added, never changed. */
  readonly letter: string;
  /** What passed, after the time that it took. */
  readonly words: string;
  /** Told by clocks that are read ten times a second. */
  readonly isAbout?: true;
}

const rows = {
  'made-late': { letter: 'M', words: 'it was made late' },
  promotion: { letter: 'P', words: 'promotion' },
  'no-leader': { letter: 'N', words: 'no leader' },
  paused: { letter: 'Z', words: 'its queue was paused' },
  linger: { letter: 'L', words: 'it lingered' },
  behind: { letter: 'B', words: 'its leader was behind' },
  line: { letter: 'I', words: 'promotion and its place in line' },
  closed: { letter: 'C', words: 'it was closed', isAbout: true },
  'group-full': { letter: 'G', words: 'its group was full', isAbout: true },
  concurrency: { letter: 'Q', words: 'its queue ran as many as it may', isAbout: true },
  rate: { letter: 'R', words: 'its rate had no turn', isAbout: true },
  shared: { letter: 'S', words: 'a limit that its queue shares had no room', isAbout: true },
  unasked: { letter: 'U', words: 'no worker had a slot', isAbout: true },
  worker: { letter: 'W', words: 'until a worker took it' },
  'no-worker': { letter: 'A', words: 'no worker was alive' },
  busy: { letter: 'Y', words: 'all workers were busy' },
  ran: { letter: 'X', words: 'a worker ran it and died' },
  unproven: { letter: 'D', words: 'until the death of its worker was proven' },
  'clock-set': { letter: 'K', words: 'nobody knows why, because the clock of Redis was set back' },
} as const satisfies Readonly<Record<string, CauseRow>>;

/** Why a job did not start. */
export type Cause = keyof typeof rows;

/** All causes, in the order in which they can come. */
export const CAUSES: readonly Cause[] = Object.keys(rows) as Cause[];

const rowOf = (cause: Cause): CauseRow => rows[cause];

/** What passed, after the time that it took. */
export const causeWords = (cause: Cause): string => rowOf(cause).words;

export const letterOf = (cause: Cause): string => rowOf(cause).letter;

const BY_LETTER: ReadonlyMap<string, Cause> = new Map(CAUSES.map((cause) => [letterOf(cause), cause]));

export const causeOfLetter = (letter: string): Cause | undefined => BY_LETTER.get(letter);

/** A part of the lateness of a start: for how long, and why. */
export interface AccountPart {
  readonly cause: Cause;
  readonly ms: number;
  /** The cause is told by clocks that are read ten times a second: of these parts only the sum is exact. */
  readonly about?: true;
}

/** Why a job started when it did. */
export interface StartAccount {
  /** Epoch ms by the clock of Redis. */
  readonly dueMs: number;
  /** When Redis started it. Before `dueMs`: its worker held it until it was due. */
  readonly startedMs: number;
  /** From the due time to the start; 0: it was on time. */
  readonly lateMs: number;
  /** In the order of time; where they would be more than 12, one for each cause. They add up to `lateMs`. */
  readonly parts: readonly AccountPart[];
  /** From the start, or from the due time if that is later, until its handler began, as its worker knows it. It is no part of `lateMs`. */
  readonly toHandlerMs?: number | undefined;
  /** Of a job that was in line for a second or more: who had a turn meanwhile, as far as that is remembered. */
  readonly others?: OtherTurns | undefined;
}

/** Jobs that were started before a job, and ended between its due time and its start. */
export interface OtherTurns {
  readonly count: number;
  /** There were more of them. */
  readonly isLeast: boolean;
  /** They are of its group; else of any, because it has none. */
  readonly ofGroup: boolean;
  /** The id of the one that ended last. */
  readonly last: string;
}

/** A worker died under the job, and another one took it over. */
export interface TakeOver {
  /** When the dead worker started it. */
  readonly beganMs: number;
  /** When Redis last heard of it. */
  readonly signMs: number;
  readonly takenMs: number;
}

/** What is known of one start. */
export interface StartFacts {
  readonly dueMs: number;
  readonly startedMs: number;
  /** When the job came into being, if that was after its due time. */
  readonly madeMs?: number | undefined;
  /** When its entry was added: it was let through, or promoted where there is no line. */
  readonly throughMs: number;
  /** Its queue has limits. */
  readonly isGated?: boolean | undefined;
  /** What was seen of its line while it waited there. */
  readonly looks?: readonly LineLook[] | undefined;
  readonly group?: string | undefined;
  /** Since it was let through. */
  readonly takeOvers?: readonly TakeOver[];
  /** The token of the start was ahead of the clock of Redis. */
  readonly isClockSet?: boolean | undefined;
}

/** What held jobs in line for some time. */
export interface LineRun {
  readonly cause: Cause;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What held the jobs in line of a partition, in a second or so. */
export interface LineLook {
  readonly fromMs: number;
  readonly toMs: number;
  /** Of each group that was in line, and '' of jobs without one, in the order of time. */
  readonly held: ReadonlyMap<string, readonly LineRun[]>;
  /** By how much jobs were late at most that came into line since the look before, and when that was; 0: none did. */
  readonly lateMs: number;
  readonly passMs: number;
}

/** What somebody else knows of a time: a pause, a closing, no leader, no worker. */
export interface Told {
  readonly cause: 'paused' | 'closed' | 'no-leader' | 'no-worker';
  readonly fromMs: number;
  readonly toMs: number;
}

/** What a diary tells. From `sinceMs` on it tells all there was, so the rest has its own names. */
export interface Diary {
  readonly sinceMs: number;
  readonly told: readonly Told[];
  /** For so long a due job may linger. */
  readonly lingerMs?: number | undefined;
}

/** A time with one cause. */
interface Piece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly cause: Cause;
}

/** Due times that are no time in ms have no lateness: 0, and seconds. */
export const EARLIEST_MS = 1e11;

/** @returns undefined where the due time is none in ms */
export function accountOf(facts: StartFacts): StartAccount | undefined {
  const { dueMs, startedMs, isClockSet } = facts;
  if (!(dueMs >= EARLIEST_MS && startedMs >= EARLIEST_MS)) return undefined;
  const lateMs = Math.max(0, startedMs - dueMs);
  const whole: Piece = { fromMs: dueMs, toMs: dueMs + lateMs, cause: 'clock-set' };
  return { dueMs, startedMs, lateMs, parts: partsOf(isClockSet ? [whole] : piecesOf(facts)) };
}

/** The same account with the causes that a diary tells: parts that have a wide name get a narrower one. The sum stays. */
export function withDiary(account: StartAccount, diary: Diary): StartAccount {
  let at = account.dueMs;
  const pieces = account.parts.map(({ cause, ms }): Piece => {
    at += ms;
    return { fromMs: at - ms, toMs: at, cause };
  });
  return { ...account, parts: partsOf(pieces.flatMap((piece) => recoloured(piece, diary))) };
}

function piecesOf(facts: StartFacts): readonly Piece[] {
  const { dueMs, startedMs, madeMs, throughMs, isGated, takeOvers = [] } = facts;
  const pieces: Piece[] = [];
  let at = dueMs;
  const until = (ms: number, cause: Cause) => {
    const to = Math.max(at, Math.min(startedMs, ms));
    pieces.push({ fromMs: at, toMs: to, cause });
    at = to;
  };
  until(madeMs ?? dueMs, 'made-late');
  if (isGated) for (const [ms, cause] of lineOf({ ...facts, dueMs: at })) until(ms, cause);
  until(throughMs, isGated ? 'line' : 'promotion');
  for (const { beganMs, signMs, takenMs } of takeOvers) {
    until(beganMs, 'worker');
    until(signMs, 'ran');
    until(takenMs, 'unproven');
  }
  // @last-part
  until(startedMs, 'worker');
  return pieces;
}

/** The ends of the parts of a wait in line, as far as it was seen. */
function lineOf(facts: StartFacts): readonly (readonly [ms: number, cause: Cause])[] {
  const { dueMs, throughMs, startedMs, looks = [], group = '' } = facts;
  const endMs = Math.min(throughMs, startedMs);
  const first = firstAt(looks, dueMs);
  const joinedMs = Math.min(endMs, joinedIn(looks[first], dueMs));
  const ends: (readonly [number, Cause])[] = joinedMs > dueMs ? [[joinedMs, 'promotion']] : [];
  for (const look of looks.slice(first)) {
    if (look.fromMs >= endMs) break;
    for (const { cause, fromMs, toMs } of look.held.get(group) ?? look.held.get('') ?? []) {
      if (toMs <= joinedMs || fromMs >= endMs) continue;
      ends.push([fromMs, 'line'], [Math.min(toMs, endMs), cause]);
    }
  }
  return ends;
}

/** The place of the first look that ends then or later. They are in the order of time, and so many that each account may not go through all. */
function firstAt(looks: readonly LineLook[], ms: number): number {
  let [from, to] = [0, looks.length];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if ((looks[middle]?.toMs ?? ms) < ms) from = middle + 1;
    else to = middle;
  }
  return from;
}

/**
 * When a job came into line. Where its leader was looking at its due time it was then; else with the first pass that came late, as far as that
 * was so late that the job was due before.
 */
function joinedIn(first: LineLook | undefined, dueMs: number): number {
  if (!first || first.fromMs <= dueMs || first.lateMs < LATE_PASS_MS) return dueMs;
  return first.passMs - first.lateMs <= dueMs ? Math.max(dueMs, first.passMs) : dueMs;
}

/** Where nothing is wrong passes are not that late. */
const LATE_PASS_MS = 50;

/** Which times may have which other name. */
const MAY_BE: Readonly<Record<Told['cause'], readonly Cause[]>> = {
  paused: ['promotion', 'line', 'worker'],
  closed: ['line'],
  'no-leader': ['promotion', 'line'],
  'no-worker': ['worker'],
};

/** A piece in the colours of a diary. The first that tells of a moment counts. */
function recoloured(piece: Piece, diary: Diary): readonly Piece[] {
  let pieces: readonly Piece[] = [piece];
  for (const { cause, fromMs, toMs } of diary.told) {
    if (!MAY_BE[cause].includes(piece.cause)) continue;
    pieces = pieces.flatMap((one) => (one.cause === piece.cause ? cut(one, { fromMs, toMs, cause }) : [one]));
  }
  return piece.fromMs >= diary.sinceMs ? pieces.flatMap((one) => named(one, diary)) : pieces;
}

function cut({ fromMs, toMs, cause }: Piece, other: Piece): readonly Piece[] {
  const from = Math.max(fromMs, Math.min(toMs, other.fromMs));
  const to = Math.max(from, Math.min(toMs, other.toMs));
  return [
    { fromMs, toMs: from, cause },
    { fromMs: from, toMs: to, cause: other.cause },
    { fromMs: to, toMs, cause },
  ];
}

/** What is left where a diary tells all there was: there was a leader, and there were workers. */
function named({ fromMs, toMs, cause }: Piece, { lingerMs = 0 }: Diary): readonly Piece[] {
  if (cause === 'worker') return [{ fromMs, toMs, cause: 'busy' }];
  if (cause !== 'promotion') return [{ fromMs, toMs, cause }];
  const to = Math.min(toMs, fromMs + lingerMs);
  return [
    { fromMs, toMs: to, cause: 'linger' },
    { fromMs: to, toMs, cause: 'behind' },
  ];
}

/** Without those of 0 ms. Neighbours of one cause are one part. */
function partsOf(pieces: readonly Piece[]): readonly AccountPart[] {
  const parts: AccountPart[] = [];
  for (const { fromMs, toMs, cause } of pieces) {
    const ms = toMs - fromMs;
    const last = parts.at(-1);
    if (ms <= 0) continue;
    if (last?.cause === cause) parts[parts.length - 1] = partOf(cause, last.ms + ms);
    else parts.push(partOf(cause, ms));
  }
  return parts;
}

const partOf = (cause: Cause, ms: number): AccountPart =>
  rowOf(cause).isAbout ? { cause, ms, about: true } : { cause, ms };

// What an account is made of, where a start was seen.

/** When an entry was added: its id begins with the time of Redis. */
export const entryMs = (entry: string): number => Number.parseInt(entry, 10);

/** When a start was made, by its token in µs. */
export const tokenMs = (token: string): number => Math.floor(Number(token) / 1000);

/** Those that came after an entry was added: the entry of a retry is a later one. */
export function takeOversSince(
  throughMs: number,
  history: readonly { readonly atMs: number; readonly beganMs?: number; readonly signMs?: number }[],
): readonly TakeOver[] {
  return history.flatMap(({ beganMs, signMs, atMs }) =>
    beganMs !== undefined && signMs !== undefined && beganMs >= throughMs ? [{ beganMs, signMs, takenMs: atMs }] : [],
  );
}

// An account as a text, as a line of a history and the note of an end have it: the due time and the start in base 36, with a
// dot between them, then of each part its letter and its ms. A letter that nobody knows is passed over with its ms, which then
// are missing in the parts: a later version tells more.

export const accountText = ({ dueMs, startedMs, parts }: StartAccount): string =>
  `${dueMs.toString(36)}.${startedMs.toString(36)}${parts.map(({ cause, ms }) => `${letterOf(cause)}${ms.toString(36)}`).join('')}`;

const TEXT = /^([0-9a-z]+)\.([0-9a-z]+)((?:[A-Z][0-9a-z]+)*)(?:$|[^0-9A-Za-z])/;

/** @returns undefined for what is none */
export function readAccount(text: unknown): StartAccount | undefined {
  const [, due = '', started = '', told = ''] = TEXT.exec(typeof text === 'string' ? text : '') ?? [];
  if (due === '') return undefined;
  const [dueMs, startedMs] = [Number.parseInt(due, 36), Number.parseInt(started, 36)];
  const parts = [...told.matchAll(/([A-Z])([0-9a-z]+)/g)].flatMap(([, letter = '', ms = '']) => {
    const cause = causeOfLetter(letter);
    return cause === undefined ? [] : [partOf(cause, Number.parseInt(ms, 36))];
  });
  return { dueMs, startedMs, lateMs: Math.max(0, startedMs - dueMs), parts };
}

// What was summed of many accounts as a text: of each cause its letter and a whole number.

export const sumsText = (sums: ReadonlyMap<Cause, number>): string =>
  [...sums].map(([cause, sum]) => `${letterOf(cause)}${Math.round(sum)}`).join('');

/** A letter of a later version is passed over. */
export function readSums(text: string): Map<Cause, number> {
  const sums = new Map<Cause, number>();
  for (const [, letter = '', sum] of text.matchAll(/([A-Z])(\d+)/g)) {
    const cause = causeOfLetter(letter);
    if (cause !== undefined) sums.set(cause, (sums.get(cause) ?? 0) + Number(sum));
  }
  return sums;
}

/** Of several sums. */
export function sumsTogether(all: readonly (ReadonlyMap<Cause, number> | undefined)[]): Map<Cause, number> {
  const together = new Map<Cause, number>();
  for (const sums of all) for (const [cause, sum] of sums ?? []) together.set(cause, (together.get(cause) ?? 0) + sum);
  return together;
}

/** What held a start longest; undefined: it was on time. */
export const mainCause = ({ parts }: Pick<StartAccount, 'parts'>): Cause | undefined =>
  sumsOf(parts).reduce<AccountPart | undefined>((most, one) => (most && most.ms >= one.ms ? most : one), undefined)
    ?.cause;

// An account in words.

/** @example accountWords(account) // '41.2 s late: about 38.0 s its group was full, 0.1 s promotion; and 2 ms until its handler' */
export function accountWords({ dueMs, startedMs, lateMs, parts, toHandlerMs, others }: StartAccount): string {
  const handler = toHandlerMs === undefined ? '' : `; and ${timeText(toHandlerMs)} until its handler`;
  if (startedMs < dueMs)
    return `on time: handed to its worker ${timeText(dueMs - startedMs)} before it was due${handler}`;
  if (lateMs === 0) return `on time${handler}`;
  const sums = sumsOf(parts).toSorted((one, other) => other.ms - one.ms);
  const told = sums.map(({ cause, ms, about }) => `${about ? 'about ' : ''}${timeText(ms)} ${rowOf(cause).words}`);
  return `${timeText(lateMs)} late${told.length === 0 ? '' : `: ${told.join(', ')}`}${othersText(others)}${handler}`;
}

function othersText(others: OtherTurns | undefined): string {
  if (!others) return '';
  const { count, isLeast, ofGroup, last } = others;
  return `; ${isLeast ? 'at least ' : ''}${count} ${ofGroup ? 'of its group' : 'others'} ran meanwhile, last ${last}`;
}

/** Most parts of an account that is stored or shown. */
const PARTS_MAX = 12;

/** The same account with few parts: where its causes alternate, one for each. */
export function briefAccount(account: StartAccount): StartAccount {
  if (account.parts.length <= PARTS_MAX) return account;
  const orderOf = ({ cause }: AccountPart) => CAUSES.indexOf(cause);
  return { ...account, parts: sumsOf(account.parts).toSorted((one, other) => orderOf(one) - orderOf(other)) };
}

/** One part for each cause. */
export function sumsOf(parts: readonly AccountPart[]): readonly AccountPart[] {
  const sums = new Map<Cause, number>();
  for (const { cause, ms } of parts) sums.set(cause, (sums.get(cause) ?? 0) + ms);
  return [...sums].map(([cause, ms]) => partOf(cause, ms));
}

/** To a tenth of a second, below two minutes. */
function timeText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 120) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
