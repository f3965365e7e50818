/** The account of a start adds up to its lateness, whatever its boundaries are, and says in words why a job was late. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  accountOf,
  accountText,
  accountWords,
  briefAccount,
  type Diary,
  type LineLook,
  readAccount,
  type StartAccount,
  type StartFacts,
  takeOversSince,
  withDiary,
} from '../../src/job/account.ts';

const T0 = 1_760_000_000_000;
const facts = (more: Partial<StartFacts> = {}): StartFacts => ({
  dueMs: T0,
  throughMs: T0 + 100,
  startedMs: T0 + 103,
  ...more,
});
const accountIn = (more: Partial<StartFacts>, diary?: Diary): StartAccount => {
  const account = accountOf(facts(more));
  if (!account) throw new Error('there is no account');
  return diary ? withDiary(account, diary) : account;
};
const causesIn = (more: Partial<StartFacts>, diary?: Diary) =>
  accountIn(more, diary).parts.map(({ cause, ms }) => `${cause} ${ms}`);

describe('an account', () => {
  const moment = fc.integer({ min: T0 - 20_000, max: T0 + 60_000 });
  const takeOver = fc.record({ beganMs: moment, signMs: moment, takenMs: moment });
  const told = fc.record({
    cause: fc.constantFrom('paused', 'closed', 'no-leader', 'no-worker'),
    fromMs: moment,
    toMs: moment,
  });
  const diary = fc.record({ sinceMs: moment, told: fc.array(told), lingerMs: fc.nat(1000) });
  const anyFacts = fc.record({
    dueMs: moment,
    madeMs: fc.option(moment, { nil: undefined }),
    throughMs: moment,
    startedMs: moment,
    isGated: fc.boolean(),
    takeOvers: fc.array(takeOver, { maxLength: 3 }),
    isClockSet: fc.boolean(),
  });

  test('adds up to the lateness of its start, no part is below zero, and its text says the same', () => {
    fc.assert(
      fc.property(anyFacts, fc.option(diary, { nil: undefined }), (some, known) => {
        const told = accountOf(some);
        const account = told && known ? withDiary(told, known as Diary) : told;
        expect(account?.parts.reduce((sum, { ms }) => sum + ms, 0)).toBe(Math.max(0, some.startedMs - some.dueMs));
        expect(account?.parts.filter(({ ms }) => ms <= 0)).toEqual([]);
        expect(readAccount(account && accountText(account))).toEqual(account);
      }),
    );
  });

  test('of a queue without limits has the promotion, and then the worker', () => {
    expect(causesIn({})).toEqual(['promotion 100', 'worker 3']);
  });

  test('blames no leader for the time before its job was made', () => {
    expect(causesIn({ madeMs: T0 + 98 })).toEqual(['made-late 98', 'promotion 2', 'worker 3']);
    expect(causesIn({ madeMs: T0 - 5 })).toEqual(['promotion 100', 'worker 3']);
  });

  test('of a queue with limits says that the job may have been in line', () => {
    expect(causesIn({ isGated: true })).toEqual(['line 100', 'worker 3']);
  });

  test('says how long a worker ran the job before it died, and how long its death was to be proven', () => {
    const takeOvers = [{ beganMs: T0 + 102, signMs: T0 + 5000, takenMs: T0 + 15_000 }];
    expect(causesIn({ takeOvers, startedMs: T0 + 15_001 })).toEqual([
      ...['promotion 100', 'worker 2', 'ran 4898', 'unproven 10000', 'worker 1'],
    ]);
  });

  test('knows no cause where the clock of Redis was set back', () => {
    expect(causesIn({ isClockSet: true })).toEqual(['clock-set 103']);
  });

  test('ends at the due time where the job was handed out before', () => {
    expect(accountIn({ throughMs: T0 - 10, startedMs: T0 - 8 })).toMatchObject({ lateMs: 0, parts: [] });
  });

  test('is none where the due time is no time in ms', () => {
    expect(accountOf(facts({ dueMs: 0 }))).toBeUndefined();
    expect(accountOf(facts({ dueMs: 1_760_000_000 }))).toBeUndefined();
  });

  test('has the causes that a diary tells, and guesses none of a time before the diary', () => {
    const paused = { cause: 'paused', fromMs: T0 + 20, toMs: T0 + 101 } as const;
    const rest = { told: [paused], lingerMs: 5 };
    expect(causesIn({}, { ...rest, sinceMs: T0 + 1 })).toEqual(['promotion 20', 'paused 81', 'busy 2']);
    expect(causesIn({}, { ...rest, sinceMs: T0 })).toEqual(['linger 5', 'behind 15', 'paused 81', 'busy 2']);
    const away = { cause: 'no-leader', fromMs: T0, toMs: T0 + 60 } as const;
    expect(causesIn({}, { sinceMs: T0, told: [away, paused] })).toEqual([...['no-leader 60', 'paused 41', 'busy 2']]);
  });
});

describe('in words', () => {
  test('the longest part comes first, parts of one cause are one, and the handler is apart', () => {
    const takeOvers = [{ beganMs: T0 + 102, signMs: T0 + 5000, takenMs: T0 + 15_000 }];
    const account = { ...accountIn({ takeOvers, startedMs: T0 + 15_001 }), toHandlerMs: 2 };
    expect(accountWords(account)).toBe(
      '15.0 s late: 10.0 s until the death of its worker was proven, 4.9 s a worker ran it and died, 100 ms promotion, 3 ms until a worker took it; and 2 ms until its handler',
    );
  });

  test('causes in line are about right', () => {
    const text = `${T0.toString(36)}.${(T0 + 41_200).toString(36)}P2sGtbkU2e4`;
    expect(accountWords(readAccount(text) as StartAccount)).toBe(
      '41.2 s late: about 38.0 s its group was full, about 3.1 s no worker had a slot, 100 ms promotion',
    );
  });

  test('who had a turn meanwhile is counted beside the parts', () => {
    const others = { count: 12, isLeast: false, ofGroup: true, last: '{acme}a' };
    const account = accountIn({ isGated: true });
    expect(accountWords({ ...account, others })).toMatch(/; 12 of its group ran meanwhile, last \{acme\}a$/);
    expect(accountWords({ ...account, others: { ...others, isLeast: true, ofGroup: false }, toHandlerMs: 2 })).toMatch(
      /; at least 12 others ran meanwhile, last \{acme\}a; and 2 ms until its handler$/,
    );
  });

  test('a start in time says so', () => {
    expect(accountWords(accountIn({ throughMs: T0, startedMs: T0 }))).toBe('on time');
    expect(accountWords(accountIn({ throughMs: T0 - 10, startedMs: T0 - 8 }))).toBe(
      'on time: handed to its worker 8 ms before it was due',
    );
  });
});

test('what held a job in line is told in the order of time, and of more than 12 parts each cause has one', () => {
  const runs = Array.from({ length: 20 }, (_, nth) => ({
    cause: nth % 2 ? ('rate' as const) : ('group-full' as const),
    fromMs: T0 + nth * 4,
    toMs: T0 + nth * 4 + 4,
  }));
  const looks = [{ fromMs: T0, toMs: T0 + 80, held: new Map([['acme', runs]]), lateMs: 0, passMs: 0 }];
  const account = accountIn({ isGated: true, looks, group: 'acme' });
  expect(account.parts.slice(0, 2)).toMatchObject([{ cause: 'group-full' }, { cause: 'rate' }]);
  expect(briefAccount(account).parts.map(({ cause, ms }) => `${cause} ${ms}`)).toEqual([
    ...['line 20', 'group-full 40', 'rate 40', 'worker 3'],
  ]);
  expect(causesIn({ isGated: true, looks, group: 'other' })).toEqual(['line 100', 'worker 3']);
});

test('of a quarter of an hour that was seen of a line, an account looks at the seconds of its job, and at few others', () => {
  const seen = new Set<number>();
  const looks = Array.from({ length: 900 }, (_, nth): LineLook => {
    const [fromMs, toMs] = [T0 + nth * 1000, T0 + nth * 1000 + 1000];
    return {
      get fromMs() {
        seen.add(nth);
        return fromMs;
      },
      get toMs() {
        seen.add(nth);
        return toMs;
      },
      get held() {
        seen.add(nth);
        return new Map([['', [{ cause: 'rate' as const, fromMs, toMs }]]]);
      },
      lateMs: 0,
      passMs: 0,
    };
  });
  const dueMs = T0 + 600_500;
  const times = { dueMs, throughMs: dueMs + 3000, startedMs: dueMs + 3001 };
  expect(causesIn({ isGated: true, looks, ...times })).toEqual(['rate 3000', 'worker 1']);
  // Ten steps find the first of them, and one look more says that there is no other.
  expect(seen.size).toBeLessThanOrEqual(10 + 4 + 1);
});

describe('a stored account', () => {
  const text = accountText(accountIn({}));

  test('that a later version wrote is read as far as it is known', () => {
    expect(readAccount(`${text}E5 more`)?.parts).toEqual(accountIn({}).parts);
    expect(readAccount('no account')).toBeUndefined();
    expect(readAccount(5)).toBeUndefined();
  });
});

test('only deaths since the entry was added belong to its start', () => {
  const crash = { atMs: T0 + 9, beganMs: T0 + 1, signMs: T0 + 4 };
  expect(takeOversSince(T0 + 1, [{ atMs: T0 }, { ...crash, beganMs: T0 }, crash])).toEqual([
    { beganMs: T0 + 1, signMs: T0 + 4, takenMs: T0 + 9 },
  ]);
});
