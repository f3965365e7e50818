/** The judge of limits is judged itself: it finds nothing in a sound story, and each kind of flaw, planted once. */
import { describe, expect, test } from 'vitest';
import { groupOf, judgeGates } from '../chaos/judge/gates.mjs';
import { planOf, QUICK, seeded } from '../chaos/stage/workload.mjs';

type Story = Parameters<typeof judgeGates>[0];
type Event = Story['effects'][number];

const DUE = 1_800_000_000_000;
const SECOND = 1_000_000;

/** A job that runs from one moment to another, ms; `until` undefined: its worker was killed. */
interface Ran {
  readonly id: string;
  readonly from: number;
  readonly until?: number | undefined;
  readonly due?: number;
  readonly attempt?: number;
  readonly how?: string;
  readonly pid?: number;
}

const calls = (...jobs: readonly Ran[]): Event[] =>
  jobs.flatMap(({ id, due = 0 }) => [
    { ev: 'enq.call', us: 0, ms: DUE - 1000, actor: 'p', pid: 1, id, due: DUE + due },
    { ev: 'enq.ok', us: 10, ms: DUE - 1000, actor: 'p', pid: 1, id, due: DUE + due },
  ]);

const effects = (...jobs: readonly Ran[]): Event[] =>
  jobs
    .flatMap(({ id, from, until, due = 0, attempt = 1, how = 'ok', pid = 10 }) => {
      const token = String((DUE + from) * 1000);
      const of = { actor: `worker-${pid}`, pid, id, token, attempt };
      const start = { ev: 'start', us: from * 1000, ms: DUE + from, due: DUE + due, ...of };
      const finish = { ev: 'finish', us: (until ?? 0) * 1000, ms: DUE + (until ?? 0), how, ...of };
      return until === undefined ? [start] : [start, finish];
    })
    .sort((a, b) => a.us - b.us);

const story = (ran: readonly Ran[], more: Partial<Story> = {}): Story => ({
  limits: { concurrency: 2, perGroup: 1, rate: 0 },
  changes: [],
  calls: calls(...ran),
  effects: effects(...ran),
  looks: [],
  partitions: 1,
  inOrder: true,
  steps: 0,
  unheld: [],
  ...more,
});
const kindsIn = (ran: readonly Ran[], more: Partial<Story> = {}) =>
  judgeGates(story(ran, more)).map(({ kind, id }) => `${kind} ${id}`);

describe('how many at a time', () => {
  const two = [
    { id: '{a}1', from: 0, until: 10 },
    { id: '{b}1', from: 1, until: 11 },
  ];

  test('as many as are allowed are no flaw, one more is', () => {
    expect(kindsIn([...two, { id: '{c}1', from: 10, until: 20 }])).toEqual([]);
    expect(kindsIn([...two, { id: '{c}1', from: 9, until: 20 }])).toEqual(['OVER-QUEUE {c}1']);
  });

  test('one more of a group is a flaw; jobs without a group are none', () => {
    expect(kindsIn([two[0] as Ran, { id: '{a}2', from: 9, until: 20 }])).toEqual(['OVER-GROUP {a}2']);
    expect(
      kindsIn([
        { id: '1', from: 0, until: 10 },
        { id: '2', from: 1, until: 10 },
      ]),
    ).toEqual([]);
  });

  test('a job of a killed worker has its lease until it is started again', () => {
    const killed = { id: '{a}1', from: 0 };
    const again = { id: '{a}1', from: 100, until: 110, attempt: 2, pid: 20 };
    expect(kindsIn([killed, { id: '{a}2', from: 50, until: 60 }, again])).toEqual(['OVER-GROUP {a}2']);
    expect(kindsIn([killed, again, { id: '{a}2', from: 110, until: 120 }])).toEqual([]);
  });

  test('or until it may have been handed back by who took it over', () => {
    const exits = [{ pid: 10, us: SECOND }];
    const [killed, again] = [
      { id: '{a}1', from: 0 },
      { id: '{a}1', from: 5000, until: 5010, attempt: 2, pid: 20 },
    ];
    const other = (from: number) => ({ id: '{a}2', from, until: from + 1, pid: 20 });
    expect(kindsIn([killed, other(2999), again], { exits })).toEqual(['OVER-GROUP {a}2']);
    expect(kindsIn([killed, other(3000), again], { exits })).toEqual([]);
  });

  test('a handler that was told to stop had lost its lease', () => {
    const stopped = { id: '{a}1', from: 0, until: 30, how: 'aborted' };
    expect(kindsIn([stopped, { id: '{a}2', from: 20, until: 40 }])).toEqual([]);
  });

  test('what Redis held at a moment counts as well', () => {
    const looks = [{ us: 5, running: ['{a}1', '{b}1', '{c}1'] }];
    expect(kindsIn([], { looks })).toEqual(['OVER-QUEUE runs']);
    expect(kindsIn([], { looks: [{ us: 5, running: ['{a}1', '{a}2'] }] })).toEqual(['OVER-GROUP a']);
    expect(kindsIn([], { looks: [{ us: 5, running: ['{a}1', '1'] }] })).toEqual([]);
    const four = { concurrency: 4, perGroup: 1, rate: 0 };
    expect(kindsIn([], { looks, limits: four })).toEqual([]);
    expect(kindsIn([], { looks, limits: four, partitions: 2 })).toEqual(['OVER-QUEUE runs']);
  });

  test('a lower limit holds from the end of its call on, and what ran before counts', () => {
    const lower = { concurrency: 1, perGroup: 1, rate: 0, fromUs: 2000, toUs: 4000 };
    const third = (from: number) => ({ id: '{c}1', from, until: from + 1 });
    expect(kindsIn([{ ...two[0], until: 30 } as Ran, third(3)], { changes: [lower] })).toEqual([]);
    expect(kindsIn([{ ...two[0], until: 30 } as Ran, third(5)], { changes: [lower] })).toEqual(['OVER-QUEUE {c}1']);
    expect(kindsIn([{ ...two[0], until: 4 } as Ran, third(5)], { changes: [lower] })).toEqual([]);
  });

  test('while holds are missing no group is judged, and the queue is', () => {
    const unheld = [{ fromUs: 1000, toUs: 12_000 }];
    const twice = [two[0] as Ran, { id: '{a}2', from: 9, until: 20 }];
    expect(kindsIn(twice, { unheld })).toEqual([]);
    expect(kindsIn([...twice, { id: '{c}1', from: 9, until: 10 }], { unheld })).toEqual(['OVER-QUEUE {c}1']);
    expect(
      kindsIn([...twice, { id: '{a}3', from: 13, until: 14 }], {
        unheld,
        limits: { concurrency: 0, perGroup: 1, rate: 0 },
      }),
    ).toEqual(['OVER-GROUP {a}3']);
  });

  test('a lease that a failover forgot is none', () => {
    const loss = { fromUs: 0, toUs: 5000 };
    expect(kindsIn([...two, { id: '{c}1', from: 9, until: 20 }], { loss })).toEqual([]);
  });
});

describe('how many in a time', () => {
  const many = (count: number, everyMs: number): readonly Ran[] =>
    Array.from({ length: count }, (_, at) => ({ id: `${at}`, from: at * everyMs, until: at * everyMs + 1, due: at }));
  const limits = { concurrency: 2, perGroup: 0, rate: 100 };

  test('the rate is no flaw, a tenth more is, in the long run', () => {
    expect(kindsIn(many(1000, 10), { limits })).toEqual([]);
    expect(kindsIn(many(1000, 9), { limits }).length).toBeGreaterThan(0);
  });

  test('a start again of what a lost worker had uses no turn', () => {
    const lost = many(500, 10).map((one) => ({ ...one, until: undefined }));
    const again = lost.map((one) => ({ ...one, from: one.from + 5, until: one.from + 6, attempt: 2, pid: 20 }));
    expect(kindsIn([...lost, ...again], { limits: { ...limits, concurrency: 10 } })).toEqual([]);
  });

  test('a step of the clock gives one more burst', () => {
    const burst = Array.from({ length: 14 }, (_, at) => ({ id: `${at}`, from: at / 10, until: at / 10 + 0.1 }));
    expect(kindsIn(burst, { limits }).length).toBe(1);
    expect(kindsIn(burst, { limits, steps: 1 })).toEqual([]);
  });

  test('a rate that was changed counts from then on', () => {
    const change = { ...limits, rate: 50, fromUs: 2 * SECOND, toUs: 2 * SECOND };
    const slower = many(200, 20).map((one) => ({
      ...one,
      id: `b${one.id}`,
      from: 2000 + one.from,
      until: 2001 + one.from,
    }));
    expect(kindsIn([...many(200, 10), ...slower], { limits, changes: [change] })).toEqual([]);
    expect(kindsIn(many(600, 10), { limits, changes: [change] }).length).toBeGreaterThan(0);
  });
});

describe('the order in a lane', () => {
  const [early, late] = [
    { id: '{a}1', due: 0, from: 20, until: 30 },
    { id: '{a}2', due: 5, from: 10, until: 20 },
  ];

  test('a later job that is started first is a flaw, unless the earlier one came too late', () => {
    expect(kindsIn([early, late])).toEqual(['DISORDER {a}2']);
    const tooLate = calls(early, late).map((call) =>
      call.id === early.id && call.ev === 'enq.ok' ? { ...call, ms: DUE + 6 } : call,
    );
    expect(kindsIn([early, late], { calls: tooLate })).toEqual([]);
    expect(kindsIn([early, late], { inOrder: false })).toEqual([]);
  });

  test('two groups, and two priorities, are two lanes', () => {
    expect(kindsIn([early, { ...late, id: '{b}2' }])).toEqual([]);
    const high = calls(early, late).map((call) => (call.id === late.id ? { ...call, priority: 'high' } : call));
    expect(kindsIn([early, late], { calls: high })).toEqual([]);
  });

  test('a retry has no place', () => {
    const failed = { ...early, from: 0, until: 5, how: 'error' };
    expect(kindsIn([failed, late, { ...early, attempt: 2, due: 3 }])).toEqual([]);
  });
});

test('a workload has groups where it is asked for, and is the same without', () => {
  const workload = { ...QUICK, jobs: 400 };
  const plans = (more: object) => planOf({ ...workload, ...more }, { random: seeded(7), producers: 2 }).flat();
  const groups = plans({ groups: 20 }).map(({ id }) => groupOf(id));
  expect(new Set(groups).size).toBe(21);
  expect(groups.filter((group) => group === 'g0').length).toBeGreaterThan(20);
  expect(groups.filter((group) => group === '').length).toBeGreaterThan(5);
  expect(plans({}).every(({ id, priority }) => groupOf(id) === '' && priority === undefined)).toBe(true);
});
