/** The metrics of a relay: what it reads is left out while its database does not answer; what it counted stays. */
import { expect, test } from 'vitest';
import { createOutboxMetrics } from '../../src/metrics/outbox.ts';

test('a database that is away shows no old values, and nothing is counted twice', async () => {
  let isAway = false;
  const { scrape, contentType } = createOutboxMetrics({
    state: async () => {
      if (isAway) throw new Error('the database is gone');
      const mail = { queue: 'mail', rows: 3, refused: 1, putOff: 1, lagMs: 2500 };
      return { rows: 3, refused: 1, lagMs: 2500, queues: [mail] };
    },
    stalled: () => [{ queue: 'mail', why: 'away', forMs: 1500 }],
    counts: () => ({ done: 5, putOff: 2, refused: 1 }),
  });
  const told = async () => (await scrape()).split('\n').filter((text) => text.startsWith('duestream_'));
  const calls = [
    'duestream_outbox_calls_total{outcome="done"} 5',
    'duestream_outbox_calls_total{outcome="put-off"} 2',
    'duestream_outbox_calls_total{outcome="refused"} 1',
  ];
  const read = ['duestream_outbox_rows 3', 'duestream_outbox_refused_rows 1', 'duestream_outbox_lag_seconds 2.5'];
  const lag = 'duestream_outbox_queue_lag_seconds{queue="mail"} 2.5';
  const stalled = 'duestream_outbox_queue_stalled_seconds{queue="mail"} 1.5';
  expect(await told()).toEqual([...read, lag, stalled, 'duestream_outbox_up 1', ...calls]);
  isAway = true;
  expect(await told()).toEqual([stalled, 'duestream_outbox_up 0', ...calls]);
  isAway = false;
  expect(await told()).toEqual([...read, lag, stalled, 'duestream_outbox_up 1', ...calls]);
  expect(contentType).toContain('text/plain');
});
