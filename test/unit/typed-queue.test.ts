/**
 * Queues whose jobs have names with schemas, and queues with a codec: what the compiler says of them, what is refused when
 * a job is scheduled or changed, and what becomes of a job whose data is no good when it is started. In virtual time; the
 * same on a real Redis is `test/flow/worker/typed-queue.test.ts`.
 */
import { describe, expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { contentOf, encodeBody, encodeRecord } from '../../src/job/codec.ts';
import { type Codec, Sealed, type StandardSchema } from '../../src/job/content.ts';
import { defineQueue } from '../../src/job/queue.ts';
import type { JobData } from '../../src/job/types.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { defineHandlers } from '../../src/worker/run/handlers.ts';

/** As anybody can write one; it answers later. */
const cents: StandardSchema<{ cents: number }, { cents: bigint }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    async validate(value) {
      const given = (value as { cents?: unknown } | undefined)?.cents;
      if (typeof given === 'number' && given > 0) return { value: { cents: BigInt(given) } };
      return { issues: [{ message: 'must be a number above 0', path: ['cents'] }] };
    },
  },
};
const welcome = z.object({ to: z.email(), since: z.coerce.date().optional() });
const mail = defineQueue('mail', { jobs: { welcome, invoice: cents } });
const plain = defineQueue('plain', { jobs: { default: z.object({ n: z.number() }) } });

const reversed = (text: string) => [...text].reverse().join('');
const mirror: Codec = { name: 'mirror', encode: reversed, decode: async (text) => reversed(text) };

/** What the compiler lets through; it is never called. */
async function typed() {
  const { client: producer } = createTestKit({ handlers: { plain: () => undefined } });
  await producer.schedule(mail, { to: 'a@b.org', since: new Date() }, { name: 'welcome', delay: '1m' });
  await producer.schedule(mail, { cents: 5 }, { name: 'invoice', durability: 'memory' });
  await producer.schedule(plain, { n: 1 });
  await producer.schedule(plain, { n: 1 }, { name: 'default' });
  // @ts-expect-error there is no such name
  await producer.schedule(mail, { to: 'a@b.org' }, { name: 'welcom' });
  // @ts-expect-error the data is that of another name
  await producer.schedule(mail, { to: 'a@b.org' }, { name: 'invoice' });
  // @ts-expect-error no name is given, and the queue has no default
  await producer.schedule(mail, { to: 'a@b.org' });
  // @ts-expect-error its default has other data
  await producer.schedule(plain, { m: 1 });
  await producer.scheduleMany(mail, [
    { name: 'welcome', data: { to: 'a@b.org' }, delay: '1m' },
    { name: 'invoice', data: { cents: 5 } },
  ]);
  // @ts-expect-error the data is that of another name
  await producer.scheduleMany(mail, [{ name: 'invoice', data: { to: 'a@b.org' } }]);
  await producer.edit(mail, 'a', { name: 'welcome', data: { to: 'c@d.org' } });
  // @ts-expect-error there is no such name
  await producer.edit(mail, 'a', { name: 'welcom', data: { to: 'c@d.org' } });
  expectTypeOf((await producer.get(plain, 'a'))?.data).toEqualTypeOf<{ n: number } | undefined>();
  await producer.schedules.put('daily', { queue: mail, job: 'welcome', data: { to: 'a@b.org' }, every: '1d' });
  // @ts-expect-error there is no such name
  await producer.schedules.put('daily', { queue: mail, job: 'welcom', data: { to: 'a@b.org' }, every: '1d' });
  defineHandlers({ mail: { welcome: () => undefined, invoice: () => undefined } }, { queues: [mail] });
  // @ts-expect-error one of the names has no handler
  defineHandlers({ mail: { welcome: () => undefined } }, { queues: [mail] });
  // @ts-expect-error there is no such queue
  defineHandlers({ mial: { welcome: () => undefined, invoice: () => undefined } }, { queues: [mail] });
  // @ts-expect-error there is no such name
  defineHandlers({ mail: { welcom: () => undefined, invoice: () => undefined } }, { queues: [mail] });
  // @ts-expect-error a schema is none
  defineQueue('mail', { jobs: { welcome: { to: 'string' } } });
}

/** Handlers that keep what they were given. */
function kitOf() {
  const seen: unknown[] = [];
  const handlers = defineHandlers(
    {
      mail: {
        welcome: (job) => {
          expectTypeOf(job.data).toEqualTypeOf<{ to: string; since?: Date | undefined }>();
          expectTypeOf(job.data).toEqualTypeOf<JobData<typeof mail, 'welcome'>>();
          seen.push(job.data);
        },
        invoice: ({ data }) => void seen.push(data.cents),
      },
      plain: (job) => {
        expectTypeOf(job.name).toEqualTypeOf<'default'>();
        seen.push(job.data.n);
      },
    },
    { queues: [mail, plain] },
  );
  return { kit: createTestKit({ handlers }), seen };
}

describe('a queue whose jobs have names', () => {
  test('lets the compiler find what is misspelt', () => {
    expect(typed).toBeTypeOf('function');
  });

  test('gives handlers what its schemas make of the data, also when they answer later', async () => {
    const { kit, seen } = kitOf();
    await kit.client.schedule(mail, { to: 'a@b.org', since: '2026-01-01' }, { name: 'welcome' });
    await kit.client.schedule(mail, { cents: 7 }, { name: 'invoice' });
    await kit.client.schedule(plain, { n: 3 });
    await kit.advance(0);
    expect(new Set(seen)).toEqual(new Set([{ to: 'a@b.org', since: new Date('2026-01-01') }, 7n, 3]));
  });

  test('keeps what was scheduled, not what a schema made of it', async () => {
    const { kit } = kitOf();
    await kit.client.schedule(mail, { to: 'a@b.org', since: '2026-01-01' }, { name: 'welcome', id: 'a', delay: '1h' });
    expect((await kit.client.get(mail, 'a'))?.data).toEqual({ to: 'a@b.org', since: '2026-01-01' });
  });

  test.each([
    [
      'data that does not fit',
      { to: 'nobody' },
      'welcome',
      /data of welcome in queue mail does not fit: to: Invalid email/,
    ],
    [
      'data that another schema refuses later',
      { cents: 0 },
      'invoice',
      /does not fit: cents: must be a number above 0/,
    ],
    [
      'a name that it has not',
      { to: 'a@b.org' },
      'welcom',
      /no jobs named welcom; did you mean welcome\? allowed: welcome, invoice/,
    ],
    ['no name', { to: 'a@b.org' }, undefined, /queue mail has no jobs named default; allowed: welcome, invoice/],
  ])('refuses %s, and nothing is written', async (_, data, name, message) => {
    const { kit } = kitOf();
    const refused = { code: 'bad-input', message: expect.stringMatching(message) };
    const asAny = mail as ReturnType<typeof defineQueue>;
    await expect(kit.client.schedule(asAny, data, { name })).rejects.toMatchObject(refused);
    const list = [
      { data: { to: 'a@b.org' }, name: 'welcome' },
      { data, name },
    ];
    const inList = { code: 'bad-input', message: expect.stringMatching(/^jobs\[1\]: .*nothing was sent$/) };
    await expect(kit.client.scheduleMany(asAny, list)).rejects.toMatchObject(inList);
    expect(kit.jobs()).toEqual([]);
  });

  test('is asked about data as JSON carries it, so that what is taken is taken again', async () => {
    const dates = defineQueue('dates', { jobs: { default: z.object({ at: z.date() }) } });
    const { kit } = kitOf();
    const refused = { code: 'bad-input', message: expect.stringContaining('at: Invalid input: expected date') };
    await expect(kit.client.schedule(dates, { at: new Date() })).rejects.toMatchObject(refused);
  });

  test('checks the data of an edit under the name of the job', async () => {
    const { kit, seen } = kitOf();
    const { client: producer } = kit;
    await producer.schedule(mail, { to: 'a@b.org' }, { name: 'welcome', id: 'a', delay: '1h' });
    await expect(producer.edit(mail, 'a', { data: { cents: 5 } })).rejects.toMatchObject({ code: 'bad-input' });
    await expect(producer.edit(mail, 'a', { name: 'invoice' })).rejects.toMatchObject({
      message: expect.stringContaining('name is "invoice" without data; allowed: both'),
    });
    expect(await producer.edit(mail, 'a', { name: 'invoice', data: { cents: 5 } })).toMatchObject({ status: 'edited' });
    await kit.advance('1h');
    expect(seen).toEqual([5n]);
  });

  test('makes a dead letter of data that somebody else wrote, without its handler and without a retry', async () => {
    const { kit, seen } = kitOf();
    // By its name, nobody checks.
    await kit.client.schedule('mail', { to: 5 }, { name: 'welcome', id: 'sync' });
    await kit.client.schedule('mail', { cents: -1 }, { name: 'invoice', id: 'async' });
    await kit.advance('1d');
    const reasons = kit.jobs().map(({ id, state, reason, attempts }) => [id, state, reason, attempts]);
    expect(reasons).toEqual([
      ['sync', 'dead', 'bad-data', 1],
      ['async', 'dead', 'bad-data', 1],
    ]);
    expect(kit.runs.map(({ error }) => error)).toEqual([
      'data of welcome does not fit: to: Invalid input: expected string, received number',
      'data of invoice does not fit: cents: must be a number above 0',
    ]);
    expect(seen).toEqual([]);
  });

  test('checks the data of its schedules when they are put', async () => {
    const { kit, seen } = kitOf();
    await kit.client.schedules.put('daily', { queue: mail, job: 'welcome', data: { to: 'a@b.org' }, every: '1d' });
    await kit.advance('1d');
    expect(seen).toEqual([{ to: 'a@b.org' }]);
    const wrong = { queue: mail, job: 'welcome', data: { to: 'b' }, every: '1d' } as const;
    await expect(kit.client.schedules.put('wrong', wrong)).rejects.toThrow(/does not fit: to/);
    const later = { queue: mail, job: 'invoice', data: { cents: 1 }, every: '1d' } as const;
    expect(await kit.client.schedules.put('later', later)).toMatchObject({ status: 'created' });
    const handlers = { mail: () => undefined };
    const other = createTestKit({ handlers, schedules: { later: later as never } });
    await other.advance('1d');
    expect(other.runs).toMatchObject([{ name: 'invoice', data: { cents: 1 } }]);
  });

  test('is refused with schemas or names that are none, and with handlers of other names', () => {
    expect(() => defineQueue('q', { jobs: {} })).toThrow(
      /jobs is a value of type object; allowed: an object of schemas/,
    );
    expect(() => defineQueue('q', { jobs: { a: {} as never } })).toThrow(
      /the schema of a is .*; allowed: a Standard Schema/,
    );
    expect(() => defineQueue('q', { jobs: { 'a b': welcome } })).toThrow(/job name is "a b"/);
    const stray = { mail: { welcom: () => undefined, invoice: () => undefined } as never };
    expect(() => defineHandlers(stray, { queues: [mail] })).toThrow(/no jobs named welcom; did you mean welcome\?/);
  });

  test('at most once, its data is checked before the job is over', async () => {
    const once = defineQueue('once', { delivery: 'at-most-once', jobs: { default: cents } });
    const seen: unknown[] = [];
    const handlers = defineHandlers({ once: (job) => void seen.push(job.data.cents) }, { queues: [once] });
    const kit = createTestKit({ handlers });
    await kit.client.schedule(once, { cents: 2 }, { id: 'good' });
    await kit.client.schedule('once', { cents: 0 }, { id: 'bad' });
    await kit.advance('1s');
    expect(kit.jobs().map(({ state }) => state)).toEqual(['done', 'dead']);
    expect(seen).toEqual([2n]);
  });
});

describe('a queue with a codec', () => {
  const secret = defineQueue('secret', { codec: mirror, jobs: { default: z.object({ iban: z.string() }) } });
  const make = () => {
    const seen: unknown[] = [];
    const handlers = defineHandlers({ secret: (job) => void seen.push(job.data.iban) }, { queues: [secret] });
    return { seen, kit: createTestKit({ handlers }) };
  };

  test('is decoded for the handler only', async () => {
    const { kit, seen } = make();
    await kit.client.schedule(secret, { iban: 'DE02' }, { id: 'a', delay: '1h' });
    await kit.client.scheduleMany(secret, [{ data: { iban: 'FR76' }, delay: '2h' }]);
    expect(await kit.client.get(secret, 'a')).toMatchObject({ data: '}"20ED":"nabi"{', codec: 'mirror' });
    await kit.client.edit(secret, 'a', { data: { iban: 'DE03' } });
    expect(await kit.client.get(secret, 'a')).toMatchObject({ data: '}"30ED":"nabi"{', codec: 'mirror' });
    await kit.client.edit(secret, 'a', { attempts: 2 });
    await kit.advance('3h');
    expect(seen).toEqual(['DE03', 'FR76']);
    expect(kit.runs.map(({ data }) => data)).toEqual(['}"30ED":"nabi"{', '}"67RF":"nabi"{']);
  });

  test('is shown by the command line as it is stored, with the name of the codec', () => {
    const record = encodeRecord(1e12, encodeBody({ name: 'default', data: new Sealed('xyz', 'mirror') }));
    expect(contentOf(record)).toMatchObject({ readable: true, data: 'xyz', codec: 'mirror', options: {} });
  });

  test('takes what was scheduled before it had one', async () => {
    const { kit, seen } = make();
    await kit.client.schedule('secret', { iban: 'AT61' });
    await kit.advance(0);
    expect(seen).toEqual(['AT61']);
  });

  test('recognises the same call again, as its codec gives the same text', async () => {
    const { kit } = make();
    const call = () => kit.client.schedule(secret, { iban: 'AT61' }, { id: 'a', at: new Date(kit.nowMs) });
    expect([(await call()).status, (await call()).status]).toEqual(['scheduled', 'already']);
  });

  test('makes a dead letter of what it cannot decode, and names no value', async () => {
    const { kit } = make();
    const { client: producer } = kit;
    const broken = defineQueue('secret', { codec: { ...mirror, encode: () => '{' } });
    const gzip = defineQueue('secret', { codec: { ...mirror, name: 'gzip' } });
    await producer.schedule(gzip, 1);
    await producer.schedule(broken, 1);
    await producer.schedule(defineQueue('secret', { codec: mirror }), { iban: 5 });
    await kit.advance('1s');
    expect(kit.jobs().map(({ reason }) => reason)).toEqual(['bad-data', 'bad-data', 'bad-data']);
    expect(kit.runs.map(({ error }) => error)).toEqual([
      'data is encoded by the codec gzip, and queue secret has the codec mirror here',
      'the codec mirror cannot decode the data: decode gave a text that is not JSON',
      'data of default does not fit: iban',
    ]);
  });

  test('puts a job aside while its codec defers', async () => {
    const { Defer } = await import('../../src/job/outcome.ts');
    let isAway = true;
    const decode = (text: string) => {
      if (isAway) throw new Defer('1m', 'no key server');
      return reversed(text);
    };
    const away = defineQueue('away', { codec: { name: 'mirror', encode: reversed, decode } });
    const kit = createTestKit({ handlers: defineHandlers({ away: () => undefined }, { queues: [away] }) });
    await kit.client.schedule(away, 1, { id: 'a' });
    await kit.advance('1s');
    expect(kit.jobs()).toMatchObject([{ state: 'scheduled', failures: 0 }]);
    isAway = false;
    await kit.advance('10m');
    expect(kit.jobs()).toMatchObject([{ state: 'done' }]);
  });

  test('encodes the data of its schedules once, when they are put', async () => {
    const { kit, seen } = make();
    const daily = { queue: secret, data: { iban: 'DE02' }, every: '1d' } as const;
    expect((await kit.client.schedules.put('daily', daily)).status).toBe('created');
    expect((await kit.client.schedules.put('daily', daily)).status).toBe('unchanged');
    await kit.advance('2d');
    expect(seen).toEqual(['DE02', 'DE02']);
  });

  test.each([
    [{ name: 'A' }, /the codec's name is "A"/],
    [{ decode: undefined }, /decode of a codec is undefined; allowed: a function/],
    [{ encode: function* () {} }, /encode of a codec is a generator/],
    [{ decoed: reversed }, /decoed is not an option of a codec; did you mean decode\?/],
  ])('is refused with %o', (wrong, message) => {
    expect(() => defineQueue('q', { codec: { ...mirror, ...wrong } as Codec })).toThrow(message);
  });
});
