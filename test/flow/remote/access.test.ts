/** Workers over HTTP: who may come, how many, and what is there where nobody may. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ServedApi, serveApi } from '../../support/api.ts';

const NAME = 'h-test-0f3c9a5be2d1476f8a90b1c2d3e4f506';
const problem = (status: number, code: string) => ({ status, body: expect.objectContaining({ code }) });
const claim = (more: object = {}) => ({ worker: NAME, seq: 1, wait: 0, ...more });
const VERBS = ['claim', 'settle', 'beat', 'leave', 'complete', 'fail', 'defer', 'begin', 'extend', 'progress'];

describe('with http.work', () => {
  let api: ServedApi;
  beforeAll(async () => {
    api = await serveApi({
      roles: ['mover', 'http'],
      http: { tokens: 'always', work: 'on', pollsMax: 3, pollsMaxPerToken: 2, workRateMax: 5 },
    });
  });
  afterAll(() => api.stop());

  test('a token of the scope work claims jobs of its queues, and does nothing else', async () => {
    const token = await api.tokenOf({ scopes: ['work'], queues: ['mail'] });
    expect(await api.ask('POST /v1/queues/mail/claim', { token, body: claim() })).toMatchObject({ status: 200 });
    expect(await api.ask('POST /v1/queues/other/claim', { token, body: claim() })).toMatchObject(
      problem(403, 'forbidden'),
    );
    for (const what of ['GET /v1/queues', 'GET /v1/queues/mail', 'GET /v1/queues/mail/jobs/a', 'GET /v1/workers']) {
      expect(await api.ask(what, { token }), what).toMatchObject(problem(403, 'forbidden'));
    }
    const schedule = { token, body: { delay: '1h' } };
    expect(await api.ask('POST /v1/queues/mail/jobs', schedule)).toMatchObject(problem(403, 'forbidden'));
  });

  test.each([['read'], ['data'], ['write']] as const)('a token of the scope %s claims nothing', async (scope) => {
    const token = await api.tokenOf({ scopes: [scope] });
    expect(await api.ask('POST /v1/queues/mail/claim', { token, body: claim() })).toMatchObject(
      problem(403, 'forbidden'),
    );
  });

  test('a token of the scope admin may work', async () => {
    const token = await api.tokenOf({ scopes: ['admin'] });
    const body = claim({ worker: NAME.replace('0f', '1f') });
    expect(await api.ask('POST /v1/queues/mail/claim', { token, body })).toMatchObject({ status: 200 });
  });

  test('so many claims of a token wait, and of all tokens, and one more is to come again', async () => {
    const [one, other] = [await api.tokenOf({ scopes: ['work'] }), await api.tokenOf({ scopes: ['work'] })];
    const poll = (token: string, worker: string) =>
      api.ask('POST /v1/queues/mail/claim', {
        token,
        body: claim({ worker: `h-${worker}${NAME.slice(6)}`, wait: '20s' }),
      });
    const polls = [poll(one, 'a'), poll(one, 'b')];
    const waiting = async (count: number) => {
      const answered = await api.ask('GET /metrics');
      return answered.text.includes(`duestream_remote_polls{queue="mail"} ${count}`);
    };
    await expect.poll(() => waiting(2)).toBe(true);
    const refused = await poll(one, 'c');
    expect(refused).toMatchObject(problem(429, 'too-many'));
    expect(refused.headers.get('retry-after')).toBe('1');
    polls.push(poll(other, 'd'));
    await expect.poll(() => waiting(3)).toBe(true);
    expect(await poll(other, 'e')).toMatchObject(problem(429, 'too-many'));
    const rest = api.ask('POST /v1/queues/mail/jobs', {
      token: await api.tokenOf({ scopes: ['write'] }),
      body: { delay: 0 },
    });
    expect(await rest).toMatchObject({ status: 201 });
    expect(await Promise.race(polls)).toMatchObject({ status: 200, body: { jobs: [{}] } });
    // The others end with the daemon.
  });

  test('a worker has a rate of its own', async () => {
    const token = await api.tokenOf({ scopes: ['admin'] });
    const settle = () => api.ask('POST /v1/queues/mail/settle', { token, body: { worker: NAME, runs: [] } });
    const answered = await Promise.all(Array.from({ length: 80 }, settle));
    const statuses = new Set(answered.map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 429]));
    expect(await api.ask('GET /v1/queues', { token })).toMatchObject({ status: 200 });
  });
});

test('a stop answers the claims that wait within its time, and refuses new ones', async () => {
  const api = await serveApi({ roles: ['mover', 'http'], http: { work: 'on' } });
  const polls = Array.from({ length: 20 }, (_, at) =>
    api.ask('POST /v1/queues/mail/claim', {
      body: claim({ worker: `h-w${at}-${NAME.slice(7)}`, wait: '60s' }),
    }),
  );
  await expect.poll(async () => (await api.ask('GET /metrics')).text).toMatch(/remote_polls\{queue="mail"\} 20/);
  await api.stop();
  const answered = await Promise.all(polls);
  expect(answered.map(({ status, body }) => [status, body.jobs])).toEqual(polls.map(() => [200, []]));
});

describe('without http.work', () => {
  let api: ServedApi;
  beforeAll(async () => {
    api = await serveApi({ roles: ['mover', 'http'] });
  });
  afterAll(() => api.stop());

  test.each(VERBS)('%s is refused, and says what to do', async (verb) => {
    const bodies: Readonly<Record<string, object>> = {
      claim: claim(),
      settle: { worker: NAME, runs: [] },
      beat: { worker: NAME, runs: [] },
      leave: { worker: NAME },
      fail: { worker: NAME, run: 'x', error: 'no' },
      defer: { worker: NAME, run: 'x', delay: 0 },
    };
    const body = bodies[verb] ?? { worker: NAME, run: 'x' };
    const answered = await api.ask(`POST /v1/queues/mail/${verb}`, { body });
    expect(answered).toMatchObject(problem(404, 'not-found'));
    expect(answered.body.detail).toMatch(/http\.work/);
  });

  test('the daemon has no connection for it, and Redis no key', async () => {
    const names = await api.place.redis.client('LIST');
    expect(String(names)).not.toMatch(/name=duestream:work[ :]/);
    expect(await api.place.redis.keys('*:claims')).toEqual([]);
  });
});
