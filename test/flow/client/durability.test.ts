/** Calls that resolve when others than the memory of the primary have the write: real primaries, replicas and disks. */
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Client, type ClientOptions, createClient } from '../../../src/client/client.ts';
import { DuestreamError, Indeterminate } from '../../../src/kernel/errors.ts';
import { runHere } from '../../support/console.ts';
import { openHeldLink } from '../../support/held-link.ts';
import { openLossyLine } from '../../support/lossy-line.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { until } from '../../support/topology-lite.ts';

const QUEUE = 'invoices';
const at = new Date(Date.UTC(2031, 0, 1));
const key = (name: string) => `duestream:v1:{${QUEUE}:0}:${name}`;
/** For calls that are to be given up. */
const HASTY = { durabilityTimeout: '50ms' } as const;
const ends: (() => Promise<unknown>)[] = [];
let primary: TestRedis;

beforeEach(async () => {
  primary = await start([]);
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function start(args: readonly string[], options: { readonly appendonly?: boolean } = {}): Promise<TestRedis> {
  const server = await startRedis({ port: true, args: ['--repl-diskless-sync-delay', '0', ...args], ...options });
  ends.push(async () => {
    await server.kill('SIGCONT');
    await server.stop();
  });
  return server;
}

async function openReplica(port = primary.port ?? 0): Promise<TestRedis> {
  const before = await connected();
  const replica = await start(['--replicaof', '127.0.0.1', String(port)]);
  await until(async () => (await connected()) > before);
  return replica;
}

/** Replicas that the primary counts and that follow it. */
async function connected(): Promise<number> {
  const client = await primary.client();
  return [...(await client.info('replication')).matchAll(/^slave\d+:.*state=online/gm)].length;
}

function open(options: Partial<ClientOptions> = {}): Client {
  const producer = createClient({
    redis: primary.url,
    durability: 'replicated',
    durabilityTimeout: '10s',
    ...options,
  });
  ends.push(() => producer.close());
  return producer;
}

async function has(server: TestRedis, id: string): Promise<boolean> {
  return (await (await server.client()).hexists(key('jobs'), `j:${id}`)) === 1;
}

async function thrownBy(call: Promise<unknown>): Promise<DuestreamError> {
  const thrown: unknown = await call.then(
    (value) => new Error(`it resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (thrown instanceof DuestreamError) return thrown;
  throw thrown;
}

/** Calls of commands, as the primary counted them. */
async function calls(name: string): Promise<number> {
  const stats = await (await primary.client()).info('commandstats');
  return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

describe('replicated', () => {
  test('a call resolves when the replica has what it wrote', async () => {
    const replica = await openReplica();
    const producer = open();
    await producer.schedule(QUEUE, {}, { id: 'one', at });
    expect(await has(replica, 'one')).toBe(true);
    const many = Array.from({ length: 600 }, (_, index) => ({ id: `m${index}`, data: {}, at }));
    await producer.scheduleMany(QUEUE, many);
    expect(await has(replica, 'm599')).toBe(true);
    expect(await producer.cancel(QUEUE, ['one', 'm0'])).toMatchObject([
      { status: 'cancelled' },
      { status: 'cancelled' },
    ]);
    const client = await replica.client();
    expect(await client.zscore(key('scheduled'), 'j:one')).toBeNull();
  });

  test('changes of one, of many and by filter resolve when the replica has them', async () => {
    const replica = await openReplica();
    const producer = open();
    const later = new Date(at.getTime() + 1000);
    const list = ['a', 'b', 'c'].map((id) => ({ id, data: {}, at, tags: ['user:42'] }));
    await producer.scheduleMany(QUEUE, list);
    const client = await replica.client();
    const dueMs = async (id: string) => Number(await client.zscore(key('scheduled'), `j:${id}`));
    const record = async (id: string) => String(await client.hget(key('jobs'), `j:${id}`));
    await producer.reschedule(QUEUE, 'a', { at: later });
    expect(await dueMs('a')).toBe(later.getTime());
    await producer.edit(QUEUE, 'a', { attempts: 3 });
    expect(await record('a')).toContain('"o":{');
    await producer.reschedule(QUEUE, { tag: 'user:42' }, { at: later });
    expect([await dueMs('b'), await dueMs('c')]).toEqual([later.getTime(), later.getTime()]);
    await producer.edit(QUEUE, { tag: 'user:42' }, { name: 'other' });
    expect(await record('c')).toContain('"n":"other"');
    const update = { id: 'b', at, ifExists: 'update' } as const;
    for (const status of ['updated', 'already']) {
      const before = await calls('wait');
      expect(await producer.schedule(QUEUE, { new: 1 }, update)).toMatchObject({ status });
      expect(await dueMs('b')).toBe(at.getTime());
      expect(await calls('wait')).toBeGreaterThan(before + 1);
    }
    const waits = await calls('wait');
    await producer.runNow(QUEUE, 'c', { durability: 'memory' });
    await producer.cancel(QUEUE, { idPrefix: 'c' }, { durability: 'memory' });
    expect(await calls('wait')).toBe(waits);
    await producer.cancel(QUEUE, { tag: 'user:42' });
    expect(await client.zcard(key('scheduled'))).toBe(0);
    const misspelt = { durabilty: 'replicated' } as object;
    await expect(producer.reschedule(QUEUE, 'a', { at }, misspelt)).rejects.toThrow(/did you mean durability\?/);
    await expect(producer.cancel(QUEUE, { tag: 'x' }, misspelt)).rejects.toThrow(/did you mean durability\?/);
  });

  test('a replay resolves when the replica has the job again', async () => {
    const replica = await openReplica();
    const producer = open();
    await producer.schedule(QUEUE, {}, { id: 'dead', at });
    const client = await primary.client();
    const record = String(await client.hget(key('jobs'), 'j:dead'));
    await client.multi().zrem(key('scheduled'), 'j:dead').hdel(key('jobs'), 'j:dead').exec();
    const fields = {
      member: 'j:dead',
      record,
      reason: 'attempts-exhausted',
      generation: '0',
      token: '1',
      attempts: '1',
    };
    await client.xadd(key('dead'), '1763719000000-0', ...Object.entries(fields).flat());
    expect(await producer.deadLetters.replay(QUEUE, '1763719000000-0', { at })).toMatchObject({ status: 'scheduled' });
    expect(await has(replica, 'dead')).toBe(true);
  });

  test('a replica that is stopped makes the call indeterminate, and the same call again waits for it anew', async () => {
    const replica = await openReplica();
    await open().schedule(QUEUE, {}, { id: 'before', at });
    const hasty = open(HASTY);
    await hasty.ready();
    await replica.kill('SIGSTOP');
    const thrown = await thrownBy(hasty.schedule(QUEUE, {}, { id: 'x', at }));
    expect(thrown).toBeInstanceOf(Indeterminate);
    expect(thrown.message).toMatch(/within 50 ms only 0 of 1 replicas have it, .* repeat the same call/);
    expect(await has(primary, 'x')).toBe(true);
    // Another connection, on which nothing was written: its WAIT alone would know of nothing to wait for.
    const other = open(HASTY);
    expect(await thrownBy(other.schedule(QUEUE, {}, { id: 'x', at }))).toBeInstanceOf(Indeterminate);
    expect(await thrownBy(other.cancel(QUEUE, 'nobody'))).toBeInstanceOf(Indeterminate);
    await replica.kill('SIGCONT');
    expect(await open().schedule(QUEUE, {}, { id: 'x', at })).toMatchObject({ status: 'already' });
    expect(await has(replica, 'x')).toBe(true);
  });

  /** A dead letter of this job. */
  async function bury(id: string): Promise<void> {
    const client = await primary.client();
    const fields = { record: '1mi8or64g|{}', reason: 'r', generation: '0', token: '1', attempts: '1' };
    await client.xadd(key('dead'), '*', 'member', `j:${id}`, ...Object.entries(fields).flat());
  }

  const later = new Date(at.getTime() + 1000);
  const tagged = { tag: 'user:42' };
  const repeated: readonly (readonly [string, (producer: Client) => Promise<unknown>])[] = [
    ['edit', (producer) => producer.edit(QUEUE, 'a', { attempts: 3 })],
    ['edit a list', (producer) => producer.edit(QUEUE, ['a', 'b'], { name: 'other' })],
    ['edit by filter', (producer) => producer.edit(QUEUE, tagged, { name: 'other' })],
    ['reschedule', (producer) => producer.reschedule(QUEUE, 'a', { at: later })],
    ['reschedule a list', (producer) => producer.reschedule(QUEUE, ['a'], { at: later })],
    ['reschedule by filter', (producer) => producer.reschedule(QUEUE, tagged, { at: later })],
    ['runNow', (producer) => producer.runNow(QUEUE, 'a')],
    ['runNow by filter', (producer) => producer.runNow(QUEUE, tagged)],
    ['cancel', (producer) => producer.cancel(QUEUE, 'a')],
    ['cancel a list', (producer) => producer.cancel(QUEUE, ['a', 'b'])],
    ['cancel by filter', (producer) => producer.cancel(QUEUE, tagged)],
    ['schedule', (producer) => producer.schedule(QUEUE, { v: 2 }, { id: 'a', at })],
    ['scheduleMany', (producer) => producer.scheduleMany(QUEUE, [{ data: {}, id: 'new', at }])],
    ['replay', (producer) => producer.deadLetters.replay(QUEUE, { job: 'dead' })],
  ];

  test.each(repeated)('what a repeated %s finds as it should be is waited for as well', async (_, call) => {
    const replica = await openReplica();
    const list = ['a', 'b', 'c'].map((id) => ({ id, data: {}, at, tags: ['user:42'] }));
    await open().scheduleMany(QUEUE, list);
    await bury('dead');
    await replica.kill('SIGSTOP');
    expect(await thrownBy(call(open(HASTY)))).toBeInstanceOf(Indeterminate);
    // On the same connection nobody may think that it was waited for before, and on another one nothing was written.
    const again = open(HASTY);
    expect(await thrownBy(call(again))).toBeInstanceOf(Indeterminate);
    expect(await thrownBy(call(again))).toBeInstanceOf(Indeterminate);
    await replica.kill('SIGCONT');
    await call(open());
    const snapshot = async (server: TestRedis) => {
      const client = await server.client();
      return [await client.hgetall(key('jobs')), await client.zrange(key('scheduled'), '0', '-1', 'WITHSCORES')];
    };
    expect(await snapshot(replica)).toEqual(await snapshot(primary));
  });

  test('calls in memory go on while a durable one waits', async () => {
    const replica = await openReplica();
    const producer = open();
    await producer.schedule(QUEUE, {}, { id: 'before', at });
    await replica.kill('SIGSTOP');
    const waiting = producer.schedule(QUEUE, {}, { id: 'waits', at });
    await until(async () => /cmd=wait/.test(String(await (await primary.client()).call('CLIENT', 'LIST'))));
    expect(await producer.schedule(QUEUE, {}, { id: 'quick', at, durability: 'memory' })).toMatchObject({
      status: 'scheduled',
    });
    expect(await producer.get(QUEUE, 'waits')).toMatchObject({ id: 'waits' });
    await replica.kill('SIGCONT');
    expect(await waiting).toMatchObject({ status: 'scheduled' });
  });

  test('calls that come while one waits share the next WAIT', async () => {
    const replica = await openReplica();
    const producer = open();
    await producer.schedule(QUEUE, {}, { id: 'before', at });
    await replica.kill('SIGSTOP');
    const first = producer.schedule(QUEUE, {}, { id: 'first', at });
    await until(async () => /cmd=wait/.test(String(await (await primary.client()).call('CLIENT', 'LIST'))));
    const before = await calls('wait');
    const others = Array.from({ length: 40 }, (_, index) => producer.cancel(QUEUE, `c${index}`));
    for (let turns = 0; turns < 5; turns += 1) await turn();
    await replica.kill('SIGCONT');
    await Promise.all([first, ...others]);
    // One for all of them, and one more for what they wrote: nothing, so a write was made for it.
    expect((await calls('wait')) - before).toBeLessThanOrEqual(4);
  });

  test('a lost reply is repeated with its script, and the second call waits for what the first wrote', async () => {
    const replica = await openReplica();
    const line = await openLossyLine(primary);
    ends.push(line.close);
    const producer = open({ redis: line.url });
    await producer.schedule(QUEUE, {}, { id: 'before', at });
    line.loseReplyTo('schedule');
    expect(await producer.schedule(QUEUE, {}, { id: 'lost', at })).toMatchObject({ status: 'already' });
    expect(line.lost()).toBe(1);
    expect(await has(replica, 'lost')).toBe(true);
  });

  test('scripts that Redis has forgotten are sent again, and waited for', async () => {
    const replica = await openReplica();
    const hasty = open(HASTY);
    const scheduled = (id: string) => hasty.schedule(QUEUE, {}, { id, at });
    await until(async () => !((await scheduled('x').catch((error: unknown) => error)) instanceof Error));
    // This connection believes that Redis knows the script: its WAIT is answered before the script goes out again.
    await (await primary.client()).call('SCRIPT', 'FLUSH', 'SYNC');
    await replica.kill('SIGSTOP');
    expect(await thrownBy(scheduled('y'))).toBeInstanceOf(Indeterminate);
    expect(await has(primary, 'y')).toBe(true);
  });

  test('a replica that comes later is waited for as well', async () => {
    await openReplica();
    const producer = open();
    await producer.schedule(QUEUE, {}, { id: 'before', at });
    const second = await openReplica();
    await producer.schedule(QUEUE, {}, { id: 'x', at });
    expect(await has(second, 'x')).toBe(true);
    await second.kill('SIGSTOP');
    expect((await thrownBy(open(HASTY).schedule(QUEUE, {}, { id: 'y', at }))).message).toMatch(/only 1 of 2 replicas/);
    expect(await producer.schedule(QUEUE, {}, { id: 'z', at, durability: { replicas: 1 } })).toMatchObject({ id: 'z' });
  });

  test('without a replica it is refused at connect, and when the last one goes calls are unavailable', async () => {
    const producer = open({ retryBudget: 100 });
    const refusal = await thrownBy(producer.ready());
    expect(refusal).toMatchObject({ code: 'refused' });
    expect(refusal.message).toMatch(/it has 0 replicas, and 1 must have each write: connect 1 more/);
    expect(await thrownBy(producer.schedule(QUEUE, {}, { at }))).toMatchObject({ code: 'refused' });
    expect(await thrownBy(producer.cancel(QUEUE, 'x', { durability: { replicas: 2 } }))).toMatchObject({
      code: 'refused',
    });
    const replica = await openReplica();
    const hasty = open({ ...HASTY, retryBudget: 100 });
    await hasty.ready();
    await open().schedule(QUEUE, {}, { id: 'x', at });
    await replica.kill('SIGKILL');
    await until(async () => (await connected()) === 0);
    const options = { id: 'y', at };
    await until(async () => (await thrownBy(hasty.schedule(QUEUE, {}, options))).code === 'unavailable');
    expect((await thrownBy(hasty.schedule(QUEUE, {}, { id: 'z', at }))).message).toMatch(
      /NOREPLICAS 0 of 1 .*nothing was sent/,
    );
    expect(await has(primary, 'z')).toBe(false);
  });
});

describe('a primary that dies before its replica has everything', () => {
  async function lostBy(durability: 'memory' | 'replicated'): Promise<readonly string[]> {
    const link = await openHeldLink(primary.port ?? 0);
    ends.push(link.close);
    const replica = await openReplica(link.port);
    const patient = open({ durability });
    const hasty = open({ ...HASTY, durability });
    await hasty.ready();
    const acknowledged: string[] = [];
    const schedule = async (producer: Client, id: string) => {
      const done = await producer.schedule(QUEUE, {}, { id, at }).catch((error: unknown) => error);
      if (done instanceof Error) expect(done).toBeInstanceOf(Indeterminate);
      else acknowledged.push(id);
    };
    for (const id of ['a', 'b', 'c']) await schedule(patient, id);
    expect(acknowledged).toEqual(['a', 'b', 'c']);
    await until(() => has(replica, 'c'));
    link.hold();
    for (const id of ['d', 'e', 'f']) await schedule(hasty, id);
    expect(await has(primary, 'f')).toBe(true);
    await primary.kill('SIGKILL');
    await (await replica.client()).call('REPLICAOF', 'NO', 'ONE');
    const kept = await Promise.all(acknowledged.map((id) => has(replica, id)));
    return acknowledged.filter((_, index) => !kept[index]);
  }

  test('loses nothing that was acknowledged as replicated', async () => {
    expect(await lostBy('replicated')).toEqual([]);
  });

  test('loses what was acknowledged in memory', async () => {
    expect(await lostBy('memory')).toEqual(['d', 'e', 'f']);
  });
});

describe('fsynced', () => {
  const knowsWaitaof = async () =>
    JSON.stringify(await (await primary.client()).call('COMMAND', 'INFO', 'waitaof')).includes('waitaof');

  test('is refused without an append-only file, and where Redis has no WAITAOF', async () => {
    const refusal = await thrownBy(open({ durability: 'fsynced' }).ready());
    expect(refusal.code).toBe('refused');
    expect(refusal.message).toMatch(
      (await knowsWaitaof()) ? /append-only file is off: set "appendonly yes"/ : /no command WAITAOF, which Redis 7.2/,
    );
  });

  test('is granted with an append-only file, and the job survives the end of the process', async () => {
    const onDisk = await start(['--appendfsync', 'everysec'], { appendonly: true });
    const producer = open({ redis: onDisk.url, durability: 'fsynced' });
    if (!(await knowsWaitaof())) {
      expect(await thrownBy(producer.ready())).toMatchObject({ code: 'refused' });
      return;
    }
    await producer.ready();
    await producer.schedule(QUEUE, {}, { id: 'x', at });
    expect(await open({ redis: onDisk.url, durability: 'fsynced' }).schedule(QUEUE, {}, { id: 'x', at })).toMatchObject(
      {
        status: 'already',
      },
    );
    await onDisk.restart();
    expect(await has(onDisk, 'x')).toBe(true);
  });
});

describe('the command line', () => {
  test('waits for the replica, and says why it cannot', async () => {
    const asked = ['--redis', primary.url, '--json', '--durability'];
    const refused = await runHere(['schedule', QUEUE, '--id', 'x', ...asked, 'replicated']);
    expect(refused).toMatchObject({ code: 69, err: expect.stringContaining('it has 0 replicas') });
    expect(await runHere(['cancel', QUEUE, 'x', ...asked, 'disk'])).toMatchObject({ code: 64 });
    const replica = await openReplica();
    expect(await runHere(['schedule', QUEUE, '--id', 'x', '--delay', '1h', ...asked, 'replicated'])).toMatchObject({
      code: 0,
    });
    expect(await has(replica, 'x')).toBe(true);
    expect(await runHere(['cancel', QUEUE, 'x', ...asked, 'replicated'])).toMatchObject({ code: 0 });
  });
});

describe('options', () => {
  test('a durability that there is not is refused before anything is sent', async () => {
    expect(() => open({ durability: 'replicatd' as 'replicated' })).toThrow(
      /durability is "replicatd"; allowed: memory, replicated/,
    );
    expect(() => open({ durability: { replicas: 0 } })).toThrow(/allowed: /);
    expect(() => open({ durabilityTimeout: '11s' })).toThrow(/durabilityTimeout/);
    const producer = open({ durability: 'memory' });
    expect(await thrownBy(producer.schedule(QUEUE, {}, { durability: 'disk' as 'fsynced' }))).toMatchObject({
      code: 'bad-input',
    });
    const misspelt = { durabilty: 'replicated' } as object;
    expect((await thrownBy(producer.cancel(QUEUE, 'x', misspelt))).message).toMatch(
      /durabilty is not an option of cancel; did you mean durability\?/,
    );
    expect(await thrownBy(producer.scheduleMany(QUEUE, [], misspelt))).toMatchObject({ code: 'bad-input' });
  });

  test('a call in memory sends no WAIT, and opens no second connection', async () => {
    const producer = open({ durability: 'memory' });
    await producer.schedule(QUEUE, {}, { id: 'x', at });
    expect(await calls('wait')).toBe(0);
    const clients = String(await (await primary.client()).call('CLIENT', 'LIST'));
    expect([...clients.matchAll(/name=duestream:/g)]).toHaveLength(1);
  });
});
