/** Fields of the dialogs of a queue. */
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { words } from '../../words/words.ts';

const REASON_MAX = 200;

interface FieldOf {
  readonly name: string;
  readonly value: string;
  readonly set: (value: string) => void;
  /** What is allowed, below it. */
  readonly hint?: ComponentChildren;
  readonly placeholder?: string | undefined;
  readonly maxLength?: number;
}

export function Field({ name, value, set, hint, placeholder, maxLength }: FieldOf) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <input
        id={id}
        {...{ value, placeholder, maxLength }}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
      {hint === undefined ? null : <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

type Value = Pick<FieldOf, 'value' | 'set'>;

export const Reason = (field: Value) => <Field name={words.queue.act.reason} maxLength={REASON_MAX} {...field} />;

export const For = (field: Value) => (
  <Field name={words.queue.act.for} hint={words.queue.act.forHint} maxLength={20} {...field} />
);
