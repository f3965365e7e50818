/**
 * Who has the scope `read` alone sees no text of a handler and no payload. Here is every place where such a text can stand; it is
 * looked for in the answer to every GET that the OpenAPI file has, so that a new path is looked at without a test of its own.
 */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Client, createClient } from '../../../src/client/client.ts';
import { documentOf } from '../../../src/http/api/api.ts';
import type { Job } from '../../../src/job/job.ts';
import { Defer, Unrecoverable } from '../../../src/job/outcome.ts';
import { defineQueue } from '../../../src/job/queue.ts';
import { JOB_STATES } from '../../../src/job/state.ts';
import type { HandlerContext } from '../../../src/worker/run/handlers.ts';
import { createWorker } from '../../../src/worker/worker.ts';
import { type ServedApi, serveApi } from '../../support/api.ts';

/** Who writes the text there, and whether somebody with the scope `data` sees it again. */
const PLACES = {
  data: 'of a job',
  header: 'of a job',
  record: 'that nobody can read',
  message: 'of an error of a job that is tried again',
  cause: 'of such an error',
  frame: 'of the stack of such an error',
  deferral: 'the reason of a job that was put aside',
  'group-closing': 'the reason of a group that a handler has closed',
  'queue-closing': 'the reason of a queue that a handler has closed',
  unrecoverable: 'the reason of a dead letter',
  exhausted: 'the last error of a dead letter',
  result: 'of a job that is over',
  'no-json': 'what a result threw that is no JSON',
  progress: 'of a job that runs',
  line: 'that a handler said of its job',
  'line-field': 'of such a line',
  'dead-line': 'that a handler said of a job that died',
  'schedule-data': 'of the jobs of a schedule',
  'schedule-header': 'of the jobs of a schedule',
  // No window shows it to anybody.
  callback: 'the data of the callback of a set',
} as const;
type Place = keyof typeof PLACES;
const places = Object.keys(PLACES) as Place[];
const mark = (place: Place): string => `unseen-${place}-`;
const shown = places.filter((place) => place !== 'callback');

const PATIENCE = { timeout: 60_000, interval: 50 };

interface Told {
  readonly does?: string;
}
const queue = defineQueue<Told>('w', {
  perGroup: 2,
  history: { result: true },
  backoff: { kind: 'fixed', delayMs: 3_600_000, jitter: 'none' },
});
const shut = defineQueue<Told>('x', { perGroup: 2 });

const DOES: Readonly<Record<string, (context: HandlerContext) => unknown>> = {
  fail() {
    const error = new Error(mark('message'), { cause: new Error(mark('cause')) });
    error.stack = `Error: it failed\n    at ${mark('frame')} (file:///app/jobs.js:1:1)`;
    throw error;
  },
  defer: () => Promise.reject(new Defer('1h', mark('deferral'))),
  'close-group': () => Promise.reject(new Defer('1h', { reason: mark('group-closing'), close: 'group' })),
  'close-queue': () => Promise.reject(new Defer('1h', { reason: mark('queue-closing'), close: 'queue' })),
  'give-up'(context) {
    context.log(mark('dead-line'));
    throw new Unrecoverable(mark('unrecoverable'));
  },
  exhaust: () => Promise.reject(new Error(mark('exhausted'))),
  return: () => mark('result'),
  'return-none': () => ({
    toJSON() {
      throw new Error(mark('no-json'));
    },
  }),
  run(context) {
    context.log(mark('line'), { said: mark('line-field') });
    context.progress(0.5, mark('progress'));
    return new Promise((resolve) => context.signal.addEventListener('abort', resolve));
  },
};
const handler = ({ data }: Job<Told>, context: HandlerContext) => DOES[data.does ?? '']?.(context);

let api: ServedApi;
let client: Client;
const workers = [queue, shut].map((one) => ({
  of: one,
  started: undefined as { stop: () => Promise<void> } | undefined,
}));
/** What streams of ends told meanwhile, to somebody who sees all and to a reader. */
let ends: readonly [whole: Promise<{ text: string }>, seen: Promise<{ text: string }>];
let reader: string;

beforeAll(async () => {
  api = await serveApi({ roles: ['http', 'mover'] });
  reader = await api.tokenOf({ scopes: ['read'] });
  client = createClient({ redis: api.redis.url });
  await client.schedule(queue, { does: mark('data') }, { id: 'told', delay: '1h', headers: { trace: mark('header') } });
  for (const [id, options] of [
    ['fail', {}],
    ['defer', {}],
    ['close-group', { group: 'acme' }],
    ['give-up', {}],
    ['exhaust', { attempts: 1 }],
    ['return', {}],
    ['return-none', {}],
    ['run', {}],
  ] as const) {
    await client.schedule(queue, { does: id }, { id, delay: '500ms', ...options });
  }
  ends = [api.ask('GET /v1/queues/w/ends?wait=2s'), api.ask('GET /v1/queues/w/ends?wait=2s', { token: reader })];
  await client.schedule(shut, { does: 'close-queue' }, { id: 'close-queue', group: 'g' });
  for (const one of workers) {
    const worker = createWorker(one.of, handler, { redis: api.redis.url });
    await worker.start();
    one.started = worker;
  }
  await client.schedules.put('s', {
    queue: 'w',
    every: '1h',
    data: { does: mark('schedule-data') },
    headers: { trace: mark('schedule-header') },
  });
  await client.sets.begin(queue, 'all', { then: { data: { does: mark('callback') } } });
  await api.place.redis.hset('duestream:v1:{w:0}:jobs', 'j:broken', `\u0001${mark('record')}`);
  await api.place.redis.zadd('duestream:v1:{w:0}:scheduled', Date.now() + 3_600_000, 'j:broken');
  const stateOf = async (of: typeof queue, id: string) => {
    const { state, deferred, history = [], progress } = (await client.get(of, id)) ?? {};
    return [state, (deferred?.times ?? 0) + history.length + (progress ? 1 : 0)];
  };
  for (const [of, id, state] of [
    [queue, 'fail', ['scheduled', 1]],
    [queue, 'defer', ['scheduled', 1]],
    [queue, '{acme}close-group', ['scheduled', 1]],
    [queue, 'give-up', ['dead', 1]],
    [queue, 'exhaust', ['dead', 1]],
    [queue, 'return', ['done', 0]],
    [queue, 'return-none', ['done', 0]],
    [queue, 'run', ['running', 1]],
    [shut, '{g}close-queue', ['scheduled', 1]],
  ] as const) {
    await vi.waitFor(async () => expect([id, ...(await stateOf(of, id))]).toEqual([id, ...state]), PATIENCE);
  }
  // They wait behind what was closed.
  await client.schedule(queue, {}, { id: 'behind', group: 'acme' });
  await client.schedule(shut, {}, { id: 'behind', group: 'g' });
  for (const [of, id] of [
    [queue, '{acme}behind'],
    [shut, '{g}behind'],
  ] as const) {
    await vi.waitFor(async () => expect((await client.get(of, id))?.waitsFor?.obstacles).toHaveLength(1), PATIENCE);
  }
});
afterAll(async () => {
  for (const { started } of workers) await started?.stop();
  await client?.close();
  await api?.stop();
});

/** Each GET path, with everything that there is in its places, and what its query can add. */
async function looks(): Promise<readonly string[]> {
  const states = `?state=${JOB_STATES.join(',')}`;
  const jobs = async (name: string) =>
    (await api.ask(`GET /v1/queues/${name}/jobs${states}`)).body.jobs.map(({ id }: { id: string }) => id);
  const dead = (await api.ask('GET /v1/queues/w/dead')).body.deadLetters;
  const inPlaces: Readonly<Record<string, readonly string[]>> = {
    '/queues/{queue}/jobs/{id}': [
      ...(await jobs('w')).map((id: string) => ['w', id]),
      ...(await jobs('x')).map((id: string) => ['x', id]),
    ].map(([name, id]) => `/queues/${name}/jobs/${encodeURIComponent(id)}`),
    '/queues/{queue}/groups/{group}': ['/queues/w/groups/acme', '/queues/x/groups/g'],
    '/queues/{queue}/sets/{set}': ['/queues/w/sets/all'],
    '/queues/{queue}/dead/{deadLetter}': dead.map(
      (one: { deadLetter: string }) => `/queues/w/dead/${encodeURIComponent(one.deadLetter)}`,
    ),
    '/queues/{queue}/dead': ['/queues/w/dead', '/queues/w/dead?group=error', '/queues/x/dead'],
    '/queues/{queue}/jobs': [`/queues/w/jobs${states}`, `/queues/x/jobs${states}`],
    '/queues/{queue}/ends': ['/queues/w/ends?wait=100ms', '/queues/x/ends?wait=100ms'],
    '/live': ['/live?events=2'],
  };
  const { paths } = JSON.parse(documentOf()) as {
    readonly paths: Readonly<Record<string, { readonly get?: unknown }>>;
  };
  return Object.entries(paths).flatMap(([path, { get }]) => {
    if (get === undefined) return [];
    return inPlaces[path] ?? ['w', 'x'].map((name) => path.replace('{queue}', name).replace('{name}', 's'));
  });
}

const marksIn = (text: string): readonly Place[] => places.filter((place) => text.includes(mark(place)));

test('a look with the scope data finds each text again, so that each was written', async () => {
  const texts = [(await ends[0]).text];
  for (const path of await looks()) texts.push((await api.ask(`GET /v1${path}`)).text);
  expect(marksIn(texts.join('\n'))).toEqual(shown);
});

test('a look with the scope read finds none of them, wherever it looks', async () => {
  const seen: [path: string, status: number, places: readonly Place[]][] = [
    ['/ends', 200, marksIn((await ends[1]).text)],
  ];
  for (const path of await looks()) {
    const { status, text } = await api.ask(`GET /v1${path}`, { token: reader });
    seen.push([path, status, marksIn(text)]);
  }
  expect(seen.filter(([, , found]) => found.length > 0)).toEqual([]);
  // No queue here promises anything about lateness, so /slo of one is 404.
  expect(seen.filter(([path, status]) => status !== 200 && !/^\/(audit|session|queues\/\w+\/slo)$/.test(path))).toEqual(
    [],
  );
});

test('neither do the metrics', async () => {
  expect(marksIn((await api.ask('GET /metrics')).text)).toEqual([]);
});
