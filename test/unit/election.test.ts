/** What a leader may believe, with a Redis whose replies come when the test says so. */
import { expect, it } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import { Election } from '../../src/mover/election/election.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { handClock } from '../support/mover-line.ts';

const LEASE_MS = 5000;
const TERM = `me:7:${LEASE_MS}`;
const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });

type Answers = { elect?: () => unknown; renew?: () => unknown; resign?: () => unknown; left?: () => unknown };

/** An election of `me`; each script answers what the test says, and the calls are kept. */
function electionOf(answers: Answers = {}, rank = 0) {
  const clock = handClock();
  const events = createEmitter();
  const said: string[] = [];
  events.on('leader.elected', ({ epoch }) => said.push(`elected ${epoch}`));
  events.on('leader.lost', ({ why }) => said.push(`lost: ${why}`));
  const calls: string[] = [];
  const script = (verb: keyof Answers, otherwise: unknown) => async () => {
    calls.push(verb);
    return answers[verb]?.() ?? otherwise;
  };
  const redis = {
    duestream_elect: script('elect', ['elected', TERM, 1]),
    getex: script('renew', TERM),
    pttl: script('left', -2),
    duestream_resign: script('resign', 'ok'),
  } as unknown as Redis;
  const election = new Election({
    redis,
    ref,
    processId: 'me',
    leaseMs: LEASE_MS,
    clock,
    events,
    order: { rank: () => rank, betterBeatSince: async () => true, isOlder: () => false },
  });
  return Object.assign(election, { answers, clock, said, calls });
}

it('the elected one leads until its trust runs out, a margin before its lease', async () => {
  const election = electionOf();
  expect(election.leading()).toBeUndefined();
  expect(await election.campaign()).toBe(0);
  expect(election.leading()).toMatchObject({ term: TERM, epoch: 7 });
  election.clock.advance(LEASE_MS - 501);
  expect(election.leading()).toBeDefined();
  election.clock.advance(1);
  expect(election.leading()).toBeUndefined();
  expect(election.said).toEqual(['elected 7', 'lost: the trust window ran out']);
});

it('a slow reply cannot stretch the trust: it counts from before the request', async () => {
  const slow = electionOf();
  slow.answers.renew = () => {
    slow.clock.advance(4000);
    return TERM;
  };
  await slow.campaign();
  slow.clock.advance(499);
  expect(slow.leading()).toBeDefined();
  slow.clock.advance(1);
  expect(slow.leading()).toBeUndefined();
});

it('a renewal whose reply took longer than the lease does not make a leader', async () => {
  const slow = electionOf();
  await slow.campaign();
  slow.answers.renew = () => {
    slow.clock.advance(LEASE_MS + 1);
    return TERM;
  };
  await slow.renew();
  expect(slow.leading()).toBeUndefined();
});

it('a renewal in time prolongs the trust without a new election', async () => {
  const election = electionOf();
  await election.campaign();
  for (let times = 0; times < 5; times += 1) {
    election.clock.advance(3000);
    await election.renew();
    expect(election.leading()).toBeDefined();
  }
  expect(election.said).toEqual(['elected 7']);
});

it('a lost lease and a renewal without a reply both end the leadership', async () => {
  const lost = electionOf();
  await lost.campaign();
  lost.answers.renew = () => 'other:8:5000';
  await lost.renew();
  expect(lost.leading()).toBeUndefined();
  const silent = electionOf();
  await silent.campaign();
  silent.answers.renew = () => Promise.reject(new Error('Command timed out'));
  await expect(silent.renew()).rejects.toThrow('timed out');
  expect(silent.leading()).toBeUndefined();
  expect(silent.said).toEqual(['elected 7', 'lost: the renewal got no reply']);
});

it('a lease that was lost between election and renewal is tried for again at once', async () => {
  const election = electionOf({ renew: () => 'other:8:5000' });
  expect(await election.campaign()).toBe(0);
  expect(election.leading()).toBeUndefined();
  expect(election.said).toEqual([]);
});

it.each([
  ['comes back when the lease runs out', 0, 3000, 3010],
  ['waits a little longer for each rank', 4, 3000, 3170],
  ['never waits longer than its own lease', 0, 86_400_000, 5010],
  ['does not spin when the lease ends just now', 0, 0, 20],
])('a follower %s', async (_what, rank, ttlMs, waitMs) => {
  const election = electionOf({ elect: () => ['held', 'other:9:5000', ttlMs] }, rank);
  expect(await election.campaign()).toBe(waitMs);
  expect(election.leading()).toBeUndefined();
});

it('resigning gives the term back once, and also one that was conceded for want of a reply', async () => {
  const election = electionOf();
  await election.resign('stopped');
  expect(election.calls).toEqual([]);
  await election.campaign();
  election.concede('promote got no reply');
  await election.resign('stopped');
  await election.resign('stopped');
  expect(election.calls).toEqual(['elect', 'renew', 'resign']);
  expect(election.said).toEqual(['elected 7', 'lost: promote got no reply']);
});

it('being elected again under the same term is told as one more election', async () => {
  const election = electionOf();
  await election.campaign();
  election.concede('promote got no reply');
  await election.campaign();
  expect(election.said).toEqual(['elected 7', 'lost: promote got no reply', 'elected 7']);
});

it('a follower asks for what is left of the lease, and calls for an election when it has ended or cannot be right', async () => {
  const election = electionOf({ elect: () => ['held', 'other:9:5000', 3000] });
  const left = [2000, -2, LEASE_MS + 1, -1];
  election.answers.left = () => left.shift();
  expect(await election.campaign()).toBe(3010);
  expect(await election.campaign()).toBe(2010);
  expect(election.calls).toEqual(['elect', 'left']);
  for (let nth = 0; nth < 3; nth += 1) expect(await election.campaign()).toBe(3010);
  expect(election.calls.slice(2)).toEqual(['left', 'elect', 'left', 'elect', 'left', 'elect']);
});
