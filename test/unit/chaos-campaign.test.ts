/** A campaign of chaos rows that is interrupted goes on where it was, and starts over only when it is another one. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { redIn, runCampaign } from '../chaos/stage/campaign.mjs';
import { NOTHING_SEEN } from '../chaos/stage/run.mjs';

type Campaign = Parameters<typeof runCampaign>[0];

const TERMS = { seed: 7, mode: 'everysec', quick: false, of: 'this code' };

let folder: string;
let said: string[];
let ran: string[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'due-campaign-'));
  said = [];
  ran = [];
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a campaign', () => {
  test('runs its rows in order and says how far it is', async () => {
    const verdicts = await runCampaign(campaign(['F1', 'F2', 'F3']));
    expect(verdicts.map(({ id }) => id)).toEqual(['F1', 'F2', 'F3']);
    expect(said).toEqual([
      'row 1 of 3: F1, 0 s gone',
      'row 2 of 3: F2, 0 s gone, about 40 s to go',
      'row 3 of 3: F3, 0 s gone, about 20 s to go',
    ]);
  });

  test('that was interrupted goes on where it was, and says so', async () => {
    await interruptedAt('F2');
    const verdicts = await runCampaign(campaign(['F1', 'F2', 'F3']));
    expect(ran).toEqual(['F1', 'F2', 'F3']);
    expect(verdicts.map(({ id }) => id)).toEqual(['F1', 'F2', 'F3']);
    expect(said).toContain('going on after 1 of 3 rows');
  });

  test('keeps a red row red', async () => {
    await runCampaign(campaign(['F1'], { passed: false }));
    const [verdict] = await runCampaign(campaign(['F1'], { passed: true }));
    expect({ passed: verdict?.passed, ran }).toEqual({ passed: false, ran: ['F1'] });
    expect(said.at(-1)).toBe('all rows are done already; --fresh runs them again');
  });

  test('that is fresh runs everything again', async () => {
    await runCampaign(campaign(['F1']));
    await runCampaign({ ...campaign(['F1']), fresh: true });
    expect(ran).toEqual(['F1', 'F1']);
  });

  test.each([{ seed: 8 }, { mode: 'always' }, { of: 'other code' }])('of %o is another one', async (other) => {
    await runCampaign(campaign(['F1']));
    await runCampaign({ ...campaign(['F1']), terms: { ...TERMS, ...other } });
    expect(ran).toEqual(['F1', 'F1']);
    expect(said).toContain('starting over: the last campaign was of other code, another seed or another mode');
  });

  test('whose last line was cut off runs that row again', async () => {
    await runCampaign(campaign(['F1']));
    appendFileSync(file(), '{"name":"F2","verd');
    await runCampaign(campaign(['F1', 'F2']));
    expect(ran).toEqual(['F1', 'F2']);
    expect(readFileSync(file(), 'utf8').trim().split('\n')).toHaveLength(3);
  });
});

describe('a whole matrix', () => {
  test('is red where a row failed, and where one was not run although nobody said why', () => {
    const verdicts = [of('F1', 'passed'), of('F2', 'failed'), of('F41', 'not run')];
    expect(redIn(verdicts).map(({ id }) => id)).toEqual(['F2', 'F41']);
  });

  test('is not red for what is known not to be here', () => {
    expect(redIn([of('F54', 'not run'), of('F1', 'passed')])).toEqual([]);
  });

  function of(id: string, verdict: 'passed' | 'failed' | 'not run') {
    return { id, verdict };
  }
});

async function interruptedAt(name: string): Promise<void> {
  const parts = campaign(['F1', 'F2', 'F3']);
  const tasks = parts.tasks.map((task) =>
    task.name === name ? { name, run: () => Promise.reject(new Error('interrupted')) } : task,
  );
  await expect(runCampaign({ ...parts, tasks })).rejects.toThrow('interrupted');
}

function campaign(ids: readonly string[], { passed = true } = {}): Campaign {
  const tasks = ids.map((id) => ({
    name: id,
    run: async () => {
      ran.push(id);
      const texts = { id, title: '', how: '', wanted: '', mode: 'everysec' } as const;
      const verdict = passed ? 'passed' : 'failed';
      return { ...NOTHING_SEEN, ...texts, seed: 7, verdict, passed, seconds: 20, kept: undefined, notRun: undefined };
    },
  }));
  return { file: file(), terms: TERMS, tasks, fresh: false, say: (line) => said.push(line), tell: () => {} };
}

function file(): string {
  return join(folder, 'chaos', 'all.jsonl');
}
