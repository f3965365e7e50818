/**
 * `If-Match` on every change, over a real daemon and a real Redis. Nobody leads here, so nothing moves by itself: what Redis
 * holds is compared byte by byte.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { documentOf } from '../../../src/http/api/api.ts';
import { partitionRef } from '../../../src/redis/keys.ts';
import { type Answered, type ServedApi, serveApi } from '../../support/api.ts';

let api: ServedApi;
const JOB = '/v1/queues/emails/jobs/a';
const DEAD = '/v1/queues/emails/dead/1763719000000-0';
const SCHEDULE = '/v1/schedules/nightly';
const NIGHTLY = { queue: 'emails', cron: '30 2 1 1 *' };
const { keys } = partitionRef('duestream', { queue: 'emails', partition: 0, layoutGeneration: 0 });

interface Change {
  /** `jobs.cancel` */
  readonly id: string;
  readonly what: string;
  readonly body?: unknown;
  /** Where its ETag comes from. */
  readonly look: string;
  /** What somebody else does meanwhile. */
  readonly meanwhile: () => Promise<unknown>;
}

const bury = (attempts: number) => async () => {
  const record = (await api.place.redis.hget(keys.jobs, 'j:a')) ?? '';
  await api.place.redis.del(keys.dead);
  const died = { reason: 'no-handler', history: '', attempts, failures: 0, crashes: 0, token: 5, at: 1763719000000 };
  const fields = Object.entries({ member: 'j:b', record, ...died, generation: attempts }).flat();
  await api.place.redis.xadd(keys.dead, '1763719000000-0', ...fields);
};
const reschedule = () => api.ask(`POST ${JOB}/reschedule`, { body: { delay: '5h' } });
const edit = () => api.ask(`PATCH ${JOB}`, { body: { data: { to: 'else' } } });
const putElse = () => api.ask(`PUT ${SCHEDULE}`, { body: { ...NIGHTLY, data: 'else' } });

const CHANGES: readonly Change[] = [
  { id: 'jobs.edit', what: `PATCH ${JOB}`, body: { data: { to: 'me' } }, look: JOB, meanwhile: edit },
  { id: 'jobs.edit', what: `PATCH ${JOB}`, body: { data: { to: 'me' } }, look: JOB, meanwhile: reschedule },
  { id: 'jobs.cancel', what: `DELETE ${JOB}`, look: JOB, meanwhile: edit },
  { id: 'jobs.cancel', what: `DELETE ${JOB}`, look: JOB, meanwhile: reschedule },
  { id: 'jobs.reschedule', what: `POST ${JOB}/reschedule`, body: { delay: '2h' }, look: JOB, meanwhile: edit },
  { id: 'jobs.reschedule', what: `POST ${JOB}/reschedule`, body: { delay: '2h' }, look: JOB, meanwhile: reschedule },
  {
    id: 'jobs.reschedule',
    what: `POST ${JOB}/reschedule`,
    body: { delay: '9h', only: 'earlier' },
    look: JOB,
    meanwhile: edit,
  },
  { id: 'jobs.run', what: `POST ${JOB}/run`, look: JOB, meanwhile: edit },
  { id: 'jobs.run', what: `POST ${JOB}/run`, look: JOB, meanwhile: reschedule },
  {
    id: 'schedules.put',
    what: `PUT ${SCHEDULE}`,
    body: { ...NIGHTLY, data: 'me' },
    look: SCHEDULE,
    meanwhile: putElse,
  },
  {
    id: 'schedules.put',
    what: `PUT ${SCHEDULE}`,
    body: { ...NIGHTLY, queue: 'new' },
    look: SCHEDULE,
    meanwhile: putElse,
  },
  { id: 'schedules.rm', what: `DELETE ${SCHEDULE}`, look: SCHEDULE, meanwhile: putElse },
  { id: 'schedules.pause', what: `POST ${SCHEDULE}/pause`, body: { reason: 'me' }, look: SCHEDULE, meanwhile: putElse },
  {
    id: 'schedules.resume',
    what: `POST ${SCHEDULE}/resume`,
    look: SCHEDULE,
    meanwhile: () => api.ask(`POST ${SCHEDULE}/pause`, { body: { reason: 'lunch' } }),
  },
  { id: 'schedules.trigger', what: `POST ${SCHEDULE}/trigger`, body: { id: 'x' }, look: SCHEDULE, meanwhile: putElse },
  { id: 'dead.replay', what: `POST ${DEAD}/replay`, look: DEAD, meanwhile: bury(4) },
];
const rows = CHANGES.map((change, at) => [`${at}: ${change.id}`, change] as const);

beforeAll(async () => {
  api = await serveApi({ roles: ['http'] });
});
afterAll(() => api.stop());
beforeEach(async () => {
  const { redis } = api.place;
  await redis.del(...Object.values(keys).flatMap((key) => (typeof key === 'string' ? [key] : [])));
  await redis.del('duestream:v1:{control}:schedules');
  await api.ask('POST /v1/queues/emails/jobs', { body: { id: 'a', data: { to: 'ada' }, delay: '1h' } });
  await api.ask(`PUT ${SCHEDULE}`, { body: NIGHTLY });
  await bury(3)();
});

const send = ({ what, body }: Pick<Change, 'what' | 'body'>, ifMatch: string): Promise<Answered> =>
  api.ask(what, { ...(body === undefined ? {} : { body }), headers: { 'If-Match': ifMatch } });

async function etagOf(path: string): Promise<string> {
  const seen = await api.ask(`GET ${path}`);
  expect(seen.status).toBe(200);
  const etag = seen.headers.get('etag') ?? '';
  expect(etag).toBe(`"${seen.body.etag}"`);
  return etag;
}

/** All that a change could change, as Redis holds it. */
async function stored(): Promise<readonly (readonly [string, string])[]> {
  const { redis } = api.place;
  const names = (await redis.keys('duestream:v1:*')).filter(
    (name) => !/\{control\}:(alive|beat|worker|process)/.test(name),
  );
  const dumps = await Promise.all(names.sort().map((name) => redis.dumpBuffer(name)));
  return names.map((name, at) => [name, dumps[at]?.toString('latin1') ?? '']);
}

describe.each(rows)('%s', (_, change) => {
  test('is carried out for what was seen', async () => {
    const before = await stored();
    const done = await send(change, await etagOf(change.look));
    expect(done.status).toBeLessThan(300);
    // A schedule that is not paused is resumed already, and what is due later is not made earlier.
    const isSo = change.id === 'schedules.resume' || done.body?.status === 'kept';
    if (!isSo) expect(await stored()).not.toEqual(before);
  });

  test('is refused for what somebody else has changed since, and changes nothing', async () => {
    const stale = await etagOf(change.look);
    await change.meanwhile();
    const now = await etagOf(change.look);
    expect(now).not.toBe(stale);
    const before = await stored();
    const refused = await send(change, stale);
    expect(refused).toMatchObject({ status: 412, body: { code: 'changed', ifMatch: stale, etag: now } });
    expect(refused.body.detail).toContain(stale);
    expect(refused.body.detail).toContain(now);
    expect(refused.headers.get('etag')).toBe(now);
    expect(await stored()).toEqual(before);
    expect((await send(change, now)).status).toBeLessThan(300);
  });

  test.each([
    ['nginx', (tag: string) => `W/${tag}`],
    ['Apache and Caddy', (tag: string) => tag.replace(/"$/, '-gzip"')],
  ])('is carried out for an ETag that came through a proxy which compresses: %s', async (_, changedBy) => {
    const now = await etagOf(change.look);
    expect((await send(change, changedBy(now))).status).toBeLessThan(300);
  });

  test('is carried out for *', async () => {
    await change.meanwhile();
    expect((await send(change, '*')).status).toBeLessThan(300);
  });

  test('is refused for another thing, and for what is no ETag', async () => {
    const before = await stored();
    for (const [given, status] of [
      ['"something-else"', 412],
      ['""', 412],
      ['nonsense', 400],
      ['W/"something-else"', 412],
      ['w/"weak"', 400],
      ['"one", "two"', 400],
    ] as const) {
      const isSo = change.id === 'schedules.resume' && status === 412;
      const refused = await send(change, given);
      expect([given, refused.status]).toEqual([given, isSo ? 200 : status]);
      if (status === 400) expect(refused.body.errors).toMatchObject([{ field: 'header.if-match' }]);
    }
    if (change.id !== 'schedules.resume') expect(await stored()).toEqual(before);
  });
});

describe('a condition', () => {
  test('of a thing that is not there is no reason to make it', async () => {
    const absent = 'PUT /v1/schedules/absent';
    for (const given of ['*', '"0123456789abcdef"']) {
      const before = await stored();
      const refused = await send({ what: absent, body: { ...NIGHTLY, queue: 'never' } }, given);
      expect(refused).toMatchObject({ status: 412, body: { code: 'changed', ifMatch: given } });
      expect(await stored()).toEqual(before);
      expect(await send({ what: 'DELETE /v1/queues/emails/jobs/absent' }, given)).toMatchObject({ status: 404 });
      expect(await send({ what: 'DELETE /v1/schedules/absent' }, given)).toMatchObject({ status: 404 });
      expect(await send({ what: 'POST /v1/queues/emails/dead/1-1/replay' }, given)).toMatchObject({ status: 404 });
    }
  });

  test('does not hide what a request without it would be told', async () => {
    await api.ask(`DELETE ${JOB}`);
    expect(await send({ what: `POST ${JOB}/run` }, '"x"')).toMatchObject({ status: 409, body: { code: 'over' } });
    expect(await send({ what: `DELETE ${JOB}` }, '"x"')).toMatchObject({ status: 200, body: { over: 'cancelled' } });
  });

  test('is answered with the ETag of what became of it, for the next change', async () => {
    const edited = await send({ what: `PATCH ${JOB}`, body: { data: 1 } }, await etagOf(JOB));
    expect(edited.headers.get('etag')).toBe(await etagOf(JOB));
    const put = await send({ what: `PUT ${SCHEDULE}`, body: { ...NIGHTLY, data: 1 } }, await etagOf(SCHEDULE));
    expect(put.headers.get('etag')).toBe(await etagOf(SCHEDULE));
    const paused = await send({ what: `POST ${SCHEDULE}/pause` }, put.headers.get('etag') ?? '');
    expect(paused.headers.get('etag')).toBe(await etagOf(SCHEDULE));
  });

  test('of two at once holds for one', async () => {
    for (const { what, body, look } of [
      { what: `PATCH ${JOB}`, body: (at: number) => ({ data: at }), look: JOB },
      { what: `POST ${JOB}/reschedule`, body: (at: number) => ({ delay: `${at + 2}h` }), look: JOB },
      { what: `PUT ${SCHEDULE}`, body: (at: number) => ({ ...NIGHTLY, data: at }), look: SCHEDULE },
      { what: `POST ${SCHEDULE}/pause`, body: (at: number) => ({ reason: `r${at}` }), look: SCHEDULE },
    ]) {
      const etag = await etagOf(look);
      const all = await Promise.all([0, 1, 2, 3].map((at) => send({ what, body: body(at) }, etag)));
      expect([what, all.map(({ status }) => status).sort()]).toEqual([what, [200, 412, 412, 412]]);
    }
  });
});

test('a bare job has an ETag of its own', async () => {
  const { redis } = api.place;
  const path = '/v1/queues/emails/jobs/order-7?bare=true';
  await redis.zadd(keys.scheduled, 4_000_000_000_000, 'order-7');
  const stale = await etagOf(path);
  await redis.zadd(keys.scheduled, 4_000_000_000_001, 'order-7');
  expect(await send({ what: `DELETE ${path}` }, stale)).toMatchObject({ status: 412 });
  expect(await redis.zscore(keys.scheduled, 'order-7')).toBe('4000000000001');
  expect(await send({ what: `DELETE ${path}` }, await etagOf(path))).toMatchObject({ status: 200 });
});

test.each([
  ['cancel', {}, 'cancelled'],
  ['run', {}, 'due'],
  ['reschedule', { due: { delay: '7h' } }, 'rescheduled'],
  ['edit', { change: { attempts: 2 } }, 'edited'],
] as const)('a batch of jobs that were seen leaves those that have changed: %s', async (verb, more, became) => {
  const what = `POST /v1/queues/emails/batch/${verb}`;
  const statusOf = async (etag: string) => {
    const { body } = await api.ask(what, { body: { ids: [{ id: 'a', ifMatch: etag }], ...more } });
    return body.jobs[0].status;
  };
  const stale = (await api.ask(`GET ${JOB}`)).body.etag;
  await edit();
  const before = await stored();
  expect([await statusOf(stale), await stored()]).toEqual(['changed', before]);
  expect(await statusOf((await api.ask(`GET ${JOB}`)).body.etag)).toBe(became);
});

test('who may only read has no ETag in which content could be guessed', async () => {
  const token = await api.tokenOf({ scopes: ['read'] });
  for (const path of [JOB, SCHEDULE]) {
    const seen = await api.ask(`GET ${path}`, { token });
    expect([path, seen.status, seen.headers.get('etag'), seen.body.etag]).toEqual([path, 200, null, undefined]);
  }
});

interface Spec {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
}
const { paths }: { paths: Record<string, Record<string, Spec>> } = JSON.parse(documentOf());
const changing = Object.entries(paths).flatMap(([path, verbs]) =>
  Object.entries(verbs).flatMap(([method, spec]) =>
    method === 'get' ? [] : [[spec.operationId, { what: `${method.toUpperCase()} /v1${path}`, spec }] as const],
  ),
);

test.each(changing)('%s compares If-Match, or refuses it', async (id, { what, spec }) => {
  const takes = spec.parameters?.some(({ name }) => name === 'If-Match') ?? false;
  expect(Object.keys(spec.responses).includes('412')).toBe(takes);
  if (takes) {
    // It is in the table above, which shows that it compares.
    expect(CHANGES.map((one) => one.id)).toContain(id);
    return;
  }
  const before = await stored();
  const filled = what.replace('{queue}', 'emails').replace('{name}', 'nightly').replace('{deadLetter}', '1-1');
  expect(await send({ what: filled }, '*')).toMatchObject({
    status: 400,
    body: { code: 'bad-input', errors: [{ field: 'header.if-match', allowed: 'no If-Match' }] },
  });
  expect(await stored()).toEqual(before);
});
