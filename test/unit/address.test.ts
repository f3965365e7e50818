/** Where Redis is, in every form, and each refusal: what was given and what is allowed, never a password. */
import { describe, expect, test } from 'vitest';
import { parseAddress } from '../../src/redis/connection/address.ts';
import { labelOf, type RedisInput } from '../../src/redis/connection/connect.ts';

const optionsOf = (input: RedisInput) => parseAddress(input).options;
/** Whatever a caller without types may pass. */
const refusal = (input: unknown) => {
  try {
    parseAddress(input as RedisInput);
  } catch (error) {
    return String(error instanceof Error ? error.message : error);
  }
  return 'accepted';
};

describe('sentinel://', () => {
  test('names sentinels, the primary, its user, its password and a database', () => {
    expect(optionsOf('sentinel://ann:p%40ss@one:1,two,[::1]:3/mine/2')).toEqual({
      sentinels: [
        { host: 'one', port: 1 },
        { host: 'two', port: 26_379 },
        { host: '::1', port: 3 },
      ],
      name: 'mine',
      db: 2,
      username: 'ann',
      password: 'p@ss',
    });
    expect(optionsOf('sentinel://:secret@one/mine')).toMatchObject({ password: 'secret', db: 0 });
    expect(optionsOf('sentinel://one/mine').username).toBeUndefined();
  });

  test('sentinels:// speaks TLS to the servers and to the sentinels', () => {
    const secure = { tls: {}, sentinelTLS: {}, enableTLSForSentinelMode: true };
    expect(optionsOf('sentinels://one/mine')).toMatchObject(secure);
    const tls = { ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'redis.internal' };
    expect(optionsOf({ url: 'sentinels://one/mine', tls })).toMatchObject({ tls, sentinelTLS: tls });
  });

  test('sentinels have credentials of their own, and addresses are translated', () => {
    const natMap = { '10.0.0.1:6379': { host: 'localhost', port: 7000 } };
    const own = { sentinelUsername: 's', sentinelPassword: 'sp' };
    expect(optionsOf({ url: 'sentinel://u:p@one/mine', ...own, natMap })).toMatchObject({
      username: 'u',
      password: 'p',
      ...own,
      natMap,
    });
  });
});

describe('cluster://', () => {
  test('names nodes to begin with, a user and a password', () => {
    const { options, nodes } = parseAddress('cluster://ann:secret@one:1,two,[fe80::2]:3');
    expect(options).toEqual({ username: 'ann', password: 'secret' });
    expect(nodes).toEqual([
      { host: 'one', port: 1 },
      { host: 'two', port: 6379 },
      { host: 'fe80::2', port: 3 },
    ]);
    expect(parseAddress('cluster://one/0').nodes).toHaveLength(1);
  });

  test('clusters:// speaks TLS, with options beside it', () => {
    expect(parseAddress('clusters://one').options).toEqual({ tls: {} });
    const tls = { ca: 'CA', cert: 'CERT', key: 'KEY' };
    const { options, nodes, commandTimeoutMs } = parseAddress({ url: 'clusters://one', tls, commandTimeout: '2s' });
    expect({ options, nodes, commandTimeoutMs }).toMatchObject({ options: { tls }, commandTimeoutMs: 2000 });
  });
});

test.each([
  ['redis://one?db=3', 3],
  ['rediss://u:p@one:1/?db=3', 3],
  ['redis://one/3?db=3', 3],
  ['sentinel://one/mine?db=3', 3],
  ['unix:///run/redis.sock?db=3', 3],
  ['cluster://one?db=0', undefined],
])('the database of %s may stand in its query', (url, db) => expect(optionsOf(url).db).toBe(db));

test.each([
  ['sentinel://a:b@one:1,two/mine/1', 'sentinel://one:1,two:26379/mine/1'],
  ['sentinels://one/mine', 'sentinels://one:26379/mine'],
  ['cluster://a:b@one:1,[::1]', 'cluster://one:1,[::1]:6379'],
  ['clusters://:secret@one', 'clusters://one:6379'],
  ['rediss://a:b@one/1', 'rediss://one:6379/1'],
  ['unix:///run/redis.sock', 'unix:///run/redis.sock'],
])('%s is shown as %s', (url, shown) => expect(labelOf(url)).toBe(shown));

test.each([
  ['sentinel://', /redis is "sentinel:\/\/" and names no host/],
  ['sentinel://u:secret@one', /redis is "sentinel:\/\/\*\*\*@one"; allowed: sentinel:\/\/host:port,host:port\/name/],
  ['sentinel://one/', /allowed: sentinel:\/\/host:port,host:port\/name/],
  ['sentinel://one/mine/0/more', /allowed: sentinel:\/\/host:port/],
  ['sentinel://one/mine/first', /the database in "sentinel:\/\/one\/mine\/first" is not a number/],
  ['sentinel://one,,two/mine', /allowed between the commas: host, host:port or \[IPv6 address\]:port/],
  ['sentinel://one:0/mine', /allowed between the commas/],
  ['sentinel://one:65536/mine', /allowed between the commas/],
  ['sentinel://fe80::1/mine', /allowed between the commas/],
  ['sentinel://%zz:p@one/mine', /is not percent-encoded/],
  ['sentinel://one/mine/2?db=1', /names two databases; allowed: one/],
  ['cluster://one?db=1', /allowed: no path, because a cluster has database 0 alone/],
  ['redis://one?database=3', /allowed after \?: db=3/],
  ['redis://one/?db=3&family=6', /allowed after \?: db=3/],
  ['redis://one?db=', /allowed after \?: db=3/],
  ['redis://one?db=1e0', /allowed after \?: db=3/],
  ['redis://one/1e0', /the database in "redis:\/\/one\/1e0" is not a number; allowed: digits, such as \/3/],
  ['redis://one/0x1', /is not a number/],
  ['redis://one/-1', /is not a number/],
  ['redis://one/%31', /is not a number/],
  ['redis://one/1/2', /is not a number/],
  ['redis://one/#3', /allowed: no #/],
  ['rediss://:secret#1@one', /allowed: no #; in a password write %23/],
  ['redis://one/1 ', /with white space around it/],
  ['\nredis://one', /with white space around it/],
  ['unix:///run/redis.sock\n', /with white space around it/],
  ['redis://on\te/1', /allowed: redis:\/\/host:port\/db/],
  ['redis://one:0', /allowed: a port from 1 to 65535/],
  ['unix:///run/redis.sock?x=1', /allowed after \?: db=3/],
  [{}, /redis names no place; allowed: a URL/],
  [{ db: 3, password: 'secret' }, /redis names no place, only db, password; allowed/],
  [{ host: 'one', port: '6379' }, /redis\.port is "6379"; allowed: a whole number from 1 to 65535/],
  [{ host: 'one', port: 0 }, /redis\.port is 0/],
  [{ host: 127 }, /redis\.host is 127; allowed: a text/],
  [{ host: '' }, /redis\.host is ""; allowed: a text/],
  [{ host: 'one', db: '3' }, /redis\.db is "3"; allowed: a whole number from 0/],
  [{ url: 'redis://one', tls: true }, /redis\.tls is .*; allowed: an object of options, \{\} for none/],
  [{ host: 'one', password: ['secret'] }, /redis\.password is a value of type object; allowed: a text/],
  [{ host: 'one', family: 5 }, /redis\.family is 5; allowed: 0, 4, 6/],
  [{ sentinels: ['one:26379'], name: 'mine' }, /redis\.sentinels is an array; allowed: a list of \{ host, port \}/],
  ['cluster://', /names no host/],
  ['cluster://one/1', /allowed: no path, because a cluster has database 0 alone/],
  ['cluster://one:port', /allowed between the commas/],
  ['Cluster://one', /allowed: redis:\/\/host:port\/db, .*cluster:\/\//],
  ['http://one', /allowed: redis:\/\/host:port\/db/],
  [{ url: 'cluster://one', db: 3 }, /redis\.db is 3; allowed for a cluster: 0/],
  [{ url: 'cluster://one', name: 'mine' }, /redis\.name is set for a cluster; allowed: with sentinel:\/\//],
  [{ url: 'cluster://one', sentinelPassword: 'secret' }, /redis\.sentinelPassword is set for a cluster/],
  [{ url: 'cluster://one', host: 'two' }, /redis\.url and redis\.host both say where Redis is/],
  [{ url: 'sentinel://one/mine', sentinels: [] }, /redis\.url and redis\.sentinels both say/],
  [{ url: 'sentinel://one/mine', role: 'slave' }, /redis\.role is "slave"; allowed: master, because a replica/],
  [{ sentinels: [{ host: 'one' }] }, /redis\.sentinels is set without redis\.name/],
  [{ sentinels: [], name: 'mine' }, /redis\.sentinels is an empty list/],
])('%j is refused', (input, why) => {
  expect(refusal(input)).toMatch(why);
  expect(refusal(input)).not.toContain('secret');
});
