/** What an operator does with limits that several queues share: defines, changes, looks at, checks and removes them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { controlKeys, limitKeys } from '../../../src/redis/keys.ts';
import { lend } from '../../../src/redis/scripts/lending.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue, setQueue, sharedLimitsIn } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { usePartition } from '../../support/partition.ts';

const namespace = 't';
const cli = useCli();
const the = usePartition();

beforeEach(async () => {
  await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1 });
});

const due = (...args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', namespace]);
const answer = async (...args: readonly string[]) => JSON.parse((await due(...args, '--json')).out);
const ledgerOf = (name: string) => limitKeys(namespace, name);
const defined = async (name: string) => {
  const found = (await sharedLimitsIn(the.redis, namespace)).all.find((limit) => limit.name === name);
  if (!found) throw new Error(`${name} is not defined`);
  return found;
};
/** The leader of a partition asks for places, and is lent these. */
async function borrow(name: string, row: string, need: number) {
  const ask = { row, epoch: 1, seq: 1, want: 0, need };
  return lend(the.redis, ledgerOf(name), { limit: await defined(name), ask });
}
const shareOf = async (name: string, row: string) =>
  Number((await the.redis.hget(ledgerOf(name).ledger, row))?.split(' ')[2]);
/** The leader of that row has been silent for two minutes. */
async function silent(name: string, row: string): Promise<void> {
  const words = (await the.redis.hget(ledgerOf(name).ledger, row))?.split(' ') ?? [];
  words[4] = String(Date.now() - 120_000);
  await the.redis.hset(ledgerOf(name).ledger, row, words.join(' '));
}

describe('limits set', () => {
  test('defines a limit, tells its ledger, and says how a queue names it', async () => {
    const { code, out } = await due('limits', 'set', 'provider', '--rate', '10/s', '--burst', '5');
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(
        /^limit provider is 10\/s.* from now on\na queue shares it: duestream queues set <queue> --limits provider\n$/,
      ),
    });
    expect(await the.redis.hget(ledgerOf('provider').ledger, 'rule')).toBe('1 r 100000.000 5');
    expect((await due('limits', 'set', 'provider', '--rate', '10/s', '--burst', '5')).out).toMatch(
      /^limit provider was 10\/s.* already$/m,
    );
  });

  test('changes it, with the reason and who did it in the audit', async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    const done = await answer('limits', 'set', 'licences', '--concurrency', '5', '--reason', 'we bought two');
    expect(done).toMatchObject({ name: 'licences', changed: true, before: { concurrency: 3 }, concurrency: 5 });
    expect(await the.redis.hget(ledgerOf('licences').ledger, 'rule')).toBe('2 c 0.000 5');
    const { entries } = await answer('admin', 'audit');
    expect(entries[0]).toMatchObject({ verb: 'limits.set', target: 'licences', reason: 'we bought two', count: 1 });
  });

  test.each([
    [['provider'], 'say what to set: either --rate 10/s or --concurrency 5'],
    [['provider', '--rate', '10/s', '--concurrency', '3'], 'say what to set: either --rate 10/s or'],
    [['provider', '--concurrency', '3', '--burst', '2'], '--burst goes with --rate'],
    [['Provider!', '--concurrency', '3'], 'Provider!'],
  ])('of %j is refused', async (args, words) => {
    const { code, err } = await due('limits', 'set', ...args);
    expect(code).not.toBe(0);
    expect(err).toContain(words);
    expect(await the.redis.hget(controlKeys(namespace).queues, ':limits')).toBeNull();
  });
});

describe('limits ls', () => {
  test('says that there is none, and how to define one', async () => {
    expect((await due('limits', 'ls')).out).toBe(
      'queues share no limit\ndefine one: duestream limits set <name> --rate 10/s\n',
    );
  });

  test('says who names each of them, and who has how much', async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    await due('limits', 'set', 'provider', '--rate', '10/s');
    await due('queues', 'set', 'q', '--limits', 'licences');
    await borrow('licences', 'q:0', 2);
    const { out } = await due('limits', 'ls');
    expect(out).toMatch(/^licences: 3 at once, 2 lent; named by q$/m);
    expect(out).toMatch(/^ {2}q +0 +2 +2$/m);
    expect(out).toMatch(/^provider: 10\/s; no queue names it$/m);
    const { limits } = await answer('limits', 'ls');
    expect(limits).toMatchObject([
      {
        ...{ name: 'licences', concurrency: 3, text: '3 at once', queues: ['q'], lent: 2 },
        partitions: [{ queue: 'q', partition: 0, share: 2, need: 2 }],
      },
      { name: 'provider', text: '10/s', queues: [], lent: 0, partitions: [] },
    ]);
  });
});

describe('limits rm', () => {
  test('takes away a limit that no queue names, with its ledger', async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    expect(await due('limits', 'rm', 'licences')).toMatchObject({ code: 0, out: 'limit licences is gone\n' });
    expect(await the.redis.exists(ledgerOf('licences').ledger)).toBe(0);
    expect((await due('limits', 'rm', 'licences')).out).toBe('there is no limit licences\n');
  });

  test('refuses one that a queue names, and says how to take it from the queue', async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    await due('queues', 'set', 'q', '--limits', 'licences');
    expect(await due('limits', 'rm', 'licences')).toMatchObject({
      code: 64,
      err: expect.stringContaining(
        'limit licences is named by q; nothing was changed. "duestream queues set q --limits none" takes it from a queue',
      ),
    });
    await due('queues', 'set', 'q', '--limits', 'none');
    expect((await due('limits', 'rm', 'licences')).code).toBe(0);
  });

  test('leaves the revision behind, so a limit of the same name is a later one', async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    await due('limits', 'rm', 'licences');
    await due('limits', 'set', 'licences', '--concurrency', '4');
    expect(await the.redis.hget(ledgerOf('licences').ledger, 'rule')).toBe('2 c 0.000 4');
  });
});

describe('limits check', () => {
  beforeEach(async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    await borrow('licences', 'q:0', 2);
  });
  const check = async () => (await due('limits', 'check')).out;

  test('leaves what a partition has that names the limit', async () => {
    await due('queues', 'set', 'q', '--limits', 'licences');
    await silent('licences', 'q:0');
    expect(await check()).toBe('no partition has places of a limit that it does not name\n');
    expect(await shareOf('licences', 'q:0')).toBe(2);
  });

  test('of a limit that there is not says so', async () => {
    expect(await due('limits', 'check', 'licenses')).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no limit licenses; "duestream limits ls" names all of them'),
    });
  });

  test('leaves what a leader asked for a moment ago: it gives back by itself', async () => {
    expect(await check()).toMatch(/^limit licences: partition 0 of q has 2 places and asked within a minute: /);
    expect(await shareOf('licences', 'q:0')).toBe(2);
  });

  test('frees what nobody uses', async () => {
    await silent('licences', 'q:0');
    expect(await check()).toBe('limit licences: partition 0 of q had 2 places that nobody used, and has none now\n');
    expect(await shareOf('licences', 'q:0')).toBe(0);
    expect(await check()).toBe('no partition has places of a limit that it does not name\n');
  });

  test('leaves as many as there are jobs that may be from before', async () => {
    await the.running('a');
    await silent('licences', 'q:0');
    expect(await check()).toMatch(
      /^limit licences: partition 0 of q keeps 1 place, as jobs run there .*, and 1 place more is free again/,
    );
    expect(await shareOf('licences', 'q:0')).toBe(1);
  });

  test('leaves what a partition still keeps to, although its queue does not name it', async () => {
    await the.redis.hset(the.keys.meta, 'gates', '0 1 0 0 llicences');
    await silent('licences', 'q:0');
    expect(await check()).toMatch(/asked within a minute/);
    await the.redis.hdel(the.keys.meta, 'gates');
  });

  test('frees what a partition has that is not there any more', async () => {
    await borrow('licences', 'gone:7', 1);
    await silent('licences', 'gone:7');
    const { strays } = await answer('limits', 'check', 'licences');
    expect(strays).toMatchObject([
      { queue: 'gone', partition: 7, share: 1, freed: 1, status: 'freed' },
      { queue: 'q', partition: 0, freed: 0, status: 'asking' },
    ]);
    expect(await shareOf('licences', 'gone:7')).toBe(0);
  });
});

test('queues rm frees what ledgers have lent to the partitions of the queue', async () => {
  await due('limits', 'set', 'licences', '--concurrency', '3');
  await due('queues', 'set', 'q', '--limits', 'licences');
  await borrow('licences', 'q:0', 2);
  expect(await due('queues', 'rm', 'q')).toMatchObject({ code: 0 });
  expect(await shareOf('licences', 'q:0')).toBe(0);
  expect((await answer('limits', 'ls')).limits).toMatchObject([{ name: 'licences', lent: 0, queues: [] }]);
});

describe('a queue that names limits', () => {
  const meta = async (field: string) => the.redis.hget(the.keys.meta, field);
  beforeEach(() => due('limits', 'set', 'provider', '--rate', '10/s'));

  test('has the names and a mark for older processes in its partitions, which a pause keeps', async () => {
    await due('queues', 'set', 'q', '--limits', 'provider');
    expect(await meta('gates')).toBe('0 1 0 0 lprovider');
    expect(await meta('paused')).toBe('!0.3.0');
    await due('queues', 'pause', 'q', '--reason', 'moving');
    expect(await meta('paused')).toMatch(/^!0\.3\.0 .*moving/);
    await due('queues', 'resume', 'q');
    expect(await meta('paused')).toBe('!0.3.0');
    await due('queues', 'set', 'q', '--limits', 'none');
    expect(await meta('paused')).toBeNull();
  });

  test('is refused while an older process lives that would start none of its jobs', async () => {
    const identity = { id: 'w', role: 'worker' as const, host: 'mill', pid: 7, startedMs: Date.now(), queues: ['q'] };
    await beat(the.redis, { namespace, identity, ttlMs: 60_000 });
    expect((await due('queues', 'set', 'q', '--limits', 'provider')).err).toContain(
      'queue q cannot have limits that other queues share while worker w on mill lives, which has duestream of before 0.2.0',
    );
    await setQueue(the.redis, { namespace, queue: 'q', limits: [] });
  });

  test('is told where one is not defined, and where there are too many', async () => {
    expect((await due('queues', 'set', 'q', '--limits', 'other')).err).toContain(
      'queue q names limit other, which is not defined; these are: provider. Define it first: duestream limits set other --rate 10/s',
    );
    expect((await due('queues', 'set', 'q', '--limits', 'a,b,c')).err).toContain(
      'limits is "a", "b", "c"; allowed: at most 2 names of limits',
    );
    expect(await meta('gates')).toBeNull();
  });
});

describe('doctor', () => {
  const limits = async (...args: readonly string[]) => {
    const { checks } = await answer('doctor', ...args);
    return checks.find(({ check }: { readonly check: string }) => check === 'limits');
  };

  test('names a limit that a queue names and nobody defined', async () => {
    await due('limits', 'set', 'provider', '--rate', '10/s');
    await setQueue(the.redis, { namespace, queue: 'q', limits: ['provider'] });
    expect(await limits()).toMatchObject({ status: 'ok' });
    await the.redis.hdel(controlKeys(namespace).queues, ':limits');
    expect(await limits()).toMatchObject({
      status: 'warn',
      saw: '"q" names limit provider, which is not defined, so none of its jobs start',
      advice:
        'define it: duestream limits set provider --rate 10/s; or take it from the queue: duestream queues set q --limits none',
    });
  });

  test('names a file that says another limit than the one that holds, and who said that', async () => {
    const file = join(cli.folder, 'other.yaml');
    writeFileSync(file, 'sharedLimits:\n  provider: { rate: 20/s }\n');
    expect(await limits('--config', file)).toMatchObject({ status: 'ok' });
    await due('limits', 'set', 'provider', '--rate', '10/s');
    expect(await limits('--config', file)).toMatchObject({
      status: 'warn',
      saw: expect.stringMatching(/^limit provider is 10\/s, as .* said 20.*Z, and this file says 20\/s$/),
      advice: 'say the same in all files, and start a daemon, or set it: duestream limits set provider --rate 20/s',
    });
    await due('limits', 'set', 'provider', '--rate', '20/s');
    expect(await limits('--config', file)).toMatchObject({ status: 'ok' });
  });

  test('names places that a partition has which does not name the limit, and the command that frees them', async () => {
    await due('limits', 'set', 'licences', '--concurrency', '3');
    await due('limits', 'set', 'provider', '--rate', '10/s');
    await due('queues', 'set', 'q', '--limits', 'provider');
    await borrow('licences', 'gone:0', 2);
    expect(await limits()).toMatchObject({
      status: 'warn',
      saw: 'limit licences has lent 2 places of 3 to gone:0, which does not name it any more',
      advice: 'take back what nobody uses there: duestream limits check licences',
    });
  });
});
