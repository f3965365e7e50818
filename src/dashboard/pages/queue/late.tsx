/** Why a queue was late within some time: the verdict first, then causes, groups, and what happened meanwhile. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, Table } from '../../parts/table.tsx';
import { durationText, latenessText, numberText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { addressOf, groupAddress, lateAddress, nightAddress } from './addresses.ts';
import { Entries } from './diary.tsx';
import { OfQueue } from './of-queue.tsx';
import { clockText } from './say.tsx';

type Told = Schemas['QueueLate'];

const { late: said, tables } = words.queue;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function Late({ path: [queue = ''], query }: Route) {
  const from = query.get('from') ?? undefined;
  const to = query.get('to') ?? undefined;
  const { value, problem, isBusy } = useAsked(calls.queuesLate, { queue, from, to });
  return (
    <OfQueue queue={queue} here="late">
      <section class="say" aria-live="polite" aria-busy={isBusy}>
        <h1>{value?.verdict ?? (problem === undefined ? words.queue.looking : said.title(queue))}</h1>
        {value === undefined || value.known === 1 ? null : (
          <p>
            {said.known(percentText(value.known))} {said.reaches}
          </p>
        )}
      </section>
      <ProblemNote problem={problem} />
      <Choose key={`${from} ${to}`} queue={queue} from={from} to={to} />
      {value === undefined ? null : <Account told={value} />}
    </OfQueue>
  );
}

/** What is not whole is never said to be. */
const percentText = (share: number): string => `${share < 1 ? Math.min(99, Math.round(share * 100)) : 100} %`;

interface Chosen {
  readonly queue: string;
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** As a field for dates has it, in the zone of whoever looks. */
function fieldText(text: string | undefined, otherwiseMs: number): string {
  const parsed = text === undefined ? Number.NaN : Date.parse(text);
  const date = new Date(Number.isNaN(parsed) ? otherwiseMs : parsed);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function Choose({ queue, ...given }: Chosen) {
  const now = Date.now();
  const [from, setFrom] = useState(fieldText(given.from, now - HOUR_MS));
  const [to, setTo] = useState(fieldText(given.to, now));
  const isHour = given.from === undefined && given.to === undefined;
  return (
    <form
      class="actions"
      aria-label={said.range}
      onSubmit={(event) => {
        event.preventDefault();
        go(lateAddress(queue, { fromMs: Date.parse(from), toMs: Date.parse(to) }).slice(2));
      }}
    >
      <span class="seg">
        <a href={addressOf('late', queue)} aria-current={isHour ? 'true' : undefined}>
          {said.hour}
        </a>
        <a href={nightAddress(queue)}>{said.night}</a>
        <a href={lateAddress(queue, { fromMs: now - DAY_MS + 60_000, toMs: now })}>{said.day}</a>
      </span>
      <label>
        {said.from}
        <input
          type="datetime-local"
          required
          value={from}
          onInput={({ currentTarget }) => setFrom(currentTarget.value)}
        />
      </label>
      <label>
        {said.to}
        <input type="datetime-local" required value={to} onInput={({ currentTarget }) => setTo(currentTarget.value)} />
      </label>
      <button type="submit">{said.show}</button>
    </form>
  );
}

function Account({ told }: { readonly told: Told }) {
  const { queue, starts, late, p50Ms, p99Ms, maxMs, worst, groups, diary } = told;
  const facts: readonly (readonly [name: string, text: string])[] = [
    [said.starts, numberText(starts)],
    [said.lateStarts, numberText(late)],
    [said.p50, latenessText(p50Ms)],
    [said.p99, latenessText(p99Ms)],
    [said.longest, latenessText(maxMs)],
    ...(worst === null || late === 0 ? [] : [[said.worst, clockText(worst.atMs)] as const]),
  ];
  return (
    <>
      <dl class="facts-line">
        {facts.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <Causes told={told} />
      {groups.length === 0 ? null : (
        <section aria-labelledby="late-groups">
          <header class="sec">
            <h2 id="late-groups">{said.groups}</h2>
          </header>
          <Table
            of={tables.lateGroups}
            look="list texts who-waits"
            columns={[said.groupColumns.group, { number: said.groupColumns.time }]}
          >
            {groups.map(({ group, ms }) => (
              <tr key={group}>
                <th scope="row">
                  <a href={groupAddress(queue, group)}>
                    <Id text={group} />
                  </a>
                </th>
                <td class="n">{durationText(ms)}</td>
              </tr>
            ))}
          </Table>
        </section>
      )}
      <section class="events" aria-labelledby="late-diary">
        <header class="sec">
          <h2 id="late-diary">{words.queue.diary.title}</h2>
        </header>
        <Entries entries={diary.entries} />
      </section>
    </>
  );
}

function Causes({ told: { causes, starts } }: { readonly told: Told }) {
  const { cause: name, share, percent, time } = said.causeColumns;
  if (causes.length === 0) return starts === 0 ? null : <p class="quiet">{said.noCauses}</p>;
  return (
    <section aria-labelledby="causes">
      <header class="sec">
        <h2 id="causes">{said.causes}</h2>
        <p>{said.causesText}</p>
      </header>
      <Table of={tables.causes} look="list texts causes" columns={[name, share, { number: percent }, { number: time }]}>
        {causes.map(({ cause, text, ms, share: part }) => (
          <tr key={cause}>
            <th scope="row">{text}</th>
            <td class="barred">
              <i style={{ width: `${part * 100}%` }} />
            </td>
            <td class="n">{percentText(part)}</td>
            <td class="n">{durationText(ms)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
