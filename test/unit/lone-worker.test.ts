/** Which worker is the only one of a queue, and lives in the process of a leader. */
import { expect, test } from 'vitest';
import { LoneWorker } from '../../src/mover/promotion/lone-worker.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import type { LeadersPass, Passed } from '../../src/redis/scripts/passes.ts';
import type { Identity } from '../../src/redis/scripts/presence.ts';

const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
const pass: LeadersPass = { term: 'm:1:1000', leaseMs: undefined, limit: 5, cap: 10 };
const worker = (id: string, ...queues: readonly string[]): Identity => ({
  id,
  role: 'worker',
  host: 'here',
  pid: 1,
  startedMs: 0,
  queues,
});
const daemon: Identity = { ...worker('d'), role: 'daemon' };
const near = {
  consumer: 'w1',
  relay: async (): Promise<Passed> => ({ reply: { kind: 'fenced' }, receivedMs: 0, limit: 1 }),
};

function isRelayed(living: readonly Identity[]): boolean {
  const lone = new LoneWorker(() => near);
  lone.see(living);
  return lone.relay(ref, pass) !== undefined;
}

test('a pass is relayed to the only worker of its queue, if it lives in this process', () => {
  expect(isRelayed([daemon, worker('w1', 'q')])).toBe(true);
  expect(isRelayed([daemon, worker('w1', 'q'), worker('w2', 'other')])).toBe(true);
  expect(isRelayed([daemon, worker('w1', 'q'), worker('w2', 'other', 'q')])).toBe(false);
  expect(isRelayed([daemon, worker('w1', 'q'), worker('w2', 'q'), worker('w3', 'q')])).toBe(false);
  expect(isRelayed([daemon, worker('w2', 'q')])).toBe(false);
  expect(isRelayed([daemon, worker('w1', 'other')])).toBe(false);
  expect(isRelayed([daemon])).toBe(false);
});

test('without a worker in this process nothing is relayed', () => {
  const lone = new LoneWorker(() => undefined);
  lone.see([worker('w1', 'q')]);
  expect(lone.relay(ref, pass)).toBeUndefined();
});

test('jobs are offered ahead unless a worker of the queue cannot hold them', () => {
  const lone = new LoneWorker(() => undefined);
  const canHold = (...living: readonly Identity[]) => {
    lone.see(living);
    return lone.canHold('q');
  };
  const old = worker('w2', 'q', 'other');
  const holding = (id: string) => ({ ...worker(id, 'q'), holds: true });
  expect(canHold()).toBe(true);
  expect(canHold(daemon, holding('w1'), holding('w3'))).toBe(true);
  expect(canHold(holding('w1'), old)).toBe(false);
  expect(canHold(holding('w1'), { ...old, queues: ['other'] })).toBe(true);
  expect(canHold(daemon)).toBe(true);
});

test('who comes and goes is seen', () => {
  const lone = new LoneWorker(() => near);
  const isRelayed = () => lone.relay(ref, pass) !== undefined;
  lone.see([worker('w1', 'q')]);
  expect(isRelayed()).toBe(true);
  lone.see([worker('w1', 'q'), worker('w2', 'q')]);
  expect(isRelayed()).toBe(false);
  lone.see([worker('w1', 'q')]);
  expect(isRelayed()).toBe(true);
});
