/** What a queue may say of the URL that its jobs call, and that nothing of it is a secret. */
import { describe, expect, test } from 'vitest';
import { callUrl } from '../../src/dispatch/call-url.ts';
import { defineQueue } from '../../src/job/queue.ts';
import {
  decodeTarget,
  parseJobTarget,
  parseTarget,
  type QueueTarget,
  targetOf,
  UNREADABLE_TARGET,
  valueNameOf,
} from '../../src/job/target.ts';
import { createWorker } from '../../src/worker/worker.ts';

const url = 'https://api.example.com/due';
const refusalOf = (given: unknown): string => {
  try {
    parseTarget(given, 'target');
    return '';
  } catch (error) {
    return String(error);
  }
};

describe('a target', () => {
  test.each([
    ['a port of Redis', { url: 'https://api.example.com:6379/' }, /port 6379/],
    ['another spelling of loopback', { url: 'https://0x7f.1/' }, /address that is not written as 127\.0\.0\.1/],
    ['hosts without that of its URL', { url, hosts: ['other.example.com'] }, /without api\.example\.com/],
    ['an empty list of hosts', { url, hosts: [] }, /1 to 50 hosts/],
    ['a method that there is not', { url, method: 'FETCH' }, /allowed: POST, PUT/],
    [
      'a header that the request has by itself',
      { url, headers: { 'Webhook-Id': 'x' } },
      /Webhook-Id, which the request has/,
    ],
    ['a header of the connection', { url, headers: { Host: 'inside' } }, /Host, which the request has/],
    ['a header with a line break', { url, headers: { 'X-A': 'a\r\nB: c' } }, /header X-A in headers of target/],
    ['a status that there is not', { url, retryOn: [99] }, /a status in retryOn/],
    ['a time-out that is too long', { url, timeout: '16m' }, /timeout of target/],
    ['an option that there is not', { url, redirects: true }, /redirects/],
    ['a format that there is not', { url, format: 'xml' }, /allowed: cloudevents/],
    ['an event without data', { url, format: 'cloudevents', method: 'HEAD' }, /sends no data; allowed: one of them/],
    ['nothing to call', { method: 'POST' }, /without url/],
  ])('with %s is refused, and the refusal says what is allowed', (_, given, says) => {
    expect(refusalOf(given)).toMatch(says);
  });

  test.each(['Authorization', 'X-Api-Key', 'x-auth-token', 'Client-Secret', 'X-Signature'])(
    'has no value of its own for %s, which would stand in Redis, and no refusal quotes it',
    (name) => {
      const said = refusalOf({ url, headers: { [name]: 'CANARY-1' } });
      expect(said).toMatch(/allowed: \$ and the name of a value/);
      expect(said).not.toContain('CANARY-1');
      expect(refusalOf({ url, headers: { [name]: '$crm' } })).toBe('');
    },
  );

  test('names its secret: one that stands there itself is refused, and not quoted', () => {
    const said = refusalOf({ url, secret: 'whsec_Q0FOQVJZQ0FOQVJZQ0FOQVJZQ0FOQVJZ=' });
    expect(said).toMatch(/is no name, and is not shown/);
    expect(said).not.toContain('whsec_');
  });

  test('that a newer version has stored keeps what this one knows, and one that nobody can read is a target all the same', () => {
    expect(decodeTarget(JSON.stringify({ url, method: 'PUT', later: 1 }))).toEqual({ url, method: 'PUT' });
    expect(decodeTarget('{')).toBe(UNREADABLE_TARGET);
    expect(decodeTarget('{"method":"PUT"}')).toBe(UNREADABLE_TARGET);
  });

  test('names a value by a dollar sign alone in front', () => {
    expect(['$crm', 'Bearer $crm', '$', '$a b', 'crm'].map(valueNameOf)).toEqual([
      'crm',
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('a target of one job', () => {
  const queue = { url: 'https://api.example.com:8443/due?all=1', headers: { 'X-A': 'queue', 'X-B': 'queue' } };
  const urlOf = (own: string, of: Partial<QueueTarget> = {}) => {
    try {
      return targetOf({ ...queue, ...of }, parseJobTarget(own, 'target'), 'target').url;
    } catch (error) {
      return String(error);
    }
  };

  test.each([
    ['/orders/7', 'https://api.example.com:8443/orders/7'],
    // Two slashes would be another host, if the path were resolved.
    ['//evil.example.com/x', 'https://api.example.com:8443//evil.example.com/x'],
    ['/..//evil.example.com', 'https://api.example.com:8443/..//evil.example.com'],
    ['/@evil.example.com', 'https://api.example.com:8443/@evil.example.com'],
    ['https://API.example.com:8443/x', 'https://API.example.com:8443/x'],
  ])('%s stays at the host and port of its queue', (own, url) => {
    expect(urlOf(own)).toBe(url);
    expect(new URL(url).host).toBe('api.example.com:8443');
  });

  test.each([
    'https://evil.example.com/',
    'https://api.example.com/',
    'http://api.example.com:8443/',
    'https://api.example.com.evil.example:8443/',
    'https://api.example.com:8443@evil.example/',
    '/x#y',
    '/\\evil.example.com',
    'orders/7',
    '',
  ])('%s is refused', (own) => {
    expect(urlOf(own)).toMatch(/allowed/);
  });

  test('that is neither a path nor a URL is told of both', () => {
    expect(urlOf('orders/7')).toMatch(/is "orders\/7"; allowed: a path such as \/orders\/7, or a URL/);
  });

  test('may be on the hosts that its queue lists, and on no others', () => {
    const hosts = ['api.example.com', '*.partner.example'];
    expect(urlOf('https://a.partner.example/x', { hosts })).toBe('https://a.partner.example/x');
    expect(urlOf('https://partner.example/x', { hosts })).toMatch(/https on api\.example\.com, \*\.partner\.example/);
    expect(urlOf('http://a.partner.example/x', { hosts })).toMatch(/allowed in this queue/);
  });

  test('has headers in the place of those of its queue, in upper case or lower, and names no value', () => {
    const own = parseJobTarget({ headers: { 'x-a': 'job' } }, 'target');
    expect(targetOf(queue, own, 'target').headers).toEqual({ 'X-B': 'queue', 'x-a': 'job' });
    const refused = (headers: object) => () => parseJobTarget({ headers }, 'target');
    expect(refused({ 'X-A': '$crm' })).toThrow(/"X-A" .*names a value of the dispatcher; allowed: in the target/);
    expect(refused({ Authorization: 'CANARY-1' })).toThrow(
      /"Authorization" .*carries a secret.*allowed: in the target/,
    );
    expect(refused({ Authorization: 'CANARY-1' })).not.toThrow(/CANARY/);
    expect(refused({ 'Webhook-Id': 'x' })).toThrow(/which the request has by itself/);
  });

  test.each([{}, { hosts: ['*'] }, { secret: 'main' }, { timeout: 1 }, 7, null, []])('%j is none', (given) => {
    expect(() => parseJobTarget(given, 'target')).toThrow(/allowed/);
  });

  test('sends data where its queue sends events', () => {
    const own = parseJobTarget({ method: 'GET' }, 'target');
    expect(() => targetOf({ url, format: 'cloudevents' }, own, 'target')).toThrow(/sends no data/);
  });
});

describe('a queue with a target', () => {
  test('is no broadcast, and has no codec', () => {
    expect(() => defineQueue('hooks', { target: url, broadcast: true })).toThrow(/a broadcast, whose jobs/);
    const codec = { encode: String, decode: String };
    expect(() => defineQueue('hooks', { target: url, codec } as never)).toThrow(/no receiver can undo/);
  });

  test('has no worker of an application, which is told what serves it', () => {
    const hooks = defineQueue('hooks', { target: url });
    expect(() => createWorker(hooks, callUrl({ url }), { redis: 'redis://127.0.0.1:1' })).toThrow(
      /role dispatcher.*queues set hooks --target none/,
    );
  });
});
