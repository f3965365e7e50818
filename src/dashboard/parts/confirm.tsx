/**
 * A question before anything is changed: what will happen, in words, and two buttons. It is the browser's own dialog, so
 * the focus stays inside, Escape says no, and the focus goes back where it came from.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { words } from '../words/words.ts';
import { ProblemNote } from './problem.tsx';

interface Question {
  readonly title: string;
  /** What the button says that does it: `Cancel 312 jobs`. */
  readonly yes: string;
  readonly no?: string;
  readonly isDangerous?: boolean;
  readonly canConfirm?: boolean;
  readonly children?: ComponentChildren;
  /** Whether it asks why, for the audit. */
  readonly asksWhy?: boolean;
  /** The dialog stays open while it runs, and when it fails it says why. @param reason empty: nobody said it */
  readonly act: (reason: string) => Promise<void>;
  readonly close: () => void;
}

export function Confirm({
  title,
  yes,
  no = words.parts.back,
  isDangerous = false,
  canConfirm = true,
  asksWhy = false,
  children,
  act,
  close,
}: Question) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const [reason, setReason] = useState('');
  const heading = useId();
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await act(reason.trim());
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <form onSubmit={(event) => void submit(event)}>
        <h2 id={heading}>{title}</h2>
        {children}
        {asksWhy ? <Why reason={reason} setReason={setReason} /> : null}
        <ProblemNote problem={problem} />
        <p class="actions">
          <button type="button" onClick={close}>
            {no}
          </button>
          <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy || !canConfirm}>
            {yes}
          </button>
        </p>
      </form>
    </dialog>
  );
}

/** As long as the audit keeps it. */
const REASON_CHARS_MAX = 200;

function Why({ reason, setReason }: { readonly reason: string; readonly setReason: (reason: string) => void }) {
  return (
    <label class="field">
      {words.parts.why}
      <input value={reason} maxLength={REASON_CHARS_MAX} onInput={(event) => setReason(event.currentTarget.value)} />
    </label>
  );
}

// The first of what a dry run has found, in a dialog. It scrolls inside itself, also by keyboard.

interface WhichOf {
  /** `jobs` */
  readonly of: string;
  /** Items of a list. */
  readonly children: ComponentChildren;
}

export function Which({ of, children }: WhichOf) {
  return (
    <div class="ids scroll" tabIndex={0} role="region" aria-label={words.parts.which(of)}>
      <ul>{children}</ul>
    </div>
  );
}
