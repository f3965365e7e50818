/** The verbs that schedule, list, show and cancel jobs, on a partition whose every state is real. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { decodeRecord, encodeDeferral, encodeProgress } from '../../../src/job/codec.ts';
import { encodeLogLine } from '../../../src/job/log-lines.ts';
import { declareQueue } from '../../../src/redis/scripts/queues.ts';
import { type Called, useCli } from '../../support/cli.ts';
import { item, T0, usePartition } from '../../support/partition.ts';

const cli = useCli();
const the = usePartition();
const DAY_MS = 86_400_000;

beforeEach(async () => {
  await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1 });
});

const due = (args: readonly string[], called?: Called) =>
  cli.run([...args, '--redis', the.server.url, '--namespace', 't'], called);
const answer = async (args: readonly string[], called?: Called) =>
  JSON.parse((await due([...args, '--json'], called)).out);

describe('schedule --dry-run', () => {
  test('says what would become of a job, and writes nothing', async () => {
    const at = '2030-03-01T09:00:00Z';
    const flags = ['schedule', 'q', '--id', 'a', '--at', at, '--attempts', '2', '--dry-run'];
    const { out, code } = await due([...flags, '--backoff', '{"kind":"fixed","delay":"1m"}']);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^due +2030-03-01T09:00:00.000Z .*\nbeside it +0 jobs in its minute/),
    ]);
    expect(out).toMatch(/\ntry 2 +2030-03-01T09:01:00.000Z /);
    expect(await answer(flags)).toMatchObject({ queue: 'q', dueMs: Date.parse(at), retries: [{ attempt: 2 }] });
    expect((await answer(['ls', '--id', 'a'])).jobs).toEqual([]);
    const refused = await due(['schedule', 'q', '--group', 'acme', '--dry-run']);
    expect([refused.code, refused.out]).toEqual([
      1,
      expect.stringMatching(
        /refused +the job has group "acme", and queue q is not gated; allowed: after "duestream queues set q --fair"/,
      ),
    ]);
    expect((await due(['schedule', 'q', '--bulk', 'x', '--dry-run'])).err).toContain('--dry-run goes with one job');
  });
});

describe('schedule', () => {
  test('prints the id, the due time and how far away it is', async () => {
    const { code, out, err } = await due(['schedule', 'q', '--id', 'a', '--data', '{"n":1}', '--delay', '3h']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(/^a {2}scheduled {2}due \d{4}-\d\d-\d\dT[\d:.]+Z \(in 3 h\)\n$/);
    expect(await the.redis.hget(the.keys.jobs, 'j:a')).toMatch(/^1\w+\|\{"d":\{"n":1\}\}$/);
  });

  test('takes an instant, a name, and data from a file or stdin', async () => {
    writeFileSync(join(cli.folder, 'data.json'), '{"from":"file"}');
    const at = '2030-03-01T10:00:00+01:00';
    const first = await answer(['schedule', 'q', '--id', 'a', '--data', '@data.json', '--at', at, '--name', 'welcome']);
    expect(first).toEqual({ id: 'a', queue: 'q', status: 'scheduled', dueMs: Date.parse(at) });
    await due(['schedule', 'q', '--id', 'b', '--data', '-', '--delay', '1h'], { input: '{"from":"stdin"}' });
    expect(await the.redis.hget(the.keys.jobs, 'j:a')).toContain('{"n":"welcome","d":{"from":"file"}}');
    expect(await the.redis.hget(the.keys.jobs, 'j:b')).toContain('{"d":{"from":"stdin"}}');
  });

  test('refuses numbers that would lose digits, in a flag, a file and a line of --bulk, with their place', async () => {
    const data = '{"user":[1234567824702058497]}';
    writeFileSync(join(cli.folder, 'big.json'), data);
    for (const given of [data, '@big.json', '-']) {
      const { code, err } = await due(['schedule', 'q', '--id', 'a', '--data', given], { input: data });
      expect(code).toBe(64);
      expect(err).toContain(
        'data.user.0 is 1234567824702058497, which would be read as 1234567824702058500; allowed: ',
      );
    }
    const input = '{"id":"b","data":{"x":0.1234567890123456789}}\n{"id":"c","data":{"x":1.10}}\n';
    const { scheduled, malformed } = await answer(['schedule', 'q', '--bulk', '-'], { input });
    expect(scheduled).toBe(1);
    expect(malformed).toMatchObject([{ line: 1, reason: expect.stringContaining('data.x is 0.1234567890123456789') }]);
    expect(await the.redis.hkeys(the.keys.jobs)).toEqual(['j:c']);
  });

  test('refuses bytes that are no UTF-8, in a file and in a line of --bulk, with their place', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"id":"a","data":"ä€😀"}\n{"id":"b","data":"'),
      Buffer.from([0xff, 0xe4]),
      Buffer.from('"}\n{"id":"c","data":1}\n'),
    ]);
    writeFileSync(join(cli.folder, 'latin.ndjson'), bytes);
    const { scheduled, malformed } = await answer(['schedule', 'q', '--bulk', 'latin.ndjson']);
    expect({ scheduled, malformed }).toMatchObject({
      scheduled: 2,
      malformed: [{ line: 2, reason: expect.stringContaining('no UTF-8') }],
    });
    expect(await the.redis.hget(the.keys.jobs, 'j:a')).toContain('ä€😀');
    const whole = await due(['schedule', 'q', '--data', '@latin.ndjson']);
    expect(whole).toMatchObject({
      code: 64,
      err: expect.stringContaining('@latin.ndjson holds bytes that are no UTF-8'),
    });
  });

  test('takes what the library takes: expiry, lateness, attempts, timeout and backoff', async () => {
    const late = ['--expires-at', '2030-01-02T00:00:00Z', '--max-lateness', '10m', '--on-late', 'dead'];
    const own = [
      '--attempts',
      '3',
      '--timeout',
      '5m',
      '--backoff',
      '{"kind":"exponential","delayMs":1000,"maxMs":60000}',
    ];
    const { code, err } = await due(['schedule', 'q', '--id', 'a', '--at', '2030-01-01T00:00:00Z', ...late, ...own]);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const record = decodeRecord((await the.redis.hget(the.keys.jobs, 'j:a')) ?? '');
    expect(record).toMatchObject({
      expiresAtMs: Date.parse('2030-01-02T00:00:00Z'),
      maxLatenessMs: 600_000,
      onLate: 'dead',
      attempts: 3,
      timeoutMs: 300_000,
      backoff: { kind: 'exponential', delayMs: 1000, factor: 2, maxMs: 60_000, jitter: 'full' },
    });
    const line = '{"id":"b","at":"2030-01-01T00:00:00Z","maxLateness":"10m","onLate":"run"}';
    expect((await due(['schedule', 'q', '--bulk', '-'], { input: line })).code).toBe(0);
    const second = decodeRecord((await the.redis.hget(the.keys.jobs, 'j:b')) ?? '');
    expect(second).toMatchObject({ maxLatenessMs: 600_000, onLate: 'run' });
  });

  test('keeps, replaces or refuses a job that is there', async () => {
    await the.schedule('a', { dueMs: T0 + 5 * 365 * DAY_MS });
    const again = (what: string) => due(['schedule', 'q', '--id', 'a', '--delay', '1h', '--if-exists', what]);
    expect((await again('keep')).out).toMatch(/^a {2}exists {2}a job of this id is live, due 2030-11-20/);
    expect((await again('error')).code).toBe(1);
    expect((await again('replace')).out).toMatch(/^a {2}replaced {2}now due .*\(in 60 min\)\n$/);
  });

  test('updates a job that waits, from flags and from lines, and says why it does not', async () => {
    const update = (...flags: readonly string[]) =>
      due(['schedule', 'q', '--id', 'a', '--if-exists', 'update', ...flags]);
    await the.schedule('a', { dueMs: T0 + 5 * 365 * DAY_MS, late: { tags: ['invoice:7'] } });
    expect((await update('--data', '{"n":1}')).out).toMatch(/^a {2}updated {2}due 2030-11-20/);
    expect((await update('--data', '{"n":1}')).out).toMatch(/^a {2}already as this call says {2}due 2030-11-20/);
    const line = '{"id":"a","ifExists":"update","at":"2031-01-01T00:00:00Z"}';
    const { code, out } = await due(['schedule', 'q', '--bulk', '-', '--json'], { input: `${line}\n${line}` });
    expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ updated: 1, already: 1 })]);
    const record = (await the.redis.hget(the.keys.jobs, 'j:a')) ?? '';
    expect(decodeRecord(record)).toMatchObject({ data: { n: 1 }, tags: ['invoice:7'] });
    expect(await the.redis.zscore(the.keys.scheduled, 'j:a')).toBe(String(Date.UTC(2031, 0, 1)));
    await the.cancel('j:a');
    expect((await update('--data', '2')).out).toBe('a  already cancelled  it is not made again\n');
    const claim = await the.running('a');
    expect(await update('--data', '2')).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^a {2}running {2}not changed/),
    });
    await the.complete([claim]);
  });

  test('debounces, and says what became of each call', async () => {
    const call = (id: string, ...flags: readonly string[]) => due(['schedule', 'q', '--id', id, ...flags]);
    expect((await call('a', '--debounce', '1m,5m', '--data', '1')).out).toMatch(/^a {2}scheduled {2}due /);
    const second = await call('a', '--debounce', '1m,5m', '--data', '2');
    expect(second.out).toMatch(/^a {2}merged {2}the job that waits has this data, now due \S+Z \(in \d+ [ms].*\)\n$/);
    expect(await the.redis.hget(the.keys.jobs, 'j:a')).toMatch(/^1\w+;d=\w+;m=\w+\.[0-9a-f]{16}\|\{"d":2\}$/);
    expect((await call('b', '--debounce', '1m,1m')).code).toBe(0);
    // It runs, and newer data come.
    await the.redis.zadd(the.keys.scheduled, 'XX', T0, 'j:a');
    const [claim] = await the.run();
    const third = await call('a', '--debounce', '1m,5m', '--data', '3');
    expect(third.out).toMatch(/^a {2}behind /);
    const { out } = await due(['show', 'q', 'a']);
    expect(out).toMatch(/^data +3$/m);
    expect(out).toMatch(
      /^newer data +came while it runs, and are shown here. They start when this run has ended, .* due: in /m,
    );
    expect(out).toMatch(/Z {2}newer data are due, in /);
    // The next attempt has them.
    if (claim) await the.retry(claim, { nowMs: Date.now() });
    expect((await due(['show', 'q', 'a'])).out).not.toContain('newer data');
    await the.cancel('j:a');
    const { code, err } = await call('a', '--debounce', '1m,5m,9m');
    expect([code, err]).toEqual([64, expect.stringContaining('such as 1s,5s')]);
    const nameless = await due(['schedule', 'q', '--debounce', '1m']);
    expect([nameless.code, nameless.err]).toEqual([64, expect.stringContaining('debounce is given without id')]);
  });

  test('does not replace a job that runs, and ends with 1', async () => {
    const claim = await the.running('a');
    const { code, out } = await due(['schedule', 'q', '--id', 'a', '--if-exists', 'replace']);
    expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(/^a {2}running/) });
    await the.complete([claim]);
  });

  test.each([
    [['--data', '{to:1}'], '--data is not JSON'],
    [['--data', '@missing.json'], '"missing.json" cannot be read: ENOENT'],
    [['--delay', '1 fortnight'], 'delay is "1 fortnight"; allowed:'],
    [['--delay', '1h', '--at', '2030-01-01T00:00:00Z'], 'allowed: one of them'],
    [['--backoff', 'exponential'], 'backoff is "exponential"; allowed: fixed(…)'],
    [['--backoff', '{"kind":"fixed","dely":1}'], 'dely is not an option of fixed; did you mean delay?'],
    [['--backoff', '{"kind":"cubic"}'], 'with kind: fixed (delay), linear (delay, max)'],
    [['--on-late', 'dead'], 'onLate is "dead" without expiresAt or maxLateness'],
    [['--max-lateness', 'soon'], 'maxLateness is "soon"; allowed:'],
    [['--expires-at', '2030-01-01'], '--expires-at is "2030-01-01", a local time; add Z'],
    [['--id', 'a b'], 'job id is "a b"; allowed:'],
    [['--bulk', 'jobs.ndjson', '--if-exists', 'keep'], '--bulk and --if-exists are both given'],
  ])('refuses %j with 64', async (flags, message) => {
    const { code, err } = await due(['schedule', 'q', ...flags]);
    expect({ code, err }).toEqual({ code: 64, err: expect.stringContaining(message) });
    expect(err).toContain('next: duestream schedule --help');
  });

  test('reads many jobs from lines, tells the malformed ones and is stopped by none', async () => {
    const lines = [
      '{"id":"a","data":{"n":1},"delay":"1d"}',
      'not json',
      '{"id":"b","dely":"1d"}',
      '',
      '{"id":"c c"}',
      '{"id":"d","at":"2030-01-01T00:00:00Z","name":"welcome"}',
    ];
    const { code, out, err } = await due(['schedule', 'q', '--bulk', '-'], { input: lines.join('\n') });
    expect({ code, out }).toEqual({ code: 1, out: '5 lines, 2 scheduled, 3 refused\n' });
    expect(err.match(/^line \d+: /gm)).toEqual(['line 2: ', 'line 3: ', 'line 5: ']);
    expect(err).toContain('line 3: "dely" is no option; did you mean delay? allowed: data, delay, at,');
    expect(await the.redis.zrange(the.keys.scheduled, '0', '-1')).toEqual(['j:a', 'j:d']);
  });

  test('sends a large file in chunks, with progress, and twice without harm', async () => {
    const lines = Array.from({ length: 6000 }, (_, n) => `{"id":"n${n}","at":"2030-01-01T00:00:00Z"}`);
    writeFileSync(join(cli.folder, 'jobs.ndjson'), lines.join('\r\n'));
    const first = await due(['schedule', 'q', '--bulk', 'jobs.ndjson']);
    expect(first).toEqual({ code: 0, out: '6000 lines, 6000 scheduled\n', err: '5000 jobs sent\n' });
    const second = await answer(['schedule', 'q', '--bulk', 'jobs.ndjson']);
    expect(second).toEqual({ queue: 'q', read: 6000, already: 6000, refused: 0, malformed: [] });
  });
});

describe('ls', () => {
  test('lists the jobs of each state', async () => {
    await the.dead('dead');
    await the.complete([await the.running('done')]);
    await the.schedule('cancelled');
    await the.cancel('j:cancelled');
    const running = await the.running('running');
    await the.schedule('ready');
    await the.promote();
    await the.schedule('later', { dueMs: T0 + DAY_MS });
    await the.schedule('sooner', { dueMs: T0 + 1000 });
    for (const [state, ids] of Object.entries({
      scheduled: ['sooner', 'later'],
      ready: ['ready'],
      running: ['running'],
      done: ['done'],
      cancelled: ['cancelled'],
      dead: ['dead'],
    })) {
      const { jobs } = await answer(['ls', 'q', '--state', state]);
      expect(
        jobs.map(({ id }: { readonly id: string }) => id),
        state,
      ).toEqual(ids);
    }
    const { out } = await due(['ls', 'q', '--state', 'running']);
    expect(out).toMatch(/^id +name +due +attempts +worker\nrunning +default +\S+Z \([^)]+\) +1 +w1\n$/);
    await the.complete([running]);
  });

  test('lists jobs that expired, and goes on behind the last of a page of what is over', async () => {
    await the.redis.hset(the.keys.jobs, 'j:late', '.e1mi8or6w8 0123456789abcdef 0 0 -');
    await the.redis.zadd(the.keys.done, T0, 'j:late');
    for (const id of ['a', 'b', 'c']) await the.dead(id);
    for (const id of ['d', 'e']) await the.complete([await the.running(id)]);
    const listed = async (...flags: readonly string[]) =>
      (await answer(['ls', 'q', ...flags])).jobs.map(({ id }: { readonly id: string }) => id);
    expect(await listed('--state', 'expired')).toEqual(['late']);
    expect((await due(['ls', 'q', '--state', 'expired'])).out).toMatch(/^id +end +attempts +over\nlate +expired +0 /);
    for (const [state, ids, newer] of [
      ['dead', ['c', 'b', 'a'], () => the.dead('f')],
      ['done', ['d', 'e'], async () => the.complete([await the.running('g')])],
    ] as const) {
      const first = await answer(['ls', 'q', '--state', state, '--limit', '1']);
      await newer();
      const rest = await listed('--state', state, '--cursor', first.cursor);
      expect([first.jobs[0].id, ...rest].toSorted()).toEqual([...ids].toSorted());
    }
    expect((await due(['ls', 'q', '--state', 'done', '--limit', '1'])).out).toMatch(/go on with\n--cursor \S+\n$/);
  });

  test('goes through the partitions of a queue by due, and from page to page', async () => {
    await declareQueue(the.redis, { namespace: 't', queue: 'wide', partitions: 4 });
    const ids = Array.from({ length: 10 }, (_, n) => `n${n}`);
    const input = ids.map((id, n) => `{"id":"${id}","at":"2030-01-01T00:00:0${n}Z"}`).join('\n');
    await due(['schedule', 'wide', '--bulk', '-'], { input });
    const first = await answer(['ls', 'wide', '--limit', '3']);
    const { jobs } = await answer(['ls', 'wide', '--limit', '5', '--cursor', first.cursor]);
    const rest = await answer(['ls', 'wide', '--cursor', (await answer(['ls', 'wide', '--limit', '8'])).cursor]);
    const listed = [...first.jobs, ...jobs, ...rest.jobs];
    const places = listed.map(
      ({ partition, id }: { readonly partition: number; readonly id: string }) => `${partition} ${id}`,
    );
    expect(places).toEqual(places.toSorted());
    expect(new Set(listed.map(({ id }: { readonly id: string }) => id))).toEqual(new Set(ids));
    expect(new Set(listed.map(({ partition }: { readonly partition: number }) => partition)).size).toBeGreaterThan(1);
  });

  test('says when there is nothing, and when the queue was never used', async () => {
    expect(await due(['ls', 'q'])).toEqual({ code: 0, out: 'no scheduled jobs\n', err: '' });
    const { code, err } = await due(['ls', 'nope']);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining('queue "nope" was never used in namespace "t"'),
    });
    expect(await the.redis.hexists('t:v1:{control}:queues', 'nope')).toBe(0);
  });

  test('never lets an escape sequence of a foreign producer reach the terminal', async () => {
    const evil = 'a\u001b]0;owned\u0007\u009b31mb\r\nc';
    await the.put(evil, T0 + DAY_MS);
    for (const args of [
      ['ls', 'q'],
      ['show', 'q', evil, '--bare'],
      ['show', 'q', evil],
      ['cancel', 'q', evil, '--bare'],
    ]) {
      for (const format of [[], ['--json']]) {
        const { out, err } = await due([...args, ...format]);
        expect((out + err).replaceAll('\n', ''), args[0]).not.toMatch(/\p{Cc}/u);
      }
    }
  });
});

describe('show', () => {
  const story = async (id: string, ...flags: string[]) => (await due(['show', 'q', id, ...flags])).out;

  test('a job that waits', async () => {
    await the.schedule('a', { dueMs: T0 + 5 * 365 * DAY_MS, data: { to: 'a@b.c' } });
    const text = await story('a');
    expect(text).toMatch(
      /^job +a\nqueue +q, partition 0\nname +default\ndata +\{"to":"a@b.c"\}\nstate +scheduled, due in \d+ d\n/,
    );
    expect(text).toMatch(/^2030-11-20T09:56:40.000Z {2}attempt 1 is due, in \d+ d$/m);
  });

  test('a job that is overdue because nobody leads', async () => {
    await the.schedule('a');
    expect(await story('a')).toContain('no daemon leads this partition: start one with "duestream start"');
  });

  test('a job that is ready', async () => {
    await the.schedule('a');
    await the.promote();
    expect(await story('a')).toMatch(/^state +ready$/m);
  });

  test('a job that runs, with its worker, its token and the request to stop', async () => {
    const claim = await the.running('a');
    await the.cancel('j:a');
    const text = await story('a');
    expect(text).toMatch(/^state +running, asked to stop$/m);
    expect(text).toContain(`attempt 1 runs on worker w1, token ${claim.token}`);
    expect(text).toContain('a cancel was requested');
    expect(await answer(['show', 'q', 'a'])).toMatchObject({
      id: 'a',
      state: 'running',
      attempts: 1,
      owner: 'w1',
      token: claim.token,
      cancelRequested: true,
    });
    await the.complete([claim]);
  });

  test('how far the handler of a job is, while it runs, and no escape sequence of it', async () => {
    const claim = await the.running('a');
    const said = { fraction: 0.4, text: 'row 400\u001b[31m', atMs: T0 };
    await the.extend([{ ...claim, progress: encodeProgress(said, 1) }]);
    expect(await story('a')).toMatch(/^progress +40 %, row 400 \[31m, \d+ d ago$/m);
    expect(await answer(['show', 'q', 'a'])).toMatchObject({ history: [], progress: said });
    await the.extend([{ ...claim, progress: encodeProgress({ fraction: 0.999, text: undefined, atMs: T0 }, 1) }]);
    expect(await story('a')).toMatch(/^progress +99 %, \d+ d ago$/m);
    await the.defer(claim);
    expect(await story('a')).not.toContain('progress');
    expect(await answer(['show', 'q', 'a'])).not.toHaveProperty('progress');
  });

  test('what the handlers of a job said, and no escape sequence of it', async () => {
    const claim = await the.running('a');
    const said = (text: string, fields?: object) =>
      encodeLogLine(
        { atMs: T0, attempt: 1, text, fields: fields && { ...fields } },
        { told: String, redact: undefined },
      );
    await the.log(claim, [said('asked \u001b[31mthe bank', { account: 'DE02' })]);
    await the.log(claim, [said('it said yes')], { last: 4 });
    const first = `${new Date(T0).toISOString()}  attempt 1: asked  [31mthe bank {"account":"DE02"}`;
    const lines = `its handlers said:\n(2 lines are not kept)\n${first}\n`;
    expect(await story('a')).toContain(lines);
    expect((await answer(['show', 'q', 'a'])).log).toMatchObject({
      leftOut: 2,
      lines: [{ atMs: T0, attempt: 1, fields: { account: 'DE02' } }, { text: 'it said yes' }],
    });
    await the.bury(claim);
    const { deadLetters } = await answer(['dead', 'ls', 'q']);
    expect((await due(['dead', 'show', 'q', deadLetters[0].deadLetter])).out).toContain(lines);
    expect(await story('a')).toContain(lines);
  });

  test('a job that failed and waits for its next attempt', async () => {
    await the.retry(await the.running('a'), { delayMs: 1000 });
    const text = await story('a');
    expect(text).toMatch(/attempt 1 failed: boom\n.* {2}attempt 2 is due, \d+ d ago$/m);
  });

  test('each start that was put aside or handed back, and who changed the job after it', async () => {
    const why = encodeDeferral({ atMs: T0 + 3, reason: 'ann holds it', worker: 'w1', tookMs: 3 });
    await the.defer(await the.running('a'), { delayMs: 0, why });
    await due(['reschedule', 'q', 'a', '--delay', '1d']);
    const text = await story('a');
    expect(text).toMatch(
      /attempt 1 started on worker w1\n.* attempt 1 was put aside after 3 ms on worker w1: ann holds it\n/,
    );
    expect(text).toMatch(/^\S+Z {2}jobs\.reschedule by \S+@\S+ \(cli\): due \S+Z → due \S+Z\n.* attempt 2 is due/m);
    expect(text).not.toContain('not kept');
    const { timeline, changes } = await answer(['show', 'q', 'a']);
    expect(timeline).toMatchObject([{ kind: 'asked-due' }, { kind: 'started' }, { kind: 'deferred' }, { kind: 'due' }]);
    expect(changes).toMatchObject([
      { verb: 'jobs.reschedule', before: { dueMs: T0 }, after: { dueMs: expect.any(Number) } },
    ]);
  });

  test('a job that is done, cancelled or dead, after it was over', async () => {
    const claim = await the.running('done');
    await the.complete([claim]);
    await the.schedule('cancelled');
    await the.cancel('j:cancelled');
    const deadLetter = await the.dead('dead');
    expect(await story('done')).toContain(`Z  done after attempt 1, token ${claim.token}`);
    expect(await story('cancelled')).toContain('Z  cancelled before it was ever started');
    const text = await story('dead');
    expect(text).toMatch(/^state +dead$[\s\S]*Z {2}attempt 1 failed: boom\n.*Z {2}dead: attempts\n/m);
    expect(text).toContain(`duestream dead replay q ${deadLetter}`);
  });

  test('a bare job, and that there is one when --bare was left out', async () => {
    await the.put('order-1042', T0 + 5 * 365 * DAY_MS);
    expect(await story('order-1042', '--bare')).toMatch(/^job +order-1042 \(bare: put by a foreign producer\)$/m);
    expect((await due(['show', 'q', 'order-1042'])).err).toContain('but a bare one: add --bare');
  });

  test('a bare job that started late, and why', async () => {
    await the.put('order-1042', T0 - 3000);
    await the.promote();
    const [claim] = await the.run();
    expect(await story('order-1042', '--bare')).toMatch(
      /attempt 1 started on worker w1\n +\S.* after its due time: its producer used a plain ZADD and no nudge,\n/,
    );
    if (claim) await the.complete([claim]);
  });

  test('an id nobody knows: what that can mean', async () => {
    const { code, err } = await due(['show', 'q', 'nope']);
    expect(code).toBe(1);
    expect(err).toContain(
      'q has no job "nope": it never existed, it was over more than 10 min ago, or it is in another queue or namespace (this is t)',
    );
  });

  test('a dead job whose end is forgotten leads to its dead letter', async () => {
    const deadLetter = await the.dead('a');
    await the.redis.hdel(the.keys.jobs, 'j:a');
    await the.redis.zrem(the.keys.done, 'j:a');
    expect((await due(['show', 'q', 'a'])).err).toContain(`it is dead: "duestream dead show q ${deadLetter}"`);
  });
});

describe('cancel', () => {
  test('says for each id what became of it, and ends with 1 when one was not cancelled', async () => {
    await the.scheduleAll([item('a', { dueMs: T0 + DAY_MS }), item('b', { dueMs: T0 + DAY_MS })]);
    expect(await due(['cancel', 'q', 'a', 'b'])).toEqual({ code: 0, out: 'a  cancelled\nb  cancelled\n', err: '' });
    const claim = await the.running('runs');
    await the.complete([await the.running('done')]);
    const { code, out } = await due(['cancel', 'q', 'a', 'runs', 'done', 'nope']);
    expect(code).toBe(1);
    expect(out.split('\n').map((text) => text.split(/:|;/)[0])).toEqual([
      ...['a  over already', 'runs  running', 'done  over already', 'nope  unknown', ''],
    ]);
    expect((await answer(['cancel', 'q', 'a'])).jobs).toEqual([{ id: 'a', status: 'over', over: 'cancelled' }]);
    await the.complete([claim]);
  });

  test('of a bare job needs --bare', async () => {
    await the.put('order-1042', T0 + DAY_MS);
    expect((await due(['cancel', 'q', 'order-1042'])).code).toBe(1);
    expect(await due(['cancel', 'q', 'order-1042', '--bare'])).toMatchObject({
      code: 0,
      out: 'order-1042  cancelled\n',
    });
  });
});
