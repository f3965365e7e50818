/**
 * The statements of a relay. A row goes one of three ways, each in one statement that is committed by itself:
 *
 *   waits ──claim──▶ claimed for 30 s ──done──▶ deleted
 *     ▲                 │  │  └──refused for good──▶ waits for a person, and so do later rows of its key
 *     └──put off, or ───┘  └── the relay is gone: the time of the claim runs out
 *        the time is up
 *
 * What must always hold: a row is claimed only while there is no earlier row of its key, so the rows of a key are carried out one
 * after the other. No transaction is open while Redis is asked, and no place in the sequence is remembered: a row with a lower
 * number may be committed later.
 *
 * A relay goes through the keys of one queue at a time, in the order of the index `(queue, key, seq)`, and looks at the first row of
 * each: what one look costs does not depend on how many rows wait behind a row that was refused, put off or claimed.
 */
import { type Dialect, NOW_MS, numberIn, places, type Run, rowsOf, type Statement, send, textIn } from './database.ts';
import { type ClaimedRow, claimedRow } from './row.ts';

/** How long a relay has for the rows that it claimed. */
export const CLAIM_MS = 30_000;
/** A row that is put off waits a second longer each time, and this at most. */
const PUT_OFF_MAX_S = 60;
/** The same where nothing is known against the row itself: Redis did not answer, or took nothing. */
const AWAY_MAX_S = 15;
/** So many queues are named by one look. */
export const QUEUES_AT_ONCE = 100;
/** SQLite takes 999 parameters in its older versions. */
const CANDIDATES_MAX = 900;

/** Where a claim looks. */
export interface Place {
  readonly queue: string;
  /** The key with which the look begins; '' is the first one. */
  readonly from: string;
  readonly limit: number;
}

/** What a claim found. */
export interface Claimed {
  readonly rows: readonly ClaimedRow[];
  /** With which key the next look of this queue begins; '' when this one came to the end. */
  readonly next: string;
}

/** The rows that one relay has claimed, in a database. */
export interface Claims {
  /** Queues that have rows, from this name on, at most `QUEUES_AT_ONCE`. */
  readonly queues: (from: string) => Promise<readonly string[]>;
  readonly claim: (place: Place) => Promise<Claimed>;
  /** Only rows whose claim is still of this relay. */
  readonly done: (seqs: readonly number[]) => Promise<void>;
  /** @param isAway nothing is known against the rows themselves: they wait shorter */
  readonly putOff: (seqs: readonly number[], options: { readonly isAway: boolean }) => Promise<void>;
  readonly refuse: (seq: number, error: string) => Promise<void>;
}

export function createClaims({ run, dialect }: { readonly run: Run; readonly dialect: Dialect }, me: string): Claims {
  const ask = async (statement: Statement) => rowsOf(await send(run, dialect, statement));
  const now = NOW_MS[dialect];
  const mine = (count: number) => `WHERE claimed_by = ? AND seq IN (${places(count)}) RETURNING seq`;
  return {
    async queues(from) {
      return (await ask(queuesFrom(from))).map((row) => textIn(row, 'queue') ?? '');
    },
    async claim(place) {
      const { free, end } = readHeads(await ask(headsOf(dialect, place)), place);
      if (free.length === 0) return { rows: [], next: end };
      const seqs = free.map(({ seq }) => seq);
      const rows = (await ask(claimOf({ dialect, me, limit: place.limit }, seqs))).map(claimedRow);
      const last = Math.max(...rows.map(({ seq }) => seqs.indexOf(seq)));
      // With fewer than it may have, it has what others did not claim meanwhile.
      const isCut = rows.length >= place.limit && last < free.length - 1;
      return { rows, next: isCut ? (free[last]?.key ?? end) : end };
    },
    async done(seqs) {
      if (seqs.length === 0) return;
      await ask({ text: `DELETE FROM duestream_outbox ${mine(seqs.length)}`, params: [me, ...seqs] });
    },
    async putOff(seqs, { isAway }) {
      if (seqs.length === 0) return;
      const mostS = isAway ? AWAY_MAX_S : PUT_OFF_MAX_S;
      const until = `${now} + 1000 * CASE WHEN attempts < ${mostS} THEN attempts ELSE ${mostS} END`;
      const text = `UPDATE duestream_outbox SET claimed_until = ${until}, claimed_by = NULL ${mine(seqs.length)}`;
      await ask({ text, params: [me, ...seqs] });
    },
    async refuse(seq, error) {
      const text = `UPDATE duestream_outbox SET error = ?, claimed_until = 0, claimed_by = NULL ${mine(1)}`;
      await ask({ text, params: [error, me, seq] });
    },
  };
}

/** One step of the index for each queue, however many rows it has. */
function queuesFrom(from: string): Statement {
  const text = `WITH RECURSIVE queues AS (
  SELECT 1 AS nth, (SELECT o.queue FROM duestream_outbox o WHERE o.queue >= CAST(? AS TEXT) ORDER BY o.queue LIMIT 1) AS queue
  UNION ALL
  SELECT nth + 1, (SELECT o.queue FROM duestream_outbox o WHERE o.queue > queues.queue ORDER BY o.queue LIMIT 1)
  FROM queues WHERE queue IS NOT NULL AND nth < ${QUEUES_AT_ONCE})
SELECT queue FROM queues WHERE queue IS NOT NULL ORDER BY nth`;
  return { text, params: [from] };
}

/** So many keys are looked at: more than are claimed, so that some which nobody may claim cost no look of their own. */
const windowOf = (limit: number): number => Math.min(1000, Math.max(100, 4 * limit));
/** More than are claimed: a relay beside this one may be claiming the first of them. */
const candidatesOf = (limit: number): number => Math.max(limit, Math.min(2 * limit, CANDIDATES_MAX));

/**
 * The first row of each key, key by key; those that may be claimed, and the last that was looked at. `ORDER BY key, seq` with a
 * comparison of both leaves PostgreSQL no index but that of the keys: with `key = …` it may go through the rows of all keys by their
 * numbers, and needs seconds for what is one step.
 */
function headsOf(dialect: Dialect, { queue, from, limit }: Place): Statement {
  const text = `WITH RECURSIVE place AS (SELECT CAST(? AS TEXT) AS queue, CAST(? AS TEXT) AS start),
keys AS (
  SELECT 1 AS nth, place.queue AS queue, (SELECT o.key FROM duestream_outbox o
    WHERE o.queue = place.queue AND o.key >= place.start ORDER BY o.key LIMIT 1) AS key FROM place
  UNION ALL
  SELECT nth + 1, queue, (SELECT o.key FROM duestream_outbox o
    WHERE o.queue = keys.queue AND o.key > keys.key ORDER BY o.key LIMIT 1)
  FROM keys WHERE key IS NOT NULL AND nth < ${windowOf(limit)}),
firsts AS (
  SELECT nth, key, (SELECT o.seq FROM duestream_outbox o
    WHERE o.queue = keys.queue AND o.key >= keys.key ORDER BY o.key, o.seq LIMIT 1) AS seq
  FROM keys WHERE key IS NOT NULL),
heads AS (
  SELECT nth, key, seq, (SELECT 1 FROM duestream_outbox o
    WHERE o.seq = firsts.seq AND o.error IS NULL AND o.claimed_until <= ${NOW_MS[dialect]}) AS free FROM firsts)
SELECT nth, key, seq, free FROM heads WHERE free = 1 OR nth = ${windowOf(limit)}
ORDER BY nth LIMIT ${candidatesOf(limit)}`;
  return { text, params: [queue, from] };
}

interface Head {
  readonly seq: number;
  readonly key: string;
}

function readHeads(found: readonly unknown[], { limit }: Place): { readonly free: readonly Head[]; end: string } {
  const headIn = (row: unknown): Head => ({ seq: numberIn(row, 'seq'), key: textIn(row, 'key') ?? '' });
  const free = found.filter((row) => textIn(row, 'free') !== undefined).map(headIn);
  const last = found.at(-1);
  const isWhole = found.length < candidatesOf(limit) && (!last || numberIn(last, 'nth') < windowOf(limit));
  return { free, end: isWhole || !last ? '' : headIn(last).key };
}

/** PostgreSQL passes over what another relay is just claiming; SQLite has one writer. */
function claimOf(
  { dialect, me, limit }: { readonly dialect: Dialect; readonly me: string; readonly limit: number },
  seqs: readonly number[],
): Statement {
  const now = NOW_MS[dialect];
  const free = `SELECT o.seq FROM duestream_outbox o WHERE o.seq IN (${places(seqs.length)})
  AND o.error IS NULL AND o.claimed_until <= ${now} ORDER BY o.key LIMIT ${limit}`;
  const set = `claimed_until = ${now} + ${CLAIM_MS}, claimed_by = ?, attempts = attempts + 1`;
  const columns = 'seq, verb, queue, key, body, attempts';
  const lock = dialect === 'sqlite' ? '' : ' FOR UPDATE OF o SKIP LOCKED';
  const text = `WITH free AS (${free}${lock})
UPDATE duestream_outbox SET ${set} WHERE seq IN (SELECT seq FROM free) RETURNING ${columns}`;
  return { text, params: [...seqs, me] };
}

/** What people and alerts look at. */
export interface OutboxState {
  /** All rows that are there. */
  readonly rows: number;
  /** Of those, how many were refused for good, and wait for a person. */
  readonly refused: number;
  /** Age of the oldest row that was not refused, in ms by the clock of the database: how far the relay is behind. 0 without one. */
  readonly lagMs: number;
  /** The same of each queue that has rows, the one that is furthest behind first: at most 100. */
  readonly queues: readonly OutboxQueueState[];
}

/** Rows of one queue. */
export interface OutboxQueueState {
  readonly queue: string;
  readonly rows: number;
  readonly refused: number;
  /** Rows that a relay has tried and will try again later: Redis did not take them, or the queue has no room. */
  readonly putOff: number;
  readonly lagMs: number;
}

const STATES_MAX = 100;

export async function stateOf(run: Run, dialect: Dialect): Promise<OutboxState> {
  const now = NOW_MS[dialect];
  const text = `SELECT queue, count(*) AS count, count(error) AS refused,
  sum(CASE WHEN error IS NULL AND claimed_by IS NULL AND claimed_until > ${now} THEN 1 ELSE 0 END) AS put_off,
  coalesce(max(CASE WHEN error IS NULL THEN ${now} - made END), 0) AS lag
FROM duestream_outbox GROUP BY queue ORDER BY 5 DESC, queue`;
  const queues = rowsOf(await send(run, dialect, { text, params: [] })).map(queueState);
  const sum = (of: (state: OutboxQueueState) => number) => queues.reduce((before, state) => before + of(state), 0);
  return {
    rows: sum(({ rows }) => rows),
    refused: sum(({ refused }) => refused),
    lagMs: queues[0]?.lagMs ?? 0,
    queues: queues.slice(0, STATES_MAX),
  };
}

const queueState = (row: unknown): OutboxQueueState => ({
  queue: textIn(row, 'queue') ?? '',
  rows: numberIn(row, 'count'),
  refused: numberIn(row, 'refused'),
  putOff: numberIn(row, 'put_off'),
  lagMs: Math.max(0, numberIn(row, 'lag')),
});
