/**
 * What the users of the how-to may do: what their scripts and processes need, by the scripts themselves, and no more, by a
 * real server. The lines in the documents are those of the table.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commandsUsed } from '../../src/inspect/doctor/checks.ts';
import { type AccessRole, commandsOf, ruleOf } from '../../src/redis/connection/access.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { scriptsByVerb } from '../../src/redis/scripts/script-table.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { read, walk } from '../support/repository.ts';

const ROLES: readonly AccessRole[] = ['service', 'producer', 'reader'];
const EXAMPLE = { namespace: 'duestream', queues: ['emails'] };
/** What `doctor` does not miss: it says what it cannot see. */
const DISPENSABLE = ['client|setname', 'info'];
/** What each role sends to Redis besides what everybody does, and runs as scripts. */
const VERBS: Readonly<Record<AccessRole, readonly string[]>> = {
  service: [...scriptsByVerb.keys()],
  producer: ['declare', 'schedule', 'cancel', 'peek', 'groups', 'replay'],
  reader: ['stats', 'oldest', 'peek', 'groups', 'check-members', 'check-entries'],
};

const documented = [...read('docs/how-to/secure-redis.md').matchAll(/^ACL SETUSER (\w+) (.*)$/gm)].map(
  ([line, user = '', rules = '']) => ({ line, user, rules }),
);

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = await server.client();
});
afterAll(() => server.stop());

test('the lines of the how-to are those of the table', () => {
  const lines = ROLES.map((role) => ruleOf(role, EXAMPLE));
  expect(documented.slice(0, 3).map(({ rules }) => rules.replace(/^reset resetchannels on >SECRET-\d /, ''))).toEqual(
    lines,
  );
});

test('a foreign producer needs no more than ours, in the same places', () => {
  const text = read('docs/wire-protocol.md').replace(/\n {4}/g, ' ');
  const rule = /^ACL SETUSER producer (.*)$/m.exec(text)?.[1]?.split(' ') ?? [];
  const ours = ruleOf('producer', EXAMPLE).split(' ');
  expect(rule.length).toBeGreaterThan(10);
  expect(rule.filter((part) => /^[~&+]/.test(part) && !ours.includes(part))).toEqual([]);
  expect(ours.filter((part) => /^[~&]/.test(part) && !rule.includes(part))).toEqual([]);
  expect(inScripts(['schedule', 'cancel']).filter((name) => !rule.includes(`+${name}`))).toEqual([]);
});

describe.each(ROLES)('the role %s', (role) => {
  test('has every command that its scripts use', () => {
    expect(inScripts(VERBS[role]).filter((name) => !commandsOf(role).includes(name))).toEqual([]);
  });

  test('has none that nothing of ours sends', () => {
    const sources = walk('src').map(read).join('\n');
    const sent = (name: string) => {
      const [command = '', sub] = name.split('|');
      const call = sub ? `'${command}', '${sub}'` : `'${command}'`;
      return new RegExp(`\\.${command}\\(|${call}`, 'i').test(sources) || KNOWN_OTHERWISE.includes(name);
    };
    const scripted = inScripts(VERBS[role]);
    expect(commandsOf(role).filter((name) => !scripted.includes(name) && !sent(name))).toEqual([]);
  });

  test('is understood by Redis, and may not do what nobody needs', async () => {
    expect(await redis.call('ACL', 'SETUSER', role, 'reset', 'on', '>pw', ...ruleOf(role, EXAMPLE).split(' '))).toBe(
      'OK',
    );
    for (const command of FORBIDDEN) {
      expect(await redis.call('ACL', 'DRYRUN', role, ...command.split(' ')), command).toMatch(/no permissions|has no/);
    }
  });
});

test('a reader has no command that writes', async () => {
  const writing = (await redis.call('ACL', 'CAT', 'write')) as readonly string[];
  expect(commandsOf('reader').filter((name) => writing.includes(name))).toEqual([]);
});

test('doctor asks for every right of a service', () => {
  const asked = new Set(
    commandsUsed('t').map(([name = '', sub = '']) => (WITH_SUB.test(name) ? `${name}|${sub}` : name)),
  );
  expect([...asked, ...DISPENSABLE].sort()).toEqual(commandsOf('service'));
});

const WITH_SUB = /^(client|script|xgroup|xinfo)$/;
/** Sent by the client library: when it connects, and for scripts. */
const KNOWN_OTHERWISE = ['client|setname', 'eval', 'evalsha', 'script|load'];
const FORBIDDEN = [
  ...['flushall', 'flushdb', 'keys *', 'config get *', 'config set maxmemory 1', 'debug sleep 0', 'script flush'],
  ...['script kill', 'shutdown', 'acl whoami', 'acl setuser x', 'monitor', 'save', 'client list', 'client kill id 1'],
  ...[
    'get other',
    'hget {duestream}:v1 x',
    'get duestream',
    'spublish other x',
    'publish duestream:v1:x x',
    'select 1',
  ],
  ...['replicaof no one', 'module list', 'function flush', 'swapdb 0 1', 'dbsize', 'scan 0', 'rename a b'],
];

function inScripts(verbs: readonly string[]): readonly string[] {
  const found = verbs.flatMap((verb) => [
    ...read(`lua/${verb}.lua`).matchAll(/redis\.p?call\('([A-Z]+)'(?:, *'([A-Z]+)')?/g),
  ]);
  const names = found.map(([, name = '', sub = '']) => (WITH_SUB.test(name.toLowerCase()) ? `${name}|${sub}` : name));
  return [...new Set(names.map((name) => name.toLowerCase()))].sort();
}
