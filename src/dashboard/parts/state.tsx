/** The state of a job as a sign and a word: the form says it, the colour only repeats it. */
import { words } from '../words/words.ts';
import { Icon } from './icon.tsx';

export type StateName = keyof typeof words.states;

export function State({ of, text = words.states[of] }: { readonly of: StateName; readonly text?: string }) {
  return (
    <span class={`state ${of}`}>
      <Icon name={`s-${of}`} />
      {text}
    </span>
  );
}
