/** The line of polls: first come, first served, one ask per wake-up, and no answer that nobody hears. */
import { describe, expect, test } from 'vitest';
import { createAbort } from '../../src/kernel/abort.ts';
import { turn } from '../../src/kernel/clock.ts';
import { type Found, type Poll, type PollAnswer, PollLine } from '../../src/remote/poll-line.ts';

type Answer = PollAnswer<string>;

/** A line whose asks the test answers, and whose time passes when the test says so. */
function lineOf() {
  const asked: Poll[] = [];
  const open: ((found: Found<string> | Error) => void)[] = [];
  const timers = new Set<() => void>();
  const line = new PollLine<Poll, string>({
    ask: (poll) =>
      new Promise((resolve, reject) => {
        asked.push(poll);
        open.push((found) => (found instanceof Error ? reject(found) : resolve(found)));
      }),
    clock: {
      timer(_, callback) {
        timers.add(callback);
        return () => void timers.delete(callback);
      },
    },
    counted: () => undefined,
  });
  const settle = async () => {
    for (let turns = 0; turns < 5; turns += 1) await turn();
  };
  return {
    line,
    asked,
    /** A poll of a worker; what it was answered, when it was. */
    poll(worker: string, { seq = 1, waitMs = 1000, isAgain = false, mustAsk = false } = {}) {
      const gone = createAbort();
      const answers: (Answer | Error)[] = [];
      const call = { waitMs, signal: gone.signal, mustAsk };
      line.claim({ worker, lane: 0, seq, isAgain }, call).then(
        (answer) => answers.push(answer),
        (error: Error) => answers.push(error),
      );
      return { gone, answers };
    },
    async answer(found: Found<string> | Error): Promise<void> {
      open.shift()?.(found);
      await settle();
    },
    settle,
    async timeIsUp(): Promise<void> {
      for (const timer of [...timers]) timer();
      await settle();
    },
  };
}

const EMPTY: Found<string> = { kind: 'empty' };
const handed = (...jobs: readonly string[]): Found<string> => ({ kind: 'handed', jobs });
const workers = (asked: readonly Poll[]) => asked.map(({ worker }) => worker);

describe('a poll', () => {
  test('is asked when it comes, and answered with what there is', async () => {
    const { poll, answer, line } = lineOf();
    const { answers } = poll('a');
    await answer(handed('job'));
    expect(answers).toEqual([handed('job')]);
    expect(line.size).toBe(0);
  });

  test('waits where there is nothing, and is asked again when something becomes ready', async () => {
    const { poll, answer, line, asked } = lineOf();
    const { answers } = poll('a');
    await answer(EMPTY);
    expect([answers, line.size]).toEqual([[], 1]);
    line.wake();
    await answer(handed('job'));
    expect([workers(asked), answers]).toEqual([['a', 'a'], [handed('job')]]);
  });

  test('that came first is served first', async () => {
    const { poll, answer, line, asked } = lineOf();
    for (const worker of ['a', 'b', 'c']) poll(worker);
    for (let at = 0; at < 3; at += 1) await answer(EMPTY);
    line.wake();
    await answer(handed('one'));
    await answer(handed('two'));
    await answer(EMPTY);
    expect(workers(asked).slice(3)).toEqual(['a', 'b', 'c']);
  });

  test('alone is asked at a wake-up that brings nothing, however many there are', async () => {
    const { poll, answer, line, asked } = lineOf();
    for (const worker of ['a', 'b', 'c']) poll(worker);
    for (let at = 0; at < 3; at += 1) await answer(EMPTY);
    line.wake();
    await answer(EMPTY);
    expect(asked.length).toBe(4);
  });

  test('hears of what became ready while it was asked', async () => {
    const { poll, answer, line, asked } = lineOf();
    const { answers } = poll('a');
    line.wake();
    await answer(EMPTY);
    expect(asked.length).toBe(2);
    await answer(handed('job'));
    expect(answers).toEqual([handed('job')]);
  });

  test('is empty when its time is over', async () => {
    const { poll, answer, timeIsUp } = lineOf();
    const { answers } = poll('a');
    await answer(EMPTY);
    await timeIsUp();
    expect(answers).toEqual([{ kind: 'empty', cause: 'time' }]);
  });

  test('that may not wait is answered by its ask', async () => {
    const { poll, answer, timeIsUp } = lineOf();
    const { answers } = poll('a', { waitMs: 0 });
    await timeIsUp();
    expect(answers).toEqual([]);
    await answer(EMPTY);
    expect(answers).toEqual([{ kind: 'empty', cause: 'time' }]);
  });

  test('is told what its ask has thrown, and the others wait on', async () => {
    const { poll, answer, line } = lineOf();
    const [first, second] = [poll('a'), poll('b')];
    await answer(new Error('away'));
    await answer(EMPTY);
    expect([first.answers, second.answers, line.size]).toEqual([[new Error('away')], [], 1]);
  });
});

describe('a poll that is being asked is answered by that ask alone', () => {
  const ways = [
    ['its time', async (line: ReturnType<typeof lineOf>) => line.timeIsUp()],
    [
      'a stop',
      async ({ line, settle }: ReturnType<typeof lineOf>) => {
        line.stop();
        await settle();
      },
    ],
    [
      'a later claim',
      async ({ poll, settle }: ReturnType<typeof lineOf>) => {
        poll('a', { seq: 2 });
        await settle();
      },
    ],
  ] as const;
  test.each(ways)('and not by %s', async (_, happens) => {
    const line = lineOf();
    const { answers } = line.poll('a');
    await happens(line);
    expect(answers).toEqual([]);
    await line.answer(handed('job'));
    expect(answers).toEqual([handed('job')]);
  });

  test('and not by a closed socket', async () => {
    const line = lineOf();
    const { answers, gone } = line.poll('a');
    gone.abort();
    await line.settle();
    expect(answers).toEqual([]);
    await line.answer(EMPTY);
    expect(answers).toEqual([{ kind: 'empty', cause: 'gone' }]);
  });
});

describe('a later claim of the same lane', () => {
  test('supersedes the one that waits', async () => {
    const { poll, answer } = lineOf();
    const first = poll('a', { seq: 1 });
    await answer(EMPTY);
    poll('a', { seq: 3 });
    await answer(EMPTY);
    expect(first.answers).toEqual([{ kind: 'empty', cause: 'superseded' }]);
  });

  test('with the same number takes its place', async () => {
    const { poll, answer } = lineOf();
    const first = poll('a', { seq: 1 });
    await answer(EMPTY);
    poll('a', { seq: 1, isAgain: true });
    await answer(EMPTY);
    expect(first.answers).toEqual([{ kind: 'empty', cause: 'gone' }]);
  });

  test('is not asked when it comes while others wait for nothing', async () => {
    const { poll, answer, timeIsUp, asked } = lineOf();
    poll('a', { seq: 1 });
    await answer(EMPTY);
    await timeIsUp();
    poll('a', { seq: 2 });
    poll('a', { seq: 3 });
    expect(asked.length).toBe(1);
  });

  test('is asked when it comes where an older call of it may wait elsewhere', async () => {
    const { poll, answer, timeIsUp, asked } = lineOf();
    poll('a', { seq: 1 });
    await answer(EMPTY);
    await timeIsUp();
    poll('a', { seq: 2, isAgain: true });
    await answer(EMPTY);
    await timeIsUp();
    poll('a', { seq: 3 });
    expect(asked.length).toBe(3);
  });

  test('is asked when it comes with runs that have ended', async () => {
    const { poll, answer, timeIsUp, asked } = lineOf();
    poll('a', { seq: 1 });
    await answer(EMPTY);
    await timeIsUp();
    poll('a', { seq: 2, mustAsk: true });
    expect(asked.length).toBe(2);
  });
});

test('a stop answers all that wait, at once', async () => {
  const { poll, answer, line, settle } = lineOf();
  const polls = ['a', 'b', 'c'].map((worker) => poll(worker));
  for (let at = 0; at < 3; at += 1) await answer(EMPTY);
  line.stop();
  await settle();
  expect(polls.map(({ answers }) => answers)).toEqual(polls.map(() => [{ kind: 'empty', cause: 'stopped' }]));
  expect(line.size).toBe(0);
});
