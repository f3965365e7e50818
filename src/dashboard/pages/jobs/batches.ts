/** Changes of many jobs by their ids: by queue, some in each request. A request that was lost is sent again, and changes nothing twice. */
import { askJson } from '../../api.ts';
import type { Call } from '../../call.ts';
import * as calls from '../../calls.ts';
import { changeText } from '../../parts/words.ts';
import type { Edit } from './edit-form.tsx';
import type { Row } from './list.tsx';

export const VERBS = ['move', 'run', 'edit', 'cancel'] as const;
export type Verb = (typeof VERBS)[number];

/** A job, and where it goes if it moves. */
interface Change {
  readonly row: Row;
  readonly dueMs?: number;
}

export interface Plan {
  readonly verb: Verb;
  readonly reason: string;
  readonly edit: Edit;
  /** What is not done yet. */
  readonly left: readonly Change[];
  readonly result: Done | undefined;
}

export interface Done {
  readonly verb: Verb | 'undo';
  readonly changed: number;
  /** Running jobs that were asked to stop. */
  readonly asked: number;
  /** Jobs that stay as they are, by what became of them. */
  readonly stay: Readonly<Record<string, number>>;
  /** The way back of each job that was moved. */
  readonly back: readonly Back[];
}

export interface Back {
  readonly queue: string;
  readonly id: string;
  readonly wasMs: number;
  readonly etag: string | undefined;
}

interface Became {
  readonly id: string;
  readonly status: string;
  readonly wasMs?: number;
  readonly etag?: string;
}

/** What runs can be asked to stop, and nothing else; a foreign producer's job can only be cancelled. */
export const mayChange = (verb: Verb, { state, bare }: Row): boolean =>
  verb === 'cancel' || (state !== 'running' && !bare);

/** As a request takes them, and as a person waits for. */
const CHUNK = 500;
const NOTHING: Omit<Done, 'verb'> = { changed: 0, asked: 0, stay: {}, back: [] };
const CHANGED: ReadonlySet<string> = new Set(['rescheduled', 'due', 'edited', 'cancelled']);

/** @param tell how far it is, after each request: from there it can go on */
export async function carryOut(plan: Plan, tell: (plan: Plan) => void): Promise<Done> {
  let { left, result = { verb: plan.verb, ...NOTHING } } = plan;
  while (left.length > 0) {
    const queue = left[0]?.row.queue ?? '';
    const chunk = left.filter(({ row }) => row.queue === queue).slice(0, CHUNK);
    const became = await send(plan, queue, chunk);
    result = sum(result, became, queue, chunk);
    const sent = new Set(chunk);
    left = left.filter((one) => !sent.has(one));
    tell({ ...plan, left, result });
  }
  return result;
}

async function send({ verb, reason, edit }: Plan, queue: string, chunk: readonly Change[]): Promise<readonly Became[]> {
  const to = <One extends Batch>(call: Call<One>, json: string) => askJson<Batch>(call, { queue }, { json, reason });
  const ids = chunk.map(({ row }) => row.id);
  switch (verb) {
    case 'move': {
      const jobs = chunk.map(({ row, dueMs = 0 }) => ({ id: row.id, at: atOf(dueMs), ...ifMatch(row.etag) }));
      return jobsIn(await to(calls.jobsRescheduleMany, JSON.stringify({ jobs })));
    }
    case 'run':
      return jobsIn(await to(calls.jobsRunMany, JSON.stringify({ ids })));
    case 'edit': {
      const { data, ...change } = edit;
      return jobsIn(
        await to(calls.jobsEditMany, `{"ids":${JSON.stringify(ids)},"change":${changeText(change, data)}}`),
      );
    }
    case 'cancel':
      return cancel(queue, chunk, reason);
  }
}

interface Batch {
  readonly given: { readonly queue: string };
  readonly answer: object;
}

async function cancel(queue: string, chunk: readonly Change[], reason: string): Promise<readonly Became[]> {
  const ids = chunk.filter(({ row }) => !row.bare).map(({ row }) => row.id);
  const json = JSON.stringify({ ids });
  const done = ids.length === 0 ? [] : jobsIn(await askJson(calls.jobsCancelMany, { queue }, { json, reason }));
  const became = [...done];
  // Jobs that a foreign producer put go one by one: a list does not mean them.
  for (const { row } of chunk) {
    if (row.bare) became.push(await askJson(calls.jobsCancel, { queue, id: row.id, bare: 'true' }, { reason }));
  }
  return became;
}

const atOf = (ms: number): string => new Date(ms).toISOString();
const ifMatch = (etag: string | undefined) => (etag === undefined ? {} : { ifMatch: etag });

function jobsIn(answer: object): readonly Became[] {
  if ('jobs' in answer) return answer.jobs as readonly Became[];
  throw new Error('The answer is that of a filter, and a list was given.');
}

function sum(before: Done, became: readonly Became[], queue: string, chunk: readonly Change[]): Done {
  const stay: Record<string, number> = { ...before.stay };
  const back: Back[] = [...before.back];
  let { changed, asked } = before;
  const due = new Map(chunk.map(({ row }) => [row.id, row.dueMs]));
  for (const { id, status, wasMs, etag } of became) {
    if (status === 'requested') asked += 1;
    else if (CHANGED.has(status)) changed += 1;
    else stay[status] = (stay[status] ?? 0) + 1;
    if (status === 'rescheduled') back.push({ queue, id, wasMs: wasMs ?? due.get(id) ?? 0, etag });
  }
  return { verb: before.verb, changed, asked, stay, back };
}

/** In the audit. */
const UNDO = 'undo';

/** Takes a move back: of each job that is still where it was moved to. */
export async function undo({ back }: Done): Promise<Done> {
  let result: Done = { verb: 'undo', ...NOTHING };
  const queues = new Set(back.map(({ queue }) => queue));
  for (const queue of queues) {
    const own = back.filter((one) => one.queue === queue);
    for (let from = 0; from < own.length; from += CHUNK) {
      const jobs = own
        .slice(from, from + CHUNK)
        .map(({ id, wasMs, etag }) => ({ id, at: atOf(wasMs), ...ifMatch(etag) }));
      const json = JSON.stringify({ jobs });
      const became = jobsIn(await askJson(calls.jobsRescheduleMany, { queue }, { json, reason: UNDO }));
      result = sum(result, became, queue, []);
    }
  }
  return { ...result, back: [] };
}
