/** What the headers of proxies change, and from whom: from everybody else nothing. */
import { describe, expect, test } from 'vitest';
import { type ArrivalOptions, createArrivals, hstsOf, prefixOf } from '../../src/http/arrival.ts';

const PROXY = '10.0.0.5';
const HERE = '127.0.0.1:7420';

function arrival(headers: Readonly<Record<string, string>>, peer = PROXY, given: Partial<ArrivalOptions> = {}) {
  const arrivals = createArrivals({ isTls: false, trustProxy: [PROXY], ...given });
  const request = new Request(`http://${HERE}/v1/queues`, { headers: { Host: HERE, ...headers } });
  return arrivals(request, { incoming: { socket: { remoteAddress: peer } } });
}

const plain = { host: HERE, publicHost: HERE, isTls: false, prefix: '' };
const ALL = {
  'X-Forwarded-Host': 'ops.example.org',
  'X-Forwarded-Proto': 'https',
  'X-Forwarded-Prefix': '/jobs/',
  Forwarded: 'host=other.example;proto=https',
};

describe('from a proxy that is trusted', () => {
  test('host, scheme and prefix are those that the browser has asked for', () => {
    const told = { host: HERE, publicHost: 'ops.example.org', isTls: true, prefix: '/jobs', isProxied: true };
    expect(arrival(ALL)).toEqual(told);
    expect(arrival(ALL, `::ffff:${PROXY}`)).toEqual(told);
    expect(arrival({})).toEqual({ ...plain, isProxied: true });
  });

  test.each([
    ['host=ops.example.org;proto=https', 'ops.example.org', true],
    ['Host="ops.example.org:8443";PROTO=HTTPS', 'ops.example.org:8443', true],
    ['for="[2001:db8::17]:4711";proto=https;by=10.0.0.5', HERE, true],
    [
      'for=192.0.2.43;host=made.up;proto=http, for="a, b;c=\\"d";host=ops.example.org;proto=https',
      'ops.example.org',
      true,
    ],
    ['proto=http;host="[::1]:80"', '[::1]:80', false],
  ])('Forwarded: %s', (Forwarded, publicHost, isTls) => {
    expect(arrival({ Forwarded })).toMatchObject({ publicHost, isTls });
  });

  test('of several values the last counts, which the proxy itself has added', () => {
    const headers = {
      'X-Forwarded-Host': 'made.up, ops.example.org',
      'X-Forwarded-Proto': 'http,https',
      'X-Forwarded-Prefix': '/made/up, /jobs',
    };
    expect(arrival(headers)).toMatchObject({ publicHost: 'ops.example.org', isTls: true, prefix: '/jobs' });
  });

  test('plain HTTP of the browser is plain, although the proxy speaks TLS with this server', () => {
    expect(arrival({ 'X-Forwarded-Proto': 'http' }, PROXY, { isTls: true }).isTls).toBe(false);
    expect(arrival({}, PROXY, { isTls: true }).isTls).toBe(true);
  });

  test.each([
    [
      'X-Forwarded-Host',
      ['', 'a b', 'a/b', 'a@b', 'http://a', 'a:', 'a:123456', '-a', 'a,', '[::1', 'ä.example', '"a"'],
    ],
    ['X-Forwarded-Proto', ['', 'ftp', 'https:', 'https http', 'wss', 'on', 'https,']],
    [
      'X-Forwarded-Prefix',
      [
        '',
        'jobs',
        '//evil.example',
        '/a//b',
        '/a/../b',
        '/..',
        '/./a',
        '/a;b',
        '/a b',
        '/a?b',
        '/a#b',
        '/%2e%2e',
        '/a\\b',
        'http://a',
        '/a,',
      ],
    ],
    [
      'Forwarded',
      [
        '',
        'host',
        'host=',
        'host=a b',
        'host="a',
        'host=a;host=b',
        'host=a;',
        'proto=https;=',
        'host=a,,proto=https',
        `host=a;by=${'x'.repeat(2000)}`,
      ],
    ],
  ])('a malformed %s changes nothing', (name, values) => {
    for (const value of values) expect(arrival({ [name]: value }), value).toEqual({ ...plain, isProxied: true });
  });
});

describe('from anybody else', () => {
  test.each(['10.0.0.6', '127.0.0.1', '::1', '::ffff:10.0.0.6', ''])('%j they change nothing', (peer) => {
    expect(arrival(ALL, peer)).toEqual({ ...plain, isProxied: false });
  });

  test('nor where nobody knows who asks', () => {
    const arrivals = createArrivals({ isTls: false, trustProxy: ['127.0.0.1'] });
    const request = new Request(`http://${HERE}/`, { headers: { Host: HERE, ...ALL } });
    for (const env of [{}, undefined, { incoming: {} }]) {
      expect(arrivals(request, env)).toEqual({ ...plain, isProxied: false });
    }
  });
});

describe('in an application', () => {
  test('the URL says how the request came, and a trusted proxy what is in front of it', () => {
    const options = { isTls: false, trustProxy: [PROXY], mountedAt: '/ops/jobs' };
    const request = (headers: Readonly<Record<string, string>>) =>
      new Request('https://app.example/v1/queues', { headers });
    const own = { isProxied: false, host: 'app.example', publicHost: 'app.example', isTls: true, prefix: '/ops/jobs' };
    expect(createArrivals(options)(request({}), {})).toEqual(own);
    const env = { incoming: { socket: { remoteAddress: PROXY } } };
    expect(createArrivals(options)(request(ALL), env)).toMatchObject({ isProxied: true, prefix: '/jobs/ops/jobs' });
  });
});

test('browsers are told to keep to TLS where they use it, but not on the host of an application', () => {
  const max = { 'Strict-Transport-Security': 'max-age=31536000' };
  expect(hstsOf(arrival(ALL), {})).toEqual(max);
  expect(hstsOf(arrival(ALL, '10.0.0.6'), {})).toEqual({});
  expect(hstsOf(arrival(ALL), { mountedAt: '' })).toEqual({});
});

test('a prefix has no slash at its end', () => {
  expect(['', '/', '/a', '/a/', '/a.b/~c-d_e'].map(prefixOf)).toEqual(['', '', '/a', '/a', '/a.b/~c-d_e']);
  expect(prefixOf(`/${'a'.repeat(300)}`)).toBeUndefined();
});
