/**
 * Who may see and do what. The canary stands wherever a job can hold something: in its data, in the errors of its handler, in
 * the reason of its death, in the data of its schedule. No answer to a token without the scope `data` may hold it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeToken, SCOPES, type Scope } from '../../../src/access/tokens.ts';
import { createClient } from '../../../src/client/client.ts';
import { verbs } from '../../../src/http/api/api.ts';
import { setQueue } from '../../../src/redis/scripts/queues.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type Answered, type ServedApi, serveApi } from '../../support/api.ts';
import { buryJobs } from '../../support/buried.ts';
import { openWay, WAYS } from '../../support/ways-in.ts';

const CANARY = 'canary-7f3a';
const HTTP_TOKEN = 'a-token-for-scrapers';
let api: ServedApi;
const tokens: Partial<Record<Scope, string>> = {};

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'], http: { token: HTTP_TOKEN, tokens: 'always' } });
  for (const scope of SCOPES) tokens[scope] = await api.tokenOf({ name: scope, scopes: [scope] });
  const admin = { token: tokens.admin };
  const job = (id: string) => ({ id, delay: '1h', data: { secret: CANARY, [CANARY]: 1 } });
  await api.ask('POST /v1/queues/emails/batch/schedule', { ...admin, body: { jobs: [job('waits'), job('over')] } });
  await api.ask('DELETE /v1/queues/emails/jobs/over', admin);
  const schedule = { queue: 'emails', cron: '0 0 * * *', data: { secret: CANARY } };
  await api.ask('PUT /v1/schedules/nightly', { ...admin, body: schedule });
  await buryJobs(api.redis.url, [{ queue: 'emails', id: 'dead', data: CANARY, reason: `${CANARY} is gone` }]);
  await failOnce(api.redis.url);
  await setQueue(api.place.redis, { namespace: 'duestream', queue: 'emails', fair: true });
});
afterAll(() => api.stop());

/** A job that waits for its retry, with an error in its history. */
async function failOnce(redis: string): Promise<void> {
  const worker = createWorker('emails', () => Promise.reject(new Error(CANARY)), { redis });
  const failed = new Promise<void>((resolve) => {
    worker.events.on('job.retried', () => resolve());
  });
  await worker.start();
  const producer = createClient({ redis });
  await producer.schedule(
    'emails',
    { secret: CANARY },
    { id: 'retries', backoff: { kind: 'fixed', delayMs: 3_600_000, jitter: 'none' } },
  );
  await failed;
  await worker.stop();
  await producer.close();
}

/** Every look there is, at everything that there is. */
async function looks(): Promise<readonly string[]> {
  const { body } = await api.ask('GET /v1/queues/emails/dead', { token: tokens.admin });
  const values: Readonly<Record<string, readonly string[]>> = {
    queue: ['emails'],
    id: ['waits', 'retries', 'over', 'dead'],
    deadLetter: body.deadLetters.map(({ deadLetter }: { deadLetter: string }) => deadLetter),
    name: ['nightly'],
    group: ['acme'],
  };
  const states = ['scheduled', 'ready', 'running', 'done', 'cancelled', 'expired', 'dead'];
  return verbs
    .filter(({ method, scope }) => method === 'get' && scope !== 'none')
    .flatMap(({ at, name }) => (name === 'jobs.list' ? states.map((state) => `${at}?state=${state}`) : [at]))
    .flatMap((at) => (at.endsWith('}/dead') ? [at, `${at}?group=error`] : [shortened(at)]))
    .flatMap((at) => {
      const [, place] = /\{(?!queue)(\w+)\}/.exec(at) ?? [];
      const each = place === undefined ? [at] : (values[place] ?? []).map((value) => at.replace(`{${place}}`, value));
      return each.map((path) => `GET /v1${path.replace('{queue}', 'emails')}`);
    });
}

/** A stream that ends at once. */
const shortened = (at: string) => at.replace(/^\/live$/, '/live?events=1').replace(/\/ends$/, '/ends?wait=0');

describe('a token without data', () => {
  test.each(['read', 'write'] as const)('%s gets no byte of it by any look', async (scope) => {
    const all = await looks();
    expect(all.length).toBeGreaterThanOrEqual(verbs.filter(({ method }) => method === 'get').length);
    for (const look of all) {
      const answered = await api.ask(look, { token: tokens[scope] });
      // No queue here promises anything about lateness.
      const wanted = look.endsWith('/audit') ? 403 : look.endsWith('/emails/slo') ? 404 : 200;
      expect(answered.status, look).toBe(wanted);
      expect(answered.text, look).not.toContain(CANARY);
      expect(JSON.stringify([...answered.headers]), look).not.toContain(CANARY);
    }
  });

  test('sees that the jobs are there', async () => {
    for (const id of ['waits', 'retries', 'dead']) {
      const { body } = await api.ask(`GET /v1/queues/emails/jobs/${id}`, { token: tokens.read });
      expect(body).toMatchObject({ id, hidden: true });
      expect([body.data, body.digest, body.reason]).toEqual([undefined, undefined, undefined]);
    }
    const { body } = await api.ask('GET /v1/queues/emails/jobs/retries', { token: tokens.read });
    const ran = { worker: expect.any(String), tookMs: expect.any(Number), account: expect.any(Object) };
    expect(body.history).toEqual([{ atMs: expect.any(Number), attempt: 1, kind: 'failure', ...ran }]);
  });

  test('gets none of it by a change either', async () => {
    for (const [what, body] of [
      ['PATCH /v1/queues/emails/jobs/waits', { attempts: 9 }],
      ['POST /v1/queues/emails/batch/edit', { jobs: [{ id: 'waits', attempts: 8 }] }],
      ['POST /v1/queues/emails/jobs', { id: 'waits', ifExists: 'error', delay: '2h' }],
      ['POST /v1/schedules/nightly/trigger', {}],
      ['POST /v1/queues/emails/dead/replay', { all: true, delay: '1h' }],
    ] as const) {
      const { status, text } = await api.ask(what, { token: tokens.write, body });
      expect([200, 201, 409], what).toContain(status);
      expect(text, what).not.toContain(CANARY);
    }
  });

  test('with data sees it', async () => {
    const { body } = await api.ask('GET /v1/queues/emails/jobs/retries', { token: tokens.data });
    expect(body).toMatchObject({ hidden: false, data: { secret: CANARY }, history: [{ message: CANARY }] });
    expect((await api.ask('GET /v1/schedules/nightly', { token: tokens.data })).body.input.data).toEqual({
      secret: CANARY,
    });
  });
});

describe('scopes', () => {
  const INCLUDES: Readonly<Record<Scope, readonly Scope[]>> = {
    read: ['read'],
    data: ['read', 'data'],
    write: ['read', 'write'],
    admin: ['read', 'data', 'write', 'admin', 'work'],
    work: ['work'],
  };

  /** What it names does not exist, and its body is none: it is only asked whether it may. */
  async function checkAll(scope: Scope, ask: (what: string) => Promise<Answered>): Promise<void> {
    for (const { name, method, at, scope: needed } of verbs) {
      if (needed === 'none') continue;
      const path = at.replace('{queue}', 'nowhere').replaceAll(/\{\w+\}/g, '1-1');
      const { status } = await ask(`${method.toUpperCase()} /v1${shortened(path)}`);
      expect(status === 403, `${name} for ${scope}`).toBe(!INCLUDES[scope].includes(needed));
      expect(status, name).not.toBe(401);
    }
  }

  test.each(SCOPES)('%s may ask the verbs of its scope and no other', (scope) =>
    checkAll(scope, (what) => api.ask(what, { token: tokens[scope] })),
  );

  test.each(WAYS)('are the same %s', async (way) => {
    const { ask, stop } = await openWay(way, api);
    for (const scope of SCOPES) await checkAll(scope, (what) => ask(what, { scope }));
    await stop();
  });

  test('write may change limits of a queue, and not what views hide of its data', async () => {
    const set = (token: string | undefined, body: object) =>
      api.ask('PATCH /v1/queues/emails/settings', { token, body });
    expect((await set(tokens.write, { maxPending: 1000 })).status).toBe(200);
    expect((await set(tokens.write, { redact: [] })).status).toBe(403);
    expect((await set(tokens.admin, { redact: [] })).status).toBe(200);
  });

  test('are kept, as hashes, and shown without the token', async () => {
    const stored = await api.place.redis.hgetall('duestream:v1:{control}:tokens');
    expect(Object.keys(stored).length).toBeGreaterThanOrEqual(SCOPES.length);
    for (const token of Object.values(tokens)) {
      expect(JSON.stringify(stored)).not.toContain(token);
      expect(JSON.stringify(stored)).not.toContain(token.slice(-20));
    }
  });
});

describe('a token of some queues', () => {
  test('sees and changes those, and no others', async () => {
    const token = await api.tokenOf({ scopes: ['admin'], queues: ['sms'] });
    const ask = (what: string, body?: unknown) => api.ask(what, { token, body });
    expect((await ask('POST /v1/queues/sms/jobs', { delay: '1h', id: 's1' })).status).toBe(201);
    expect((await ask('GET /v1/queues')).body.queues.map(({ queue }: { queue: string }) => queue)).toEqual(['sms']);
    expect((await ask('GET /v1/queues/sms')).status).toBe(200);
    expect((await ask('GET /v1/forecast?queue=sms')).status).toBe(200);
    expect((await ask('GET /v1/about')).body).toMatchObject({
      scopes: ['read', 'data', 'write', 'admin', 'work'],
      queues: ['sms'],
    });
    for (const [what, body] of [
      ['GET /v1/queues/emails'],
      ['GET /v1/queues/nowhere'],
      ['POST /v1/queues/emails/jobs', {}],
      ['GET /v1/forecast'],
      ['GET /v1/leaders'],
      ['GET /v1/workers?queue=emails'],
      ['GET /v1/schedules?queue=emails'],
      ['GET /v1/doctor'],
      ['GET /v1/audit'],
      ['PUT /v1/schedules/nightly', { queue: 'sms', every: '1h' }],
      ['PUT /v1/schedules/other', { queue: 'emails', every: '1h' }],
    ] as const) {
      const answered = await ask(what, body);
      expect(answered, what).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    }
    for (const what of [
      'GET /v1/schedules/nightly',
      'DELETE /v1/schedules/nightly',
      'POST /v1/schedules/nightly/trigger',
    ]) {
      expect((await ask(what)).status, what).toBe(404);
    }
    expect((await ask('GET /v1/schedules')).body).toMatchObject({ schedules: [], more: 0, unreadable: [] });
    expect((await ask('PUT /v1/schedules/texts', { queue: 'sms', every: '1h' })).status).toBe(201);
    expect((await ask('GET /v1/schedules')).body.schedules).toHaveLength(1);
  });
});

describe('a token that opens nothing', () => {
  const refused = ({ status, body, headers }: Answered) => {
    expect([status, body.code]).toEqual([401, 'unauthorized']);
    expect(headers.get('www-authenticate')).toBe('Bearer realm="duestream"');
  };

  test('is none at all, one of scrapers, a wrong one', async () => {
    refused(await api.ask('GET /v1/queues'));
    refused(await api.ask('GET /v1/about'));
    refused(await api.ask('GET /v1/queues', { token: HTTP_TOKEN }));
    const { read = '' } = tokens;
    refused(await api.ask('GET /v1/queues', { token: `${read.slice(0, -1)}${read.endsWith('A') ? 'B' : 'A'}` }));
    refused(await api.ask('GET /v1/queues', { token: read.toUpperCase() }));
    refused(await api.ask('GET /v1/queues', { headers: { Authorization: `Basic ${read}` } }));
    expect((await api.ask('GET /metrics', { token: HTTP_TOKEN })).status).toBe(200);
  });

  test('is one that was revoked, or has expired', async () => {
    const token = await api.tokenOf({ name: 'gone' });
    const Cookie =
      (await api.ask('POST /v1/session', { body: { token } })).headers.get('set-cookie')?.split(';')[0] ?? '';
    expect((await api.ask('GET /v1/queues', { token })).status).toBe(200);
    expect((await api.ask('GET /v1/queues', { headers: { Cookie } })).status).toBe(200);
    await revokeToken(api.place, 'gone');
    refused(await api.ask('GET /v1/queues', { token }));
    refused(await api.ask('GET /v1/queues', { headers: { Cookie } }));
    const old = await api.tokenOf({ name: 'old', expiresMs: Date.now() + 60_000 });
    const [id] = /[0-9a-f]{12}/.exec(old) ?? [''];
    const key = 'duestream:v1:{control}:tokens';
    const stored = JSON.parse((await api.place.redis.hget(key, id)) ?? '{}');
    // By Redis's clock, as the daemon estimates it: never ahead, but on a busy machine some milliseconds behind.
    await api.place.redis.hset(key, id, JSON.stringify({ ...stored, expiresMs: Date.now() - 60_000 }));
    refused(await api.ask('GET /v1/queues', { token: old }));
  });
});

describe('the cookie of a session', () => {
  test('of one port of a host is not that of another one, whoever has told the port', async () => {
    const { port } = new URL(api.url);
    const opened = async (headers: Readonly<Record<string, string>>) => {
      const { headers: set } = await api.ask('POST /v1/session', { body: { token: tokens.write }, headers });
      return set.getSetCookie()[0]?.split('=')[0];
    };
    expect(await opened({})).toBe(`duestream_session_${port}`);
    // A browser sends both: neither logs the other out.
    const Cookie = `duestream_session_1=x; duestream_session=${'a'.repeat(43)}`;
    expect(await opened({ Cookie })).toBe(`duestream_session_${port}`);
    expect((await api.ask('GET /v1/session', { headers: { Cookie } })).status).toBe(401);
  });

  test('cannot be read by scripts, goes to no other site, and needs the CSRF token for changes', async () => {
    const opened = await api.ask('POST /v1/session', { body: { token: tokens.write } });
    const [cookie = ''] = opened.headers.getSetCookie();
    expect(cookie).toMatch(/^duestream_session_\d+=[\w-]{43}; Path=\/; Max-Age=43\d{3}; HttpOnly; SameSite=Strict$/);
    expect(opened.text).not.toContain(/=([\w-]{43});/.exec(cookie)?.[1]);
    const Cookie = cookie.split(';')[0] ?? '';
    const pause = (headers: Readonly<Record<string, string>>) =>
      api.ask('POST /v1/queues/emails/pause', { headers: { Cookie, ...headers } });
    expect((await pause({})).status).toBe(403);
    expect((await pause({ 'X-CSRF-Token': 'x' })).status).toBe(403);
    expect((await pause({ 'X-CSRF-Token': opened.body.csrf })).status).toBe(200);
    const { body } = await api.ask('GET /v1/audit?limit=1', { token: tokens.admin });
    expect(body.entries).toMatchObject([
      { who: 'write', way: 'page', verb: 'queues.pause', target: 'emails', count: 1 },
    ]);
  });

  test.each([
    ['as percent-encoded text', encodeURIComponent('Müller asked: “quiet”'), 'Müller asked: “quiet”'],
    ['as it is, where it is no such code', '100 % sure', '100 % sure'],
  ])('notes in the audit why a change was made that has no body for it: %s', async (_, header, reason) => {
    await api.ask('POST /v1/queues/emails/jobs', { token: tokens.write, body: { id: 'why', delay: '1h' } });
    await api.ask('DELETE /v1/queues/emails/jobs/why', { token: tokens.write, headers: { 'X-Reason': header } });
    const { body } = await api.ask('GET /v1/audit?limit=1&target=why', { token: tokens.admin });
    expect(body.entries).toMatchObject([{ verb: 'jobs.cancel', target: 'why', reason }]);
  });

  test('is a hash in Redis, with an end', async () => {
    const keys = await api.place.redis.keys('duestream:v1:{control}:session:*');
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) {
      expect(key).toMatch(/:session:[0-9a-f]{64}$/);
      expect(await api.place.redis.pttl(key)).toBeGreaterThan(0);
    }
  });
});

test('every answer says what a browser must not do with it', async () => {
  for (const what of ['GET /v1/queues', 'GET /v1/nothing', 'POST /v1/queues/emails/jobs']) {
    const { headers } = await api.ask(what, { token: tokens.read });
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers.get('access-control-allow-origin')).toBeNull();
  }
});
