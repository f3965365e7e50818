/**
 * Calls of two workers over HTTP that arrive in every order, also long after they were sent, as when a daemon was held up: claims,
 * the same claims again, later ones, and ends. Each start is in the answers to one claim only, and nothing is lost.
 */
import { expect, test } from 'vitest';
import type { Handed } from '../../src/redis/scripts/replies.ts';
import { item, T0, usePartition } from '../support/partition.ts';

const p = usePartition();
const IDS = ['a', 'b', 'c', 'd'];

/** `1 2`: the second claim of the first worker; with a bang: what an answer to it had has ended. */
const CALLS = ['1 1', '1 1', '1 2', '2 1', '2 1', '1 1!'] as const;

function ordersOf(words: readonly string[]): readonly (readonly string[])[] {
  if (words.length === 0) return [[]];
  const firsts = words.filter((word, at) => words.indexOf(word) === at);
  return firsts.flatMap((first) => ordersOf(words.toSpliced(words.indexOf(first), 1)).map((rest) => [first, ...rest]));
}

const startsIn = ({ taken }: Handed) =>
  taken.flatMap((one) => ('record' in one ? [{ entry: one.entry, member: one.member, token: one.token }] : []));

async function play(order: readonly string[]) {
  await p.reset();
  await p.scheduleAll(IDS.map((id) => item(id)));
  await p.promote();
  const claimOf = new Map<string, string>();
  const jobOf = new Map<string, string>();
  const last = new Map<string, ReturnType<typeof startsIn>>();
  const done = new Set<string>();
  for (const call of order) {
    const claim = call.replace('!', '');
    const [worker = '', seq] = claim.split(' ');
    const ended = call.endsWith('!') ? (last.get(claim) ?? []).map((one) => ({ ...one, mark: '' })) : [];
    const ask = { ended, given: [], take: 1, lane: 0, seq: Number(seq) };
    const settings = { consumer: `h-${worker}`, bytesMax: 1_000_000, windowMs: 60_000, nowMs: T0 };
    const handed = await p.jobs.hand(p.ref, ask, settings);
    expect(handed.completed).toBeUndefined();
    for (const { member } of ended) done.add(member);
    for (const { token, member } of startsIn(handed)) {
      expect([order, token, claimOf.get(token) ?? claim]).toEqual([order, token, claim]);
      expect([order, member, jobOf.get(token) ?? member]).toEqual([order, member, member]);
      expect(done.has(member)).toBe(false);
      claimOf.set(token, claim);
      jobOf.set(token, member);
    }
    if (handed.word !== 'superseded') last.set(claim, startsIn(handed));
  }
  return { jobOf, done };
}

test('in whatever order calls arrive, each start is of one claim, and each job runs once or waits', async () => {
  const orders = ordersOf(CALLS);
  expect(orders.length).toBe(180);
  for (const order of orders) {
    const { jobOf, done } = await play(order);
    // No two starts are of one job: nobody has lost one here.
    expect([order, new Set(jobOf.values()).size]).toEqual([order, jobOf.size]);
    const { jobs = {}, runs = {}, pending = {} } = await p.picture();
    const held = Object.values(pending).flat();
    expect([order, Object.keys(runs).toSorted()]).toEqual([order, held.toSorted()]);
    for (const id of IDS) expect(jobs[`j:${id}`]).toBe(done.has(`j:${id}`) ? 'tombstone done' : 'record');
  }
});
