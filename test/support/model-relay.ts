/** A pass of a leader that is a turn of its worker as well, on Redis and on the model: see `model-commands.ts`. */
import type { LeadersPass, PromoteReply } from '../../src/redis/scripts/passes.ts';
import type { Served } from '../../src/redis/scripts/replies.ts';
import type { Model } from './model.ts';
import { limitsOf, merged, pick, roomFor, termOf } from './model-calls.ts';
import type { Resolve } from './model-commands.ts';
import { reweighed } from './model-quota.ts';
import { complete } from './model-settles.ts';
import * as verbs from './model-verbs.ts';
import * as worker from './model-worker.ts';
import { consumerOf, endedOf, inOrder, learnTaken, mintOf, takenIn, windowOf } from './model-worker-calls.ts';

type Relayed = Served & { readonly promoted: PromoteReply };

export const relay: Resolve = (world, [a, b, c]) => {
  const { jobs, ref, model } = world;
  const consumer = consumerOf(a);
  const ended = a < 6 ? [] : endedOf(world, [a, b, c]);
  const take = pick([2, 1, 3, 80], b + c) ?? 1;
  const { limit, cap, prolongs } = limitsOf(b, c);
  const term = termOf(world, a % 6 === 5);
  const pass = { term, limit, cap, leaseMs: prolongs ? verbs.LIMITS.leaseMs : undefined };
  const bytesMax = roomFor(world, [...model.jobs.keys()], c);
  const call = { consumer, bytesMax, windowMs: windowOf(c), suspects: c % 6 < 3 ? c % 6 : 0 };
  return {
    verb: 'relay',
    real: async () => {
      const relayed = await jobs.relay(ref, { ended, take, pass }, { ...call, nowMs: model.nowMs });
      const refusal = relayed.refusal?.startsWith(worker.NO_GROUP) ? worker.NO_GROUP : relayed.refusal;
      return { ...relayed, refusal, taken: inOrder(relayed.taken), promoted: byLateness(relayed.promoted) };
    },
    model: (reply) => {
      const relayed = relayOn(model, { ended, take, pass, prolongs, reply }, { ...call, mint: mintOf(reply) });
      return { ...relayed, taken: inOrder(relayed.taken) };
    },
    windowMs: call.windowMs,
    otherwise: async () => {
      if (ended.length > 0) await jobs.complete(ref, ended, { ...call, nowMs: model.nowMs });
      await jobs.promote(ref, { ...pass, nowMs: model.nowMs });
    },
    learn: (reply) => learnTaken(world, { consumer, taken: takenIn(reply) }),
  };
};

interface Relaying extends Omit<worker.Serving, 'given'> {
  readonly pass: LeadersPass;
  readonly prolongs: boolean;
  /** Of Redis, which names the entries. */
  readonly reply: unknown;
}

/** The same as complete, promote and serve, one after the other; without the term, complete alone. */
function relayOn(model: Model, asked: Relaying, call: worker.Start): Relayed {
  const { ended } = asked;
  const replies = reweighed(model, 'complete', () => complete(model, ended, { windowMs: call.windowMs, hold: false }));
  const passed = reweighed(model, 'promote', () => passOn(model, asked, call));
  const completed = replies.every((one) => one === 'ok') ? undefined : replies;
  return { ...passed, completed };
}

function passOn(model: Model, { take, pass, prolongs, reply }: Relaying, call: worker.Start): Relayed {
  const promoted = verbs.promote(model, { ...pass, prolongs });
  const isAsked = promoted.kind !== 'fenced' && promoted.backlog > 0;
  if (!isAsked) return { completed: undefined, taken: [], delivered: 0, refusal: undefined, promoted };
  const fresh = model.entries.filter(({ delivered }) => !delivered);
  for (const [at, { entry }] of inOrder(takenIn(reply)).entries()) if (fresh[at]) fresh[at].id ??= entry;
  const served = worker.serve(model, { ended: [], given: [], take }, call);
  if (typeof served === 'string') throw new Error('nothing was given, so no group is asked for it');
  return { ...served, promoted };
}

const byLateness = (reply: PromoteReply): PromoteReply =>
  reply.kind === 'fenced' ? reply : { ...reply, lateness: merged(reply.lateness) };
