/**
 * A question before anything is changed: what will happen, in words, and two buttons. It is the browser's own dialog, so
 * the focus stays inside, Escape says no, and the focus goes back where it came from.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { ProblemNote } from './problem.tsx';

interface Question {
  readonly title: string;
  /** What the button says that does it: `Cancel 312 jobs`. */
  readonly yes: string;
  readonly no?: string;
  readonly isDangerous?: boolean;
  readonly canConfirm?: boolean;
  readonly children?: ComponentChildren;
  /** The dialog stays open while it runs, and when it fails it says why. */
  readonly act: () => Promise<void>;
  readonly close: () => void;
}

export function Confirm({
  title,
  yes,
  no = 'Back',
  isDangerous = false,
  canConfirm = true,
  children,
  act,
  close,
}: Question) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
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
      await act();
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

// The first of what a dry run has found, in a dialog. It scrolls inside itself, also by keyboard.

interface WhichOf {
  /** `jobs` */
  readonly of: string;
  /** Items of a list. */
  readonly children: ComponentChildren;
}

export function Which({ of, children }: WhichOf) {
  return (
    <div class="ids scroll" tabIndex={0} role="region" aria-label={`Which ${of}`}>
      <ul>{children}</ul>
    </div>
  );
}
