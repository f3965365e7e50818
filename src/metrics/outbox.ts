/** The metrics of a relay: what it reads of its outbox at each scrape, and what it has counted. A registry of its own. */
import { Counter, Gauge, Registry } from 'prom-client';
import { createShowing } from './instruments.ts';

/** Of an outbox, and of the relay that looks after it. */
export interface OutboxSource {
  /** Rejects while the database does not answer. */
  readonly state: () => Promise<{
    readonly rows: number;
    readonly refused: number;
    readonly lagMs: number;
    readonly queues: readonly { readonly queue: string; readonly lagMs: number }[];
  }>;
  readonly stalled: () => readonly { readonly queue: string; readonly forMs: number }[];
  readonly counts: () => { readonly done: number; readonly putOff: number; readonly refused: number };
}

/** While the database does not answer, what is read of it is left out instead of showing old values as new. */
export function createOutboxMetrics({ state, stalled, counts }: OutboxSource) {
  const registry = new Registry();
  const { rows, refusedRows, lag, queueLag, stalledFor, up, calls } = familiesOf({ registers: [registry], collect });
  const show = createShowing(registry);
  show(true);
  let filling: Promise<void> | undefined;
  const before = { done: 0, putOff: 0, refused: 0 };

  /** The families of one scrape share one reading. */
  function collect(): Promise<void> {
    filling ??= fill().finally(() => {
      filling = undefined;
    });
    return filling;
  }

  async function fill(): Promise<void> {
    const now = counts();
    for (const outcome of ['done', 'putOff', 'refused'] as const) {
      calls.inc({ outcome: outcome === 'putOff' ? 'put-off' : outcome }, now[outcome] - before[outcome]);
      before[outcome] = now[outcome];
    }
    stalledFor.reset();
    for (const { queue, forMs } of stalled()) stalledFor.set({ queue }, forMs / 1000);
    const found = await state().catch(() => undefined);
    up.set(found ? 1 : 0);
    const told = [rows, refusedRows, lag] as const;
    for (const gauge of told) gauge.remove();
    queueLag.reset();
    if (!found) return;
    rows.set(found.rows);
    refusedRows.set(found.refused);
    lag.set(found.lagMs / 1000);
    for (const { queue, lagMs } of found.queues) queueLag.set({ queue }, lagMs / 1000);
  }

  return {
    contentType: registry.contentType,
    scrape: () => registry.metrics(),
    /** An SDK of OpenTelemetry reads them no more. */
    close: () => show(false),
  };
}

/** Where a family is kept, and what brings it up to date before it is read. */
interface Read {
  readonly registers: Registry[];
  readonly collect: () => Promise<void>;
}

function familiesOf(read: Read) {
  return {
    rows: new Gauge({ name: 'duestream_outbox_rows', help: 'Rows of the outbox.', ...read }),
    refusedRows: new Gauge({
      name: 'duestream_outbox_refused_rows',
      help: 'Rows that were refused for good and wait for a person.',
      ...read,
    }),
    lag: new Gauge({
      name: 'duestream_outbox_lag_seconds',
      help: 'Age of the oldest row that was not refused; 0 without one.',
      ...read,
    }),
    queueLag: new Gauge({
      name: 'duestream_outbox_queue_lag_seconds',
      help: 'Age of the oldest row of a queue that was not refused; of the 100 queues that are furthest behind.',
      labelNames: ['queue'],
      ...read,
    }),
    stalledFor: new Gauge({
      name: 'duestream_outbox_queue_stalled_seconds',
      help: 'For how long this relay has not been able to make a call of a queue; no line for a queue that goes on.',
      labelNames: ['queue'],
      ...read,
    }),
    up: new Gauge({
      name: 'duestream_outbox_up',
      help: '1 while the database of the outbox answers, else 0.',
      ...read,
    }),
    calls: new Counter({
      name: 'duestream_outbox_calls_total',
      help: 'Rows that this relay has carried out, by outcome.',
      labelNames: ['outcome'],
      ...read,
    }),
  };
}
