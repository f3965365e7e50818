/** `groups ls`, `groups show`, and what `show` says of a job in line. */
import { beforeEach, describe, expect, test } from 'vitest';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { item, T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();
const namespace = 't';

beforeEach(async () => {
  await declareQueue(the.redis, { namespace, queue: 'q', partitions: 1, perGroup: 1 });
  await declareQueue(the.redis, { namespace, queue: 'open', partitions: 1 });
});

const due = (...args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', namespace]);
const answer = async (...args: readonly string[]) => JSON.parse((await due(...args, '--json')).out);

/** Two of acme wait behind one that runs; one of umbrella runs, and one without a group waits. */
async function busy(): Promise<void> {
  await the.scheduleAll(['{acme}1', '{umbrella}1'].map((id) => item(id)));
  await the.promote({ nowMs: T0 + 10 });
  await the.start(await the.read('w1', 1));
  await the.promote({ nowMs: T0 + 20 });
  await the.start(await the.read('w1', 1));
  await the.scheduleAll([item('{acme}2'), item('{acme}3', { late: { priority: 'high' } }), item('x'), item('y')]);
  await the.promote({ nowMs: T0 + 30 });
}

describe('groups ls', () => {
  test('says that nobody is there', async () => {
    expect(await due('groups', 'ls', 'q')).toMatchObject({ code: 0, out: 'nobody of a group waits or runs in q\n' });
    expect((await due('groups', 'ls', 'q', '--top')).out).toBe('nobody of a group waits in q\n');
  });

  test('lists groups by name, or the longest', async () => {
    await busy();
    const { code, out } = await due('groups', 'ls', 'q');
    expect(code).toBe(0);
    expect(out).toMatch(/^group +waiting +waits +running +limit\n/);
    expect(out).toMatch(/^acme +2 +\d+ d +1 +1 +full$/m);
    expect(out).toMatch(/^umbrella +0 +- +1 +1 +full$/m);
    expect(out).toMatch(/^1 job without a group in line$/m);
    const top = await answer('groups', 'ls', 'q', '--top');
    expect(top).toMatchObject({ queue: 'q', ungrouped: 1, scanned: 2, groups: [{ group: 'acme', waiting: 2 }] });
  });

  test('goes on where the page before has ended', async () => {
    await busy();
    const { out } = await due('groups', 'ls', 'q', '--limit', '1');
    const cursor = /--cursor (\S+)/.exec(out)?.[1] ?? '';
    expect((await answer('groups', 'ls', 'q', '--cursor', cursor)).groups).toMatchObject([{ group: 'umbrella' }]);
  });
});

describe('groups show', () => {
  test('says how many run and wait, and who holds the limit', async () => {
    await busy();
    const { code, out } = await due('groups', 'show', 'q', 'acme');
    expect(code).toBe(0);
    expect(out).toMatch(/^running +1 of 1: the group is full$/m);
    expect(out).toMatch(/^waiting +2: 1 high, 1 normal, 0 low priority$/m);
    expect(out).toMatch(/^holds it +since +attempt +worker\n\{acme\}1 .* ago +1 +w1$/m);
    expect(await answer('groups', 'show', 'q', 'acme')).toMatchObject({
      queue: 'q',
      group: 'acme',
      isFull: true,
      holders: [{ id: '{acme}1', owner: 'w1' }],
    });
    expect((await due('groups', 'show', 'q', 'nobody')).out).toMatch(/^waiting +nobody$/m);
  });
});

test('show says where a job stands, and who is in its way', async () => {
  await busy();
  const { out } = await due('show', 'q', '{acme}2');
  expect(out).toMatch(/^state +waiting in line, due \d+ d ago$/m);
  expect(out).toMatch(/^now\.+ {2}waits in line: it is the first in line of group acme, normal priority$/m);
  expect(out).toMatch(/^now\.+ {2}its group acme is full: 1 of 1 run$/m);
  expect(out).toMatch(/^ {26}held for .+ by \{acme\}1, on worker w1$/m);
  expect(out).toMatch(/^now\.+ {2}no worker that lives serves the queue$/m);
  const { waitsFor } = await answer('show', 'q', '{acme}2');
  expect(waitsFor).toMatchObject({
    group: 'acme',
    ahead: 0,
    obstacles: [{ kind: 'no-worker' }, { kind: 'group-full' }],
  });
});

describe('it is refused', () => {
  test.each([['ls'], ['show']])(
    'to %s the groups of a queue that is not gated: it names the way there',
    async (verb) => {
      const { code, err } = await due('groups', verb, 'open', ...(verb === 'show' ? ['acme'] : []));
      expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining('duestream queues set open --fair') });
    },
  );

  test('to list those of a queue that was never used, with the name that is most like it', async () => {
    const { code, err } = await due('groups', 'ls', 'opne');
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('did you mean open?') });
  });

  test('to show a group whose name none can have', async () => {
    expect(await due('groups', 'show', 'q', 'a b')).toMatchObject({
      code: 64,
      err: expect.stringContaining('group is'),
    });
  });
});
