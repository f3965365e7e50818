/** A worker whose handler calls a URL: what is sent, and what becomes of the job. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CallUrlOptions, callUrl, webhookIdOf } from '../../../src/dispatch/call-url.ts';
import { verifyWebhook } from '../../../src/dispatch/signature.ts';
import { fixed } from '../../../src/job/backoff.ts';
import { eventually, useLine } from '../../support/worker-line.ts';

const line = useLine();
const SECRET = `whsec_${randomBytes(32).toString('base64')}`;

interface Seen {
  readonly url: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

let seen: Seen[] = [];
let answers: ((response: ServerResponse) => void)[] = [];
let server: Server;
let base = '';

beforeEach(async () => {
  seen = [];
  answers = [];
  server = createServer((request, response) => {
    void text(request).then((body) => {
      seen.push({ url: request.url ?? '', method: request.method ?? '', headers: request.headers, body });
      const answer = answers.shift();
      if (answer) answer(response);
      else response.end('fine');
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => void server.close(resolve));
});

const status =
  (code: number, headers = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(code, headers).end('no');

const calling = (options: Partial<CallUrlOptions> = {}) =>
  callUrl({ url: `${base}/due`, allow: ['127.0.0.1'], secrets: SECRET, ...options });

test('a job is sent, signed, with what its receiver can keep, and is done by the answer', async () => {
  const worker = await line.worker(calling({ headers: { Authorization: 'Bearer x' } }));
  const dueMs = Date.now() - 5000;
  await line.plan({ id: 'o.1', data: { order: 42, name: 'é' }, dueMs });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const [call] = seen;
  expect(call).toMatchObject({ method: 'POST', url: '/due', body: '{"order":42,"name":"é"}' });
  expect(call?.headers).toMatchObject({
    'content-type': 'application/json',
    authorization: 'Bearer x',
    'user-agent': expect.stringMatching(/^duestream\/\d/),
    'duestream-attempt': '1',
    'duestream-due': String(dueMs),
    'duestream-token': expect.stringMatching(/^\d+$/),
    'idempotency-key': call?.headers['webhook-id'],
  });
  const { id } = verifyWebhook(call?.headers ?? {}, call?.body ?? '', SECRET);
  expect(id).toMatch(new RegExp(`^${line.queue.replaceAll('.', '%2E')}/o%2E1/`));
  const {
    'webhook-id': given = '',
    'webhook-timestamp': at = '',
    'webhook-signature': signature = '',
  } = call?.headers ?? {};
  const headers = {
    'webhook-id': String(given),
    'webhook-timestamp': String(at),
    'webhook-signature': String(signature),
  };
  expect(new Webhook(SECRET).verify(call?.body ?? '', headers)).toEqual({ order: 42, name: 'é' });
});

test('a job that is tried again has the same id, and the time and number of each try', async () => {
  answers = [status(500), status(503), (response) => response.socket?.destroy(), status(200)];
  const worker = await line.worker(calling(), { backoff: fixed(1), attempts: 8 });
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(new Set(seen.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(seen.map(({ headers }) => headers['duestream-attempt'])).toEqual(['1', '2', '3', '4']);
  expect(worker.heard.of('job.retried').map(({ error }) => error.message)).toEqual([
    'answer 500',
    'answer 503',
    'no answer: cut-off',
  ]);
});

test('a job that is answered 429 is put aside and uses no attempt', async () => {
  answers = [status(429, { 'Retry-After': '1' })];
  const worker = await line.worker(calling(), { attempts: 1 });
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.deferred').length).toBe(1);
  expect(worker.heard.of('job.deferred')[0]?.delayMs).toBeGreaterThanOrEqual(1000);
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
});

test.each([
  ['a redirect', status(302, { Location: 'http://127.0.0.1:1/' }), 'answer 302'],
  ['410', status(410), 'answer 410'],
  ['400', status(400), 'answer 400'],
])(
  'a job that is answered with %s is dead at once, and what a network inside answered is kept nowhere',
  async (_, answer, reason) => {
    answers = [answer];
    const worker = await line.worker(calling());
    await line.plan({ id: 'a' });
    await eventually(() => worker.heard.of('job.dead')).toMatchObject([{ id: 'a', reason }]);
    expect(seen).toHaveLength(1);
  },
);

describe('a job whose URL is chosen by its data', () => {
  const chosen = (hosts: readonly string[]) =>
    calling({ url: ({ data }) => String(data), hosts, method: 'PUT', body: () => 'plain', contentType: 'text/plain' });

  test('goes to the hosts that are listed, and nowhere else', async () => {
    const worker = await line.worker(chosen(['127.0.0.1', '*.example.com']));
    await line.plan({ id: 'good', data: `${base}/chosen` });
    await eventually(() => worker.heard.of('job.completed').length).toBe(1);
    expect(seen).toMatchObject([
      { url: '/chosen', method: 'PUT', body: 'plain', headers: { 'content-type': 'text/plain' } },
    ]);
    await line.plan({ id: 'bad', data: 'https://example.com/' });
    await eventually(() => worker.heard.of('job.dead')).toMatchObject([
      { id: 'bad', reason: 'target-refused: example.com is not in hosts' },
    ]);
  });

  test('goes nowhere inside, also where all hosts may be called', async () => {
    const worker = await line.worker(callUrl({ url: ({ data }) => String(data), hosts: ['*'] }));
    await line.plan({ id: 'a', data: base }, { id: 'b', data: 'https://169.254.169.254/latest' }, { id: 'c', data: 4 });
    await eventually(() => worker.heard.of('job.dead').length).toBe(3);
    const reasons = worker.heard.of('job.dead').toSorted((a, b) => a.id.localeCompare(b.id));
    expect(reasons.map(({ reason }) => reason)).toEqual([
      'target-refused: 127.0.0.1: it is an address of this machine',
      'target-refused: 169.254.169.254: it is not public',
      expect.stringMatching(/^target-refused: the URL is "4", which does not begin with https:\/\//),
    ]);
    expect(seen).toEqual([]);
  });
});

test('a GET has no body, and is signed over none', async () => {
  const worker = await line.worker(calling({ method: 'GET' }));
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(seen[0]?.headers).not.toHaveProperty('content-length');
  expect(verifyWebhook(seen[0]?.headers ?? {}, '', SECRET).id).toContain('/a/');
});

test('without a secret a call has its id and no signature', async () => {
  const worker = await line.worker(calling({ secrets: undefined }));
  await line.plan({ id: 'a' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  expect(seen[0]?.headers['webhook-id']).toContain('/a/');
  expect(seen[0]?.headers).not.toHaveProperty('webhook-signature');
});

test('as an event of CloudEvents a call says its id, queue, kind and time, written as headers may be', async () => {
  const worker = await line.worker(calling({ format: 'cloudevents' }));
  await line.plan({ id: 'a"b', name: 'order.due' });
  await eventually(() => worker.heard.of('job.completed').length).toBe(1);
  const headers: Seen['headers'] = seen[0]?.headers ?? {};
  const body = seen[0]?.body ?? '';
  expect(headers).toMatchObject({
    'ce-specversion': '1.0',
    'ce-type': 'order.due',
    'ce-time': new Date(Number(headers['duestream-due'])).toISOString(),
    'content-type': 'application/json',
  });
  expect(headers['ce-source']).toMatch(/^\/queues\/\w/);
  const id = String(headers['ce-id']);
  expect(id).toMatch(/^[\x21\x23-\x7e]+$/);
  expect(decodeURIComponent(id)).toBe(headers['webhook-id']);
  expect(verifyWebhook(headers, body, SECRET).id).toBe(headers['webhook-id']);
});

test('the id of a call has no full stop, whatever the names are', () => {
  expect(webhookIdOf({ queue: 'a.b', id: '{g.h}i/j%k', mark: '1 2.3' })).toBe('a%2Eb/%7Bg%2Eh%7Di%2Fj%25k/1%202%2E3');
});

describe('a handler is not made of', () => {
  test.each<readonly [string, Partial<CallUrlOptions>, string]>([
    ['a URL that is none', { url: 'example.com' }, 'url of callUrl is "example.com"'],
    ['a function for the URL without hosts', { url: () => base }, 'callUrl has a function for url and no hosts'],
    ['a secret that is none', { secrets: 'geheim' }, 'secret 1 is not written so'],
    [
      'a header that it makes itself',
      { headers: { 'Webhook-Id': 'x' } },
      'Webhook-Id, which the request has by itself',
    ],
    ['a header of the connection', { headers: { 'transfer-encoding': 'chunked' } }, 'which the request has by itself'],
    [
      'two lines in a header',
      { headers: { 'X-A': 'geheim\r\nX-B: c' } },
      'header X-A in headers of callUrl has another character',
    ],
    ['a header without a name', { headers: { '': 'x' } }, 'headers of callUrl has ""'],
    ['an event without data', { format: 'cloudevents', method: 'GET' }, 'which sends no data'],
    ['a header of events of its own', { headers: { 'ce-id': 'x' } }, 'ce-id, which the request has by itself'],
    ['a long time-out', { timeout: '16m' }, 'timeout of callUrl is "16m"'],
    ['a network that is none', { allow: ['inside'] }, 'allow has "inside"'],
  ])('%s', (_, options, why) => {
    const make = () => callUrl({ url: `${base}/`, ...options });
    expect(make).toThrow(expect.objectContaining({ code: 'bad-config', message: expect.stringContaining(why) }));
    expect(make).not.toThrow(/geheim/);
  });

  test('an option that there is not', () => {
    expect(() => Reflect.apply(callUrl, undefined, [{ url: `${base}/`, secret: SECRET }])).toThrow(
      /^secret is not an option of callUrl; did you mean secrets/,
    );
  });
});
