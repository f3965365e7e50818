/** What became of a change, with the way back where there is one. It stays until somebody closes it, or changes something else. */
import { useState } from 'preact/hooks';
import { Icon } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { words } from '../../words/words.ts';
import { type Done, undo } from './batches.ts';

interface ToastOf {
  readonly done: Done | undefined;
  readonly close: () => void;
  readonly undone: (what: Done) => void;
}

export function Toast({ done, close, undone }: ToastOf) {
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();

  async function goBack(of: Done): Promise<void> {
    setBusy(true);
    setProblem(undefined);
    try {
      undone(await undo(of));
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <div class={done === undefined ? 'toast-place' : 'toast-place toast'}>
      {/* The place is always there, so that a screen reader hears what comes into it. */}
      <span role="status">{done === undefined ? '' : doneText(done)}</span>
      <ProblemNote problem={problem} />
      {done === undefined ? null : (
        <>
          {done.back.length === 0 ? null : (
            <button type="button" disabled={isBusy} onClick={() => void goBack(done)}>
              {words.jobs.undo}
            </button>
          )}
          <button type="button" class="ghost" aria-label={words.jobs.close} onClick={close}>
            <Icon name="close" />
          </button>
        </>
      )}
    </div>
  );
}

/** @example doneText(…) // 15 jobs moved; left alone: 1 running, 1 over. */
function doneText({ verb, changed, asked, stay }: Done): string {
  const parts = [words.jobs.done[verb](words.jobs.count(changed))];
  if (asked > 0) parts.push(words.jobs.askedToStop(words.jobs.count(asked)));
  const left = Object.entries(stay).map(([status, count]) => `${count} ${becameText(status)}`);
  if (left.length > 0) parts.push(words.jobs.leftAlone(left.join(', ')));
  return `${parts.join('; ')}.`;
}

const becameText = (status: string): string =>
  Object.hasOwn(words.jobs.became, status) ? words.jobs.became[status as keyof typeof words.jobs.became] : status;
