/** A change of an agent, with an API that is played here: what is asked between the dry run and the change. */
import { describe, expect, test } from 'vitest';
import { SCOPES } from '../../src/access/tokens.ts';
import { operations } from '../../src/client/operations.ts';
import { verbs } from '../../src/http/api/api.ts';
import { JOB_STATES } from '../../src/job/state.ts';
import type { Answered, AskApi, AskOptions, Given } from '../../src/mcp/api.ts';
import { type ChangeParts, change } from '../../src/mcp/changes.ts';
import { allTools, toolsFor } from '../../src/mcp/tools.ts';

const tools = allTools();

interface Asked extends AskOptions {
  readonly name: string;
  readonly given: Given;
}

/** Answers look by look, and keeps what it was asked. */
function played(answers: readonly Partial<Answered>[]) {
  const asked: Asked[] = [];
  const ask: AskApi = async (tool, given, options) => {
    const answer = answers[asked.length];
    asked.push({ name: tool.verb.name, given, ...options });
    return { ok: true, status: 200, body: {}, etag: undefined, ...answer };
  };
  const parts: ChangeParts = { tools, ask, told: new Set() };
  const calling = async (name: string, given: Given) => {
    const tool = tools.get(name);
    if (!tool?.dryRun) throw new Error(`${name} is no change`);
    return change(parts, { tool, dryRun: tool.dryRun, given, signal: undefined });
  };
  const twice = async (name: string, given: Given) => {
    const { next } = await calling(name, given);
    return calling(name, { ...given, confirm: digestIn(next) });
  };
  return { asked, calling, twice };
}

const digestIn = (next = ''): string | undefined => /confirm ([0-9a-f]{32})/.exec(next)?.[1];

describe('a change of one job', () => {
  test('carries the ETag that was seen, so that somebody who is faster refuses it', async () => {
    const seen = { body: { id: 'a', etag: 'e1' }, etag: 'e1' };
    const { asked, twice } = played([seen, seen, { ok: false, status: 412, body: { code: 'changed' } }]);
    const done = await twice('jobs.cancel', { queue: 'q', id: 'a', why: 'to see' });
    expect(asked.map(({ name, ifMatch }) => [name, ifMatch])).toEqual([
      ['jobs.get', undefined],
      ['jobs.get', undefined],
      ['jobs.cancel', 'e1'],
    ]);
    expect(asked[2]).toMatchObject({ given: { queue: 'q', id: 'a' }, why: 'to see' });
    expect(done).toMatchObject({ isError: true, data: { code: 'changed' } });
  });

  test('means the same whatever the order of its fields', async () => {
    const seen = { body: { etag: 'e1' }, etag: 'e1' };
    const { asked, calling } = played([seen, seen]);
    const { next } = await calling('jobs.reschedule', {
      queue: 'q',
      id: 'a',
      why: 'w',
      body: { delay: '1h', only: 'later' },
    });
    const confirm = digestIn(next);
    await calling('jobs.reschedule', { confirm, why: 'w', body: { only: 'later', delay: '1h' }, id: 'a', queue: 'q' });
    expect(asked.at(-1)?.name).toBe('jobs.reschedule');
  });

  test('that is not there is shown as that, and one that may not be looked at is refused', async () => {
    const gone = played([{ ok: false, status: 404, body: { code: 'not-found' } }]);
    expect(
      await gone.calling('schedules.put', { name: 's', why: 'w', body: { queue: 'q', every: '1h' } }),
    ).toMatchObject({
      isError: false,
      data: { now: { isThere: false } },
    });
    const shut = played([{ ok: false, status: 403, body: { code: 'forbidden' } }]);
    expect(await shut.calling('jobs.cancel', { queue: 'q', id: 'a', why: 'w' })).toMatchObject({
      isError: true,
      data: { code: 'forbidden' },
    });
  });
});

describe('a change by filter', () => {
  const page = (ids: readonly string[], cursor?: string) => ({
    body: { jobs: ids.map((id) => ({ id, etag: `e-${id}` })), cursor },
  });

  test('sends no filter: it names each job that was seen, with its ETag', async () => {
    const { asked, twice } = played([page(['a'], 'next'), page(['b']), page(['a'], 'next'), page(['b'])]);
    const filter = { tag: 't', state: ['scheduled', 'ready'] };
    await twice('jobs.rescheduleMany', { queue: 'q', why: 'w', body: { filter, due: { delay: '1h' } } });
    expect(asked.map(({ name }) => name)).toEqual([
      ...['jobs.find', 'jobs.find', 'jobs.find', 'jobs.find'],
      'jobs.rescheduleMany',
    ]);
    expect(asked[0]?.given).toMatchObject({ queue: 'q', tag: 't', state: ['scheduled', 'ready'] });
    expect(asked[1]?.given.cursor).toBe('next');
    const ids = ['a', 'b'].map((id) => ({ id, ifMatch: `e-${id}` }));
    expect(asked.at(-1)?.given).toEqual({ queue: 'q', body: { due: { delay: '1h' }, ids } });
  });

  test('shows as many jobs as a model reads, and says how many it means', async () => {
    const jobs = Array.from({ length: 60 }, (_, n) => ({ id: `j${n}`, etag: `e${n}`, data: 'x'.repeat(2000) }));
    const { calling } = played([{ body: { jobs } }]);
    const { data } = await calling('jobs.cancelMany', { queue: 'q', why: 'w', body: { filter: { tag: 't' } } });
    expect(data).toMatchObject({ now: { count: 60, more: false, first: jobs.slice(0, 24) } });
  });

  test('looks for jobs that the change is about, where its filter names no state', async () => {
    const { asked, calling } = played([page([]), page([]), page([])]);
    for (const name of ['jobs.cancelMany', 'jobs.runMany', 'jobs.editMany']) {
      await calling(name, { queue: 'q', why: 'w', body: { filter: { tag: 't' }, change: { priority: 'high' } } });
    }
    expect(asked.map(({ given }) => given.state)).toEqual([
      ['scheduled', 'waiting', 'ready', 'running'],
      ['scheduled'],
      ['scheduled', 'ready'],
    ]);
  });

  test('of dead letters names their addresses', async () => {
    const dead = { body: { deadLetters: [{ deadLetter: '1-0', etag: 'e' }] } };
    const { asked, twice } = played([dead, dead]);
    await twice('dead.replayMany', { queue: 'q', why: 'w', body: { name: 'n', delay: '1m' } });
    expect(asked[0]?.given).toMatchObject({ queue: 'q', name: 'n' });
    expect(asked.at(-1)?.given).toEqual({ queue: 'q', body: { delay: '1m', deadLetters: ['1-0'] } });
  });

  test('means all dead letters only where it says so', async () => {
    const { asked, calling } = played([{ body: { deadLetters: [] } }]);
    expect((await calling('dead.replayMany', { queue: 'q', why: 'w', body: {} })).isError).toBe(true);
    expect(asked).toEqual([]);
    expect((await calling('dead.replayMany', { queue: 'q', why: 'w', body: { all: true } })).isError).toBe(false);
  });
});

describe('the table of verbs', () => {
  test('has a look for the dry run of each change that is a tool', () => {
    const lacking = [...tools.values()].filter(({ dryRun }) => dryRun !== undefined && !tools.has(dryRun.look));
    expect(lacking.map(({ name }) => name)).toEqual([]);
    expect([...tools.values()].filter(({ dryRun }) => dryRun).length).toBeGreaterThan(20);
  });

  test('gives agents no change that needs the scope admin, no stream and no login', () => {
    const changes = [...tools.values()].filter(({ dryRun }) => dryRun !== undefined);
    expect(changes.filter(({ verb }) => verb.scope !== 'write')).toEqual([]);
    const streams = verbs.filter(({ answers }) => Object.values(answers).some(({ media }) => media !== undefined));
    expect(streams.filter(({ name }) => tools.has(name))).toEqual([]);
    expect(verbs.filter(({ name, scope }) => scope === 'none' && tools.has(name))).toEqual([]);
  });

  test('names no tool a look that changes something', () => {
    const changing = new Set(namesIn(operations));
    const looks = [...tools.values()].filter(({ dryRun }) => dryRun === undefined);
    expect(looks.filter(({ verb }) => changing.has(verb.name)).map(({ name }) => name)).toEqual([]);
  });

  test('makes schemas that name nothing outside of them', () => {
    for (const { name, input } of toolsFor(tools, { changes: true, scopes: SCOPES })) {
      expect([name, JSON.stringify(input)]).toEqual([name, expect.not.stringContaining('$ref')]);
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    }
  });
});

describe('the list of tools', () => {
  const bytes = (changes: boolean) =>
    toolsFor(tools, { changes, scopes: SCOPES }).reduce(
      (sum, { name, description, input }) => sum + JSON.stringify({ name, description, input }).length,
      0,
    );

  test('takes little room in the context of a model', () => {
    expect(bytes(false)).toBeLessThan(42_000);
    expect(bytes(true)).toBeLessThan(105_000);
  });

  test('has what a model reads, and not what only refuses', () => {
    const { limit, state } = Object(tools.get('jobs.find')?.input.properties);
    expect(limit).toEqual({ type: 'integer', minimum: 1, maximum: 1000, default: 50 });
    expect(state).toEqual({ type: 'string', description: expect.stringContaining(JOB_STATES.join(', ')) });
    const all = JSON.stringify(toolsFor(tools, { changes: false, scopes: SCOPES }).map(({ input }) => input));
    expect(all).not.toMatch(/"(pattern|minLength|maxLength)":|9007199254740991/);
    expect(tools.get('queues.pause')?.input).toMatchObject({ additionalProperties: false });
  });
});

test('a worker is paused as it was seen: it is looked at alone, and what it runs does not count', async () => {
  const seen = (running: number, pause?: object) => ({
    body: { workers: [{ id: 'w-1', state: 'alive', pending: running, ...(pause && { pause }) }] },
  });
  const { asked, twice } = played([seen(1), seen(2), {}]);
  const args = { worker: 'w-1', body: { reason: 'a dump' }, why: 'a heap dump is taken' };
  expect(await twice('workers.pause', args)).toMatchObject({ isError: false });
  expect(asked.map(({ name, given }) => [name, given.worker])).toEqual([
    ['workers', 'w-1'],
    ['workers', 'w-1'],
    ['workers.pause', 'w-1'],
  ]);
  const faster = played([seen(1), seen(1, { sinceMs: 5 })]);
  expect(await faster.twice('workers.pause', args)).toMatchObject({ isError: true });
});

/** Of every operation, however deep its row stands. */
function namesIn(rows: object): readonly string[] {
  return Object.values(rows).flatMap((row: unknown) => {
    if (typeof row !== 'object' || row === null) return [];
    return 'name' in row && typeof row.name === 'string' ? [row.name] : namesIn(row);
  });
}
