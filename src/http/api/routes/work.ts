/** Workers over HTTP: they claim jobs, say how runs end, beat, and leave. The daemon behind is `src/remote`. */
import { z } from '@hono/zod-openapi';
import { spentRange } from '../../../job/cost.ts';
import { parseProgress } from '../../../job/outcome.ts';
import { durationMs } from '../../../kernel/duration.ts';
import { LANES } from '../../../redis/scripts/claims.ts';
import { CLAIM_WAIT_MS_MAX, type OfRun, type RemoteWork } from '../../../remote/remote-work.ts';
import type { Beat, RunEnd } from '../../../remote/settling.ts';
import { answers } from '../answer.ts';
import type { Backend } from '../backend.ts';
import { Problem } from '../problem.ts';
import { duration, ofQueue, strict, textOf, whole } from '../schemas.ts';
import { type AnyVerb, type Call, verb } from '../verb.ts';

/** Jobs of one answer, and runs of one request. */
const JOBS_MAX = 80;
const RUN_CHARS_MAX = 4096;
const ERROR_CHARS_MAX = 20_000;
const WAIT_ALLOWED = 'at most 60s, such as "20s" or 500';
const MINUTE = CLAIM_WAIT_MS_MAX / 1000;

const worker = textOf(
  /^h-[a-z0-9][a-z0-9._-]{0,31}-[0-9a-f]{32}$/,
  'h-<label>-<32 hexadecimal digits>: the digits are random, and every process makes them anew after its start and after a fork',
  'h-mailer-0f3c9a5be2d1476f8a90b1c2d3e4f506',
);
const run = z
  .string()
  .min(1)
  .max(RUN_CHARS_MAX)
  .openapi({ description: 'What a claim has handed out as `run`.', example: 'WzAsMCwi' });
const spending = {
  spent: z.number().int().min(spentRange.min).max(spentRange.max).optional().openapi({
    description:
      'In a queue with costs: how many turns of the rate the run has really used, in all, in the place of the cost of its job.',
  }),
};
const fail = {
  error: z
    .string()
    .max(ERROR_CHARS_MAX)
    .openapi({ description: 'What went wrong, for people.', example: 'smtp said no' }),
  kind: z.string().max(200).optional().openapi({ description: 'The class of the error.', example: 'TimeoutError' }),
  stack: z.string().max(ERROR_CHARS_MAX).optional(),
  fatal: z.boolean().optional().openapi({ description: 'Trying again cannot help: the job is a dead letter at once.' }),
  retryIn: duration.optional().openapi({ description: 'Instead of the backoff of the queue.', example: '5m' }),
  ...spending,
};
const complete = {
  result: z.unknown().optional().openapi({ description: 'Kept in queues whose history keeps results.' }),
  ...spending,
};
const defer = {
  delay: duration,
  reason: z.string().max(ERROR_CHARS_MAX).optional(),
  close: z.enum(['group', 'queue']).optional().openapi({
    description: 'In a queue with limits: for so long nobody of the group of the job, or of the queue, is let through.',
  }),
  ...spending,
};
const progress = {
  progress: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .openapi({ description: 'How far the run is, from 0 to 1.', example: 0.5 }),
  text: z.string().max(200).optional(),
  ...spending,
};

const end = z
  .discriminatedUnion('end', [
    strict({ run, end: z.literal('complete'), ...complete }),
    strict({ run, end: z.literal('fail'), ...fail }),
    strict({ run, end: z.literal('defer'), ...defer }),
    strict({ run, end: z.literal('begin') }),
  ])
  .openapi('RunEnd');
type End = z.infer<typeof end>;

/** @throws DuestreamError `bad-input` */
function endOf(one: End): OfRun<RunEnd> {
  switch (one.end) {
    case 'complete':
    case 'begin':
      return one;
    case 'fail': {
      const { retryIn, ...rest } = one;
      return retryIn === undefined ? rest : { ...rest, retryInMs: durationMs(retryIn, 'retryIn') };
    }
    case 'defer': {
      const { delay, ...rest } = one;
      return { ...rest, delayMs: durationMs(delay, 'delay') };
    }
  }
}

/** @throws Problem `not-found` where the daemon has no workers over HTTP */
function workOf({ work }: Backend): RemoteWork {
  if (work) return work;
  throw new Problem('not-found', {
    detail: 'this daemon takes no workers over HTTP; to take them: http.work on in its configuration',
  });
}

/** @throws Problem `too-large` */
function few<Item>(what: string, items: readonly Item[]): readonly Item[] {
  if (items.length <= JOBS_MAX) return items;
  throw new Problem('too-large', { detail: `${what} has ${items.length} runs; allowed: ${JOBS_MAX} in one request` });
}

const REFUSALS = {
  superseded:
    'a later claim of this lane was made, or the worker has left; a worker whose process is a copy of another one makes a name of its own',
  broadcast: 'the jobs of a broadcast queue go to every subscriber; no worker claims them',
  target:
    'the jobs of the queue call a URL, and daemons with the role dispatcher send the requests; no worker claims them',
} as const;

const ABOUT =
  'Every call may be sent again as it is, to any daemon. Answers 5xx and 429, and no answer, mean: send the same call again. Any other 4xx: stop.';

const claim = verb({
  name: 'work.claim',
  method: 'post',
  at: '/queues/{queue}/claim',
  summary: 'Claim jobs, as a worker over HTTP',
  doc: `Waits for jobs up to \`wait\`. \`seq\` is 1, 2, 3 … in each lane: the same number is the same claim, and has the same answer. A worker raises it only after it has read an answer, and says \`again\` when it repeats a call. ${ABOUT}`,
  scope: 'work',
  queues: 'path',
  path: ofQueue,
  body: strict({
    worker,
    lane: whole(0, LANES - 1).default(0),
    seq: whole(1, Number.MAX_SAFE_INTEGER - 1).openapi({ description: 'The number of this claim in its lane.' }),
    again: z.boolean().default(false).openapi({ description: 'The same call was sent before.' }),
    max: whole(1, JOBS_MAX).default(1).openapi({ description: 'How many jobs the worker can take.' }),
    wait: duration.default('20s').openapi({ description: `How long it waits: ${MINUTE} s at most.` }),
    running: whole(0, 1_000_000).default(0).openapi({
      description: 'How many jobs the worker runs. A job under which workers died goes to one that runs none.',
    }),
    ends: z.array(end).default([]).openapi({ description: 'Runs that have ended since, at most 80: as in `settle`.' }),
  }).openapi('Claim'),
  answers: { 200: { type: answers.Claimed, doc: 'Jobs, or none; and what became of `ends`.' } },
  problems: ['bad-input', 'superseded', 'broadcast', 'target', 'too-large', 'too-many', 'stopped', 'not-found'],
  async run({ path: { queue }, body, backend, caller, peer, signal }) {
    const waitMs = durationMs(body.wait, 'wait');
    if (waitMs > CLAIM_WAIT_MS_MAX)
      throw new Problem('bad-input', { detail: `wait is ${waitMs} ms; allowed: ${WAIT_ALLOWED}` });
    const ends = few('ends', body.ends).map(endOf);
    const ask = { ...body, waitMs, ends };
    const done = await workOf(backend).claim(queue, ask, { key: caller.key, address: peer, signal: signal() });
    if (done === 'too-many') {
      const detail =
        'too many claims wait; send the same claim again, or raise http.pollsMax and http.pollsMaxPerToken';
      throw new Problem('too-many', { detail, headers: { 'Retry-After': '1' } });
    }
    if (typeof done === 'string') throw new Problem(done, { detail: REFUSALS[done] });
    return { status: 200, body: done };
  },
});

const settle = verb({
  name: 'work.settle',
  method: 'post',
  at: '/queues/{queue}/settle',
  summary: 'Say how runs have ended',
  doc: `At most 80 runs. What follows from a failure is decided here: attempts and backoff are those of the queue. \`begin\` is for queues that deliver at most once: before the handler; it may run on \`ok\` and \`already\` alone. ${ABOUT}`,
  scope: 'work',
  queues: 'path',
  path: ofQueue,
  body: strict({ worker, runs: z.array(end) }).openapi('Settle'),
  answers: { 200: { type: answers.SettleWords, doc: 'One word for each run, in their order.' } },
  problems: ['bad-input', 'too-large', 'not-found'],
  async run({ path: { queue }, body, backend, peer }) {
    const runs = few('runs', body.runs).map(endOf);
    const results = await workOf(backend).settle(queue, { worker: body.worker, runs, address: peer });
    return { status: 200, body: { results } };
  },
});

const beat = verb({
  name: 'work.beat',
  method: 'post',
  at: '/queues/{queue}/beat',
  summary: 'Keep runs',
  doc: `To be sent every \`beatMs\` with all runs, at most 80 a call. A run that no beat names for \`leaseMs\` goes to another worker. \`cancel\`: somebody asked for its end. \`fenced\`, \`gone\`: stop at once, and settle nothing. \`timeout\`: its time was up, and it has failed. ${ABOUT}`,
  scope: 'work',
  queues: 'path',
  path: ofQueue,
  body: strict({ worker, runs: z.array(strict({ run, ...progress })) }).openapi('Beat'),
  answers: { 200: { type: answers.BeatWords, doc: 'One word for each run, in their order.' } },
  problems: ['bad-input', 'too-large', 'not-found'],
  async run({ path: { queue }, body, backend, peer }) {
    const runs = few('runs', body.runs).map(checkedBeat);
    const results = await workOf(backend).beat(queue, { worker: body.worker, runs, address: peer });
    return { status: 200, body: { results } };
  },
});

/** @throws DuestreamError `bad-input` */
function checkedBeat(one: OfRun<Beat>): OfRun<Beat> {
  if (one.progress !== undefined) parseProgress(one.progress, one.text);
  return one;
}

const leave = verb({
  name: 'work.leave',
  method: 'post',
  at: '/queues/{queue}/leave',
  summary: 'Leave, as a worker over HTTP',
  doc: `All that the worker holds goes back, and no attempt is counted. It claims no more: a worker that begins again has another name. ${ABOUT}`,
  scope: 'work',
  queues: 'path',
  path: ofQueue,
  body: strict({ worker }).openapi('Leave'),
  answers: { 200: { type: answers.WorkerLeft, doc: 'How many jobs went back.' } },
  problems: ['bad-input', 'not-found'],
  run: async ({ path: { queue }, body, backend }) => ({
    status: 200,
    body: { given: await workOf(backend).leave(queue, body.worker) },
  }),
});

// The same for one run, for a shell.

type OneCall<Body> = Call<{ readonly queue: string }, undefined, Body>;

async function settleOne({ path: { queue }, body, backend, peer }: OneCall<{ worker: string; end: End }>) {
  const runs = [endOf(body.end)];
  const [result = 'gone'] = await workOf(backend).settle(queue, { worker: body.worker, runs, address: peer });
  return { status: 200 as const, body: { result } };
}

async function beatOne({ path: { queue }, body, backend, peer }: OneCall<{ worker: string } & OfRun<Beat>>) {
  const { worker: name, ...one } = body;
  const runs = [checkedBeat(one)];
  const [result = 'gone'] = await workOf(backend).beat(queue, { worker: name, runs, address: peer });
  return { status: 200 as const, body: { result } };
}

const about = { method: 'post', scope: 'work', queues: 'path', path: ofQueue } as const;
const settled = { 200: { type: answers.SettleWord, doc: 'What became of it.' } };
const kept = { 200: { type: answers.BeatWord, doc: 'Whether it goes on.' } };
const problems = ['bad-input', 'not-found'] as const;

const completeOne = verb({
  ...{ ...about, name: 'work.complete', at: '/queues/{queue}/complete', summary: 'Complete one run' },
  body: strict({ worker, run, ...complete }).openapi('CompleteRun'),
  answers: settled,
  problems,
  run: ({ body: { worker: name, ...one }, ...call }) =>
    settleOne({ ...call, body: { worker: name, end: { ...one, end: 'complete' } } }),
});

const failOne = verb({
  ...{ ...about, name: 'work.fail', at: '/queues/{queue}/fail', summary: 'Say that one run has failed' },
  body: strict({ worker, run, ...fail }).openapi('FailRun'),
  answers: settled,
  problems,
  run: ({ body: { worker: name, ...one }, ...call }) =>
    settleOne({ ...call, body: { worker: name, end: { ...one, end: 'fail' } } }),
});

const deferOne = verb({
  ...{ ...about, name: 'work.defer', at: '/queues/{queue}/defer', summary: 'Put the job of one run off' },
  body: strict({ worker, run, ...defer }).openapi('DeferRun'),
  answers: settled,
  problems,
  run: ({ body: { worker: name, ...one }, ...call }) =>
    settleOne({ ...call, body: { worker: name, end: { ...one, end: 'defer' } } }),
});

const beginOne = verb({
  ...{
    ...about,
    name: 'work.begin',
    at: '/queues/{queue}/begin',
    summary: 'At most once: ask whether one run may begin',
    doc: 'Before the handler of a job with `begin`. It may run on `ok` and `already` alone, and its job is over then: no beat, and `complete` when it has ended.',
  },
  body: strict({ worker, run }).openapi('BeginRun'),
  answers: settled,
  problems,
  run: ({ body: { worker: name, ...one }, ...call }) =>
    settleOne({ ...call, body: { worker: name, end: { ...one, end: 'begin' } } }),
});

const extendOne = verb({
  ...{ ...about, name: 'work.extend', at: '/queues/{queue}/extend', summary: 'Keep one run' },
  body: strict({ worker, run }).openapi('ExtendRun'),
  answers: kept,
  problems,
  run: beatOne,
});

const progressOne = verb({
  ...{ ...about, name: 'work.progress', at: '/queues/{queue}/progress', summary: 'Say how far one run is' },
  body: strict({ worker, run, ...progress }).openapi('RunProgress'),
  answers: kept,
  problems,
  run: beatOne,
});

export const workVerbs: readonly AnyVerb[] = [
  ...[claim, settle, beat, leave],
  ...[completeOne, failOne, deferOne, beginOne, extendOne, progressOne],
];
