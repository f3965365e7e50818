/** Replays or purges dead letters after a count: what would happen, then a button that names the number. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { askJson } from '../../api.ts';
import * as calls from '../../calls.ts';
import { useLive } from '../../live.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { momentText } from '../../parts/when.ts';
import { durationText } from '../../parts/words.ts';
import { LATE_MS } from '../../trouble.ts';
import { words } from '../../words/words.ts';
import { bodyOf, type DeadChoice } from './choice.ts';

const say = words.dead;

interface Asked {
  readonly action: 'replay' | 'purge';
  readonly queues: readonly string[];
  readonly choice: DeadChoice;
  /** What they died of, or all of them, in words. */
  readonly what: string;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

const SPREADS = [
  { text: say.atOnce, spread: '', ms: 0 },
  { text: '10 min', spread: '10m', ms: 600_000 },
  { text: '1 h', spread: '1h', ms: 3_600_000 },
] as const;

export function Question({ action, queues, choice, what, finish, close }: Asked) {
  const [spread, setSpread] = useState('');
  const [delay, setDelay] = useState('');
  const { sum, problem, signal } = useCount({ action, queues, choice });
  const matched = sum?.matched;

  async function act(reason: string): Promise<void> {
    const when = { spread: spread === '' ? undefined : spread, delay: delay === '' ? undefined : delay };
    const done = await inAll({ action, queues, choice }, { dryRun: false, reason, ...when }, signal);
    finish(action === 'replay' ? replayedText(done) : say.purged(done.removed));
  }

  const isReplay = action === 'replay';
  return (
    <Confirm
      title={isReplay ? say.replayTitle : say.purgeTitle}
      yes={matched === undefined ? say.counting : isReplay ? say.replayYes(matched, spread) : say.purgeYes(matched)}
      isDangerous={!isReplay}
      canConfirm={matched !== undefined && matched > 0}
      asksWhy
      act={act}
      close={close}
    >
      <p class="quiet">
        {what} · {queuesText(queues)}
      </p>
      {isReplay ? <Over {...{ spread, setSpread, delay, setDelay }} /> : null}
      <ProblemNote problem={problem} />
      {matched === undefined ? null : (
        <ul class="notes">
          <li>
            <Icon name={isReplay ? 'replay' : 'dead'} />
            {isReplay ? say.willRun(matched) : say.willBeGone(matched)}
          </li>
          {isReplay ? <Pace matched={matched} spread={spread} delay={delay} queues={queues} /> : null}
        </ul>
      )}
    </Confirm>
  );
}

const NAMED_MAX = 10;

function queuesText(queues: readonly string[]): string {
  const more = queues.length - NAMED_MAX;
  return [...queues.slice(0, NAMED_MAX), ...(more > 0 ? [words.parts.more(String(more))] : [])].join(', ');
}

interface Times {
  readonly spread: string;
  readonly setSpread: (text: string) => void;
  readonly delay: string;
  readonly setDelay: (text: string) => void;
}

function Over({ spread, setSpread, delay, setDelay }: Times) {
  return (
    <>
      <fieldset class="seg wide">
        <legend class="away">{say.overHowLong}</legend>
        {SPREADS.map((one) => (
          <button
            key={one.spread}
            type="button"
            aria-pressed={spread === one.spread}
            onClick={() => setSpread(one.spread)}
          >
            {one.text}
          </button>
        ))}
      </fieldset>
      <div class="two-fields">
        <label>
          {say.spreadOver}
          <input
            value={spread}
            placeholder="6h"
            onInput={({ currentTarget }) => setSpread(currentTarget.value.trim())}
          />
        </label>
        <label>
          {say.beginIn}
          <input
            value={delay}
            placeholder="15m"
            onInput={({ currentTarget }) => setDelay(currentTarget.value.trim())}
          />
        </label>
      </div>
    </>
  );
}

interface PaceOf {
  readonly matched: number;
  readonly spread: string;
  readonly delay: string;
  readonly queues: readonly string[];
}

/** How fast they come, where that is known, and whether a queue is late as it is. */
function Pace({ matched, spread, delay, queues }: PaceOf) {
  const late = useLive().now?.queues.find((one) => queues.includes(one.queue) && one.oldestDueAgeMs > LATE_MS);
  const ms = SPREADS.find((one) => one.spread === spread)?.ms ?? 0;
  return (
    <>
      {ms === 0 || matched < 2 || delay !== '' ? null : (
        <li>
          <Icon name="clock" />
          {say.pace(durationText(ms / matched), momentText(Date.now() + ms, Date.now()))}
        </li>
      )}
      {late === undefined ? null : (
        <li class="warn">
          <Icon name="clock" />
          {say.isLate(late.queue, durationText(late.oldestDueAgeMs))}
        </li>
      )}
    </>
  );
}

// In slices of a bounded size, queue after queue.

interface Sum {
  readonly matched: number;
  readonly replayed: number;
  readonly live: number;
  readonly closed: number;
  readonly empty: number;
  readonly gone: number;
  readonly removed: number;
}

type Slice = Partial<Sum> & { readonly cursor?: string };
type What = Pick<Asked, 'action' | 'queues' | 'choice'>;

interface How {
  readonly dryRun: boolean;
  readonly reason?: string;
  readonly spread?: string | undefined;
  readonly delay?: string | undefined;
}

/** How many are meant, counted when the question opens. */
function useCount(what: What) {
  const [sum, setSum] = useState<Sum>();
  const [problem, setProblem] = useState<unknown>();
  const left = useRef(new AbortController());
  const { signal } = left.current;
  useEffect(() => {
    inAll(what, { dryRun: true }, signal).then(
      (found) => signal.aborted || setSum(found),
      (error: unknown) => signal.aborted || setProblem(error),
    );
    return () => left.current.abort();
  }, []);
  return { sum, problem, signal };
}

async function inAll({ action, queues, choice }: What, how: How, signal: AbortSignal): Promise<Sum> {
  let sum: Sum = { matched: 0, replayed: 0, live: 0, closed: 0, empty: 0, gone: 0, removed: 0 };
  const { dryRun, reason, ...when } = how;
  for (const queue of queues) {
    let cursor: string | undefined;
    do {
      const body = { ...bodyOf(choice), dryRun, cursor };
      const slice: Slice =
        action === 'replay'
          ? await askJson(calls.deadReplayMany, { queue }, { json: JSON.stringify({ ...body, ...when }), reason })
          : await askJson(calls.deadPurge, { queue }, { json: JSON.stringify(body), reason });
      const added = Object.entries(sum).map(([name, count]) => [name, count + (slice[name as keyof Sum] ?? 0)]);
      sum = Object.fromEntries(added);
      cursor = slice.cursor;
    } while (cursor !== undefined && !signal.aborted);
  }
  return sum;
}

function replayedText({ replayed, live, closed, empty, gone }: Sum): string {
  const left = [
    live > 0 ? say.leftLive(live) : '',
    closed > 0 ? say.leftClosed(closed) : '',
    empty > 0 ? say.leftEmpty(empty) : '',
    gone > 0 ? say.leftGone(gone) : '',
  ].filter((part) => part !== '');
  return `${say.replayed(replayed)}${left.length === 0 ? '' : `; ${say.leftAlone} ${left.join(', ')}`}.`;
}
