/** Why nothing moves in a queue: each obstacle as a code and a sentence, and none where there is none. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWorker } from '../../../src/worker/worker.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';

let api: ServedApi;
let leaderless: ServedApi;

beforeAll(async () => {
  [api, leaderless] = await Promise.all([
    serveApi({ roles: ['http', 'mover'], mover: { readyMax: 2 } }),
    serveApi({ roles: ['http'] }),
  ]);
});
afterAll(() => Promise.all([api.stop(), leaderless.stop()]));

const codesOf = async (queue: string, of = api): Promise<readonly string[]> => {
  const { status, body } = await of.ask(`GET /v1/queues/${queue}/why`);
  expect(status).toBe(200);
  return body.reasons.map(({ code }: { code: string }) => code);
};

describe('a queue', () => {
  test('that nobody leads and nobody serves says both', async () => {
    await leaderless.ask('POST /v1/queues/emails/jobs', { body: { delay: '1h' } });
    expect(await codesOf('emails', leaderless)).toEqual(['no-leader', 'no-worker']);
  });

  test('that is paused says for how long and why, also when it is empty', async () => {
    await api.ask('POST /v1/queues/held/jobs', { body: { id: 'a', delay: '1h' } });
    await api.ask('POST /v1/queues/held/pause', { body: { reason: 'the mail server moves' } });
    const { body } = await api.ask('GET /v1/queues/held/why');
    expect(body.moves).toBe(false);
    const [paused] = body.reasons.filter(({ code }: { code: string }) => code === 'paused');
    expect(paused.text).toMatch(/^held: it has been paused for .*: the mail server moves$/);
    expect(paused.advice).toContain('duestream queues resume held');
    await api.ask('DELETE /v1/queues/held/jobs/a');
    expect(await codesOf('held')).toEqual(['paused']);
    await api.ask('POST /v1/queues/held/resume');
    expect(await codesOf('held')).toEqual(['empty']);
  });

  test('with as many ready jobs as may be, and nobody to take them, is capped', async () => {
    const jobs = ['a', 'b', 'c', 'd'].map((id) => ({ id }));
    await api.ask('POST /v1/queues/full/batch/schedule', { body: { jobs } });
    await expect.poll(() => codesOf('full')).toEqual(['no-worker', 'ready-capped']);
  });

  test('with a worker waits for the next due time, or is busy', async () => {
    let letGo = () => {};
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const worker = createWorker('served', () => held, { redis: api.redis.url, concurrency: 1 });
    await worker.start();
    try {
      await api.ask('POST /v1/queues/served/jobs', { body: { id: 'later', delay: '1h' } });
      await expect.poll(() => codesOf('served')).toEqual(['not-due']);
      const { body } = await api.ask('GET /v1/queues/served/why');
      expect(body).toMatchObject({ moves: false, reasons: [{ nextMs: expect.any(Number) }] });
      const jobs = ['a', 'b', 'c'].map((id) => ({ id }));
      await api.ask('POST /v1/queues/served/batch/schedule', { body: { jobs } });
      await expect.poll(() => codesOf('served')).toEqual(['busy']);
      expect((await api.ask('GET /v1/queues/served/why')).body.moves).toBe(true);
    } finally {
      letGo();
      await worker.stop();
    }
  });

  test('of a Redis that is full says so first', async () => {
    await api.ask('POST /v1/queues/last/jobs', { body: { delay: '1h' } });
    await api.place.redis.config('SET', 'maxmemory', '1');
    try {
      expect((await codesOf('last'))[0]).toBe('redis-full');
    } finally {
      await api.place.redis.config('SET', 'maxmemory', '0');
    }
  });
});
