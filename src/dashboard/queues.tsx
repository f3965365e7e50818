/** All queues with their counts; each count leads to its list. */
import { ProblemNote } from './parts/problem.tsx';
import { useAsked } from './parts/asked.ts';
import { durationText, numberText } from './parts/words.ts';

interface Queue {
  readonly queue: string;
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
  readonly oldestDueAgeMs: number;
  readonly paused: boolean;
  readonly workers: number;
}

const STATES = ['scheduled', 'ready', 'running', 'dead'] as const;

export function Queues() {
  const { value, problem, reload } = useAsked<{ readonly queues: readonly Queue[] }>('queues');
  return (
    <>
      <h1>Queues</h1>
      <ProblemNote problem={problem} />
      {value?.queues.length === 0 ? <p>There is no queue yet. The first job of a queue makes it.</p> : null}
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of queues">
        <table>
          <thead>
            <tr>
              <th scope="col">Queue</th>
              {STATES.map((state) => (
                <th key={state} scope="col" class="number">
                  {state}
                </th>
              ))}
              <th scope="col">Oldest waits for</th>
              <th scope="col" class="number">
                Workers
              </th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>{value?.queues.map((queue) => <Row key={queue.queue} queue={queue} />)}</tbody>
        </table>
      </div>
      <p class="actions">
        <button type="button" onClick={reload}>
          Look again
        </button>
      </p>
    </>
  );
}

function Row({ queue }: { readonly queue: Queue }) {
  const name = encodeURIComponent(queue.queue);
  const address = { scheduled: `jobs/${name}?state=scheduled`, ready: `jobs/${name}?state=ready`, running: `jobs/${name}?state=running`, dead: `dead/${name}` };
  return (
    <tr>
      <th scope="row">
        <a href={`#/jobs/${name}`}>{queue.queue}</a>
      </th>
      {STATES.map((state) => (
        <td key={state} class="number">
          <a href={`#/${address[state]}`} aria-label={`${numberText(queue[state])} ${state} in ${queue.queue}`}>
            {numberText(queue[state])}
          </a>
        </td>
      ))}
      <td>{queue.oldestDueAgeMs > 0 ? durationText(queue.oldestDueAgeMs) : ''}</td>
      <td class="number">{numberText(queue.workers)}</td>
      <td>{queue.paused ? 'paused' : ''}</td>
    </tr>
  );
}
