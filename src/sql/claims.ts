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
 */
import { type Dialect, NOW_MS, numberIn, places, type Run, rowsOf, type Statement, send } from './database.ts';
import { type ClaimedRow, claimedRow } from './row.ts';

/** How long a relay has for the rows that it claimed. */
export const CLAIM_MS = 30_000;
/** A row that is put off waits a second longer each time, and this at most. */
const PUT_OFF_MAX_S = 60;

/** The rows that one relay has claimed, in a database. */
export interface Claims {
  readonly claim: (limit: number) => Promise<readonly ClaimedRow[]>;
  /** Only rows whose claim is still of this relay. */
  readonly done: (seqs: readonly number[]) => Promise<void>;
  /** @param isBrief as soon as somebody asks again: nothing is known against the rows themselves */
  readonly putOff: (seqs: readonly number[], options: { readonly isBrief: boolean }) => Promise<void>;
  readonly refuse: (seq: number, error: string) => Promise<void>;
}

export function createClaims({ run, dialect }: { readonly run: Run; readonly dialect: Dialect }, me: string): Claims {
  const ask = async (statement: Statement) => rowsOf(await send(run, dialect, statement));
  const now = NOW_MS[dialect];
  const mine = (count: number) => `WHERE claimed_by = ? AND seq IN (${places(count)}) RETURNING seq`;
  return {
    async claim(limit) {
      return (await ask(claimed({ dialect, me, limit }))).map(claimedRow);
    },
    async done(seqs) {
      if (seqs.length === 0) return;
      await ask({ text: `DELETE FROM duestream_outbox ${mine(seqs.length)}`, params: [me, ...seqs] });
    },
    async putOff(seqs, { isBrief }) {
      if (seqs.length === 0) return;
      const waitS = `CASE WHEN attempts < ${PUT_OFF_MAX_S} THEN attempts ELSE ${PUT_OFF_MAX_S} END`;
      const until = isBrief ? '0' : `${now} + 1000 * ${waitS}`;
      const text = `UPDATE duestream_outbox SET claimed_until = ${until}, claimed_by = NULL ${mine(seqs.length)}`;
      await ask({ text, params: [me, ...seqs] });
    },
    async refuse(seq, error) {
      const text = `UPDATE duestream_outbox SET error = ?, claimed_until = 0, claimed_by = NULL ${mine(1)}`;
      await ask({ text, params: [error, me, seq] });
    },
  };
}

/**
 * The first row of each key, the oldest first. With `OFFSET` PostgreSQL asks row by row and stops at the limit, and with
 * `ORDER BY` by an index; else it may join the table with itself, which takes minutes for 100,000 rows of one key.
 *
 * PostgreSQL passes over what another relay is just claiming; SQLite has one writer. */
function claimed({ dialect, me, limit }: { readonly dialect: Dialect; readonly me: string; limit: number }): Statement {
  const now = NOW_MS[dialect];
  const free = `SELECT o.seq FROM duestream_outbox o
  WHERE o.error IS NULL AND o.claimed_until <= ${now}
    AND NOT EXISTS (SELECT 1 FROM duestream_outbox e
      WHERE e.queue = o.queue AND e.key = o.key AND e.seq < o.seq ORDER BY e.seq LIMIT 1 OFFSET 0)
  ORDER BY o.seq LIMIT ${limit}`;
  const set = `claimed_until = ${now} + ${CLAIM_MS}, claimed_by = ?, attempts = attempts + 1`;
  const columns = 'seq, verb, queue, key, body, attempts';
  const text =
    dialect === 'sqlite'
      ? `UPDATE duestream_outbox SET ${set} WHERE seq IN (${free}) RETURNING ${columns}`
      : `WITH free AS (${free} FOR UPDATE OF o SKIP LOCKED)
UPDATE duestream_outbox SET ${set} WHERE seq IN (SELECT seq FROM free) RETURNING ${columns}`;
  return { text, params: [me] };
}

/** What people and alerts look at. */
export interface OutboxState {
  /** All rows that are there. */
  readonly rows: number;
  /** Of those, how many were refused for good, and wait for a person. */
  readonly refused: number;
  /** Age of the oldest row that was not refused, in ms by the clock of the database: how far the relay is behind. 0 without one. */
  readonly lagMs: number;
}

export async function stateOf(run: Run, dialect: Dialect): Promise<OutboxState> {
  const age = `${NOW_MS[dialect]} - made`;
  const text = `SELECT count(*) AS count, count(error) AS refused,
  coalesce(max(CASE WHEN error IS NULL THEN ${age} END), 0) AS lag FROM duestream_outbox`;
  const [row] = rowsOf(await send(run, dialect, { text, params: [] }));
  return {
    rows: numberIn(row, 'count'),
    refused: numberIn(row, 'refused'),
    lagMs: Math.max(0, numberIn(row, 'lag')),
  };
}
