/** What an error of Redis or of the network means, and the one layer that repeats a call. */
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../src/kernel/clock.ts';
import { DuestreamError, Indeterminate } from '../../src/kernel/errors.ts';
import { type Outage, outageOf, pauseAfter, pauseMs, withRetry } from '../../src/redis/connection/outage.ts';

const TAXONOMY: readonly (readonly [message: string, outage: Outage])[] = [
  ["Stream isn't writeable and enableOfflineQueue options is false", 'away'],
  ['connect ECONNREFUSED 127.0.0.1:6379', 'away'],
  ['connect ENOENT /tmp/r.sock', 'away'],
  ['getaddrinfo ENOTFOUND redis', 'away'],
  ['getaddrinfo EAI_AGAIN redis', 'away'],
  ['ERR max number of clients reached: maxclients', 'away'],
  ['Command timed out', 'lost'],
  ['Connection is closed.', 'lost'],
  ['read ECONNRESET', 'lost'],
  ['write EPIPE', 'lost'],
  [
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
    'lost',
  ],
  ['LOADING Redis is loading the dataset in memory', 'busy'],
  ['BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.', 'busy'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'busy'],
  ['CLUSTERDOWN The cluster is down', 'busy'],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'busy'],
  ['MISCONF Redis is configured to save RDB snapshots, but it is unable to persist on disk', 'busy'],
  ["READONLY You can't write against a read only replica.", 'readonly'],
  ['UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)', 'readonly'],
  ["OOM command not allowed when used memory > 'maxmemory'.", 'full'],
  ["ERR OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:20.", 'full'],
  ["NOGROUP No such key 'k' or consumer group 'workers' in XREADGROUP with GROUP option", 'no-group'],
  ['UNBLOCKED the stream key no longer exists', 'no-group'],
  ['ERR The XGROUP subcommand requires the key to exist.', 'no-group'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'fatal'],
  ['ERR WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:3.', 'fatal'],
  ["NOPERM this user has no permissions to run the 'evalsha' command", 'fatal'],
  ['NOAUTH Authentication required.', 'fatal'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'fatal'],
  ["CROSSSLOT Keys in request don't hash to the same slot", 'fatal'],
  ["ERR unknown command 'SSUBSCRIBE', with args beginning with: 'x'", 'fatal'],
  ['ERR syntax error', 'fatal'],
  ['something nobody has seen before', 'unknown'],
];

test.each(TAXONOMY)('%s', (message, outage) => {
  expect(outageOf(new Error(message))).toBe(outage);
});

test.each([[undefined], [null], [''], [{}], [Symbol('s')]])('%s is an unknown outage', (thrown) => {
  expect(outageOf(thrown)).toBe('unknown');
});

test('the pause grows from 25 ms to a second, and is never short for what is unknown', () => {
  const pauses = Array.from({ length: 9 }, (_, at) => pauseMs('lost', at + 1, 1));
  expect(pauses).toEqual([50, 100, 200, 400, 800, 1000, 1000, 1000, 1000]);
  expect(pauseMs('lost', 1, 0)).toBe(25);
  expect(pauseMs('unknown', 1, 0)).toBe(1000);
  expect(pauseMs('unknown', 1, 1)).toBe(1500);
});

test('what only a person can repair is looked at again every 2 to 4 seconds', () => {
  const wrong = new Error('NOPERM this user has no permissions');
  expect([pauseAfter(wrong, 1, 0), pauseAfter(wrong, 50, 1)]).toEqual([2000, 4000]);
});

test('an error of ours is judged by what Redis said', () => {
  const cause = new Error('WRONGTYPE Operation');
  expect(outageOf(new DuestreamError('refused', 'start: Redis refused', { cause }))).toBe('fatal');
  expect(outageOf(new DuestreamError('moved', 'elsewhere'))).toBe('unknown');
});

/** A clock whose time passes only by sleeping. */
function sleeper(): Clock & { readonly slept: number[] } {
  const slept: number[] = [];
  const monotonicMs = () => slept.reduce((sum, ms) => sum + ms, 0);
  return {
    slept,
    wallMs: monotonicMs,
    monotonicMs,
    timer: () => () => undefined,
    sleep: async (ms, signal) => {
      if (signal?.aborted) return false;
      slept.push(ms);
      return true;
    },
  };
}

/** A call that fails with these messages, then succeeds. */
function failing(...messages: readonly string[]) {
  let calls = 0;
  return {
    call: async () => {
      const message = messages[calls];
      calls += 1;
      if (message !== undefined) throw new Error(message);
      return 'reply';
    },
    calls: () => calls,
  };
}

describe('the retry layer', () => {
  const random = () => 0.5;

  test('repeats the same call until it succeeds, and says each failure once', async () => {
    const clock = sleeper();
    const { call, calls } = failing('read ECONNRESET', 'LOADING', 'NOGROUP');
    const seen: Outage[] = [];
    const onFailure = (outage: Outage) => void seen.push(outage);
    expect(await withRetry('schedule', call, { clock, budgetMs: 10_000, random, onFailure })).toBe('reply');
    expect([calls(), seen]).toEqual([4, ['lost', 'busy', 'no-group']]);
    expect(clock.slept).toEqual([37.5, 75, 150]);
  });

  test('gives up within its budget, without a last wait', async () => {
    const clock = sleeper();
    const { call } = failing(...Array.from({ length: 50 }, () => 'connect ECONNREFUSED'));
    const error = withRetry('schedule', call, { clock, budgetMs: 1000, random });
    await expect(error).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(clock.monotonicMs()).toBeLessThanOrEqual(1000);
  });

  test('says indeterminate when any of its calls may have been carried out', async () => {
    const messages = ['Command timed out', ...Array.from({ length: 50 }, () => 'connect ECONNREFUSED')];
    const given = withRetry('schedule', failing(...messages).call, { clock: sleeper(), budgetMs: 1000, random });
    await expect(given).rejects.toBeInstanceOf(Indeterminate);
  });

  const SENT = ['read ECONNRESET', 'no reply from Redis at here within 5 ms', 'ERR a script broke'];
  const NOT_CARRIED_OUT = [
    'NOREPLICAS',
    'LOADING',
    'BUSY',
    'MISCONF',
    'READONLY',
    'CLUSTERDOWN',
    'connect ECONNREFUSED',
  ];
  test.each<readonly [string, boolean]>([
    ...NOT_CARRIED_OUT.map((message) => [message, false] as const),
    ['not connected to Redis at redis://here', false],
    ...SENT.map((message) => [message, true] as const),
  ])('after %s the next try is told that an earlier one may have been carried out: %s', async (message, mayHave) => {
    const { call } = failing(message, 'LOADING');
    const told: boolean[] = [];
    const noting = (mayHaveRun: boolean) => {
      told.push(mayHaveRun);
      return call();
    };
    await withRetry('edit', noting, { clock: sleeper(), budgetMs: 60_000, random });
    expect(told).toEqual([false, mayHave, mayHave]);
  });

  test.each(['NOPERM no', 'OOM command not allowed'])('is in doubt when %s follows a lost reply', async (refusal) => {
    const policy = { clock: sleeper(), budgetMs: 10_000, random };
    await expect(withRetry('edit', failing('read ECONNRESET', refusal).call, policy)).rejects.toMatchObject({
      name: 'Indeterminate',
      message: expect.stringContaining(refusal),
    });
    const reading = withRetry('get', failing('read ECONNRESET', refusal).call, {
      ...policy,
      harmless: 'nothing was changed',
    });
    await expect(reading).rejects.not.toBeInstanceOf(Indeterminate);
  });

  test('is in doubt where an earlier part of the whole was carried out, and not where one was only read', async () => {
    const whole = { isBegun: false };
    const policy = { clock: sleeper(), budgetMs: 100, random, whole };
    const away = () => withRetry('cancel', failing(...Array(20).fill('LOADING Redis')).call, policy);
    await withRetry('look', async () => 'seen', { ...policy, harmless: 'nothing was changed' });
    await expect(away()).rejects.toMatchObject({ code: 'unavailable' });
    await withRetry('cancel', async () => 'done', policy);
    await expect(away()).rejects.toMatchObject({ code: 'indeterminate', message: expect.stringMatching(/a part was/) });
  });

  test('tells a wrong set-up and a full Redis at once', async () => {
    const policy = { clock: sleeper(), budgetMs: 10_000, random };
    const fatal = failing('WRONGTYPE Operation');
    await expect(withRetry('schedule', fatal.call, policy)).rejects.toMatchObject({ code: 'refused' });
    const full = failing("OOM command not allowed when used memory > 'maxmemory'.");
    await expect(withRetry('schedule', full.call, policy)).rejects.toMatchObject({ code: 'out-of-memory' });
    expect([fatal.calls(), full.calls(), policy.clock.slept]).toEqual([1, 1, []]);
  });

  test('waits out a refusal as well, where it is told to insist', async () => {
    const clock = sleeper();
    const { call } = failing('NOPERM no', 'WRONGTYPE no', 'OOM command not allowed');
    const insisting = { clock, budgetMs: Number.POSITIVE_INFINITY, random, insist: true };
    expect(await withRetry('complete', call, insisting)).toBe('reply');
    expect(clock.slept.slice(0, 2)).toEqual([3000, 3000]);
  });

  test('passes on an error of ours as it is', async () => {
    const ours = new DuestreamError('moved', 'elsewhere');
    const call = () => Promise.reject(ours);
    await expect(withRetry('schedule', call, { clock: sleeper(), budgetMs: 1000 })).rejects.toBe(ours);
  });

  test('stops when it is told to', async () => {
    const signal = AbortSignal.abort();
    const { call, calls } = failing('LOADING', 'LOADING');
    await expect(withRetry('x', call, { clock: sleeper(), budgetMs: 9000, signal })).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(calls()).toBe(1);
  });
});
