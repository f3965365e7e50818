/** The test kit plays jobs and schedules by the product's rules, in virtual time. */
import { describe, expect, test, vi } from 'vitest';
import {
  Defer,
  defineHandlers,
  defineQueue,
  exponential,
  fixed,
  type HandlerContext,
  ladder,
  Unrecoverable,
} from '../../src/index.ts';
import { createTestKit } from '../../src/testing/index.ts';

const start = '2026-03-01T00:00:00Z';
const at = (run: { readonly atMs: number }) => new Date(run.atMs).toISOString();

describe('jobs', () => {
  test('run at their due time, in its order, and not before', async () => {
    const order: unknown[] = [];
    const kit = createTestKit({ start, handlers: { emails: (job) => order.push(job.data) } });
    await kit.schedule('emails', 'third', { delay: '3d' });
    await kit.schedule('emails', 'first', { delay: '1h' });
    await kit.schedule('emails', 'second', { at: '2026-03-02T00:00:00Z' });
    await kit.advance('2d');
    expect(order).toEqual(['first', 'second']);
    await kit.advance('1d');
    expect(order).toEqual(['first', 'second', 'third']);
    expect(new Date(kit.nowMs).toISOString()).toBe('2026-03-04T00:00:00.000Z');
  });

  test('climb a ladder of days, and are dead at its end', async () => {
    const reminders = defineQueue('reminders', { attempts: 4, backoff: ladder(['1h', '1d', '3d']) });
    const handlers = { reminders: () => Promise.reject(new Error('not paid')) };
    const kit = createTestKit({ start, queues: [reminders], handlers });
    await kit.schedule(reminders, { invoice: 7 }, { id: 'invoice-7' });
    await kit.advance('7d');
    expect(kit.runs.map(at)).toEqual([
      ...['2026-03-01T00:00:00.000Z', '2026-03-01T01:00:00.000Z', '2026-03-02T01:00:00.000Z'],
      '2026-03-05T01:00:00.000Z',
    ]);
    expect(kit.jobs({ state: 'dead' })).toMatchObject([{ id: 'invoice-7', attempts: 4, reason: 'attempts-exhausted' }]);
  });

  test('are put aside, given up and cancelled as their handlers and callers say', async () => {
    let locked = true;
    const handlers = {
      locks: () => {
        if (locked) throw new Defer('8s');
      },
      dead: () => {
        throw new Unrecoverable('customer is gone');
      },
      late: () => undefined,
    };
    const kit = createTestKit({ start, handlers });
    await kit.schedule('locks', 1);
    await kit.schedule('dead', 2);
    await kit.schedule('late', 3, { id: 'x', delay: '1h' });
    await kit.advance('5s');
    locked = false;
    expect(await kit.cancel('late', 'x')).toBe('cancelled');
    await kit.advance('1d');
    expect(kit.runs.map(({ queue, outcome, error }) => [queue, outcome, error])).toEqual([
      ['locks', 'defer', undefined],
      ['dead', 'dead', 'customer is gone'],
      ['locks', 'done', undefined],
    ]);
    expect(kit.jobs({ queue: 'locks' })).toMatchObject([{ state: 'done', attempts: 2, failures: 0 }]);
    expect(await kit.cancel('late', 'x')).toBe('over');
  });

  test('keep, replace and recognise one another as in Redis', async () => {
    const kit = createTestKit({ start, handlers: { q: () => undefined } });
    const once = await kit.schedule('q', 1, { id: 'a', delay: '1h' });
    expect(once.status).toBe('scheduled');
    expect((await kit.schedule('q', 1, { id: 'a', at: new Date(once.dueMs) })).status).toBe('already');
    expect((await kit.schedule('q', 2, { id: 'a', delay: '2h' })).status).toBe('exists');
    expect((await kit.schedule('q', 2, { id: 'a', delay: '2h', ifExists: 'replace' })).status).toBe('replaced');
    await expect(kit.schedule('q', 3, { id: 'a', ifExists: 'error' })).rejects.toMatchObject({ code: 'exists' });
    await kit.advance('3h');
    expect(kit.runs.map(({ data }) => data)).toEqual([2]);
  });

  test('that nobody ran in time expire after an outage', async () => {
    const kit = createTestKit({ start, handlers: { q: () => undefined } });
    await kit.schedule('q', 'stale', { delay: '1m', maxLateness: '5m' });
    await kit.schedule('q', 'fresh', { delay: '1m' });
    kit.outage('1h');
    await kit.advance('1s');
    expect(kit.runs.map(({ data }) => data)).toEqual(['fresh']);
    expect(kit.jobs({ state: 'expired' })).toHaveLength(1);
  });

  test('run at once in inline mode, retries included', async () => {
    let failures = 2;
    const q = defineQueue('q', { backoff: exponential('1h') });
    const handlers = {
      q: () => {
        failures -= 1;
        if (failures >= 0) throw new Error('not yet');
      },
    };
    const kit = createTestKit({ start, queues: [q], inline: true, handlers });
    await kit.schedule(q, 1, { delay: '30d' });
    expect(kit.runs.map(({ outcome }) => outcome)).toEqual(['retry', 'retry', 'done']);
    expect(new Date(kit.nowMs).toISOString()).toBe('2026-03-01T00:00:00.000Z');
  });
});

describe('jobs, by the rules of the product', () => {
  test('are timed out at the time-out of the job, else of the queue, and their signal aborts', async () => {
    const reasons: string[] = [];
    const q = defineQueue('q', { timeout: '10m', attempts: 2, backoff: fixed('1h') });
    const handlers = {
      q: (_job: unknown, { signal, deadlineMs }: HandlerContext) => {
        reasons.push(new Date(deadlineMs).toISOString().slice(11, 16));
        signal.addEventListener('abort', () => reasons.push(String(signal.reason)));
      },
    };
    const kit = createTestKit({ start, queues: [q], handlers, lasts: () => '20m' });
    await kit.schedule(q, 1, { id: 'short', timeout: '5m', attempts: 1 });
    await kit.schedule(q, 1, { id: 'long', timeout: '30m' });
    await kit.schedule(q, 1, { id: 'queue' });
    await kit.advance('1d');
    expect(kit.runs.map(({ id, outcome, error }) => [id, outcome, error])).toEqual([
      ['short', 'dead', 'timed out after 300000 ms'],
      ['queue', 'retry', 'timed out after 600000 ms'],
      ['long', 'done', undefined],
      ['queue', 'dead', 'timed out after 600000 ms'],
    ]);
    // Jobs of one due time start in the order of their ids.
    expect(reasons.slice(0, 3)).toEqual(['00:30', '00:10', '00:05']);
    expect(reasons.filter((text) => text.includes('job aborted: timeout'))).toHaveLength(3);
  });

  test('of which nobody waits for a handler that ignores its signal', async () => {
    const q = defineQueue('q', { timeout: '1m', attempts: 1 });
    const handlers = { q: () => new Promise(() => undefined) };
    const kit = createTestKit({ start, queues: [q], handlers, lasts: () => '1h' });
    await kit.schedule(q, 1);
    await kit.advance('2m');
    expect(kit.jobs()).toMatchObject([{ state: 'dead', reason: 'attempts-exhausted' }]);
  });

  test.each([
    ['a retry', new Error('no'), 'drop', 'expired'],
    ['a retry', new Error('no'), 'dead', 'dead'],
    ['a Defer', new Defer('1h'), 'drop', 'expired'],
    ['a Defer', new Defer('1h'), 'dead', 'dead'],
  ] as const)(
    'wait for %s beyond their expiry, and end then as onLate says (%s, %s)',
    async (_, thrown, onLate, ends) => {
      const q = defineQueue('q', { backoff: fixed('1h') });
      const handlers = {
        q: () => {
          throw thrown;
        },
      };
      const kit = createTestKit({ start, queues: [q], handlers });
      await kit.schedule(q, 1, { id: 'a', expiresAt: '2026-03-01T00:30:00Z', onLate });
      await kit.advance('59m');
      expect(kit.jobs()).toMatchObject([{ state: 'scheduled' }]);
      await kit.advance('1m');
      expect(kit.jobs().map(({ state, reason }) => [state, reason])).toEqual([
        [ends, ends === 'dead' ? 'expired' : undefined],
      ]);
      expect(kit.runs).toHaveLength(1);
    },
  );

  test('leave a compensation job also when they expire after a time-out', async () => {
    const taken: unknown[] = [];
    const q = defineQueue('q', { timeout: '1m', backoff: fixed('1h') });
    const onAbandoned = { q: ({ data }: { data: { reason: string } }) => taken.push(data.reason) };
    const handlers = defineHandlers({ q: () => undefined }, { queues: [q], onAbandoned });
    const kit = createTestKit({ start, handlers, lasts: ({ name }) => (name === 'default' ? '1h' : 0) });
    await kit.schedule(q, 1, { id: 'a', expiresAt: '2026-03-01T00:30:00Z' });
    await kit.advance('1d');
    expect(kit.jobs().map(({ id, state }) => [id, state])).toEqual([
      ['a', 'expired'],
      [`{a}abandoned:${Date.parse(start) * 1000 + 1}`, 'done'],
    ]);
    expect(taken).toEqual(['expired']);
  });

  test('cannot commit once their handler has ended', async () => {
    let late: (() => void) | undefined;
    const handlers = {
      q: (_job: unknown, context: HandlerContext) => {
        context.commit('INCR', `${context.tag}:n`);
        late = () => context.commit('INCR', `${context.tag}:n`);
      },
    };
    const kit = createTestKit({ start, handlers, lasts: () => '10m' });
    await kit.schedule('q', 1);
    await kit.advance('1m');
    expect(late).toThrow(/commit was called after the handler had ended/);
    await kit.advance('1h');
    expect(kit.runs).toMatchObject([{ outcome: 'done', commits: [{ command: 'INCR' }] }]);
  });

  test('say how far their handler is, while they run', async () => {
    const q = defineQueue('q', { attempts: 2, backoff: fixed('1h') });
    let say: HandlerContext['progress'] | undefined;
    const handlers = {
      q: (job: { readonly attempt: number }, { progress }: HandlerContext) => {
        if (job.attempt === 2) return;
        progress(0.4, 'row 400');
        say = progress;
        throw new Error('no');
      },
    };
    const kit = createTestKit({ start, queues: [q], handlers, lasts: () => '10m' });
    const progress = async () => (await kit.client.get(q, 'a'))?.progress;
    await kit.schedule(q, 1, { id: 'a' });
    expect(await progress()).toBeUndefined();
    await kit.advance('1m');
    const said = { fraction: 0.4, text: 'row 400', atMs: Date.parse(start) };
    expect(await progress()).toEqual(said);
    say?.(1);
    expect(await progress()).toEqual(said);
    expect(() => say?.(2)).toThrow('progress is 2; allowed: a number from 0 to 1');
    await kit.advance('30m');
    expect(await kit.client.get(q, 'a')).toMatchObject({ state: 'scheduled', progress: undefined });
    await kit.advance('45m');
    expect(await kit.client.get(q, 'a')).toMatchObject({ state: 'running', attempts: 2, progress: undefined });
  });

  test('of a queue that nobody serves wait, and can be cancelled', async () => {
    const kit = createTestKit({ start, handlers: { q: () => undefined } });
    await kit.schedule('other', 1, { id: 'a' });
    await kit.advance('1h');
    expect(kit.jobs()).toMatchObject([{ id: 'a', queue: 'other', state: 'ready', attempts: 0 }]);
    expect(await kit.cancel('other', 'a')).toBe('cancelled');
  });
});

describe('schedules', () => {
  test('a year of nights passes with every clock change decided', async () => {
    const schedules = { nightly: { queue: 'reports', cron: '30 2 * * *', zone: 'America/New_York' } };
    const kit = createTestKit({ start: '2026-01-01T00:00:00Z', handlers: { reports: () => undefined }, schedules });
    await kit.advance('365d');
    expect(kit.runs).toHaveLength(365);
    expect(kit.runs.map(at)).toContain('2026-03-08T07:30:00.000Z');
    expect(kit.runs[0]?.id).toBe('{schedule:nightly}2026-01-01T07:30:00Z');
  });

  test.each([
    ['allow', ['00:00', '00:01', '00:02', '00:03'], 4],
    ['skip', ['00:00', '00:03'], 2],
    ['queue', ['00:00', '00:02'], 2],
  ] as const)('overlap %s', async (overlap, starts, count) => {
    const kit = createTestKit({
      start: '2026-02-28T23:59:30Z',
      handlers: { slow: () => undefined },
      lasts: () => '150s',
      schedules: { tick: { queue: 'slow', every: '1m', overlap } },
    });
    await kit.advanceTo('2026-03-01T00:03:10Z');
    await kit.advance('0s');
    const begun = kit.jobs({ queue: 'slow' }).length;
    expect(begun).toBe(count);
    await kit.advance('3m');
    expect(kit.runs.slice(0, count).map((run) => at(run).slice(11, 16))).toEqual(starts);
  });

  test.each([
    ['skip', 0],
    ['once', 1],
    ['all', 6],
  ] as const)('catch-up %s after an outage', async (catchUp, count) => {
    const kit = createTestKit({
      start: '2026-03-01T00:30:00Z',
      handlers: { q: () => undefined },
      schedules: { hourly: { queue: 'q', cron: '0 * * * *', catchUp } },
    });
    await kit.advance('1m');
    kit.outage('6h');
    await kit.advance('1s');
    expect(kit.runs).toHaveLength(count);
  });

  test('put again as they were change nothing, and what was missed is caught up', async () => {
    const hourly = { queue: 'q', cron: '0 * * * *', catchUp: 'all' } as const;
    const kit = createTestKit({ start: '2026-03-01T00:30:00Z', handlers: { q: () => undefined } });
    expect(await kit.client.schedules.put('hourly', hourly)).toMatchObject({ name: 'hourly', status: 'created' });
    await kit.advance('1h');
    kit.outage('3h');
    expect((await kit.client.schedules.put('hourly', hourly)).status).toBe('unchanged');
    await kit.advance('1s');
    expect(kit.runs.map((run) => at(run).slice(11, 16))).toEqual(['01:00', '04:30', '04:30', '04:30']);
    expect((await kit.client.schedules.put('hourly', { ...hourly, data: 1 })).status).toBe('changed');
    await kit.advance('1m');
    expect(kit.runs).toHaveLength(4);
  });

  test('of which the newest replaces those before that have not started, also when they are caught up', async () => {
    const kit = createTestKit({
      start: '2026-03-01T00:30:00Z',
      handlers: { q: () => undefined },
      schedules: { hourly: { queue: 'q', cron: '0 * * * *', catchUp: 'all', overlap: 'replace', jitter: '10m' } },
    });
    await kit.advance('1m');
    kit.outage('3h');
    await kit.advance('30m');
    expect(kit.runs.map(({ id }) => id)).toEqual([
      '{schedule:hourly}2026-03-01T01:00:00Z',
      '{schedule:hourly}2026-03-01T03:00:00Z',
    ]);
    expect(kit.jobs({ state: 'cancelled' })).toHaveLength(1);
  });

  test('that ended and get more runs count from then', async () => {
    const thrice = { queue: 'q', every: '1h', catchUp: 'all', maxRuns: 3 } as const;
    const kit = createTestKit({ start, handlers: { q: () => undefined }, schedules: { thrice } });
    await kit.advance('10h');
    await kit.client.schedules.put('thrice', { ...thrice, maxRuns: 5 });
    await kit.advance('1s');
    expect(kit.runs).toHaveLength(3);
    await kit.advance('10h');
    expect(kit.runs).toHaveLength(5);
  });

  test('end after their last run', async () => {
    const kit = createTestKit({
      start,
      handlers: { q: () => undefined },
      schedules: { thrice: { queue: 'q', every: '1h', maxRuns: 3 } },
    });
    await kit.advance('30d');
    expect(kit.runs).toHaveLength(3);
    expect(await kit.next()).toBe(false);
  });
});

test('what the product refuses, the kit refuses with the same words', async () => {
  const kit = createTestKit({ start, handlers: { q: () => undefined } });
  await expect(kit.schedule('q', 1, { delay: '2 fortnights' })).rejects.toMatchObject({ code: 'bad-input' });
  await expect(kit.client.schedules.put('x', { queue: 'q', cron: '* * * *' })).rejects.toThrow(/5 fields/);
  expect(() => createTestKit({ handlers: { q: 7 as never } })).toThrow(/handlers of queue q/);
});

test('a schedule that its codec refuses later fails each advance, also after a subscription', async () => {
  const codec = { encode: () => Promise.reject(new Error('no key')), decode: (text: string) => text };
  const mail = defineQueue<unknown>('mail', { codec });
  const nightly = { queue: mail as never, every: '1d', data: 1 };
  const kit = createTestKit({ handlers: { mail: () => undefined }, schedules: { nightly } });
  kit.subscribe(defineQueue('prices', { broadcast: true }), () => undefined);
  for (const _ of [1, 2]) await expect(kit.advance('1m')).rejects.toThrow('no key');
});

test('what a view shows in the place of data is refused by jobs and schedules of the kit', async () => {
  const codec = { encode: (text: string) => `!${text}`, decode: (text: string) => text.slice(1) };
  const mails = defineQueue<{ to: string }>('mails', { redact: ['to'] });
  const coded = defineQueue<unknown>('coded', { codec });
  const handlers = { mails: () => undefined, coded: () => undefined };
  const kit = createTestKit({ start: '2026-01-01T00:00:00Z', queues: [mails, coded], handlers });
  const shown = { to: '[redacted]' };
  await expect(kit.client.schedule(mails, shown, { delay: '1h' })).rejects.toThrow(/data\.to is "\[redacted\]"/);
  await expect(kit.client.schedules.put('a', { queue: mails, every: '1h', data: shown })).rejects.toThrow(
    /data\.to is "\[redacted\]"/,
  );
  await kit.client.schedule(coded, { n: 1 }, { id: 'a', delay: '1h' });
  const view = await kit.client.get(coded, 'a');
  await expect(kit.client.edit(coded, 'a', { data: view?.data })).rejects.toThrow(
    /the codec codec has made of the data/,
  );
});

describe('a test of a user', () => {
  test('may put its own timers in the place of those of Node: the kit goes on', async () => {
    vi.useFakeTimers();
    try {
      const q = defineQueue('q', { attempts: 2, backoff: fixed('1h'), perGroup: 1 });
      const kit = createTestKit({
        start,
        queues: [q],
        handlers: {
          q: ({ attempt }) => {
            if (attempt === 1) throw new Error('no');
          },
        },
      });
      await kit.client.scheduleMany(
        q,
        Array.from({ length: 600 }, (_, nth) => ({ data: nth, group: `g${nth % 300}` })),
      );
      await kit.advance('1d');
      expect(kit.runs.filter(({ outcome }) => outcome === 'done')).toHaveLength(600);
    } finally {
      vi.useRealTimers();
    }
  });

  test.each(['at-least-once', 'at-most-once'] as const)(
    'may have a codec and a schema that take their time: no virtual time passes meanwhile (%s)',
    async (delivery) => {
      /** In real time. */
      const later = async <T>(value: T): Promise<T> => {
        for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
        return value;
      };
      const codec = { encode: (text: string) => later(`!${text}`), decode: (text: string) => later(text.slice(1)) };
      const schema = {
        '~standard': { version: 1, vendor: 'own', validate: (value: unknown) => later({ value }) },
      } as const;
      const q = defineQueue('q', { codec, jobs: { default: schema }, timeout: '1s', delivery });
      const got: unknown[] = [];
      const kit = createTestKit({ start, queues: [q], handlers: { q: (job) => void got.push(job.data) } });
      await kit.client.schedule(q, { n: 1 }, { delay: '1h' });
      await kit.client.schedule(q, { n: 2 }, { delay: '2h' });
      await kit.advance('1d');
      expect(got).toEqual([{ n: 1 }, { n: 2 }]);
      expect(kit.runs.map((run) => [at(run).slice(11, 16), run.outcome])).toEqual([
        ['01:00', 'done'],
        ['02:00', 'done'],
      ]);
    },
  );

  test('may ask for durability: no write of the kit gets lost, and a wrong wish is refused', async () => {
    const kit = createTestKit({ start, handlers: { q: () => undefined } });
    for (const durability of ['memory', 'replicated', 'fsynced', { replicas: 2, fsynced: true }] as const) {
      expect(await kit.client.schedule('q', 1, { durability })).toMatchObject({ status: 'scheduled' });
    }
    await expect(kit.client.schedule('q', 1, { durability: 'paper' as never })).rejects.toThrow(
      /durability is "paper"/,
    );
    await kit.advance('1s');
    expect(kit.runs).toHaveLength(4);
  });
});
