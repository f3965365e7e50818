/** Why something could not be had or done, in the words of the API. */
import { problemText } from '../api.ts';

export function ProblemNote({ problem }: { readonly problem: unknown }) {
  // The place is always there, so that a screen reader hears what comes into it.
  return <div role="alert">{problem === undefined ? null : <p class="problem">{problemText(problem)}</p>}</div>;
}

/** Where an error was thrown. */
export function Stack({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <details>
      <summary>Where it was thrown</summary>
      <pre class="error">{text}</pre>
    </details>
  );
}
