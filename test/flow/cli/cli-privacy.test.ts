/** A queue that redacts fields: nobody sees them on the command line, and no edit writes a view back. And erase by tag. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { reconcileSchedules } from '../../../src/client/schedules/reconcile.ts';
import { encodeNote } from '../../../src/job/past.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { parseSettings } from '../../../src/job/queue-settings.ts';
import { controlKeys } from '../../../src/redis/keys.ts';
import { declareQueue, findQueue } from '../../../src/redis/scripts/queues.ts';
import { useCli } from '../../support/cli.ts';
import { T0, usePartition } from '../../support/partition.ts';

const history = parseSettings({ history: { result: true } }).history;
if (!history) throw new Error('no history');
const cli = useCli();
const the = usePartition({ history });
const SECRET = 'ann@example.org';
const redact = ['email', 'card.number'];
const data = { email: SECRET, card: { number: '4111111111111111', last4: '1111' }, n: 7 };

beforeEach(async () => {
  await declareQueue(the.redis, { namespace: 't', queue: 'q', partitions: 1, history, redact });
});

const due = (...args: readonly string[]) => cli.run([...args, '--redis', the.server.url, '--namespace', 't']);
const answer = async (...args: readonly string[]) => JSON.parse((await due(...args, '--json')).out);
const hidden = { email: '[redacted]', card: { number: '[redacted]', last4: '1111' }, n: 7 };

async function done(id: string, returned: unknown, tags = ''): Promise<void> {
  const note = { name: 'welcome', record: `1a${tags}|{}`, startedMs: T0, tookMs: 5 };
  const claim = await the.running(id, { data });
  const mark = `${T0.toString(36)} 0123456789abcdef\n${encodeNote(note, returned, history ?? never())}`;
  await the.complete([{ ...claim, mark }], { nowMs: T0 });
}
const never = () => {
  throw new Error('no history');
};

describe('fields that a queue redacts', () => {
  test('are shown by no verb, in lines or in JSON', async () => {
    await done('over', { email: SECRET, sent: true });
    await the.bury(await the.running('died', { data }), { reason: 'no-handler' });
    await the.schedule('waits', { data });
    expect((await answer('show', 'q', 'waits')).data).toEqual(hidden);
    expect((await answer('ls', 'q', '--state', 'done')).jobs[0].result).toEqual({
      kind: 'kept',
      value: { email: '[redacted]', sent: true },
    });
    const { deadLetters } = await answer('dead', 'ls', 'q');
    expect((await answer('dead', 'show', 'q', deadLetters[0].deadLetter)).data).toEqual(hidden);
    for (const id of ['waits', 'over', 'died']) {
      for (const flags of [[], ['--json']]) expect((await due('show', 'q', id, ...flags)).out).not.toContain(SECRET);
    }
    for (const verb of [
      ['ls', 'q'],
      ['ls', 'q', '--state', 'over'],
      ['dead', 'ls', 'q'],
      ['dead', 'ls', 'q', '--groups'],
    ]) {
      for (const flags of [[], ['--json']]) expect((await due(...verb, ...flags)).out).not.toContain(SECRET);
    }
    expect((await due('dead', 'show', 'q', deadLetters[0].deadLetter)).out).toContain('[redacted]');
  });

  test('are not shown of a record that nobody can read', async () => {
    await the.schedule('broken');
    await the.redis.hset(the.keys.jobs, 'j:broken', `1a|{"d":{"email":"${SECRET}"`);
    const { out } = await due('show', 'q', 'broken');
    expect(out).toContain('unreadable, and not shown because its queue redacts data');
    expect(out).not.toContain(SECRET);
  });

  test('are not shown of the data of a schedule', async () => {
    await due('schedules', 'put', 'nightly', '--queue', 'q', '--every', '1h', '--data', JSON.stringify(data));
    const shown = await answer('schedules', 'show', 'nightly');
    expect(shown.input.data).toEqual(hidden);
    for (const verb of [
      ['show', 'nightly'],
      ['ls', '--json'],
      ['show', 'nightly', '--json'],
    ]) {
      expect((await due('schedules', ...verb)).out).not.toContain(SECRET);
    }
    await due('schedules', 'rm', 'nightly');
  });

  test('are not written back by a schedule that is put as it was shown: by flags, by a file, by that of the daemon', async () => {
    await due('schedules', 'put', 'nightly', '--queue', 'q', '--every', '1h', '--data', JSON.stringify(data));
    const { input } = await answer('schedules', 'show', 'nightly');
    const back = { ...input, every: '2h' };
    writeFileSync(join(cli.folder, 'back.yaml'), JSON.stringify({ schedules: { nightly: back } }));
    for (const args of [
      ['--queue', 'q', '--every', '2h', '--data', JSON.stringify(input.data)],
      ['--file', 'back.yaml'],
    ]) {
      const { code, err } = await due('schedules', 'put', 'nightly', ...args);
      expect(code).toBe(64);
      expect(err).toMatch(/schedule nightly: data\.\S+ is "\[redacted\]", which stands in views/);
    }
    const wanted = new Map([['other', back]]);
    await expect(reconcileSchedules(the.redis, { namespace: 't', wanted })).rejects.toMatchObject({
      code: 'bad-input',
    });
    expect((await answer('schedules', 'show', 'nightly')).input.every).toBe('1h');
    await due('schedules', 'rm', 'nightly');
  });

  test('are not scheduled from what was shown: a copy of a job is refused in a line of --bulk', async () => {
    await the.schedule('waits', { data });
    const shown = await answer('show', 'q', 'waits');
    const lines = [JSON.stringify({ id: 'copy', data: shown.data }), JSON.stringify({ id: 'whole', data })].join('\n');
    const { out } = await cli.run(
      ['schedule', 'q', '--bulk', '-', '--json', '--redis', the.server.url, '--namespace', 't'],
      {
        input: lines,
      },
    );
    expect(JSON.parse(out)).toMatchObject({
      scheduled: 1,
      refused: 1,
      malformed: [{ line: 1, reason: expect.stringMatching(/data\.\S+ is "\[redacted\]"/) }],
    });
  });

  test('are whole for code, and an edit that would write a view back is refused', async () => {
    await the.schedule('waits', { data });
    const producer = createClient({ redis: the.server.url, namespace: 't' });
    expect((await producer.get('q', 'waits'))?.data).toEqual(data);
    const shown = await answer('show', 'q', 'waits');
    const back = JSON.stringify(shown.data);
    for (const flags of [['waits'], ['--where-state', 'scheduled', '--yes']]) {
      const { code, err } = await due('edit', 'q', ...flags, '--data', back);
      expect(code).not.toBe(0);
      expect(err).toMatch(/data\.\S+ is "\[redacted\]", which stands in views for a value that its queue hides/);
    }
    const again = ['--id', 'waits', '--if-exists', 'replace', '--delay', '1h', '--data', back];
    const replaced = await due('schedule', 'q', ...again);
    expect(replaced.code).toBe(64);
    expect(replaced.err).toMatch(/data\.\S+ is "\[redacted\]"/);
    const jobs = ['waits', 'other'].map((id) => ({ id, data: shown.data, ifExists: 'replace' as const }));
    await expect(producer.scheduleMany('q', jobs)).rejects.toMatchObject({ code: 'bad-input' });
    expect((await producer.get('q', 'waits'))?.data).toEqual(data);
    const coded = defineQueue<object>('q', { redact });
    await expect(producer.edit(coded, 'waits', { data: shown.data })).rejects.toMatchObject({ code: 'bad-input' });
    expect((await producer.edit('q', 'waits', { data: { ...data, n: 8 } })).status).toBe('edited');
    expect((await producer.edit('q', 'waits', { attempts: 2 })).status).toBe('edited');
    await producer.close();
  });

  test('are set for every process: by a definition, by the command line, and taken back', async () => {
    const stored = async () => (await findQueue(the.redis, 't', 'q'))?.redact;
    expect(await stored()).toEqual(['card.number', 'email']);
    expect((await due('queues', 'set', 'q', '--redact', 'email, items.*.to')).out).toBe(
      'views show [redacted] in the place of these fields of q: email, items.*.to\nall processes follow within half a minute\ncode says ["card.number","email"] for redact; it counts again when you take this back\nto take it back: duestream queues set q --unset redact\n',
    );
    expect(await stored()).toEqual(['email', 'items.*.to']);
    const producer = createClient({ redis: the.server.url, namespace: 't' });
    (await producer.count(defineQueue('q'))).count;
    expect(await stored()).toEqual(['email', 'items.*.to']);
    await producer.close();
    const other = createClient({ redis: the.server.url, namespace: 't' });
    await other.schedule(defineQueue('q', { redact: ['to'] }), {}, { delay: '1h' });
    expect(await stored()).toEqual(['email', 'items.*.to']);
    await due('queues', 'set', 'q', '--unset', 'redact');
    expect(await stored()).toEqual(['to']);
    await other.close();
    expect((await due('queues', 'set', 'q', '--redact', 'none')).out).toContain('views show all data of q');
    expect(await the.redis.hget(controlKeys('t').queues, 'q:redact')).toBe('[]');
    expect((await due('queues', 'set', 'q', '--redact', 'a..b')).code).toBe(64);
    expect((await answer('queues', 'ls')).queues).toHaveLength(1);
  });
});

describe('erase', () => {
  const tags = ';t=user:42';

  async function furnish(): Promise<void> {
    const record = `1${T0.toString(36)}${tags}|{"d":1}`;
    await done('b', {}, tags);
    await done('c', {});
    await the.scheduleAll([{ member: 'j:a', record, dueMs: T0 }]);
  }

  test('counts with --dry-run, removes with --yes, and tells how many by place', async () => {
    await furnish();
    expect((await due('tags', 'erase', 'user:42')).code).toBe(64);
    expect((await due('tags', 'erase', 'user:42', '--dry-run')).out).toBe(
      'q: 1 job, 0 dead letters, 1 record of the history would be removed\n',
    );
    const { code, out } = await due('tags', 'erase', 'user:42', '--yes');
    expect(code).toBe(0);
    expect(out).toContain('q: 1 job, 0 dead letters, 2 records of the history removed\nRedis may keep the bytes');
    expect(await answer('tags', 'erase', 'user:42', '--queue', 'q', '--yes')).toEqual({
      dryRun: false,
      queues: [
        { queue: 'q', dryRun: false, jobs: 0, running: 0, deadLetters: 0, history: 0, logs: 0, left: 0, scanned: 1 },
      ],
      left: 0,
      failed: [],
      schedules: [],
      unreadable: [],
    });
    expect((await due('tags', 'erase', 'user:42', '--yes')).out).toBe('nothing has this tag\n');
  });

  test('removes what handlers said of jobs with the tag, also of those that are over', async () => {
    const claim = await the.running('over');
    await the.log(claim, ['{"t":1,"a":1,"m":"called ann"}'], { tags: 'user:42,paid' });
    await the.complete([claim]);
    expect((await due('show', 'q', 'over')).out).toContain('called ann');
    expect((await due('tags', 'erase', 'user:42', '--dry-run')).out).toBe(
      'q: 0 jobs, 0 dead letters, 0 records of the history, the log lines of 1 job would be removed\n',
    );
    expect((await due('tags', 'erase', 'user:42', '--yes')).out).toContain('the log lines of 1 job removed');
    expect((await due('show', 'q', 'over')).out).not.toContain('called ann');
    expect(await the.redis.exists(the.keys.logs)).toBe(0);
  });

  test('is in the audit by its count, without the tag', async () => {
    await furnish();
    await due('tags', 'erase', 'user:42', '--yes');
    const { entries } = await answer('admin', 'audit');
    expect(entries[0]).toMatchObject({ verb: 'erase', queue: 'q', count: 3 });
    expect(JSON.stringify(entries)).not.toContain('user:42');
  });

  test('names schedules that make jobs with the tag, and exits with 1 while a job runs', async () => {
    await due('schedules', 'put', 'daily', '--queue', 'q', '--every', '1h', '--tag', 'user:42');
    const record = `1${T0.toString(36)}${tags}|{"d":1}`;
    await the.scheduleAll([{ member: 'j:a', record, dueMs: T0 }]);
    await the.run();
    const { code, out } = await due('tags', 'erase', 'user:42', '--yes');
    expect(out).toContain('q: 1 job running, asked to stop');
    expect(out).toContain('schedule daily has this tag and stays');
    expect(code).toBe(1);
  });

  test('refuses a queue that there is not, and a tag that can be none', async () => {
    expect((await due('tags', 'erase', 'user:42', '--queue', 'nobody', '--yes')).code).not.toBe(0);
    expect((await due('tags', 'erase', 'a b', '--yes')).code).toBe(64);
  });
});
