/**
 * One request to the target of a queue, now, by the same guard, signature and configuration as the jobs have it. It is no job: nothing
 * is written, and what comes back is told step by step.
 */
import { layoutOfQueue } from '../client/queues/refs.ts';
import type { Config } from '../config/options.ts';
import type { UrlCaller } from '../dispatch/call-url.ts';
import type { Admission } from '../dispatch/guard/guard.ts';
import type { CallEnd } from '../dispatch/send/sender.ts';
import { DEFAULT_NAME, type Job } from '../job/job.ts';
import { newJobId } from '../job/job-id.ts';
import { NO_HEADERS } from '../job/labels.ts';
import { Defer, Unrecoverable } from '../job/outcome.ts';
import { parseJobTarget, type QueueTarget, targetOf } from '../job/target.ts';
import type { TargetAsk, TargetStep, TargetTried } from '../job/target-tried.ts';
import type { Clock } from '../kernel/clock.ts';
import { DuestreamError, messageOf } from '../kernel/errors.ts';
import type { Redis } from '../redis/connection/connect.ts';
import { createRedisPlaces, createTargetCaller } from './target-calls.ts';

interface TryParts {
  readonly redis: Redis;
  readonly config: Config;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * @throws DuestreamError `not-found` for a queue that nobody has used · `bad-input` for one without a target, or for what a job may
 * not say
 */
export async function tryTarget(queue: string, asked: TargetAsk, parts: TryParts): Promise<TargetTried> {
  const { redis, config } = parts;
  const { target } = await layoutOfQueue({ redis, namespace: config.namespace }, queue);
  if (!target) {
    throw new DuestreamError(
      'bad-input',
      `queue ${queue} has no target; set one: duestream queues set ${queue} --target https://api.example.com/due`,
    );
  }
  const own = asked.target === undefined ? undefined : parseJobTarget(asked.target, 'target');
  const called = own === undefined ? target : targetOf(target, own, 'target');
  const { url, method = 'POST' } = called;
  const head = { queue, method, url };
  const made = callerOf(target, parts);
  if (typeof made === 'string') {
    return { ...head, steps: [{ step: 'names', isWell: false, text: made }], means: 'waits', why: made };
  }
  try {
    const job = { ...tryJob(queue, parts.clock), data: asked.data, target: own };
    return { ...head, ...(await tried(made, job, { target: called, signal: parts.signal })) };
  } finally {
    made.close();
  }
}

/** Or why this daemon cannot call it. */
function callerOf(target: QueueTarget, { redis, config }: TryParts): UrlCaller | string {
  try {
    return createTargetCaller(target, config.targets, { redisNow: createRedisPlaces(redis) });
  } catch (error) {
    return messageOf(error);
  }
}

type Told = Omit<TargetTried, 'queue' | 'method' | 'url'>;

async function tried(
  caller: UrlCaller,
  job: Job,
  { target, signal }: { readonly target: QueueTarget; readonly signal: AbortSignal },
): Promise<Told> {
  const named: TargetStep = { step: 'names', isWell: true, text: namesText(target) };
  const admission = await caller.admit(job);
  const admitted = admissionStep(admission);
  if (!admitted.isWell) {
    const means = admission.kind === 'refused' ? 'dead' : 'retry';
    return { steps: [named, admitted], means, why: admitted.text };
  }
  const { end } = await caller.call(job, { token: '0', attempt: 1 }, signal);
  const { tookMs } = end;
  const step: TargetStep = { step: 'answer', isWell: end.kind === 'answered' && end.status < 300, text: endText(end) };
  const status = end.kind === 'answered' ? end.status : undefined;
  return { steps: [named, admitted, step], status, tookMs, ...meaningOf(caller, job, end) };
}

const namesText = ({ secret, certificate, headers = {} }: QueueTarget): string => {
  const own = Object.keys(headers).length;
  const parts = [
    secret === undefined ? 'without a signature' : `signed with the secret ${secret}`,
    ...(own === 0 ? [] : [`with the headers ${Object.keys(headers).join(', ')}`]),
    ...(certificate === undefined ? [] : [`with the certificate ${certificate}`]),
  ];
  return parts.join(', ');
};

function admissionStep(admission: Admission): TargetStep {
  switch (admission.kind) {
    case 'admitted':
      return { step: 'address', isWell: true, text: `${admission.url.host} is ${admission.addresses.join(', ')}` };
    case 'no-address':
      return { step: 'address', isWell: false, text: admission.why };
    case 'refused':
      return { step: 'host', isWell: false, text: admission.why };
  }
}

function endText(end: CallEnd): string {
  switch (end.kind) {
    case 'answered':
      return `${end.status} from ${end.address} after ${end.tookMs} ms`;
    case 'no-answer':
      return `no answer after ${end.tookMs} ms: ${end.why}`;
    case 'refused':
      return `refused: ${end.why}`;
  }
}

/** As for a job of the queue. */
function meaningOf(caller: UrlCaller, job: Job, end: CallEnd): Pick<TargetTried, 'means' | 'why' | 'answer'> {
  try {
    return { means: 'done', answer: caller.settle(job, end).answer };
  } catch (error) {
    const why = messageOf(error);
    if (error instanceof Defer) return { means: 'put aside', why };
    return { means: error instanceof Unrecoverable ? 'dead' : 'retry', why };
  }
}

function tryJob(queue: string, clock: Clock): Omit<Job, 'data'> {
  const nowMs = clock.wallMs();
  return {
    ...{ queue, id: `try-${newJobId()}`, name: DEFAULT_NAME, headers: NO_HEADERS, mark: 'try', bare: false },
    ...{ dueMs: nowMs, askedDueMs: nowMs, attempt: 1, failures: 0, crashes: 0, history: [] },
  };
}
