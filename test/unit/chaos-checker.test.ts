/**
 * The judge of the chaos runs is judged itself: in a story without a flaw it finds nothing, and each kind of flaw,
 * planted once, is found and called by its name.
 */
import { describe, expect, test } from 'vitest';
import { check } from '../chaos/judge/checker.mjs';
import { planOf, QUICK, seeded } from '../chaos/stage/workload.mjs';

type Story = Parameters<typeof check>[0];
type Event = Story['effects'][number];
type Member = Story['members'][number];

const DUE = 1_800_000_000_000;
const WORKER = 10;
const OTHER = 20;

describe('a story without a flaw', () => {
  test('has no anomalies', () => {
    expect(kindsIn(healthy())).toEqual([]);
  });

  test('may have failures, deaths and freezes, which explain the starts they caused', () => {
    expect(kindsIn(retried())).toEqual([]);
    expect(kindsIn(taken({ exits: [{ pid: WORKER, us: 1500 }] }))).toEqual([]);
    expect(kindsIn(taken({ pauses: [{ pid: WORKER, fromUs: 1500, toUs: 9000 }] }))).toEqual([]);
  });

  test('may have a worker that died when Redis answered nobody, and could not be told of an end long before', () => {
    const again = run('a', '9', { us: 20_000_000, attempt: 2, pid: OTHER });
    const died = { exits: [{ pid: WORKER, us: 4_000_000 }] };
    const story = { ...withEffects([...run('a', '5'), ...again]), ...died, members: [done('a', '9')] };
    expect(kindsIn({ ...story, stalls: [{ fromUs: 1500, toUs: 9_000_000 }] })).toEqual([]);
    expect(kindsIn({ ...story, stalls: [{ fromUs: 3_000_000, toUs: 9_000_000 }] })).toEqual(['DUP-START']);
    expect(kindsIn(story)).toEqual(['DUP-START']);
  });

  test('may have handlers that were told to stop, where the record says why', () => {
    const at = { pid: WORKER, us: 7000 };
    expect(kindsIn(stopped({ dismissals: [at] }))).toEqual([]);
    expect(kindsIn(stopped({ exits: [{ ...at, us: 3_000_000 }] }))).toEqual([]);
    expect(kindsIn(stopped({ pauses: [{ pid: WORKER, fromUs: 1500, toUs: 9000 }] }))).toEqual([]);
    // It was given out before the freeze, and its handler began after it.
    expect(kindsIn(stopped({ pauses: [{ pid: WORKER, fromUs: 500, toUs: 900 }] }))).toEqual([]);
    expect(kindsIn(stopped({ cuts: [{ pid: WORKER, fromUs: 1500, toUs: 9000 }] }))).toEqual([]);
    expect(kindsIn(stopped({ cuts: [{ pid: undefined, fromUs: 1500, toUs: 1600 }] }))).toEqual([]);
    expect(kindsIn(stopped({ timeouts: new Map([['a', 7]]) }))).toEqual([]);
  });

  test('may have dead letters of jobs that ended three workers, one of them before the handler said a word', () => {
    expect(kindsIn(buried([1, 2, 3]))).toEqual([]);
    expect(kindsIn(buried([1, 3]))).toEqual([]);
    expect(kindsIn(buried([2, 3]))).toEqual([]);
  });

  test('counts what ran although its producer was never told that Redis has it', () => {
    const calls = [call('enq.call', 'a'), call('enq.unknown', 'a')];
    const { anomalies, counts } = check({ ...healthy(), calls });
    expect({ anomalies, recovered: counts.recovered }).toEqual({ anomalies: [], recovered: 1 });
  });

  test('may lose what a declared loss covers, and nothing that was taken before or after it', () => {
    const story = { ...healthy(), effects: [], members: [] };
    expect(kindsIn({ ...story, loss: { fromUs: 50, toUs: 500 } })).toEqual([]);
    expect(check({ ...story, loss: { fromUs: 50, toUs: 500 } }).counts.excused).toBe(1);
    expect(kindsIn({ ...story, loss: { fromUs: 50, toUs: 100 } })).toEqual(['LOST']);
    expect(kindsIn({ ...story, loss: { fromUs: 101, toUs: 500 } })).toEqual(['LOST']);
  });

  test('may start again what Redis forgot, under a new token and with an attempt that is counted again', () => {
    const loss = { fromUs: 1000, toUs: 4000 };
    const again = run('a', '9', { us: 5000, pid: OTHER });
    const story = { ...withEffects([...run('a', '5'), ...again]), members: [done('a', '9')], loss };
    expect(kindsIn(story)).toEqual([]);
    expect(check(story).counts.forgotten).toBe(1);
    expect(kindsIn({ ...story, loss: undefined })).toEqual(['DUP-START', 'ATTEMPT-REGRESS']);
    // The settle had time enough before the loss began.
    expect(kindsIn({ ...story, loss: { fromUs: 2_000_000, toUs: 4_000_000 } })).toEqual([
      'DUP-START',
      'ATTEMPT-REGRESS',
    ]);
    // Redis made the start, and ended before the worker had read the reply and written its line.
    const late = run('a', `${DUE * 1000 + 3000}`, { us: 4500 });
    const forgot = withEffects([...late, ...run('a', `${DUE * 1000 + 9000}`, { us: 9000, pid: OTHER })]);
    const members = [done('a', `${DUE * 1000 + 9000}`)];
    expect(kindsIn({ ...forgot, members, loss })).toEqual([]);
    expect(kindsIn({ ...forgot, members, loss: { ...loss, toUs: 2000 } })).toEqual(['DUP-START', 'ATTEMPT-REGRESS']);
    // The worker that had it may go on under the same token, and nobody else.
    const resumed = (pid: number) => [...run('a', '5'), ...run('a', '5', { us: 5000, pid })];
    expect(kindsIn({ ...story, effects: resumed(WORKER), members: [done('a', '5')] })).toEqual([]);
    expect(kindsIn({ ...story, effects: resumed(OTHER), members: [done('a', '5')] })).toEqual(['TOKEN-REGRESS']);
    // Also where it had been tried again meanwhile: that newer start is forgotten as well.
    const [first, retry] = [run('a', '5', { how: 'error' }), run('a', '6', { us: 2500, attempt: 2 })];
    const twice = {
      ...story,
      effects: [...first, ...retry, ...run('a', '5', { us: 5000 })],
      members: [done('a', '5')],
    };
    expect(kindsIn(twice)).not.toContain('TOKEN-REGRESS');
    expect(kindsIn({ ...twice, loss: { ...loss, toUs: 2000 } })).toContain('TOKEN-REGRESS');
  });
});

test('a call that was on its way when a declared loss ended may have been lost', () => {
  const story = { ...healthy(), effects: [], members: [], loss: { fromUs: 0, toUs: 150 } };
  const calls = [call('enq.call', 'a'), { ...call('enq.ok', 'a'), us: 200 }];
  expect(kindsIn({ ...story, calls })).toEqual([]);
  expect(kindsIn({ ...story, calls: calls.map((event) => ({ ...event, us: 200 })) })).toEqual(['LOST']);
});

describe('each anomaly, planted once, is found', () => {
  const planted: readonly [string, string, Story][] = [
    ['LOST', 'Redis forgot it', { ...healthy(), effects: [], members: [] }],
    ['LOST', 'it is done without having run', { ...healthy(), effects: [] }],
    ['LOST', 'its record is in no index', { ...healthy(), members: [done('a', '5'), live('b', { indexed: false })] }],
    ['UNEXPECTED', 'nobody asked', { ...healthy(), calls: [] }],
    ['DUP-ENQ', 'two partitions', { ...healthy(), members: [live('a'), live('a', { partition: 1 })] }],
    ['DUP-START', 'nothing explains it', taken({})],
    ['DUP-START', 'a handler was told to stop, and nobody knows why', stopped({})],
    ['DUP-START', 'another worker was asked to end', stopped({ dismissals: [{ pid: OTHER, us: 7000 }] })],
    ['DUP-START', 'its worker froze before', stopped({ pauses: [{ pid: WORKER, fromUs: -9e6, toUs: -6e5 }] })],
    ['DUP-START', 'its worker was asked to end later', stopped({ dismissals: [{ pid: WORKER, us: 8001 }] })],
    ['DUP-START', 'another worker was cut off', stopped({ cuts: [{ pid: OTHER, fromUs: 0, toUs: 9000 }] })],
    ['DUP-START', 'it was cut off later', stopped({ cuts: [{ pid: WORKER, fromUs: 8500, toUs: 9000 }] })],
    ['DUP-START', 'it was cut off before', stopped({ cuts: [{ pid: WORKER, fromUs: -9e6, toUs: -6e5 }] })],
    [
      'DUP-START',
      'its worker was killed later',
      stopped({ exits: [{ pid: WORKER, us: 3_000_000, signal: 'SIGKILL' }] }),
    ],
    ['DUP-START', 'it was cut off long before', stopped({ cuts: [{ pid: WORKER, fromUs: -9e6, toUs: -8e6 }] })],
    ['DUP-START', 'its worker ended much later', stopped({ exits: [{ pid: WORKER, us: 9e6 }] })],
    ['DUP-START', 'its time was not up', stopped({ timeouts: new Map([['a', 1000]]) })],
    ['DUP-STRAY', 'it began after the fault', { ...taken({}), fault: { fromUs: -3e6, toUs: -2e6 } }],
    ['DUP-EFFECT', 'one token twice', withEffects([...run('a', '5'), effect('effect', 'a', '5', 1900)])],
    ['OVERLAP', 'the older one counted', { ...taken({}), members: [done('a', '5')] }],
    ['ZOMBIE', 'after the end', withEffects([...run('a', '5'), ...run('a', '9', { us: 5000, attempt: 2 })])],
    ['EARLY', 'before its due', withEffects(run('a', '5').map((event) => ({ ...event, ms: DUE - 1 })))],
    ['TOKEN-REGRESS', 'one token, two starts', withEffects([...run('a', '5'), ...run('a', '5', { pid: OTHER })])],
    [
      'TOKEN-REGRESS',
      'an older token later in one process',
      withEffects([...run('a', '9', { attempt: 2 }), ...run('a', '5', { us: 5000 })]),
    ],
    ['ATTEMPT-REGRESS', 'the same attempt', withEffects([...run('a', '4', { how: 'error' }), ...run('a', '5')])],
    ['TWO-LEADERS', 'an old term', { ...healthy(), passes: [pass(1), pass(2), pass(1)] }],
    ['UNDULY-DEAD', 'it never crashed', { ...healthy(), members: [{ ...done('a', '5'), outcome: 'x' }] }],
    ['UNDULY-DEAD', 'two workers ended under it, and a third one elsewhere', buried([1, 2], 2)],
    ['UNDULY-DEAD', 'others crashed often, it never did', buried([], 0)],
    [
      'UNDULY-DEAD',
      'a job that always kills is dead too soon',
      { ...buried([1, 2], 2), kinds: new Map([['a', 'poison']]) },
    ],
    ['UNDULY-DEAD', 'one end for three gaps', { ...buried([]), exits: [endOf(1500)] }],
    ['UNDULY-DEAD', 'an end that another start has', { ...buried([1, 3]), exits: [1500, 3500].map(endOf) }],
    ['UNDULY-DEAD', 'nobody ended in the gap', { ...buried([1, 3]), exits: [1500, 9500].map(endOf) }],
    ['STUCK', 'it is ready for ever', { ...healthy(), members: [done('a', '5'), live('b')] }],
    ['REPAIRED', 'only the repairer found it', { ...healthy(), repaired: 1 }],
    ['LEAK', 'an entry is left', { ...healthy(), left: { pending: 1 } }],
  ];

  test('what is left of a run that ran out of time is neither stuck nor lost', () => {
    const story = { ...healthy(), members: [done('a', '5'), live('b')], left: { pending: 1 } };
    expect(kindsIn(story)).toEqual(expect.arrayContaining(['STUCK', 'LEAK']));
    expect(kindsIn({ ...story, ranOut: true })).toEqual([]);
  });

  test.each(planted)('%s: %s', (kind, _why, story) => {
    expect(kindsIn(story)).toContain(kind);
  });

  test('and the plants cover every kind that the judge knows', () => {
    const kinds = ['LOST', 'UNEXPECTED', 'DUP-ENQ', 'DUP-START', 'DUP-EFFECT', 'OVERLAP', 'ZOMBIE', 'EARLY'];
    const others = [
      'DUP-STRAY',
      'TOKEN-REGRESS',
      'ATTEMPT-REGRESS',
      'TWO-LEADERS',
      'UNDULY-DEAD',
      'STUCK',
      'REPAIRED',
      'LEAK',
    ];
    expect([...new Set(planted.map(([kind]) => kind))].sort()).toEqual([...kinds, ...others].sort());
  });
});

test('a start again of what was under way when the fault was on is a double start and nothing worse', () => {
  expect(kindsIn({ ...taken({}), fault: { fromUs: 1500, toUs: 1600 } })).toEqual(['DUP-START']);
});

describe('the counts', () => {
  test('tell duplicates from what a failure started again', () => {
    expect(check(retried()).counts).toMatchObject({ starts: 2, again: 1, duplicates: 0 });
    expect(check(taken({})).counts).toMatchObject({ starts: 2, again: 1, duplicates: 1 });
  });

  test('tell how late first starts were before the fault and since', () => {
    const effects = [...run('a', '5', { us: 1000 }), ...run('b', '7', { us: 900_000 })];
    const { counts } = check({ ...withEffects(effects), fault: { fromUs: 500_000, toUs: 600_000 } });
    expect(counts).toMatchObject({ lateBeforeMs: 1, lateSinceMs: 900 });
  });
});

test('a workload follows from its seed alone', () => {
  const plan = (seed: number) => planOf(QUICK, { random: seeded(seed), producers: 2 });
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
  expect(plan(7).flat()).toHaveLength(QUICK.jobs);
});

function kindsIn(story: Story): readonly string[] {
  return [...new Set(check(story).anomalies.map(({ kind }) => kind))];
}

/** One job, asked for, run once, done. */
function healthy(): Story {
  return {
    kinds: new Map([['a', 'plain']]),
    calls: [call('enq.call', 'a'), call('enq.ok', 'a')],
    effects: run('a', '5'),
    exits: [],
    pauses: [],
    passes: [pass(1), pass(1), pass(2)],
    members: [done('a', '5')],
    left: { scheduled: 0, pending: 0 },
  };
}

function withEffects(effects: readonly Event[]): Story {
  return { ...healthy(), effects };
}

/** It threw once and then returned. */
function retried(): Story {
  const first = run('a', '5', { how: 'error' });
  return { ...healthy(), effects: [...first, ...run('a', '9', { us: 5000, attempt: 2 })], members: [done('a', '9')] };
}

/** It was started again elsewhere before its first start had ended, and the second one counted. */
function taken(lives: Partial<Pick<Story, 'exits' | 'pauses'>>): Story {
  const first = [effect('start', 'a', '5', 1000), effect('finish', 'a', '5', 8000, { how: 'ok' })];
  const second = run('a', '9', { us: 5000, attempt: 2, pid: OTHER });
  return { ...healthy(), effects: [...first, ...second], members: [done('a', '9')], ...lives };
}

/** Its first handler was told to stop. */
function stopped(lives: Partial<Story>): Story {
  const { effects, ...story } = taken({});
  const told = effects.map((event) =>
    event.ev === 'finish' && event.token === '5' ? { ...event, how: 'aborted' } : event,
  );
  return { ...story, effects: told, ...lives };
}

/** It is dead after starts of which handlers saw these, while four workers ended. Handlers never came to an end. */
function buried(seen: readonly number[], attempts = 4): Story {
  const pidOf = (attempt: number) => WORKER + attempt;
  const effects = seen.map((attempt) =>
    effect('start', 'a', `${attempt}`, attempt * 1000, { attempt, pid: pidOf(attempt) }),
  );
  const exits = [1500, 2500, 3500].map(endOf);
  return { ...healthy(), effects, exits, members: [{ ...done('a', '4'), outcome: 'x', attempts }] };
}

function endOf(us: number) {
  return { pid: WORKER + Math.floor(us / 1000), us };
}

function call(ev: string, id: string): Event {
  return { ev, id, us: 100, ms: DUE - 5000, actor: 'producer', pid: 1, due: DUE };
}

function effect(ev: string, id: string, token: string, us: number, more: Partial<Event> = {}): Event {
  return { ev, id, token, us, ms: DUE + us / 1000, actor: 'worker', pid: WORKER, attempt: 1, due: DUE, ...more };
}

interface RunOptions {
  readonly us?: number;
  readonly attempt?: number;
  readonly pid?: number;
  readonly how?: string;
}

function run(id: string, token: string, options: RunOptions = {}): readonly Event[] {
  const { us = 1000, attempt = 1, pid = WORKER, how = 'ok' } = options;
  const line = (ev: string, at: number) => effect(ev, id, token, at, { attempt, pid });
  const middle = how === 'ok' ? [line('effect', us + 500)] : [];
  return [line('start', us), ...middle, { ...line('finish', us + 600), how }];
}

function done(id: string, token: string): Member {
  return { id, partition: 0, live: false, indexed: false, outcome: 'd', token };
}

function live(id: string, more: Partial<Member> = {}): Member {
  return { id, partition: 0, live: true, indexed: true, outcome: '', token: '', ...more };
}

function pass(epoch: number) {
  return { partition: 0, epoch };
}
