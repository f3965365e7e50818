/** Middleware around what is scheduled and around handlers, in virtual time. */
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { defineQueue } from '../../src/job/queue.ts';
import { DuestreamError } from '../../src/kernel/errors.ts';
import { createTestKit } from '../../src/testing/index.ts';
import { defineHandlers, type HandlerContext, type Middleware } from '../../src/worker/run/handlers.ts';
import { createHandleChain } from '../../src/worker/run/middleware.ts';

const kitOf = (handler: (job: { data: unknown; id: string }, context: HandlerContext) => unknown) =>
  createTestKit({ handlers: { mail: handler } });

test('stands around calls, the first one outermost, for one job and for many alike', async () => {
  const seen: unknown[] = [];
  const kit = kitOf((job) => void seen.push(job.data));
  const told: string[] = [];
  const named = (name: string): Middleware => ({
    async schedule(call, next) {
      expectTypeOf(call.queue.name).toEqualTypeOf<string>();
      told.push(`${name} ${call.queue.name} ${call.jobs.length}`);
      const jobs = call.jobs.map((job) => ({ ...job, data: `${job.data}${name}` }));
      const results = await next({ ...call, jobs });
      told.push(`${name} ${results.map(({ status }) => status)}`);
      return results;
    },
  });
  kit.client.use(named('a'));
  kit.client.use(named('b'));
  const forWorkers: Middleware = { handle: (_job, _context, next) => next() };
  kit.client.use(forWorkers);
  const one = await kit.client.schedule('mail', 'x', { id: 'one', durability: 'memory' });
  expect(one).toMatchObject({ id: 'one', status: 'scheduled' });
  const many = await kit.client.scheduleMany('mail', [{ data: 'y' }, { data: 'z', delay: '1h' }]);
  expect(many).toHaveLength(2);
  await kit.advance('1h');
  // Jobs of one due time start in the order of their ids.
  expect(seen).toEqual(['yab', 'xab', 'zab']);
  const once = ['a mail 1', 'b mail 1', 'b scheduled', 'a scheduled'];
  expect(told).toEqual([...once, 'a mail 2', 'b mail 2', 'b scheduled,scheduled', 'a scheduled,scheduled']);
});

test('can refuse a call, and what it adds is checked as what the caller gave', async () => {
  const queue = defineQueue('mail', { jobs: { default: z.object({ tenant: z.string(), n: z.number() }) } });
  const kit = createTestKit({ handlers: { mail: () => undefined }, queues: [queue] });
  let tenant: unknown = 'acme';
  kit.client.use({
    async schedule(call, next) {
      if (tenant === undefined) throw new DuestreamError('refused', 'no tenant');
      return next({ ...call, jobs: call.jobs.map((job) => ({ ...job, data: { ...job.data, tenant } })) });
    },
  });
  const call = () => kit.client.schedule(queue, { n: 1, tenant: '' }, { id: 'a' });
  expect(await call()).toMatchObject({ status: 'scheduled' });
  tenant = 5;
  await expect(call()).rejects.toMatchObject({ code: 'bad-input', message: expect.stringContaining('tenant') });
  tenant = undefined;
  await expect(call()).rejects.toMatchObject({ code: 'refused' });
  expect(kit.jobs()).toHaveLength(1);
});

test('stands around handlers, sees how they end, and what it throws counts as thrown by them', async () => {
  const told: string[] = [];
  const kit = kitOf((job) => {
    told.push(`handler ${job.id}`);
    if (job.id === 'fails') throw new Error('no');
  });
  kit.use({
    async handle(job, { attempt }, next) {
      told.push(`begin ${job.id} ${attempt}`);
      if (job.id === 'skipped') return;
      if (job.id === 'refused') throw new Error('not here');
      await next().catch((error: unknown) => {
        told.push(String(error));
        throw error;
      });
      told.push(`end ${job.id}`);
    },
  });
  for (const id of ['done', 'fails', 'skipped', 'refused']) await kit.client.schedule('mail', 1, { id, attempts: 1 });
  await kit.advance('1s');
  const ends = kit.jobs().map(({ id, state }) => `${id} ${state}`);
  expect(ends).toEqual(['done done', 'fails dead', 'skipped done', 'refused dead']);
  expect(told).toEqual([
    ...['begin done 1', 'handler done', 'end done', 'begin fails 1', 'handler fails', 'Error: no'],
    ...['begin refused 1', 'begin skipped 1'],
  ]);
});

test.each([
  [
    'never looks at it',
    (next: () => Promise<unknown>) => void next(),
    ['quick done', 'slow done', 'fails dead', 'late dead'],
  ],
  ['returns at once, and looks', (next: () => Promise<unknown>) => void next().catch(() => 'seen'), 'all done'],
  ['takes the failure for a success', (next: () => Promise<unknown>) => next().catch(() => 'seen'), 'all done'],
])('a start ends with its handler, also where the middleware %s', async (_how, use, wanted) => {
  const ended: string[] = [];
  const kit = kitOf(async ({ id }) => {
    if (id === 'slow' || id === 'late') await new Promise((resolve) => setTimeout(resolve, 20));
    ended.push(id);
    if (id === 'fails' || id === 'late') throw new Error('no');
  });
  kit.use({
    async handle(_job, _context, next) {
      await use(next);
    },
  });
  const ids = ['quick', 'slow', 'fails', 'late'];
  for (const id of ids) {
    await kit.client.schedule('mail', 1, { id, attempts: 1 });
    await kit.advance('1s');
    expect(ended.at(-1)).toBe(id);
  }
  const ends = kit.jobs().map(({ id, state }) => `${id} ${state}`);
  expect(ends).toEqual(wanted === 'all done' ? ids.map((id) => `${id} done`) : wanted);
});

test('of a module counts for its handlers, and around what they schedule', async () => {
  const told: string[] = [];
  const trace: Middleware = {
    schedule(call, next) {
      told.push(`schedule ${call.jobs.map(({ id }) => id)}`);
      return next(call);
    },
    handle(job, _context, next) {
      told.push(`handle ${job.id}`);
      return next();
    },
  };
  const handlers = defineHandlers(
    {
      mail: async (job, context) => {
        if (job.data === 'first') await context.schedule('mail', 'second', { id: `then:${job.id}`, delay: '1h' });
      },
    },
    { use: [trace] },
  );
  const kit = createTestKit({ handlers });
  await kit.client.schedule('mail', 'first', { id: 'a' });
  await kit.advance('1h');
  expect(told).toEqual(['handle a', 'schedule then:a', 'handle then:a']);
});

test('costs nothing while there is none: a handler stays itself, and inside of some it is made once', () => {
  const chain = createHandleChain();
  const handler = () => undefined;
  expect(chain.around(handler)).toBe(handler);
  chain.use({ schedule: (call, next) => next(call) });
  expect(chain.around(handler)).toBe(handler);
  chain.use({ handle: (_job, _context, next) => next() });
  const inside = chain.around(handler);
  expect(inside).not.toBe(handler);
  expect(chain.around(handler)).toBe(inside);
});

test('next may be called once', async () => {
  const kit = kitOf(() => undefined);
  kit.client.use({ schedule: async (call, next) => [...(await next(call)), ...(await next(call))] });
  await expect(kit.client.schedule('mail', 1)).rejects.toMatchObject({ message: expect.stringContaining('twice') });
  const other = kitOf(() => undefined);
  other.use({ handle: async (_job, _context, next) => [await next(), await next()] });
  await other.schedule('mail', 1, { id: 'a', attempts: 1 });
  await other.advance('1s');
  expect(other.runs.at(-1)?.error).toContain('next twice');
});

test.each([
  [{}, /a middleware has neither schedule nor handle; allowed: one of them, or both/],
  [{ shedule: () => undefined }, /shedule is not an option of a middleware; did you mean schedule\?/],
  [{ handle: 5 }, /handle of a middleware is 5; allowed: a function/],
  [{ handle: async function* () {} }, /handle of a middleware is a generator/],
  [{ schedule: class {} }, /schedule of a middleware is a class/],
  [5, /the options of a middleware are 5/],
])('%o is refused', (wrong, message) => {
  const kit = kitOf(() => undefined);
  for (const { use } of [kit, kit.client]) {
    expect(() => use(wrong as Middleware)).toThrow(
      expect.objectContaining({ code: 'bad-input', message: expect.stringMatching(message) }),
    );
  }
  expect(() => defineHandlers({ q: () => undefined }, { use: [wrong as Middleware] })).toThrow(message);
});
