/** Why something could not be had or done, in the words of the API. */
import { problemText } from '../api.ts';
import type { Schemas } from '../api-types.ts';
import { words } from '../words/words.ts';

export function ProblemNote({ problem }: { readonly problem: unknown }) {
  // The place is always there, so that a screen reader hears what comes into it.
  return <div role="alert">{problem === undefined ? null : <p class="problem">{problemText(problem)}</p>}</div>;
}

/** Queues that are left out of what is shown, because they did not answer. */
export function Unread({ unread = [] }: { readonly unread: readonly Schemas['UnreadQueue'][] | undefined }) {
  if (unread.length === 0) return null;
  const first = unread.slice(0, UNREAD_MAX);
  return (
    <p class="problem" role="alert">
      {words.parts.unread(unread.length, first.map(({ queue, why }) => `${queue} (${why})`).join(', '))}
      {unread.length > UNREAD_MAX ? ` ${words.parts.andOthers}` : ''}
    </p>
  );
}

const UNREAD_MAX = 5;

/** Where an error was thrown. */
export function Stack({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <details>
      <summary>{words.parts.whereThrown}</summary>
      <pre class="error">{text}</pre>
    </details>
  );
}
