import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configRows, printConfig } from '../../src/cli/commands/config-print.ts';
import { type ConfigSources, defineConfig, loadConfig, queueOptions } from '../../src/config/load.ts';
import { doneLimits } from '../../src/config/options.ts';
import { defineQueue } from '../../src/job/queue.ts';
import { withoutCredentials } from '../../src/kernel/reason.ts';
import { readWorkerOptions } from '../../src/worker/options.ts';

let cwd = '';
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'duestream-config-'));
});
afterAll(() => rmSync(cwd, { recursive: true }));

const write = (name: string, text: string): string => {
  writeFileSync(join(cwd, name), text);
  return name;
};
const load = (sources: ConfigSources = {}) => loadConfig({ env: {}, cwd, ...sources });
const fromFile = (text: string) => load({ flags: { config: write('case.yaml', text) } });
const refusal = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    expect(error).toMatchObject({ name: 'DuestreamError', code: 'bad-config' });
    return error instanceof Error ? error.message : '';
  }
  return 'nothing was refused';
};

describe('precedence', () => {
  test('without any source everything is at its default', () => {
    const { config, origins } = load();
    expect(config).toMatchObject({ namespace: 'duestream', roles: ['mover', 'http'], mover: { leaseMs: 5000 } });
    expect(new Set(Object.values(origins).map(({ from }) => from))).toEqual(new Set(['default']));
  });

  test('flags win over the environment, the environment over the file, the file over the defaults', () => {
    const file = write(
      'all.yaml',
      'namespace: from-file\nlog: { level: debug }\nworker: { concurrency: 7, grace: 90 }\n',
    );
    const { config, origins } = load({
      flags: { config: file, namespace: 'from-flag' },
      env: { DUESTREAM_NAMESPACE: 'from-env', DUESTREAM_WORKER__CONCURRENCY: '8' },
    });
    expect(config).toMatchObject({ namespace: 'from-flag', log: { level: 'debug' } });
    expect(config.worker).toMatchObject({ concurrency: 8, graceMs: 90, jobLeaseMs: 15_000 });
    expect(origins).toMatchObject({
      namespace: { from: 'flag', name: '--namespace' },
      'worker.concurrency': { from: 'environment', name: 'DUESTREAM_WORKER__CONCURRENCY' },
      'worker.grace': { from: 'file', name: 'all.yaml' },
      'worker.jobLease': { from: 'default' },
    });
  });

  test('what nobody has set is as the profile says, and what is set wins over it', () => {
    const { config, origins } = fromFile('profile: quiet\nmover: { lease: 5s }\n');
    expect(config.mover).toMatchObject({ leaseMs: 5000 });
    expect(config.worker).toMatchObject({ beatTtlMs: 180_000, graceMs: 60_000, jobLeaseMs: 15_000 });
    expect(origins['worker.grace']).toEqual({ from: 'default', name: 'the profile quiet' });
    expect(refusal(() => fromFile('profile: silent\n'))).toContain('allowed: default, quiet');
    const worker = (profile: 'quiet') => readWorkerOptions({ redis: 'redis://127.0.0.1:1', profile, grace: '9s' });
    expect(worker('quiet')).toMatchObject({ beatTtlMs: 180_000, graceMs: 9000 });
    expect(refusal(() => worker('silent' as 'quiet'))).toBe('profile is "silent"; allowed: default, quiet');
  });

  test('--config wins over DUESTREAM_CONFIG, which wins over duestream.yaml', () => {
    const env = { DUESTREAM_CONFIG: write('env.yaml', 'namespace: env') };
    write('duestream.yaml', 'namespace: here');
    expect(load().config.namespace).toBe('here');
    expect(load({ env }).config.namespace).toBe('env');
    expect(load({ env, flags: { config: write('flag.yaml', 'namespace: flag') } }).config.namespace).toBe('flag');
    rmSync(join(cwd, 'duestream.yaml'));
  });

  test('an empty variable and an option without a value count as not set', () => {
    expect(load({ env: { DUESTREAM_HTTP__TOKEN: '', DUESTREAM_CONFIG: '' } }).config.http.token).toBe('');
    expect(fromFile('mover:\nhttp:\n  token:\n').config.mover.leaseMs).toBe(5000);
  });
});

describe('values', () => {
  test('text is read as the option needs it, wherever it comes from', () => {
    const { config } = load({
      flags: { config: write('text.yaml', 'mover: { lease: 3s }\nroles: mover\n'), httpPort: '0' },
      env: { DUESTREAM_ROLES: 'mover, worker', DUESTREAM_DEAD__RETENTION: 'P7D', DUESTREAM_DONE__MAX: '5' },
    });
    expect(config).toMatchObject({ roles: ['mover', 'worker'], http: { port: 0 }, mover: { leaseMs: 3000 } });
    expect(config).toMatchObject({ dead: { retentionMs: 604_800_000 }, done: { max: 5 } });
  });

  test.each([
    [
      'a number below the range',
      { DUESTREAM_MOVER__LEASE: '12' },
      'mover.lease is "12" (DUESTREAM_MOVER__LEASE); allowed: 500ms to 1m',
    ],
    ['a number above the range', { DUESTREAM_MOVER__BATCH_MAX: '501' }, 'allowed: 1 to 500'],
    ['a fraction', { DUESTREAM_DONE__MAX: '1.5' }, 'done.max is "1.5"'],
    ['a duration where a count is wanted', { DUESTREAM_DONE__MAX: '5s' }, 'done.max is "5s"'],
    ['a month, which has no fixed length', { DUESTREAM_DEAD__RETENTION: 'P1M' }, 'dead.retention is "P1M"'],
    [
      'an unknown role',
      { DUESTREAM_ROLES: 'mover,ui' },
      'roles is "mover,ui" (DUESTREAM_ROLES); allowed: one or more of mover, http, worker, dispatcher',
    ],
    [
      'an unknown log level',
      { DUESTREAM_LOG__LEVEL: 'loud' },
      'allowed: fatal, error, warn, info, debug, trace, silent',
    ],
    ['a namespace outside the grammar', { DUESTREAM_NAMESPACE: 'A b' }, 'namespace is "A b"'],
  ])('%s is refused with the option, the value, its place and what is allowed', (_, env, message) => {
    expect(refusal(() => load({ env }))).toContain(message);
  });

  test('a file with a value of the wrong type is refused', () => {
    expect(refusal(() => fromFile('mover: { lease: true }'))).toContain(
      'mover.lease is a value of type boolean (case.yaml)',
    );
    expect(refusal(() => fromFile('roles: 5'))).toContain('roles is 5 (case.yaml)');
  });

  test('every refusal of a value leaves secrets out', () => {
    const url = 'amqp://user:hunter2@host';
    expect(refusal(() => load({ flags: { redis: url } }))).not.toContain('hunter2');
    expect(refusal(() => load({ env: { DUESTREAM_HTTP__TOKEN: 'hunter2' } }))).not.toContain('hunter2');
    expect(refusal(() => fromFile('redis:\n  url: "redis://:hunter2@h\n  x: [\n'))).not.toContain('hunter2');
  });
});

describe('the done window', () => {
  test.each([
    ['done: { window: 59999 }', '1m', '10s', '4s'],
    ['done: { window: 60000 }\nredis: { commandTimeout: 30000 }', '80s', '10s', '30s'],
    ['done: { retryBudget: 300000 }', '608s', '5m', '4s'],
  ])('%j is shorter than a call may be repeated, and is refused', (text, floor, budget, timeout) => {
    expect(refusal(() => fromFile(text))).toContain(
      `allowed: 0, or at least ${floor}: a minute, and twice the sum of done.retryBudget and redis.commandTimeout, which are ${budget} and ${timeout}`,
    );
  });

  test.each([
    ['', 60_000],
    ['done: { window: 60000 }', 60_000],
    ['redis: { commandTimeout: 60000 }', 140_000],
    ['done: { retryBudget: 60000 }', 128_000],
    ['done: { max: 0, window: 5 }', 0],
    ['done: { window: 0 }', 0],
  ])('%j keeps ends for at least so long, whatever their number', (text, floorMs) => {
    const limits = doneLimits(fromFile(text).config);
    expect(limits.floorMs).toBe(floorMs);
    expect(limits.windowMs === 0).toBe(floorMs === 0);
  });
});

describe('unknown names', () => {
  test.each([
    ['mover: { leasems: 5 }', 'mover.leasems in case.yaml is not an option; did you mean mover.lease?'],
    ['moover: { lease: 5000 }', 'did you mean mover.lease?'],
    ['redis: redis://h', 'redis in case.yaml is a section; allowed in it: redis.url,'],
    ['utterly: { different: 1 }', 'utterly.different in case.yaml is not an option'],
    ['queues: { emails: { atempts: 1 } }', 'did you mean queues.emails.attempts?'],
    ['queues: { Emails: { attempts: 1 } }', 'queue name is "Emails"'],
    ['__proto__: { polluted: 1 }', 'is not an option'],
    ['- a\n- b', 'case.yaml holds an array'],
    ['a: 1\na: 2', 'case.yaml is not valid YAML: Map keys must be unique at line 2'],
  ])('the file %j is refused', (text, message) => {
    expect(refusal(() => fromFile(text))).toContain(message);
  });

  test.each([
    ['worker: { jobLeaseMs: 5000 }', 'worker.jobLeaseMs in case.yaml is not an option; did you mean worker.jobLease?'],
    [
      'redis: { commandTimeoutMs: 5000 }',
      'redis.commandTimeoutMs in case.yaml is not an option; did you mean redis.commandTimeout?',
    ],
    [
      'limits: { dataBytes: 1000 }',
      'limits.dataBytes in case.yaml is not an option; did you mean limits.dataBytesMax?',
    ],
    ['done: { windowMs: 5m }', 'done.windowMs in case.yaml is not an option; did you mean done.window?'],
    [
      'queues: { a.b: { timeoutMs: 5s } }',
      'queues.a.b.timeoutMs in case.yaml is not an option; did you mean queues.a.b.timeout?',
    ],
  ])('a name with its unit, in %j, is refused with the one that was meant', (text, message) => {
    expect(refusal(() => fromFile(text))).toBe(message);
  });

  test('such a name of a variable, and one in code, are refused with the one that was meant', () => {
    expect(refusal(() => load({ env: { DUESTREAM_WORKER__JOB_LEASE_MS: '5000' } }))).toBe(
      'DUESTREAM_WORKER__JOB_LEASE_MS is not a variable of duestream; did you mean DUESTREAM_WORKER__JOB_LEASE?',
    );
    expect(refusal(() => load({ env: { DUESTREAM_LIMITS__DATA_BYTES: '5000' } }))).toBe(
      'DUESTREAM_LIMITS__DATA_BYTES is not a variable of duestream; did you mean DUESTREAM_LIMITS__DATA_BYTES_MAX?',
    );
    const input: object = { mover: { leaseMs: 5000 } };
    expect(refusal(() => defineConfig(input))).toBe(
      'mover.leaseMs in the code is not an option; did you mean mover.lease?',
    );
  });

  test('a misspelt variable is refused with the nearest one', () => {
    const message = refusal(() => load({ env: { DUESTREAM_MOVER_LEASE: '5000' } }));
    expect(message).toContain('did you mean DUESTREAM_MOVER__LEASE?');
  });

  test('a variable for a queue is refused with the place where queues are configured', () => {
    const message = refusal(() => load({ env: { DUESTREAM_QUEUES__EMAILS__ATTEMPTS: '3' } }));
    expect(message).toContain('queues are configured in the file only');
  });

  test('variables read before there is a configuration, those of others and service links are passed over', () => {
    const env = {
      DUESTREAM_REDIS_SERVER_BIN: '/usr/bin/redis-server',
      DUESTREAM_REDIS_SOURCE: 'path',
      DUESTREAM_SERVICE_HOST: '10.0.0.1',
      DUESTREAM_SERVICE_PORT_HTTP: '7420',
      DUESTREAM_PORT: 'tcp://10.0.0.1:7420',
      DUESTREAM_PORT_7420_TCP_ADDR: '10.0.0.1',
      OTHER: 'x',
    };
    expect(load({ env }).config).toEqual(load().config);
  });

  test('a file that was named and is not there is refused, naming who named it', () => {
    expect(refusal(() => load({ flags: { config: 'gone.yaml' } }))).toContain('--config names');
    expect(refusal(() => load({ env: { DUESTREAM_CONFIG: 'gone.yaml' } }))).toContain('DUESTREAM_CONFIG names');
  });
});

describe('rules between options', () => {
  test('a health address that others can reach needs a token', () => {
    expect(refusal(() => load({ flags: { httpHost: '0.0.0.0' } }))).toContain(
      'http.host is "0.0.0.0" and http.token is empty',
    );
    const env = { DUESTREAM_HTTP__TOKEN: 'sixteen-letters-x' };
    expect(load({ flags: { httpHost: '0.0.0.0' }, env }).config.http.host).toBe('0.0.0.0');
    expect(load({ flags: { httpHost: '0.0.0.0', roles: 'mover' } }).config.roles).toEqual(['mover']);
  });

  test.each(['localhost', '::1', '127.0.0.2'])('%s needs no token', (httpHost) => {
    expect(load({ flags: { httpHost } }).config.http.host).toBe(httpHost);
  });

  test.each(['mover.safetyTick', 'mover.lineMax', 'worker.extendEvery'])('%s of an older file is refused', (key) => {
    const [section = '', name = ''] = key.split('.');
    expect(refusal(() => fromFile(`${section}: { ${name}: 1000 }\n`))).toContain(
      `${key} in case.yaml is not an option`,
    );
  });
});

test('leases are extended at a third of the lease', () => {
  expect(readWorkerOptions({ redis: 'redis://127.0.0.1:1', jobLease: '6s' }).extendEveryMs).toBe(2000);
});

describe('secrets', () => {
  test('a variable with _FILE behind its name holds the path of the value', () => {
    const path = join(cwd, write('url', 'redis://:secret@h:1\n'));
    const { config, origins } = load({ env: { DUESTREAM_REDIS_URL_FILE: path } });
    expect(config.redis.url).toBe('redis://:secret@h:1');
    expect(origins['redis.url']).toEqual({ from: 'environment', name: 'DUESTREAM_REDIS_URL_FILE' });
  });

  test('both forms at once, a missing file, and _FILE on what is no secret are refused', () => {
    const both = { DUESTREAM_REDIS_URL: 'redis://h', DUESTREAM_REDIS_URL_FILE: join(cwd, 'url') };
    expect(refusal(() => load({ env: both }))).toContain('are both set');
    expect(refusal(() => load({ env: { DUESTREAM_HTTP__TOKEN_FILE: join(cwd, 'no') } }))).toContain("can't be read");
    expect(refusal(() => load({ env: { DUESTREAM_NAMESPACE_FILE: 'x' } }))).toContain('is not a variable');
  });

  test('printing shows each value with its origin and hides secrets', () => {
    const loaded = load({
      flags: { redis: 'rediss://ann:pa@ss/word@h:6380/2' },
      env: { DUESTREAM_HTTP__TOKEN: 'sixteen-letters-x' },
    });
    const text = printConfig(loaded) + JSON.stringify(configRows(loaded));
    expect(text).toContain('redis.url: "rediss://***@h:6380/2"');
    expect(text).toMatch(/http\.token: "\*\*\*" +# DUESTREAM_HTTP__TOKEN\n/);
    expect(text).toMatch(/mover\.lease: "5s" +# default\n/);
    expect(text).not.toMatch(/sixteen|ann|pa@ss|\bword\b/);
  });

  test.each([
    ['redis://h:1', 'redis://h:1'],
    ['redis://:p@h', 'redis://***@h'],
    ['redis://u:p@ss@h', 'redis://***@h'],
    ['redis://h?password=p&db=1', 'redis://h?password=***&db=1'],
  ])('%s is shown as %s', (url, safe) => {
    expect(withoutCredentials(url)).toBe(safe);
  });
});

describe('queues', () => {
  const loaded = () =>
    fromFile(
      'queues: { emails: { attempts: 2, timeout: 5s, backoff: { kind: ladder, steps: [1, 2m] } }, a.b: {}, constructor: }',
    );

  test('what the file says comes in the words of defineQueue, and what it leaves out is left out', () => {
    const { config, origins } = loaded();
    expect(queueOptions(config, 'emails')).toEqual({
      attempts: 2,
      timeout: 5000,
      backoff: { kind: 'ladder', stepsMs: [1, 120_000], jitter: 'none' },
    });
    expect(defineQueue('emails', { crashes: 9, ...queueOptions(config, 'emails') })).toMatchObject({
      attempts: 2,
      crashes: 9,
    });
    expect(Object.keys(config.queues)).toEqual(['emails', 'a.b', 'constructor']);
    expect(origins['queues.emails.attempts']).toMatchObject({ from: 'file' });
    expect(configRows(loaded()).find(({ key }) => key === 'queues.emails.timeout')?.value).toBe('5s');
  });

  test('a queue that the file does not name has no options, whatever it is called', () => {
    expect(queueOptions(load().config, 'emails')).toEqual({});
    expect(queueOptions(load().config, 'constructor')).toEqual({});
  });

  test('a backoff that is not one of the four kinds is refused', () => {
    const message = refusal(() => fromFile('queues: { emails: { backoff: { kind: cubic } } }'));
    expect(message).toContain('queues.emails.backoff is a value of type object (case.yaml); allowed: kind: fixed');
  });
});

test('a configuration is frozen to the bottom', () => {
  const config = defineConfig({ queues: { emails: { attempts: 2 } } });
  const attempts = [
    () => Object.assign(config, { namespace: 'other' }),
    () => Object.assign(config.mover, { leaseMs: 1 }),
    () => Object.assign(config.roles, ['worker']),
    () => Object.assign(config.queues.emails ?? {}, { attempts: 3 }),
  ];
  for (const attempt of attempts) expect(attempt).toThrow(TypeError);
});

describe('proxies and their users', () => {
  const users = (http: object) => defineConfig({ http: { userHeader: 'X-Forwarded-Email', ...http } });

  test('the header of users needs addresses that may send it, and beyond loopback names by which it may be asked', () => {
    const beyond = { host: '0.0.0.0', token: 'a-token-for-scrapers', trustProxy: ['10.0.0.0/8'] };
    expect(users({ trustProxy: ['127.0.0.1'] }).http).toMatchObject({ userScopes: ['read'] });
    expect(users({ ...beyond, allowedHosts: ['jobs.example'] }).http.trustProxy).toEqual(['10.0.0.0/8']);
    expect(refusal(() => users({}))).toBe(
      'http.userHeader is "X-Forwarded-Email" and http.trustProxy is empty; allowed: the addresses of the proxies that set it',
    );
    expect(refusal(() => users(beyond))).toContain('http.allowedHosts is empty; allowed: the names of this server');
  });

  test.each([
    [{ trustProxy: ['proxy.internal'] }, 'allowed: at most 100 addresses or networks such as 10.0.0.5'],
    [{ trustProxy: ['0.0.0.0/0'] }, 'allowed: at most 100 addresses'],
    [{ trustProxy: ['127.0.0.1'], userHeader: 'X User' }, 'http.userHeader is "X User"'],
    [{ trustProxy: ['127.0.0.1'], userHeader: 'Authorization' }, 'http.userHeader is "Authorization"'],
    [{ trustProxy: ['127.0.0.1'], userScopes: ['all'] }, 'allowed: one or more of read, data, write, admin'],
    [{ trustProxy: ['127.0.0.1'], userScopes: [] }, 'allowed: one or more of read, data, write, admin'],
  ])('%j is refused', (http, why) => {
    expect(refusal(() => users(http))).toContain(why);
  });

  test('an environment says several of them with commas', () => {
    const env = { DUESTREAM_HTTP__TRUST_PROXY: '127.0.0.1, fd00::/8', DUESTREAM_HTTP__USER_SCOPES: 'read,write' };
    expect(load({ env }).config.http).toMatchObject({
      trustProxy: ['127.0.0.1', 'fd00::/8'],
      userScopes: ['read', 'write'],
    });
  });
});
