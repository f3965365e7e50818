/**
 * Sets on one partition: every way in which the last member of one ends, and every other call that a set depends on. Cut off before
 * any of its writes, and made again, each ends as it would have: the callback is there once, and a count is one too high at
 * most. The scripts may be broken ones, to see whether that is noticed.
 */
import { encodeBody, encodeRecord, memberOf } from '../../src/job/codec.ts';
import type { HeaderOptions } from '../../src/job/fields.ts';
import { gateShare } from '../../src/job/gate.ts';
import { callbackId } from '../../src/job/labels.ts';
import type { GateSettings } from '../../src/job/queue-settings.ts';
import { decodeHeader } from '../../src/job/record-header.ts';
import type { Redis } from '../../src/redis/connection/connect.ts';
import type { PartitionRef } from '../../src/redis/keys.ts';
import { checkGates, GATE_PARTS, type GateFlaw, limit, mendGates } from '../../src/redis/scripts/gates.ts';
import { createJobs, type Jobs } from '../../src/redis/scripts/jobs.ts';
import { elect } from '../../src/redis/scripts/lease.ts';
import { ownPending, readEntries, readNew } from '../../src/redis/scripts/ready.ts';
import type { Claim, Delivery } from '../../src/redis/scripts/replies.ts';
import { type SetChange, tendSets } from '../../src/redis/scripts/sets.ts';
import { cutOff } from './model-cut.ts';

export const NOW = 1_763_719_000_000;
export const SET = 'import-7';
const ID = callbackId(SET, undefined);
export const CALLBACK = {
  member: memberOf(ID),
  record: encodeRecord(0, encodeBody({ name: 'imported', data: 7 })),
  delayMs: 0,
};

/** What a story calls. */
export class SetDesk {
  readonly redis: Redis;
  readonly ref: PartitionRef;
  readonly jobs: Jobs;
  readonly windowMs: number;
  readonly gates: GateSettings | undefined;
  /** The set that is meant. */
  readonly set: string;
  /** What it leads to. */
  readonly end: typeof CALLBACK;
  /** The moment of each call. */
  clock = { nowMs: NOW };
  term = '';
  given: readonly Delivery[] = [];
  claims: readonly Claim[] = [];
  deadLetter = '';

  constructor(
    redis: Redis,
    ref: PartitionRef,
    {
      windowMs = 600_000,
      gates,
      set = SET,
    }: { readonly windowMs?: number; readonly gates?: GateSettings | undefined; readonly set?: string } = {},
  ) {
    this.redis = redis;
    this.ref = ref;
    this.jobs = createJobs(redis);
    this.windowMs = windowMs;
    this.gates = gates;
    this.set = set;
    this.end = { ...CALLBACK, member: memberOf(callbackId(set, undefined)) };
  }

  /** The same partition, and another set. */
  beside(set: string): SetDesk {
    const { redis, ref, windowMs, gates, term, clock } = this;
    return Object.assign(new SetDesk(redis, ref, { windowMs, gates, set }), { term, clock });
  }

  get nowMs(): number {
    return this.clock.nowMs;
  }

  get when() {
    return { windowMs: this.windowMs, nowMs: this.nowMs };
  }

  member = (id: string): string => memberOf(`{set:${this.set}}${id}`);

  async begin(): Promise<void> {
    await this.redis.flushall();
    const { redis, ref, nowMs } = this;
    this.term = (await elect(redis, ref, { processId: 'm', leaseMs: 60_000, nowMs })).term;
    const share = this.gates && gateShare(this.gates, { partition: 0, partitions: 1 });
    if (share) await limit(redis, ref, { share, nowMs });
  }

  /** What is wrong with the line, the lanes and the holds of a queue with limits. */
  async gateFlaws(): Promise<readonly GateFlaw[]> {
    const pages = await Promise.all(GATE_PARTS.map((part) => checkGates(this.redis, this.ref, { part })));
    return pages.flatMap(({ flaws }) => flaws);
  }

  /** What the leader does with it, who comes within a minute. */
  async mendGates(): Promise<void> {
    if (this.gates) await mendGates(this.redis, this.ref, await this.gateFlaws(), this.nowMs);
  }

  #change = (change: SetChange) => this.jobs.changeSet(this.ref, change, { nowMs: this.nowMs });
  gather = (callback = this.end) => this.#change({ kind: 'gather', name: this.set, callback });
  seal = () => this.#change({ kind: 'seal', name: this.set, member: this.end.member });
  disband = () => this.#change({ kind: 'disband', name: this.set });

  async put(
    ids: readonly string[],
    { header = {}, dueMs = NOW, mode = 'keep' as 'keep' | 'replace', name = 'row', data = 1 } = {},
  ) {
    const { nowMs } = this;
    const record = encodeRecord(dueMs, encodeBody({ name, data }), { set: this.set, ...header });
    const items = ids.map((id) => ({ member: this.member(id), record, dueMs }));
    const reply = await this.jobs.schedule(this.ref, items, { mode, horizonMs: 1e12, bytesMax: 1e6, nowMs });
    return 'kind' in reply ? [] : reply.map(({ kind }) => kind);
  }

  /** Promotes, delivers and starts what is due. */
  async run(): Promise<void> {
    await this.deliver();
    await (this.gates ? this.serve() : this.start());
  }

  /** As `start`, and whoever has a turn by then. */
  async serve(): Promise<void> {
    const asked = { ended: [], given: this.given, take: 10 };
    const { taken } = await this.jobs.serve(this.ref, asked, { ...this.when, consumer: 'w', bytesMax: 1e6 });
    this.claims = taken.flatMap((one) => {
      const { entry, member } = one;
      return 'token' in one ? [{ entry, member, token: one.token }] : [];
    });
  }

  async deliver(): Promise<void> {
    await this.jobs.promote(this.ref, {
      term: this.term,
      leaseMs: undefined,
      limit: 100,
      cap: 1000,
      nowMs: this.nowMs,
    });
    const got = await readNew(this.redis, [this.ref], { consumer: 'w', count: 100, blockMs: 0 });
    this.given = got.flatMap(({ deliveries }) => deliveries);
  }

  /** What is held and nobody runs, as a worker looks for it: a call that was cut off leaves it. To be called when nothing runs. */
  async adopt(): Promise<void> {
    const pending = await ownPending(this.redis, this.ref.keys, { consumer: 'w', idleMs: 0, limit: 200 });
    this.given = await readEntries(this.redis, this.ref.keys, pending);
    await this.start();
  }

  async start(nowMs = this.nowMs): Promise<void> {
    this.claims = [];
    if (this.given.length === 0) return;
    const replies = await this.jobs.start(this.ref, this.given, { ...this.when, nowMs, consumer: 'w', bytesMax: 1e6 });
    this.claims = this.given.flatMap(({ entry, member }, at) => {
      const reply = replies[at];
      return reply && 'token' in reply ? [{ entry, member, token: reply.token }] : [];
    });
  }

  get claim(): Claim {
    const [claim] = this.claims;
    if (!claim) throw new Error('nothing runs');
    return claim;
  }

  complete = (...claims: readonly Claim[]) =>
    this.jobs.complete(
      this.ref,
      claims.map((claim) => ({ ...claim, mark: '' })),
      this.when,
    );
  cancel = (...ids: readonly string[]) =>
    this.jobs.cancel(
      this.ref,
      ids.map((id) => this.member(id)),
      this.when,
    );
  tend = () => tendSets(this.redis, this.ref, { term: this.term, after: '', limit: 50, nowMs: this.nowMs });

  /** How the callback says that members ended; undefined while there is none. */
  async callback(): Promise<readonly number[] | undefined> {
    const record = (await this.redis.hget(this.ref.keys.jobs, this.end.member)) ?? '';
    const ends = decodeHeader(record)?.setEnds;
    return ends && [ends.done, ends.dead, ends.cancelled, ends.expired];
  }

  /** What is left of the set: its fields and its entries. */
  async left(): Promise<readonly string[]> {
    const fields = (await this.redis.hkeys(this.ref.keys.jobs)).filter((name) => name.startsWith('\0'));
    const entries = (await this.redis.zrange(this.ref.keys.tags, '0', '-1')).filter((one) => one.startsWith('=set'));
    return [...fields, ...entries].map((one) => one.replaceAll('\0', ' '));
  }
}

export interface SetStory {
  readonly title: string;
  readonly verb: string;
  /** How the members ended: done, dead, cancelled, expired. */
  readonly ends: readonly number[];
  readonly reach: (desk: SetDesk) => Promise<unknown>;
  readonly call: (desk: SetDesk) => Promise<unknown>;
}

const sealed = async (desk: SetDesk, header: HeaderOptions = {}) => {
  await desk.gather();
  await desk.put(['1'], { header });
  await desk.seal();
};
const running = async (desk: SetDesk) => {
  await sealed(desk);
  await desk.run();
};
const stopped = async (desk: SetDesk) => {
  await running(desk);
  await desk.cancel('1');
};
const ended = (desk: SetDesk) => ({ ...desk.claim, mark: '' });
const bury = (desk: SetDesk) => desk.jobs.bury(desk.ref, desk.claim, { ...desk.when, reason: 'attempts', error: '' });

export const stories: readonly SetStory[] = [
  {
    title: 'the last one is done',
    verb: 'complete',
    ends: [1, 0, 0, 0],
    reach: running,
    call: (desk) => desk.jobs.complete(desk.ref, [ended(desk)], desk.when),
  },
  {
    title: 'the last two are done at once',
    verb: 'complete',
    ends: [2, 0, 0, 0],
    async reach(desk) {
      await desk.gather();
      await desk.put(['1', '2']);
      await desk.seal();
      await desk.run();
    },
    call: (desk) =>
      desk.jobs.complete(
        desk.ref,
        desk.claims.map((claim) => ({ ...claim, mark: '' })),
        desk.when,
      ),
  },
  {
    title: 'the last one is done in a turn',
    verb: 'serve',
    ends: [1, 0, 0, 0],
    reach: running,
    call: (desk) =>
      desk.jobs.serve(
        desk.ref,
        { ended: [ended(desk)], given: [], take: 0 },
        { ...desk.when, consumer: 'w', bytesMax: 1e6 },
      ),
  },
  {
    title: 'the last one is done in a pass',
    verb: 'relay',
    ends: [1, 0, 0, 0],
    reach: running,
    call: (desk) => {
      const pass = { term: desk.term, leaseMs: undefined, limit: 0, cap: 0 };
      const settings = { ...desk.when, consumer: 'w', bytesMax: 1e6 };
      return desk.jobs.relay(desk.ref, { ended: [ended(desk)], take: 0, pass }, settings);
    },
  },
  {
    title: 'the last one commits',
    verb: 'commit',
    ends: [1, 0, 0, 0],
    reach: running,
    call: (desk) =>
      desk.jobs.commit(desk.ref, desk.claim, {
        ...desk.when,
        effects: [{ command: 'HSET', key: desk.ref.keys.meta, args: ['x', 1] }],
      }),
  },
  { title: 'the last one dies', verb: 'bury', ends: [0, 1, 0, 0], reach: running, call: bury },
  { title: 'the last one dies, and was to stop', verb: 'bury', ends: [0, 0, 1, 0], reach: stopped, call: bury },
  {
    title: 'the last one fails, and was to stop',
    verb: 'retry',
    ends: [0, 0, 1, 0],
    reach: stopped,
    call: (desk) => desk.jobs.retry(desk.ref, desk.claim, { ...desk.when, delayMs: 10, error: '{}' }),
  },
  {
    title: 'the last one is put aside, and was to stop',
    verb: 'defer',
    ends: [0, 0, 1, 0],
    reach: stopped,
    call: (desk) => desk.jobs.defer(desk.ref, desk.claim, { ...desk.when, delayMs: 10, why: '' }),
  },
  {
    title: 'the last one is cancelled',
    verb: 'cancel',
    ends: [0, 0, 1, 0],
    reach: sealed,
    call: (desk) => desk.cancel('1'),
  },
  {
    title: 'the last one is cancelled in ready',
    verb: 'cancel',
    ends: [0, 0, 1, 0],
    async reach(desk) {
      await sealed(desk);
      await desk.deliver();
    },
    call: (desk) => desk.cancel('1'),
  },
  ...(['drop', 'dead'] as const).map(
    (onLate): SetStory => ({
      title: `the last one is too late: ${onLate}`,
      verb: 'expire',
      ends: onLate === 'drop' ? [0, 0, 0, 1] : [0, 1, 0, 0],
      async reach(desk) {
        await sealed(desk, { expiresAtMs: NOW + 5, onLate });
        await desk.deliver();
      },
      call: (desk) => desk.jobs.expire(desk.ref, desk.given, { ...desk.when, nowMs: NOW + 10, consumer: 'w' }),
    }),
  ),
  {
    title: 'a tag of the last one is closed',
    verb: 'start',
    ends: [0, 0, 1, 0],
    async reach(desk) {
      await sealed(desk, { tags: ['paid'] });
      await desk.deliver();
      await desk.jobs.closeTags(desk.ref, ['paid'], { mode: 'close', untilMs: NOW + 1e6, text: '{}', most: 10 });
    },
    call: (desk) => desk.start(),
  },
  {
    title: 'the last one is due at a time that is none',
    verb: 'promote',
    ends: [0, 1, 0, 0],
    async reach(desk) {
      await sealed(desk);
      await desk.redis.zadd(desk.ref.keys.scheduled, 5, memberOf(`{set:${SET}}1`));
    },
    call: (desk) =>
      desk.jobs.promote(desk.ref, { term: desk.term, leaseMs: undefined, limit: 10, cap: 100, nowMs: NOW }),
  },
  {
    title: 'an empty set is sealed',
    verb: 'seal',
    ends: [0, 0, 0, 0],
    reach: (desk) => desk.gather(),
    call: (desk) => desk.seal(),
  },
  {
    title: 'a set is sealed whose members are over',
    verb: 'seal',
    ends: [1, 0, 0, 0],
    async reach(desk) {
      await desk.gather();
      await desk.put(['1']);
      await desk.run();
      await desk.jobs.complete(desk.ref, [ended(desk)], desk.when);
    },
    call: (desk) => desk.seal(),
  },
];

/** Cuts a story off before each of its writes and makes the call again; the leader looks after that. What is wrong, and the sites. */
export async function cutSets(
  desk: SetDesk,
  { verb, ends, reach, call }: SetStory,
  lua: (verb: string) => string,
): Promise<{ readonly wrong: readonly string[]; readonly sites: readonly string[] }> {
  const wrong: string[] = [];
  const sites: string[] = [];
  for (let allowed = 0; ; allowed += 1) {
    await desk.begin();
    await reach(desk);
    const site = await cutOff(desk.redis, { verb, lua: lua(verb), allowed, call: () => call(desk) });
    if (site !== undefined) sites.push(site);
    const isAgain = site === undefined || allowed % 2 === 0;
    // Whoever made it makes it again, or nobody does.
    if (isAgain && site !== undefined) await call(desk).catch(() => undefined);
    wrong.push(...(await misseen(desk, { ends, isCut: site !== undefined, isAgain, site: site ?? 'the end' })));
    if (site === undefined) return { wrong, sites };
  }
}

interface Seen {
  readonly ends: readonly number[];
  readonly isCut: boolean;
  readonly isAgain: boolean;
  readonly site: string;
}

async function misseen(desk: SetDesk, { ends, isCut, isAgain, site }: Seen): Promise<readonly string[]> {
  await desk.tend();
  const said = await desk.callback();
  // A call that nobody repeats may have ended nothing.
  if (said === undefined && !isAgain) return [];
  const left = await desk.left();
  const isRight = ends.every((count, at) => count === said?.[at]);
  const isOneMore = isCut && ends.every((count, at) => (said?.[at] ?? -1) >= count && (said?.[at] ?? 9) <= count + 1);
  const waits = said === undefined || (await waitsOrIsReady(desk));
  await desk.mendGates();
  const held = await desk.redis.zcard(desk.ref.keys.holds);
  const isHeld = held > (await desk.redis.xlen(desk.ref.keys.ready));
  return [
    ...(isRight || isOneMore ? [] : [`${site}: the callback says ${String(said)}`]),
    ...(left.length === 0 ? [] : [`${site}: left ${left.join(', ')}`]),
    ...(waits ? [] : [`${site}: the callback is nowhere`]),
    ...(isHeld ? [`${site}: ${held} jobs have a slot`] : []),
  ];
}

/** Due now, or at the later moment of the call that ended the last member; a pass may have promoted it. */
async function waitsOrIsReady({ redis, ref }: SetDesk): Promise<boolean> {
  const score = await redis.zscore(ref.keys.scheduled, CALLBACK.member);
  if (score !== null) return [NOW, NOW + 10].includes(Number(score));
  return JSON.stringify(await redis.xrange(ref.keys.ready, '-', '+')).includes(`"${CALLBACK.member}"`);
}
