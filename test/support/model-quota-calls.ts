/** Limits that are set and bytes that are counted, on Redis and on the model. */
import { allot as allotOn, UNWEIGHED, type Weighing, weigh as weighOn } from '../../src/redis/scripts/quotas.ts';
import { type Entry, type Job, jobOf, type Model, tombstoneText } from './model.ts';
import { pick, termOf } from './model-calls.ts';
import type { Resolve } from './model-commands.ts';
import { thereIn } from './model-quota.ts';

/** The limits that are set, by whoever sets them, by the leader, or by one that was deposed. */
const allot: Resolve = (world, [a, b, c]) => {
  const { redis, ref, model, items } = world;
  const size = items[0]?.record.length ?? 0;
  const bytes = pick([0, 0, 0, 0, 1000, size - 1, size, size + 1, 2 * size, 2 * size - 1], c) ?? 0;
  const quota = { pending: pick([0, 1, 2, 3], b) ?? 0, bytes };
  const term = a % 3 === 0 ? undefined : termOf(world, a % 3 === 2);
  return {
    verb: 'allot',
    real: () => allotOn(redis, ref, { quota, term }),
    model: () => {
      if (term !== undefined && term !== model.leader?.term) return 'fenced';
      const before = model.quota ?? { pending: 0, bytes: 0 };
      if (before.pending === quota.pending && before.bytes === quota.bytes) return 'same';
      if (bytes === 0) model.held = undefined;
      model.quota = quota.pending + quota.bytes === 0 ? undefined : quota;
      return 'ok';
    },
  };
};

/** More slices than any list of commands fills: who loops is told apart. */
const SLICES_MAX = 100;

/** All slices of a count, of 500 jobs or of few. */
const weigh: Resolve = ({ redis, ref, model }, [a, b]) => {
  const limit = pick([500, 1, 2], a) ?? 500;
  const mode = pick(['note', 'look', 'mend'] as const, b) ?? 'note';
  const lengthOf = (job: Job): number =>
    job.record?.length ?? (job.tombstone === undefined ? 0 : tombstoneText(job.tombstone).length);
  return {
    verb: 'weigh',
    async real() {
      let spot: Weighing = UNWEIGHED;
      for (let slices = 0; slices < SLICES_MAX; slices += 1) {
        const reply = await weighOn(redis, ref, spot, { limit, mode });
        if (reply.kind !== 'more') return reply;
        spot = reply;
      }
      return 'endless';
    },
    model: () => {
      if (!model.quota) return { kind: 'unlimited' };
      const waiting = [...model.jobs.values()].filter(({ due }) => due !== undefined);
      const ready = model.entries.filter((entry) => !isLeft(model, entry)).map(({ member }) => jobOf(model, member));
      const all = [...waiting, ...ready];
      const bytes = all.reduce((sum, job) => sum + lengthOf(job), 0);
      const isAll = waiting.length + model.entries.length <= limit;
      if (mode !== 'look') model.held = noted(model, { mode, isAll, bytes, count: all.length });
      return { kind: 'weighed', bytes, count: all.length };
    },
  };
};

/** An entry of ready that its job has left behind. */
const isLeft = ({ stale }: Model, { id, member }: Entry): boolean =>
  Number(id?.split('-')[0]) < (stale.get(member) ?? Number.NEGATIVE_INFINITY);

/** What stands there after a count. */
function noted(model: Model, of: { mode: 'note' | 'mend'; isAll: boolean; bytes: number; count: number }) {
  if (of.isAll) return { weight: of.bytes, count: of.count };
  const there = thereIn(model);
  const found = Math.floor((of.bytes * there) / Math.max(1, of.count));
  const { held } = model;
  if (of.mode === 'note' || held?.count !== there) return { weight: found, count: there };
  const most = held.weight / 16;
  const by = Math.max(-most, Math.min(most, found - held.weight));
  return { weight: Math.floor(held.weight + by), count: there };
}

export const limiting = { allot, weigh };
