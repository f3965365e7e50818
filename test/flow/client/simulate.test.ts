/** `duestream simulate`: what it reads of a queue, what it says, and that a real partition starts its jobs at the same times. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addTime, MINUTE_MS, noTally, stateText } from '../../../src/job/minutes.ts';
import type { Rates } from '../../../src/job/rate.ts';
import { writePart } from '../../../src/kernel/path-part.ts';
import type { Redis } from '../../../src/redis/connection/connect.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { addTimes, stateNow, writeStates } from '../../../src/redis/read/minutes.ts';
import { beat } from '../../../src/redis/scripts/presence.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';
import { runHere } from '../../support/console.ts';
import { Desk, NOW } from '../../support/gates-desk.ts';
import { snapshot } from '../../support/keyspace.ts';
import { type PlayedJob, type PlayedQueue, playedByEngine, randomQueue } from '../../support/simulated.ts';

let api: ServedApi;
let redis: Redis;
beforeAll(async () => {
  // Nobody promotes.
  api = await serveApi({ roles: ['http'] });
  redis = api.place.redis;
});
beforeEach(() => redis.flushall());
afterAll(() => api.stop());

describe('a real partition', () => {
  /** When each job starts, as scripts say that are told the time. */
  async function playedByRedis({ settings, slots, jobs }: PlayedQueue): Promise<ReadonlyMap<string, number>> {
    const ref = partitionRef(api.place.namespace, { queue: 'q', partition: 0, layoutGeneration: 0 });
    const desk = await new Desk(redis, ref).begin(settings);
    for (const { id, priority, dueMs } of jobs) {
      await desk.put([`${['high ', '', 'low '][priority]}${id}`], { inMs: dueMs });
    }
    const runMs = new Map(jobs.map((job) => [job.id, job.runMs]));
    const starts = new Map<string, number>();
    const ends = new Map<string, number>();
    /** Takes jobs until there is no slot or no job. */
    const take = async (ended: readonly string[]) => {
      for (let over: readonly string[] | undefined = ended; over; ) {
        const taken: readonly string[] = await desk.serve(slots - ends.size, { over });
        for (const id of taken) {
          starts.set(id, desk.nowMs - NOW);
          ends.set(id, desk.nowMs + (runMs.get(id) ?? 0));
        }
        over = taken.length > 0 ? [] : undefined;
      }
    };
    while (starts.size < jobs.length) {
      const over = [...ends].flatMap(([id, endMs]) => (endMs <= desk.nowMs ? [id] : []));
      for (const id of over) ends.delete(id);
      await desk.promote();
      await take(over);
      const { nextMs = Number.POSITIVE_INFINITY } = await desk.promote();
      const dueMs = jobs.find((job) => NOW + job.dueMs > desk.nowMs)?.dueMs ?? Number.POSITIVE_INFINITY;
      desk.nowMs = Math.min(...ends.values(), NOW + dueMs, nextMs > 0 ? desk.nowMs + nextMs : Number.POSITIVE_INFINITY);
    }
    return starts;
  }

  test.each([11, 14])('starts its jobs at the times of the engine: queue %i', async (seed) => {
    const played = randomQueue(seed, { count: 150 });
    const starts = await playedByRedis(played);
    const engine = playedByEngine(played, NOW);
    const differences = played.jobs.map(({ id }, at) => Math.abs((starts.get(id) ?? 0) - (engine[at] ?? 0)));
    expect(differences.filter((ms) => ms > 1)).toEqual([]);
  });

  // A worker takes several at once, so two jobs may change places; the pace is the same, and so is what priorities and groups get.
  test('starts a thousand jobs at the pace of the engine, each priority and group as late as there', async () => {
    const played = randomQueue(3, { count: 1000 });
    const starts = await playedByRedis(played);
    const engine = playedByEngine(played, NOW);
    const sorted = (all: readonly number[]) => [...all].sort((one, other) => one - other);
    const [real, own] = [sorted([...starts.values()]), sorted(engine)];
    expect(real).toHaveLength(1000);
    expect(Math.max(...real.map((ms, at) => Math.abs(ms - (own[at] ?? 0))))).toBeLessThan(600);
    for (const part of [0, 1, 2, ...new Set(played.jobs.map(({ group }) => group))]) {
      const isMeant = ({ priority, group }: PlayedJob) => priority === part || group === part;
      const lateMs = (of: (job: PlayedJob, at: number) => number) => {
        const all = played.jobs.flatMap((job, at) => (isMeant(job) ? [of(job, at) - job.dueMs] : []));
        return all.reduce((sum, ms) => sum + ms, 0) / all.length;
      };
      const [was, said] = [lateMs(({ id }) => starts.get(id) ?? 0), lateMs((_, at) => engine[at] ?? 0)];
      expect(Math.abs(was - said)).toBeLessThan(0.1 * Math.max(was, said) + 100);
    }
  });
});

describe('a queue', () => {
  const HOUR_MS = 3_600_000;
  /** A hundred jobs of two groups that are due, ten that become due in an hour, and a schedule. */
  async function fill(): Promise<void> {
    const job = (nth: number) => ({ id: `n${nth}`, group: nth < 20 ? 'small' : 'large' });
    const due = Array.from({ length: 100 }, (_, nth) => job(nth));
    const later = Array.from({ length: 10 }, (_, nth) => ({ ...job(100 + nth), delay: '1h' }));
    await declareQueue(redis, { namespace: api.place.namespace, queue: 'mails', partitions: 1, fair: true });
    for (const jobs of [due, later]) {
      expect((await api.ask('POST /v1/queues/mails/batch/schedule', { body: { jobs } })).status).toBe(200);
    }
    // Not on the half hour, which may be in the middle of the backlog.
    const schedule = { queue: 'mails', every: '30m', align: 'start', data: {} };
    expect((await api.ask('PUT /v1/schedules/tick', { body: schedule })).status).toBe(201);
  }
  const simulated = async (body: object) => {
    const { status, body: found } = await api.ask('POST /v1/queues/mails/simulate', { body });
    expect({ status, found }).toMatchObject({ status: 200 });
    return found;
  };

  test('is played as it is and as asked, with its backlog, its schedules and its groups, and nothing is written', async () => {
    const beganMs = Date.now();
    await fill();
    const before = await snapshot(redis);
    const body = { limits: { rate: '1/s' }, workers: 4, slots: 2, runTime: '200ms', until: '6h' };
    const { asItIs, asAsked, nowMs, ...found } = await simulated(body);
    expect(await snapshot(redis)).toEqual(before);
    expect(found).toMatchObject({ queue: 'mails', due: 100, scheduled: 10, coming: 12, untilMs: nowMs + 6 * HOUR_MS });
    expect(found.usual).toBeUndefined();
    expect(asItIs).toMatchObject({ limits: 'fair', slots: 50, started: 122, left: 0, maxLine: 50 });
    expect(asAsked).toMatchObject({
      limits: '1/s · fair',
      slots: 8,
      runTime: '200 ms',
      started: 122,
      left: 0,
      maxLine: 99,
    });
    expect(Math.round((asAsked.backlogThroughMs - nowMs) / 1000)).toBe(99);
    // The first of the backlog starts at once, the last one latest; the line is longest where it begins.
    expect(asAsked.maxLineAtMs).toBe(nowMs);
    expect([asAsked.worstMinuteMs <= nowMs, asAsked.throughMs > nowMs + 5 * HOUR_MS]).toEqual([true, true]);
    expect(found.assumptions).toContain('as asked, each job runs for 200 ms');
    const { fromMs, stepMs, due } = found.steps;
    expect([stepMs, fromMs <= nowMs, due[0]]).toEqual([5 * 60_000, true, 100]);
    expect(due.reduce((sum: number, one: number) => sum + one, 0)).toBe(122);
    expect(asAsked.latestMs).toHaveLength(due.length);
    expect(asAsked.latestMs[0]).toBe(asAsked.maxMs);
    // Ten that are due together in an hour, one a second; where none is due, nothing is said.
    expect(asAsked.latestMs[Math.floor((nowMs + HOUR_MS - fromMs) / stepMs)]).toBeGreaterThan(8000);
    expect(asAsked.latestMs.map((ms: number | null) => ms === null)).toEqual(due.map((count: number) => count === 0));
    expect(asItIs.latestMs[0]).toBeLessThan(nowMs - beganMs + 1000);
    expect(asAsked.groups.map(({ group, jobs }: { group: string; jobs: number }) => [group, jobs])).toEqual([
      ['large', 90],
      ['small', 20],
    ]);
    // In turns: the small group is through long before the large one.
    expect(asAsked.groups[1].maxMs).toBeLessThan(45_000);
  });

  test('without a run time that anybody knows says what to give', async () => {
    await fill();
    const { status, body } = await api.ask('POST /v1/queues/mails/simulate', { body: {} });
    expect([status, body.detail]).toEqual([400, expect.stringContaining('say a run time, such as 200ms')]);
  });

  test('says that limits which other queues share hold nobody', async () => {
    await fill();
    await api.ask('PUT /v1/limits/provider', { body: { rate: '1/s' } });
    await api.ask('PATCH /v1/queues/mails/settings', { body: { limits: ['provider'] } });
    const { assumptions } = await simulated({ runTime: '200ms', until: '6h' });
    expect(assumptions).toContain(
      'limits that other queues share hold nobody: provider; nobody knows what these queues will take of them',
    );
  });

  test('is told on the command line in two columns, with what was assumed', async () => {
    await fill();
    const place = ['--redis', api.redis.url, '--namespace', api.place.namespace];
    const asked = ['simulate', 'mails', '--rate', '5/s', '--per-group', '1', '--workers', '4', '--run-time', '200ms'];
    const { code, out, err } = await runHere([...asked, ...place]);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/^jobs +100 jobs due now; 10 become due until .*, 48 from schedules$/m);
    expect(out).toMatch(/^ +as it is +as asked$/m);
    expect(out).toMatch(/^limits +fair +5\/s · 1 per group · fair$/m);
    expect(out).toMatch(/^large +90 /m);
    expect(out).toContain('- no job fails, is retried, put aside, cancelled or expires, and no worker or daemon stops');
    const json = JSON.parse((await runHere([...asked, '--json', ...place])).out);
    expect(json.asAsked.limits).toBe('5/s · 1 per group · fair');
    expect((await runHere(['simulate', 'mials', ...place])).err).toContain('did you mean mails?');
  });
});

describe('a job that waits', () => {
  const ref = partitionRef('duestream', { queue: 'mails', partition: 0, layoutGeneration: 0 });
  const startsOf = async (id: string, queue = 'mails') =>
    (await api.ask(`GET /v1/queues/${queue}/jobs/${writePart(id)}`)).body.starts;

  /** Five jobs in line at a rate, by a leader and a clock of their own. */
  async function lineUp(rate: Rates = RATE): Promise<Desk> {
    await declareQueue(redis, { namespace: 'duestream', queue: 'mails', partitions: 1, rate });
    const desk = new Desk(redis, ref);
    desk.nowMs = Date.now();
    await desk.begin({ rate });
    await desk.line('a', 'b', 'c', 'd', 'e');
    return desk;
  }
  const RATE = { limit: 1, perMs: 10_000, burst: 1 };

  /** A worker with four slots, whose runs of the last hour took 100 ms. */
  async function serving(desk: Desk): Promise<void> {
    const { queue } = desk.ref;
    const identity = { id: 'w1', role: 'worker', host: 'h', pid: 1, startedMs: 0, queues: [queue] } as const;
    await beat(redis, { namespace: 'duestream', identity: { ...identity, slots: { [queue]: 4 } }, ttlMs: 60_000 });
    const minute = Math.floor(desk.nowMs / MINUTE_MS);
    const before = await stateNow(redis, desk.ref);
    const tally = noTally();
    addTime(tally, 100, 50);
    await addTimes(redis, desk.ref, { name: 'run', tally, minute });
    const states = [before, await stateNow(redis, desk.ref)].map((state, nth) => ({
      ...{ minute: minute - 9 + nth, since: minute - 9 },
      text: stateText(state),
    }));
    await writeStates(redis, desk.ref, { at: { minute, since: minute - 9 }, states });
  }

  test('is told when it starts, in show and over HTTP, by its rate and what comes before it', async () => {
    const desk = await lineUp();
    await serving(desk);
    const starts = await startsOf('e');
    expect(starts).toMatchObject({ kind: 'about', before: 3, pacedBy: 'rate', perSecond: 0.1 });
    const place = ['--redis', api.redis.url, '--namespace', 'duestream'];
    const { out } = await runHere(['show', 'mails', 'e', ...place]);
    expect(out).toMatch(/^starts +in about \d+ s: 3 jobs before it, at 6\/min by the rate$/m);
    const why = await runHere(['queues', 'why', 'mails', ...place]);
    expect(why.out).toMatch(/^last start +in about \d+ s: 3 jobs before it, at 6\/min by the rate$/m);
    const { lastStart } = (await api.ask('GET /v1/queues/mails/why')).body;
    expect(lastStart).toMatchObject({ kind: 'about', before: 3, pacedBy: 'rate', perSecond: 0.1 });
  });

  test('is told when it starts by the slower of two rates, once that has let its burst start', async () => {
    const rate = [
      { limit: 10, perMs: 1000, burst: 1 },
      { limit: 1, perMs: 10_000, burst: 3 },
    ] as const;
    const desk = await lineUp(rate);
    await serving(desk);
    // One was let through, two more have a turn of both, and the fourth of the slower rate is that of d.
    expect(await startsOf('c')).toMatchObject({ kind: 'about', before: 1, pacedBy: 'rate', perSecond: 10 });
    expect(await startsOf('e')).toMatchObject({ kind: 'about', before: 3, pacedBy: 'rate', perSecond: 0.1 });
  });

  test('is told when it starts without those whose group somebody else has in strict order; the last start is not told', async () => {
    const settings = { perGroup: 1, groupOrder: 'strict', rate: RATE } as const;
    await declareQueue(redis, { namespace: 'duestream', queue: 'steps', partitions: 1, ...settings });
    const desk = new Desk(redis, partitionRef('duestream', { queue: 'steps', partition: 0, layoutGeneration: 0 }));
    desk.nowMs = Date.now();
    await desk.begin(settings);
    await desk.line('{a}1', '{a}2', '{a}3', '{b}1', '{b}2', '{b}3');
    await desk.serve(1);
    await desk.settle('retry', '{a}1', { delayMs: 3_600_000 });
    await desk.promote();
    await serving(desk);
    // With the lane of {a} as many would come before it as it has itself.
    expect(await startsOf('{b}3', 'steps')).toMatchObject({ kind: 'about', before: 2, pacedBy: 'rate' });
    expect(await startsOf('{a}3', 'steps')).toMatchObject({ kind: 'untold', untold: 'group-kept' });
    const lastStart = async () => (await api.ask('GET /v1/queues/steps/why')).body.lastStart;
    expect(await lastStart()).toMatchObject({ kind: 'untold', untold: 'group-kept' });
    await desk.cancel('{a}1');
    expect(await lastStart()).toMatchObject({ kind: 'about' });
  });

  test('is told why nobody can tell it', async () => {
    await lineUp();
    expect(await startsOf('e')).toMatchObject({ kind: 'untold', untold: 'no-worker' });
    // The reasons say it already.
    expect((await api.ask('GET /v1/queues/mails/why')).body).not.toHaveProperty('lastStart');
    await api.ask('POST /v1/queues/mails/pause', { body: { reason: 'x' } });
    expect(await startsOf('e')).toMatchObject({ untold: 'paused', text: 'nobody can tell: the queue is paused' });
  });
});
