/** What the handlers of a job said, in the order of time, with the fields that they gave. */
import type { Schemas } from '../../api-types.ts';
import { words } from '../../words/words.ts';
import { When } from './when.tsx';

const said = words.job.log;

export function Log({ log: { lines, leftOut } }: { readonly log: Schemas['JobLog'] }) {
  return (
    <section aria-labelledby="log" class="axis-section">
      <header class="sec">
        <h2 id="log">{said.title}</h2>
        {leftOut === 0 ? null : <p>{said.leftOut(leftOut)}</p>}
      </header>
      <ol class="story">
        {lines.map(({ atMs, attempt, text, fields }, at) => (
          <li key={`${at} ${atMs}`}>
            <When atMs={atMs} />
            <span>
              {text} {fields === undefined ? null : <code>{JSON.stringify(fields)}</code>}{' '}
              <span class="quiet">{said.attempt(attempt)}</span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
