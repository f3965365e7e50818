/**
 * No spelling of an address, no answer of a name server and no redirect leads a request inside. What must not be reached has
 * canaries: servers on loopback, on IPv6 and on the own address of this machine, which count what comes.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGuard, type GuardOptions } from '../../../src/dispatch/guard/guard.ts';
import { createSender } from '../../../src/dispatch/send/sender.ts';
import { createAbort } from '../../../src/kernel/abort.ts';
import { systemClock } from '../../../src/kernel/clock.ts';

const hits: string[] = [];
const servers: Server[] = [];
let port = 0;

async function canary(host: string, name: string, at: number): Promise<number> {
  const server = createServer(({ method, url }, response) => {
    hits.push(`${name} ${method} ${url}`);
    response.end('secret');
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, host, resolve);
  });
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

/** An address of this machine that others can reach, if it has one. */
const outer = Object.values(networkInterfaces())
  .flatMap((all) => all ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address;

beforeAll(async () => {
  port = await canary('127.0.0.1', 'loopback', 0);
  await canary('::1', 'IPv6', port).catch(() => undefined);
  if (outer !== undefined) await canary(outer, 'outer', port);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => new Promise((resolve) => void server.close(resolve))));
});

const named = (names: Readonly<Record<string, readonly string[]>>) => (name: string) =>
  Promise.resolve(names[name] ?? []);

/** What becomes of one request. No name is asked of the network: what `names` does not have has no address. */
async function call(url: string, options: GuardOptions = {}) {
  const guard = createGuard({ resolve: named({}), resolveLocal: named({}), ...options });
  const sender = createSender({ guard, clock: systemClock, connectMs: 2000 });
  const asked = { url, method: 'POST', headers: {}, body: 'x', timeoutMs: 5000 };
  const end = await sender.send(asked, createAbort().signal);
  sender.close();
  return end;
}

const HOSTS = [
  ...[
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '0177.0.0.1',
    '0x7f.0.0.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '127.0.0.1.',
    '0',
  ],
  ...[
    '0.0.0.0',
    '00000.0.0.0',
    '127.127.127.127',
    '①②⑦.0.0.1',
    '127。0。0。1',
    '１２７.0.0.1',
    'localhost',
    'LOCALHOST',
    'localhost.',
  ],
  ...[
    'a.localhost',
    'foo.local',
    'router.lan',
    'metadata.google.internal',
    'metadata',
    'kubernetes.default.svc',
    'redis',
    'x.home.arpa',
  ],
  ...[
    '169.254.169.254',
    '0xa9fea9fe',
    '2852039166',
    '0251.0376.0251.0376',
    '169.254.43518',
    '100.100.100.200',
    '168.63.129.16',
  ],
  ...[
    '192.0.0.192',
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '100.64.0.1',
    '198.18.0.1',
    '224.0.0.1',
  ],
  ...[
    '255.255.255.255',
    '240.0.0.1',
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
  ],
  ...[
    '[::ffff:0:127.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b::a9fe:a9fe]',
    '[64:ff9b:1::127.0.0.1]',
    '[2002:7f00:1::]',
  ],
  ...[
    '[2002:a9fe:a9fe::1]',
    '[2001:0:7f00:1::]',
    '[2001:0:4136:e378:8000:63bf:80ff:fffe]',
    '[fe80::1]',
    '[fe80::5efe:127.0.0.1]',
  ],
  ...[
    '[2001:470::5efe:7f00:1]',
    '[2001:470::200:5efe:a00:1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fec0::1]',
    '[ff02::1]',
  ],
  ...['[2001:db8::1]', '[100::1]', '[3fff::1]', '[5f00::1]', '[4000::1]', '[fe80::1%25eth0]'],
  ...(outer === undefined ? [] : [outer]),
];
/** `P` stands for the port of the canaries. */
const URLS = [
  ...['http://user:pass@127.0.0.1:P/', 'http://public.test@127.0.0.1:P/', 'http://127.0.0.1:P\\@public.example.net/'],
  ...[
    'http://public.example.net\\@127.0.0.1:P/',
    'http://public.example.net#@127.0.0.1:P/',
    'http:127.0.0.1:P',
    'http:///127.0.0.1:P/',
  ],
  ...[
    '//127.0.0.1:P/',
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'gopher://127.0.0.1:6379/_FLUSHALL',
    'unix:/var/run/docker.sock',
  ],
  ...[
    'http://unix:/var/run/docker.sock:/x',
    'javascript:alert(1)',
    'http://127.0.0.1:P/%0d%0aX: y',
    'http://a b.net/',
    'http://a\r\n.net/',
  ],
  ...[
    'http://public.example.net:6379/',
    'http://public.example.net:22/',
    'http://public.example.net:0/',
    'http://public.example.net:99999/',
  ],
  ...[`http://${'a'.repeat(300)}.net/`, 'http://a..net/', 'http://-a-.net/', 'http://a.net:80:P/', 'http://[::1/'],
  ...[
    'http://1.1.1.1 @127.0.0.1:P/',
    'http://127.0.0.1%00.example.net:P/',
    'http://127.0.0.1%2f.example.net:P/',
    'http://0x7f.1:P/',
  ],
  ...['http://1.2.3.4.5:P/', 'http://example.0x7f:P/', 'HTTP://127.0.0.1:P/'],
];
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'loopback.hacker.net': ['127.0.0.1'],
  'mixed.hacker.net': ['93.184.216.34', '127.0.0.1'],
  'mixed6.hacker.net': ['93.184.216.34', '::1'],
  'mapped.hacker.net': ['::ffff:127.0.0.1'],
  'nat.hacker.net': ['64:ff9b::7f00:1'],
  'many.hacker.net': Array.from({ length: 200 }, () => '1.1.1.1'),
  'odd.hacker.net': ['127.1'],
  'own.hacker.net': [outer ?? '127.0.0.1'],
};

describe('a request is refused before a socket is opened', () => {
  test.each([
    ...HOSTS.flatMap((host) => [`http://${host}:P/`, `https://${host}:P/`]),
    ...URLS,
    ...Object.keys(NAMES).flatMap((name) => [`http://${name}:P/`, `https://${name}:P/`]),
  ])('%s', async (url) => {
    const end = await call(url.replace(/\bP\b/g, String(port)), { resolve: named(NAMES) });
    expect(end.kind).toBe('refused');
    expect(hits).toEqual([]);
  });

  test('and a name without an address is not asked again, but may be later', async () => {
    expect(await call(`https://none.hacker.net:${port}/`)).toMatchObject({ kind: 'no-answer', why: 'dns' });
  });
});

test('a name that leads elsewhere at the next look is looked at once', async () => {
  let looks = 0;
  const resolve = () => Promise.resolve(++looks === 1 ? ['192.0.2.99'] : ['127.0.0.1']);
  const end = await call(`http://flip.hacker.net:${port}/`, { allow: ['192.0.2.0/24'], resolve });
  expect(end).toMatchObject({ kind: 'no-answer' });
  expect(looks).toBe(1);
  expect(hits).toEqual([]);
});

describe('what is allowed is reached', () => {
  const allow = ['127.0.0.1/32'];

  test('by its address and by its name, and not by its neighbours or its other spellings', async () => {
    const resolve = named({ 'hook.hacker.net': ['127.0.0.1'] });
    expect(await call(`http://127.0.0.1:${port}/a`, { allow })).toMatchObject({
      kind: 'answered',
      status: 200,
      isAllowed: true,
    });
    expect(await call(`http://hook.hacker.net:${port}/b`, { allow, resolve })).toMatchObject({
      kind: 'answered',
      address: '127.0.0.1',
    });
    expect(hits.splice(0)).toEqual(['loopback POST /a', 'loopback POST /b']);
    for (const host of ['127.0.0.2', '[::ffff:127.0.0.1]', '[::1]', 'localhost', '127.1']) {
      expect(
        await call(`http://${host}:${port}/`, { allow, resolveLocal: named({ localhost: ['127.0.0.1'] }) }),
      ).toMatchObject({
        kind: 'refused',
      });
    }
    expect(hits).toEqual([]);
  });

  test('by a local name only where its operator lists it', async () => {
    const options = {
      allow,
      resolveLocal: named({ localhost: ['127.0.0.1'], 'a.svc': ['127.0.0.1'], evil: ['10.0.0.1'] }),
    };
    const names = ['localhost', '*.svc', 'evil'];
    expect(await call(`http://localhost:${port}/a`, { ...options, names })).toMatchObject({ kind: 'answered' });
    expect(await call(`http://a.svc:${port}/b`, { ...options, names })).toMatchObject({ kind: 'answered' });
    expect(await call(`http://evil:${port}/`, { ...options, names })).toMatchObject({
      kind: 'refused',
      why: /10\.0\.0\.1/,
    });
    expect(await call(`http://b.svc.net:${port}/`, { ...options, names })).toMatchObject({
      kind: 'no-answer',
      why: 'dns',
    });
    expect(hits.splice(0)).toEqual(['loopback POST /a', 'loopback POST /b']);
  });

  test('and its redirect is an answer, which nobody follows', async () => {
    const server = createServer((_request, response) => {
      response.writeHead(307, { Location: `http://127.0.0.1:${port}/stolen` }).end();
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
    const from = (server.address() as AddressInfo).port;
    expect(await call(`http://127.0.0.1:${from}/`, { allow })).toMatchObject({ kind: 'answered', status: 307 });
    expect(hits).toEqual([]);
  });

  test('over plain http only there', async () => {
    const resolve = named({ 'public.hacker.net': ['93.184.216.34'] });
    const end = await call('http://public.hacker.net/', { resolve });
    expect(end).toMatchObject({
      kind: 'refused',
      why: 'http:// is for networks of allow; elsewhere use https://',
    });
  });
});

test.each([
  [{ allow: ['10.0.0.0/33'] }, 'allow has "10.0.0.0/33"'],
  [{ allow: ['0.0.0.0/0'] }, 'allow has "0.0.0.0/0"'],
  [{ deny: ['example.org'] }, 'deny has "example.org"'],
  [{ nat64: ['64:ff9b::/64'] }, 'nat64 has "64:ff9b::/64"'],
])('a guard is not made of %j', (options, why) => {
  expect(() => createGuard(options)).toThrow(why);
});
