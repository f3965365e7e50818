/**
 * Workers over HTTP whose answers are lost at random, over two daemons: every call is sent again until it is read. No token is
 * in the answers to two claims, every job is done, and nothing stays behind.
 */
import { expect, test } from 'vitest';
import { defineQueue } from '../../../src/job/queue.ts';
import type { ClaimedJob } from '../../../src/remote/claimed-job.ts';
import { ended, type RemoteWorker, useRemote } from '../../support/remote.ts';

const remote = useRemote({ daemons: 2, partitions: 2 });
const IDS = Array.from({ length: 150 }, (_, at) => `{g${at % 7}}job-${at}`);
const SEEDS = [1, 2, 3];

/** Numbers from 0 to 1 that follow from a seed. */
function numbersOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** Sends a call until an answer is read: two of five answers are lost. */
function lossyLine(worker: RemoteWorker, random: () => number) {
  const send = async (verb: string, body: object) => {
    const answered = await worker.call(remote.at(random() < 0.5 ? 0 : 1), verb, body);
    expect(answered.status).toBe(200);
    return random() > 0.4 ? answered.body : undefined;
  };
  return async (verb: string, body: object) => {
    let answer = await send(verb, body);
    while (answer === undefined) answer = await send(verb, verb === 'claim' ? { ...body, again: true } : body);
    return answer;
  };
}

const isDone = (word: string): boolean => word === 'ok' || word === 'already';

test.each(SEEDS)(
  'whatever answers are lost, each token is of one claim, and every job is done (seed %i)',
  async (seed) => {
    const queue = defineQueue(remote.queue, { partitions: 2, perGroup: 1 });
    await remote.client().scheduleMany(
      queue,
      IDS.map((id) => ({ data: null, id, delay: 0 })),
    );
    const claimOf = new Map<string, string>();
    const done = new Set<string>();

    const note = (claim: string, jobs: readonly ClaimedJob[]) => {
      for (const { token } of jobs) {
        expect([token, claimOf.get(token) ?? claim]).toEqual([token, claim]);
        claimOf.set(token, claim);
      }
    };
    async function work(worker: RemoteWorker, random: () => number): Promise<void> {
      const line = lossyLine(worker, random);
      for (let seq = 1; done.size < IDS.length; seq += 1) {
        const max = 1 + Math.floor(random() * 9);
        const { jobs }: { jobs: readonly ClaimedJob[] } = await line('claim', { seq, max, wait: '100ms' });
        note(`${worker.name} ${seq}`, jobs);
        if (jobs.length === 0) continue;
        const { results } = await line('settle', { runs: jobs.map((job) => ended(job)) });
        for (const [at, word] of results.entries()) if (isDone(word)) done.add(jobs[at]?.id ?? '');
      }
    }

    const random = numbersOf(seed);
    await Promise.all(
      Array.from({ length: 3 }, () => work(remote.worker(), numbersOf(Math.floor(random() * 2 ** 31)))),
    );
    expect(done.size).toBe(IDS.length);
    for (const partition of [0, 1]) {
      const { ready, pending, runs } = await remote.picture(partition);
      expect([ready, pending, runs]).toEqual([undefined, undefined, undefined]);
    }
  },
);
