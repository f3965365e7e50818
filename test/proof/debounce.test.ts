/**
 * Random walks of all who have to do with debounced jobs: what is promised holds after each step, and each planted bug breaks
 * a promise. `DEBOUNCE_SEED` and `DEBOUNCE_WALKS` make other walks and more of them.
 */
import { expect, test } from 'vitest';
import { debounceDesk } from '../support/debounce-desk.ts';
import { DebounceWorld } from '../support/debounce-world.ts';
import { usePartition } from '../support/partition.ts';
import { planted, slipped } from '../support/planted.ts';
import { isSlice } from '../tiers.mjs';

const p = usePartition();
const desk = debounceDesk(p);
const SEED = Number(process.env.DEBOUNCE_SEED ?? 1);
const WALKS = Number(process.env.DEBOUNCE_WALKS ?? (isSlice ? 15 : 100));
/** In so many walks a planted bug has to be noticed. */
const PLANTED_WALKS = 250;
const STEPS = 120;

/** What was wrong in the first walk in which anything was. */
async function walks(count: number, cuts: boolean): Promise<string | undefined> {
  for (let nth = 0; nth < count; nth += 1) {
    await p.reset();
    const wrong = await new DebounceWorld(p, desk, { seed: SEED * 10_000 + nth, cuts }).walk(STEPS);
    if (wrong !== undefined) return `walk ${nth}, ${wrong}`;
  }
  return undefined;
}

test.each([false, true])(
  'nothing is lost, and nothing runs twice or with older data; cut off: %s',
  { timeout: 900_000 },
  async (cuts) => {
    expect(await walks(WALKS, cuts)).toBe(undefined);
    await p.reset();
  },
);

/** What is wrong, the script or part, words of it, and words in their place. */
const BUGS: readonly (readonly [wrong: string, of: string, words: string, instead: string])[] = [
  ['calls move a job for ever', 'debounce', 'due = math.min(due, ceiling)', 'due = due'],
  ['an older call is carried out', 'debounce', 'if last and tonumber(last, 36) >= number then', 'if false then'],
  ['a running job has no bit', 'debounce', 'run.cancel = withBit(run.cancel, AGAIN)', 'run.cancel = run.cancel'],
  [
    'newer data take the request to stop away',
    'debounce',
    'run.cancel = withBit(run.cancel, AGAIN)',
    'run.cancel = AGAIN',
  ],
  ['a job that is due is moved', 'debounce', 'and tonumber(waits) > call.now', ''],
  ['the late end of a lost worker hides newer data', 'debounce', 'unboundText(run, run.due)', 'runText(run)'],
  [
    'a cancel from before ends newer data of a lost worker',
    'debounce',
    'run.cancel = onlyWaited(run.cancel)',
    'run.cancel = run.cancel',
  ],
  [
    'the mark of a cancelled end is that of its worker',
    'completion',
    "isCancelled and (mark:match('\\n.*') or '') or mark",
    'mark',
  ],
  [
    'a completion ends newer data',
    'completion',
    'livesOn = hasBit(cancel, STOP), hasNews(run)',
    'livesOn = hasBit(cancel, STOP), false',
  ],
  ['a burial ends newer data', 'bury', 'hasNews(run)', 'false'],
  ['a commit ends newer data', 'commit', 'hasNews(run)', 'false'],
  ['a retry of a cancelled run ends newer data', 'put-back', 'if hasNews(run) then', 'if false then'],
  ['a cancel leaves newer data', 'cancel', 'withBit(withoutBit(run.cancel, AGAIN), STOP)', 'withBit(run.cancel, STOP)'],
  [
    'a cancel from before newer data ends their start',
    'turn-away',
    'hasBit(run.cancel, STOP) and not hasBit(run.cancel, AGAIN)',
    'hasBit(run.cancel, STOP)',
  ],
  [
    'a start leaves the bit',
    'start-one',
    'run.cancel = onlyWaited(run.cancel)',
    'run.cancel = withoutBit(run.cancel, STOP)',
  ],
  ['a repeated start leaves the bit', 'start-one', 'and not hasBit(run.cancel, AGAIN)', ''],
  ['a replay forgets the later mark', 'replay', 'record = withLaterMark(here)', 'record = record'],
];

test.each(BUGS.filter((_, nth) => !isSlice || nth % 4 === 2))(
  'it is noticed that %s',
  { timeout: 300_000 },
  async (_, of, words, instead) => {
    const takeOut = planted(p.redis, { of, lua: slipped({ of, words, instead }) });
    try {
      expect(await walks(PLANTED_WALKS, false)).toEqual(expect.any(String));
    } finally {
      takeOut();
      await p.reset();
    }
  },
);
