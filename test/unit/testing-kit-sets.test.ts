/** The test kit plays sets by the rules of the product: `test/support/sets-tales.ts` tells the same to the scripts. */
import { expect, test } from 'vitest';
import { type SetEnds, Unrecoverable } from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';

const start = '2026-03-01T00:00:00Z';
const then = { name: 'imported', data: -1 };

function kitOf() {
  const called: (SetEnds | undefined)[] = [];
  const kit = createTestKit({
    start,
    handlers: {
      rows: {
        row: async ({ data }, { commitJob }) => {
          if (data === 0) await commitJob(10, { name: 'row', set: 'import-7', delay: '1h' });
          if (data === 1) throw new Unrecoverable('broken');
        },
        imported: ({ set }) => void called.push(set),
      },
    },
  });
  return { kit, called };
}

test('the callback runs when the last member is over, also one that a member has added', async () => {
  const { kit, called } = kitOf();
  expect((await kit.client.sets.begin('rows', 'import-7', { then })).status).toBe('made');
  for (const [nth, delay] of ['1h', '2h', '3h'].entries())
    await kit.schedule('rows', nth, { id: `row-${nth}`, name: 'row', set: 'import-7', delay });
  expect((await kit.client.sets.seal('rows', 'import-7')).status).toBe('sealed');
  await kit.advance('2h');
  expect((await kit.client.sets.list('rows')).sets).toMatchObject([{ name: 'import-7', open: 1, done: 2, dead: 1 }]);
  expect(called).toEqual([]);
  expect((await kit.client.count('rows', { set: 'import-7' })).count).toBe(1);
  await kit.client.cancel('rows', { set: 'import-7' });
  await kit.advance('1s');
  expect(called).toEqual([{ name: 'import-7', done: 2, dead: 1, cancelled: 1, expired: 0 }]);
  expect((await kit.client.sets.seal('rows', 'import-7')).status).toBe('over');
  await kit.advance('10d');
  expect(called).toHaveLength(1);
});

test('members are refused where there is no set, and nobody leaves one', async () => {
  const { kit } = kitOf();
  const late = { id: '1', name: 'row', set: 'a', delay: '1h' } as const;
  await expect(kit.schedule('rows', 5, late)).rejects.toMatchObject({ code: 'no-set' });
  await kit.client.sets.begin('rows', 'a', { then });
  expect((await kit.client.sets.begin('rows', 'a', { then })).status).toBe('already');
  await expect(kit.client.sets.begin('rows', 'a', { then: { ...then, delay: '1s' } })).rejects.toMatchObject({
    code: 'exists',
  });
  expect((await kit.schedule('rows', 5, late)).status).toBe('scheduled');
  const other = { ...late, id: '{set:a}1', set: undefined, ifExists: 'replace' } as const;
  expect((await kit.schedule('rows', 6, other)).status).toBe('exists');
  await kit.client.sets.remove('rows', 'a');
  expect(kit.jobs()).toMatchObject([{ id: '{set:a}1', state: 'cancelled' }]);
  await expect(kit.client.sets.seal('rows', 'a')).rejects.toMatchObject({ code: 'not-found' });
});

test('a name is used again when nobody of its earlier set lives, and its dead letters are of no set', async () => {
  const { kit } = kitOf();
  await kit.client.sets.begin('rows', 'a', { then });
  await kit.schedule('rows', 1, { id: 'x', name: 'row', set: 'a' });
  await kit.schedule('rows', 2, { id: 'y', name: 'row', set: 'a', delay: '1h' });
  await kit.advance('1m');
  await kit.client.sets.remove('rows', 'a');
  await kit.client.sets.begin('rows', 'a', { then });
  await kit.schedule('rows', 5, { id: 'w', name: 'row', set: 'a', delay: '1h' });
  const { deadLetters } = await kit.client.deadLetters.list('rows');
  const earlier = deadLetters.find(({ id }) => id === '{set:a}x');
  await kit.client.deadLetters.replay('rows', earlier?.deadLetter ?? '', { delay: '1h' });
  expect((await kit.client.sets.list('rows')).sets).toMatchObject([{ open: 1, dead: 0 }]);
  expect((await kit.client.count('rows', { set: 'a' })).count).toBe(1);
});

test('a replayed member is no longer dead, an empty set has its callback at once, and a delay is kept', async () => {
  const { kit, called } = kitOf();
  await kit.client.sets.begin('rows', 'import-7', { then: { ...then, delay: '2h' } });
  await kit.schedule('rows', 1, { id: 'x', name: 'row', set: 'import-7' });
  await kit.schedule('rows', 2, { id: 'y', name: 'row', set: 'import-7', delay: '1h' });
  await kit.client.sets.seal('rows', 'import-7');
  await kit.advance('1m');
  const [letter] = (await kit.client.deadLetters.list('rows')).deadLetters;
  await kit.client.deadLetters.replay('rows', letter?.deadLetter ?? '', { delay: '30m' });
  expect((await kit.client.sets.list('rows')).sets).toMatchObject([{ open: 2, dead: 0 }]);
  await kit.advance('1h');
  expect(called).toEqual([]);
  await kit.advance('2h');
  expect(called).toEqual([{ name: 'import-7', done: 1, dead: 1, cancelled: 0, expired: 0 }]);
  await kit.client.sets.begin('rows', 'empty', { then });
  await kit.client.sets.seal('rows', 'empty');
  await kit.advance('1s');
  expect(called.at(-1)).toEqual({ name: 'empty', done: 0, dead: 0, cancelled: 0, expired: 0 });
});
