/**
 * Ten thousand requests that are made from the OpenAPI file: most well formed, the others with one thing wrong. Whatever is
 * asked, no answer is a fault of ours, each says what the file says, and what was accepted is found afterwards.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refsOf } from '../../../src/client/queues/refs.ts';
import { documentOf } from '../../../src/http/api/api.ts';
import { systemClock } from '../../../src/kernel/clock.ts';
import { writePart } from '../../../src/kernel/path-part.ts';
import { examine, examineControl } from '../../../src/redis/repair/examine.ts';
import { type Answered, type AskOptions, type ServedApi, serveApi } from '../../support/api.ts';
import {
  createRandom,
  made,
  nonsense,
  type Operation,
  operationsOf,
  type Pools,
  type Random,
  spoilt,
} from '../../support/fuzz.ts';
import { openWay, WAYS, type WayIn } from '../../support/ways-in.ts';
import { isSlice } from '../../tiers.mjs';

const REQUESTS = isSlice ? 500 : 4000;
const SEED = Number(process.env.FUZZ_SEED ?? 20261122);
const AT_ONCE = 8;
const SPOILT_SHARE = 0.3;
const REPEATS_MAX = 20;
const QUEUES = ['emails', 'sms', 'reports'];
const document = JSON.parse(documentOf());
/** A purge is none of what is accepted; logging in needs a token. */
const operations = operationsOf(document).filter(({ id }) => !id.startsWith('session.'));
/** The API that is asked now, and how. */
let api: ServedApi;
let ask: WayIn['ask'];

interface Known {
  /** Jobs that were accepted, `queue id`. */
  readonly jobs: Set<string>;
  readonly schedules: Set<string>;
  made: number;
}

/** What schemas do not know: which queues there are, and values that go with each other. */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  queue: QUEUES,
  deadLetter: ['1763719000000-0'],
  'deadLetters[]': ['1763719000000-0'],
  for: ['30s', '10m'],
  rate: ['10/s', '600/m'],
  wait: ['10m', '1h'],
  max: ['2h', 7_200_000],
  delay: ['1h', '2d', 3_600_000, 'PT2H'],
  olderThan: ['1h', '2d', 3_600_000, 'PT2H'],
  cron: ['0 0 * * *', '@daily', '30 2 1 * *'],
  zone: ['UTC', 'Europe/Berlin'],
  from: ['2026-03-01'],
  to: ['2026-03-03'],
  until: ['2026-12-24'],
  dueFrom: ['2026-01-01T00:00:00Z'],
  dueTo: ['2036-01-01T00:00:00Z'],
  reason: ['no-handler'],
  // It goes on for ever.
  events: ['1'],
};

/** A cursor is of one list; when jobs ended only a history knows. */
const NEVER = ['cursor', 'endedFrom', 'endedTo'];

const pools: Pools = (field, random) => {
  const values = VALUES[field.replace(/^.*\./, '')];
  return values && random.of(values);
};

interface Request {
  readonly operation: Operation;
  readonly what: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

function requestOf(random: Random, known: Known): Request {
  const operation = random.chance(0.35) ? named('jobs.schedule') : random.of(operations);
  const isSpoilt = random.chance(SPOILT_SHARE);
  const [queue = 'emails', id = 'first'] = random.of([...known.jobs]).split(' ');
  const body = bodyOf(operation, { random, known });
  const path = operation.path
    .replace('{queue}', queue)
    .replace('{id}', encodeURIComponent(id))
    .replace('{deadLetter}', '1763719000000-0')
    .replace('{group}', random.of(['acme', 'pro']))
    .replace('{name}', random.of([...known.schedules, `s${random.below(20)}`]));
  const query = (operation.spec.parameters ?? []).flatMap(
    ({ in: place, name, required, schema }: Operation['spec']) => {
      if (place !== 'query' || NEVER.includes(name)) return [];
      // Unless a request says how long it waits for an end that never comes, it waits for half a minute.
      if (name === 'wait') return ['wait=10ms'];
      if (name !== 'events' && !required && random.chance(0.7)) return [];
      return [`${name}=${encodeURIComponent(String(made(document, schema, { random, pools, field: name })))}`];
    },
  );
  const whole = `${operation.method} /v1${path}${query.length > 0 ? `?${query.join('&')}` : ''}`;
  const headers =
    operation.id === 'jobs.schedule' && random.chance(0.1) ? { 'Idempotency-Key': `key-${random.below(500)}` } : {};
  if (!isSpoilt) return { operation, what: whole, body, headers };
  return { operation, ...spoiltRequest(random, { what: whole, body, headers }) };
}

function spoiltRequest(
  random: Random,
  given: Pick<Request, 'what' | 'body' | 'headers'>,
): Pick<Request, 'what' | 'body' | 'headers'> {
  const way = random.below(given.body === undefined ? 4 : 7);
  if (way === 0)
    return {
      ...given,
      what: `${given.what}${given.what.includes('?') ? '&' : '?'}limit=${encodeURIComponent(String(nonsense(random)))}`,
    };
  if (way === 1)
    return {
      ...given,
      what: given.what.replace(/[^/]+$/, random.of(['%ZZ', '%00', 'a%2F..%2Fb', 'x%20y', '%F0%9F'])),
    };
  if (way === 2)
    return { ...given, what: given.what.replace(/^\w+/, random.of(['PUT', 'PATCH', 'DELETE', 'POST', 'OPTIONS'])) };
  if (way === 3)
    return { ...given, headers: { 'If-Match': 'x', 'Idempotency-Key': 'a b', Cookie: 'duestream_session=x' } };
  if (way === 4) return { ...given, body: JSON.stringify(given.body).slice(0, -1) };
  return { ...given, body: spoilt(given.body, random) };
}

function named(id: string): Operation {
  const found = operations.find((one) => one.id === id);
  if (!found) throw new Error(`there is no operation ${id}`);
  return found;
}

function bodyOf({ id, spec }: Operation, of: { readonly random: Random; readonly known: Known }) {
  const schema = spec.requestBody?.content['application/json'].schema;
  if (schema === undefined) return undefined;
  const { random, known } = of;
  const body = made(document, schema, { random, pools, field: '' });
  const jobs = id === 'jobs.schedule' ? [body] : id === 'jobs.scheduleMany' ? body.jobs : [];
  for (const job of jobs) {
    known.made += 1;
    Object.assign(job, { id: `${random.of(['job', 'a/b', 'x:y', '100%'])}-${known.made}`, delay: job.delay ?? '1h' });
    undated(job);
  }
  return sensible(id, body, random);
}

/** Whether a job would be refused for its due time is not asked here. A set would have to be there. */
function undated(job: Operation['spec']): void {
  for (const name of ['at', 'zone', 'expiresAt', 'onLate', 'set']) delete job[name];
  if (job.debounce === undefined) return;
  // It follows from the calls.
  for (const name of ['delay', 'within', 'ifExists']) delete job[name];
}

/** Fields that exclude each other go; without one that is needed, there is one. */
const SENSIBLE: Readonly<Record<string, (job: Operation['spec']) => Operation['spec']>> = {
  'jobs.reschedule': ({ at: _, zone: __, ...due }) => ({ delay: '2h', ...due }),
  'dead.replay': ({ at: _, zone: __, ...due }) => due,
  'jobs.edit': ({ expiresAt: _, onLate: __, ...change }) => ({ attempts: 3, ...change }),
  'schedules.put': simple,
};

function sensible(id: string, body: Operation['spec'], random: Random): Operation['spec'] {
  if (id === 'dead.replayMany') return { all: true, limit: 1 + random.below(10) };
  if (id === 'dead.purge') return { all: true, dryRun: body.dryRun, olderThan: '1d' };
  if (/^jobs\.(cancel|run|reschedule|edit)Many$/.test(id)) return ofMany(id, body, random);
  if (id === 'schedules.previewNew') return { schedule: simple(body.schedule), next: body.next };
  const change = SENSIBLE[id.replace(/Many$/, '')];
  if (!change) return body;
  return body.jobs === undefined ? change(body) : { ...body, jobs: body.jobs.map(change) };
}

/** Jobs are named in one way: by a list, or by a filter. */
function ofMany(id: string, { ids = ['first'], jobs, limit }: Operation['spec'], random: Random): Operation['spec'] {
  const change = SENSIBLE[id.replace(/Many$/, '')];
  const its = id === 'jobs.rescheduleMany' ? { due: { delay: '2h' } } : { change: { attempts: 3 } };
  const all = change ? its : {};
  if (random.chance(0.5)) return { ...all, filter: { tag: 'a' }, dryRun: random.chance(0.5), ...(limit && { limit }) };
  return change && jobs ? { jobs: jobs.map(change) } : { ...all, ids };
}

function simple({ queue, data, tags, paused }: Operation['spec']) {
  return {
    queue,
    cron: '0 0 * * *',
    ...(data === undefined ? {} : { data }),
    ...(tags ? { tags: ['a'] } : {}),
    ...(paused ? { paused: true } : {}),
  };
}

/** Sends so many requests. What is wrong with the answers and with what is there afterwards, a test says. */
async function fuzz(requests: number): Promise<void> {
  const random = createRandom(SEED);
  const known: Known = { jobs: new Set(QUEUES.map((queue) => `${queue} first`)), schedules: new Set(), made: 0 };
  const statuses = new Map<number, number>();
  const wrong: string[] = [];

  // Some at once, and all answers before the next: so a seed says which requests there are.
  for (let sent = 0; sent < requests; sent += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, () => requestOf(random, known));
    const answers = await Promise.all(some.map(askUntilThere));
    for (const [at, answered] of answers.entries()) {
      const request = some[at];
      if (!request) continue;
      statuses.set(answered.status, (statuses.get(answered.status) ?? 0) + 1);
      if (isWrong(answered))
        wrong.push(`${request.what} ${JSON.stringify(request.body)} -> ${answered.text.slice(0, 300)}`);
      if (answered.status < 300) remember(known, request, answered.body);
    }
  }
  const taken = [...statuses].reduce((sum, [status, count]) => sum + (status < 400 ? count : 0), 0);
  console.log(`seed ${SEED}: ${taken} of ${requests} taken,`, Object.fromEntries(statuses));
  expect(wrong).toEqual([]);
  expect(taken).toBeGreaterThanOrEqual(requests / 3);

  expect(await lostOf(known)).toEqual([]);
  expect(known.jobs.size).toBeGreaterThan(requests / 10);
}

/** A machine that stands still makes Redis late, and the answer says so: then the same request is sent again, as it asks. */
async function askUntilThere({ what, ...options }: Pick<Request, 'what'> & AskOptions): Promise<Answered> {
  for (let again = 0; again < REPEATS_MAX; again += 1) {
    const answered = await ask(what, options);
    if (answered.status !== 503) return answered;
  }
  return ask(what, options);
}

async function lostOf(known: Known): Promise<readonly string[]> {
  const lost: string[] = [];
  for (const [queue, id = ''] of [...known.jobs].map((text) => text.split(' '))) {
    const { status } = await askUntilThere({ what: `GET /v1/queues/${queue}/jobs/${writePart(id)}` });
    if (status !== 200) lost.push(`${queue} ${id}: ${status}`);
  }
  return lost;
}

/** A fault of ours, or a refusal that is no problem with a code. */
function isWrong({ status, body }: Answered): boolean {
  return status >= 500 || (status >= 400 && !(body?.status === status && typeof body.code === 'string'));
}

function remember(known: Known, { what, operation: { id } }: Request, answer: Operation['spec']): void {
  // A request whose path or method was spoilt is answered by another verb.
  const jobs = id === 'jobs.schedule' ? [answer] : id === 'jobs.scheduleMany' ? (answer?.jobs ?? []) : [];
  for (const job of jobs) if (job?.queue && job.id) known.jobs.add(`${job.queue} ${job.id}`);
  const [, name] = /\/schedules\/(s\d+)$/.exec(what) ?? [];
  if (name !== undefined && what.startsWith('PUT')) known.schedules.add(name);
  if (name !== undefined && what.startsWith('DELETE')) known.schedules.delete(name);
}

const OWN = { way: undefined, name: 'at its own address', requests: REQUESTS };
const OTHERS = WAYS.map((way) => ({ way, name: way, requests: REQUESTS / 5 }));

describe.each([OWN, ...OTHERS])('$name', ({ way, requests }) => {
  let opened: WayIn | undefined;

  beforeAll(async () => {
    api = await serveApi({ roles: ['http', 'mover'] });
    for (const queue of QUEUES) {
      await api.ask(`POST /v1/queues/${queue}/jobs`, { body: { id: 'first', delay: '1d' } });
      const target = 'https://api.example.com/due';
      await api.ask(`PATCH /v1/queues/${queue}/settings`, { body: { fair: true, costs: true, target } });
    }
    opened = way && (await openWay(way, api));
    ask = opened?.ask ?? api.ask;
  });
  afterAll(async () => {
    await opened?.stop();
    await api.stop();
  });

  test(
    `${requests} requests made from the file have no fault for an answer, and what was accepted is found`,
    {
      timeout: 1_800_000,
    },
    () => fuzz(requests),
  );

  test('afterwards every invariant holds', async () => {
    const { redis, namespace } = api.place;
    expect(await examineControl(redis, namespace)).toEqual([]);
    for (const ref of (await refsOf(api.place, undefined)).all) {
      const { looked, flaws } = await examine(redis, ref, { clock: systemClock });
      expect(flaws, ref.queue).toEqual([]);
      expect(looked).toBeGreaterThan(0);
    }
  });
});
