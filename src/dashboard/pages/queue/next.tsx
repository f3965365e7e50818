/** What schedules will make in a queue that is quiet now: so nobody waits for a job that comes tonight. */
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { durationText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { clockText } from './say.tsx';

const { next: said } = words.queue;
const SHOWN_MAX = 5;

export function NextRuns({ queue }: { readonly queue: string }) {
  const { value, problem } = useAsked(calls.schedulesList, { queue, limit: 100 });
  const runs = (value?.schedules ?? [])
    .flatMap(({ name, nextMs }) => (nextMs === undefined ? [] : [{ name, nextMs }]))
    .toSorted((one, other) => one.nextMs - other.nextMs)
    .slice(0, SHOWN_MAX);
  return (
    <section aria-labelledby="next-runs">
      <header class="sec">
        <h2 id="next-runs">{said.title}</h2>
        <p>{value !== undefined && runs.length === 0 ? said.none : said.text}</p>
      </header>
      <ProblemNote problem={problem} />
      {runs.length === 0 ? null : (
        <table class="list texts">
          <tbody>
            {runs.map(({ name, nextMs }) => (
              <tr key={name}>
                <th scope="row">{clockText(nextMs)}</th>
                <td class="quiet">{words.queue.next.in(durationText(Math.max(0, nextMs - Date.now())))}</td>
                <td>
                  <a href={`#/schedule/${encodeURIComponent(name)}`}>{name}</a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
