/** What happens to Redis and to its callers without their asking: see `model-commands.ts`. */
import { GROUP } from '../../src/redis/keys.ts';
import { ensureGroup } from '../../src/redis/scripts/ready.ts';
import { jobOf } from './model.ts';
import { pick } from './model-calls.ts';
import type { Resolve } from './model-commands.ts';
import type { Call, World } from './model-world.ts';

/** Bare, of ours without a record, not readable, and as long as a member may be or longer. */
const PUT = ['bare', 'bare', 'bare2', 'bare', 'not ok', 'j:ghost', 'x'.repeat(131), 'bare', 'x'.repeat(130), ''];

/** A foreign producer: plain ZADD, of a bare member or of nonsense. */
const put: Resolve = (world, [a, b]) => {
  const now = world.model.nowMs;
  const dues = [now, now, now, now + 100, now - 100, 0, 5, -3, 1e11, 99_999_999_999, now + 0.5, now - 0.5];
  return putCall(world, { member: pick(PUT, a) ?? 'bare', due: pick(dues, b) ?? now });
};

/** A member that is as large as all the members of a pass may be together, or half as large. */
const putHuge: Resolve = (world, [a]) =>
  putCall(world, { member: String(a % 4).repeat(a % 4 < 2 ? 1_048_577 : 524_288), due: world.model.nowMs });

function putCall({ redis, ref, model }: World, { member, due }: { member: string; due: number }): Call {
  return {
    verb: 'put',
    real: () => redis.zadd(ref.keys.scheduled, due, member).then(() => 'put'),
    model: () => {
      jobOf(model, member).due = due;
      return 'put';
    },
  };
}

/** Nothing of ours is lost when the scripts are: they are loaded again. */
const scriptFlush: Resolve = ({ redis }) => ({
  verb: 'scriptFlush',
  real: () => redis.script('FLUSH').then(() => 'flushed'),
  model: () => 'flushed',
});

const destroyGroup: Resolve = ({ redis, ref, model }) => {
  if (!model.group) return undefined;
  return {
    verb: 'destroyGroup',
    once: true,
    real: () => redis.xgroup('DESTROY', ref.keys.ready, GROUP),
    model: () => {
      model.group = false;
      model.regrouped = true;
      for (const entry of model.entries) Object.assign(entry, { delivered: false, holder: undefined });
      return 1;
    },
  };
};

/** Whoever reads makes the group again, at the beginning. */
const repair: Resolve = ({ redis, ref, model }) => ({
  verb: 'repair',
  real: () => ensureGroup(redis, ref.keys).then(() => 'repaired'),
  model: () => {
    model.stream = model.group = true;
    return 'repaired';
  },
});

/** Forward, and back. */
const advance: Resolve = ({ model }, [a]) => {
  model.nowMs += pick([1, 50, 100, 1000, 10_000, 51, -50, -2000], a) ?? 0;
  return undefined;
};

/** The lease of the leader lives for ever, or longer than it was taken for: the clock went back. */
const spoilLease: Resolve = ({ redis, ref, model }, [a]) => {
  const { leader } = model;
  if (!leader) return undefined;
  const spoil =
    a % 2 === 0 ? redis.persist.bind(redis, ref.keys.leader) : redis.pexpire.bind(redis, ref.keys.leader, 9e6);
  return {
    verb: 'spoilLease',
    once: true,
    real: () => spoil().then(() => 'spoiled'),
    model: () => {
      leader.sane = false;
      return 'spoiled';
    },
  };
};

/** Time passes in which nobody touches what is pending. */
const idle: Resolve = ({ redis, ref, model }) => {
  const held = model.entries.filter(({ holder }) => holder !== undefined);
  if (held.length === 0) return undefined;
  return {
    verb: 'idle',
    once: true,
    real: async () => {
      const age = (id = '', holder = '') =>
        redis.call('XCLAIM', ref.keys.ready, GROUP, holder, 0, id, 'IDLE', 7_200_000, 'JUSTID');
      await Promise.all(held.map(({ id, holder }) => age(id, holder)));
      return 'idle';
    },
    model: () => {
      for (const entry of held) entry.idle = true;
      return 'idle';
    },
  };
};

/** The clock of Redis went back: the tokens that were given are ahead of it. */
const tokenAhead: Resolve = ({ redis, ref, model }) => {
  const ahead = Math.max(model.lastToken, 3e15) + 1000;
  return {
    verb: 'tokenAhead',
    once: true,
    real: () => redis.hset(ref.keys.meta, 'token', ahead.toFixed(0)).then(() => 'ahead'),
    model: () => {
      model.lastToken = ahead;
      return 'ahead';
    },
  };
};

/** A call of the last ones is made once more, word for word. */
const repeat: Resolve = (world, [a]) => pick(world.calls, a);

/** The reply of the next call does not arrive. */
const lose: Resolve = (world) => {
  world.loseNext = true;
  return undefined;
};

/** The next call that may carry an end has one: it comes a millisecond or an hour later, or at the last moment, or in time. */
const late: Resolve = (world, [a]) => {
  world.endsInMs = pick([-1, -3_600_000, 0, 1000], a);
  return undefined;
};

export const disturbing = {
  put,
  putHuge,
  scriptFlush,
  destroyGroup,
  repair,
  advance,
  spoilLease,
  idle,
  tokenAhead,
  repeat,
  lose,
  late,
};
