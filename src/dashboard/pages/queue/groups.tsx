/** The groups of a queue with limits: who waits and who runs, and of one group who holds its limit. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { type Asked, useAsked, useList } from '../../parts/asked.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, Instant, JobLink, ListActions, Table } from '../../parts/table.tsx';
import { durationText, numberText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { addressOf, groupAddress } from './addresses.ts';
import { GroupActs } from './group-acts.tsx';
import { Keeper } from './keeper.tsx';
import { OfQueue } from './of-queue.tsx';
import { clockText, jobsText } from './say.tsx';

type Group = Schemas['Group'];
type Settings = Schemas['SettingsView'];

const { groups: said, tables } = words.queue;
const { columns } = said;
const LIMIT = 50;
const keyOf = ({ group }: Group) => group;

/** All of them by name, or one that is named in the address. */
export function Groups({ path: [queue = '', group] }: Route) {
  return (
    <OfQueue queue={queue} here="groups">
      {group === undefined ? <AllGroups queue={queue} /> : <OneGroup key={group} {...{ queue, group }} />}
    </OfQueue>
  );
}

interface Waiting {
  readonly queue: string;
  readonly asked: Asked<Schemas['GroupPage']>;
  readonly settings: Settings | undefined;
  readonly diary: Schemas['QueueLate']['diary'] | undefined;
  readonly changed: (told: string) => void;
}

/** Those with most jobs in line, and those that are closed, for the page of the queue. */
export function WhoWaits({ queue, asked, settings, diary, changed }: Waiting) {
  const { value, problem, reload } = asked;
  const done = (told: string) => {
    changed(told);
    reload();
  };
  return (
    <section aria-labelledby="who-waits">
      <header class="sec">
        <h2 id="who-waits">{said.waits}</h2>
        <p>{value?.groups.length === 0 ? said.none : `${said.waitsText} ${said.fairText}`}</p>
        <a href={addressOf('groups', queue)}>{said.all}</a>
      </header>
      <ProblemNote problem={problem} />
      {value === undefined ? null : <Rows {...{ queue, groups: value.groups, settings, done }} />}
      {value === undefined || value.ungrouped === 0 ? null : <p>{said.ungrouped(jobsText(value.ungrouped))}</p>}
      <ClosedNow {...{ queue, diary, settings, shown: value?.groups ?? [], done }} />
    </section>
  );
}

interface RowsOf {
  readonly queue: string;
  readonly groups: readonly Group[];
  readonly settings: Settings | undefined;
  readonly done: (told: string) => void;
}

function Rows({ queue, groups, settings, done }: RowsOf) {
  const longest = Math.max(1, ...groups.map(({ waiting }) => waiting));
  const hasPending = groups.some(({ maxPending }) => maxPending !== undefined);
  return (
    <Table
      of={tables.groups}
      look="list texts who-waits"
      columns={[
        columns.group,
        columns.line,
        { number: columns.count },
        { number: columns.wait },
        { number: columns.runs },
        ...(hasPending ? [{ number: columns.pending }] : []),
        columns.own,
        columns.act,
      ]}
    >
      {groups.map((one) => (
        <tr key={one.group}>
          <th scope="row">
            <a href={groupAddress(queue, one.group)}>
              <Id text={one.group} />
            </a>
          </th>
          <td class="barred">
            {one.waiting === 0 ? null : <i style={{ width: `${(one.waiting / longest) * 100}%` }} />}
          </td>
          <td class="n">{numberText(one.waiting)}</td>
          <td class="n">{one.waiting === 0 ? '–' : durationText(one.waitMs)}</td>
          <td class="n">{runsText(one)}</td>
          {hasPending ? <td class="n">{pendingText(one)}</td> : null}
          <td>{stateText(one)}</td>
          <td class="acts">
            <GroupActs {...{ queue, group: one.group, closed: one.closed, settings, done }} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

const runsText = ({ running, perGroup }: Group): string =>
  perGroup === undefined ? numberText(running) : said.of(numberText(running), numberText(perGroup));

const pendingText = ({ pending = 0, maxPending }: Group): string =>
  maxPending === undefined ? '–' : said.of(numberText(pending), numberText(maxPending));

function stateText({ closed, isFull }: Group): string {
  if (closed === undefined) return isFull ? said.full : '';
  const why = closed.reason === undefined || closed.reason === '' ? '' : `: “${closed.reason}”`;
  return `${said.closedUntil(clockText(closed.untilMs))}${why}`;
}

interface Closings extends Omit<RowsOf, 'groups'> {
  readonly diary: Waiting['diary'];
  /** They say of themselves that they are closed. */
  readonly shown: readonly Group[];
}

/** A closed group without jobs is in no list of groups: the diary tells of it. */
function ClosedNow({ queue, diary, settings, shown, done }: Closings) {
  const closings = (diary?.intervals ?? []).filter(
    ({ what, group, toMs = 0 }) =>
      what === 'closed' && group !== undefined && toMs > Date.now() && !shown.some((one) => one.group === group),
  );
  if (closings.length === 0) return null;
  return (
    <Table of={tables.closedGroups} look="list texts" columns={[said.closedNow, columns.own, columns.act]}>
      {closings.map(({ group = '', toMs = 0, by, why = '' }) => (
        <tr key={group}>
          <th scope="row">
            <a href={groupAddress(queue, group)}>
              <Id text={group} />
            </a>
          </th>
          <td>
            {said.closedUntil(clockText(toMs))} {by === undefined ? '' : said.byWhom(by)}
            {why === '' ? '' : `: “${why}”`}
          </td>
          <td class="acts">
            <GroupActs {...{ queue, group, closed: { untilMs: toMs }, settings, done }} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function AllGroups({ queue }: { readonly queue: string }) {
  const list = useList(calls.groupsList, { queue, limit: LIMIT }, { rowsOf: ({ groups }) => groups, keyOf });
  const { rows, cursor, problem, isBusy, reload } = list;
  const settings = useAsked(calls.queuesSettings, { queue });
  const [told, setTold] = useState('');
  const done = (text: string) => {
    setTold(text);
    settings.reload();
    reload();
  };
  return (
    <>
      <section class="say">
        <h1>{said.title(queue)}</h1>
        <p>{said.text}</p>
      </section>
      <FindGroup queue={queue} />
      <section aria-label={words.queue.tabs.groups} aria-busy={isBusy}>
        <p role="status">
          {isBusy ? words.queue.looking : said.shown(rows.length, cursor !== undefined)} {told}
        </p>
        <Rows {...{ queue, groups: rows, settings: settings.value, done }} />
        <ProblemNote problem={problem} />
        {problem === undefined ? null : <p>{said.noLimits}</p>}
        <ListActions {...list} />
      </section>
    </>
  );
}

/** Also one that no job is in now, and the beginning of names: `pro-*`. */
function FindGroup({ queue }: { readonly queue: string }) {
  const [name, setName] = useState('');
  return (
    <form
      class="actions"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (name !== '') go(groupAddress(queue, name).slice(2));
      }}
    >
      <label>
        {said.find}
        <input value={name} maxLength={65} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <button type="submit">{said.look}</button>
    </form>
  );
}

function OneGroup({ queue, group }: { readonly queue: string; readonly group: string }) {
  // The beginning of names has limits, and no jobs of its own.
  const isOne = !group.endsWith('*');
  const { value, problem, reload } = useAsked(calls.groupsGet, { queue, group: isOne ? group : group.slice(0, -1) });
  const settings = useAsked(calls.queuesSettings, { queue });
  const [told, setTold] = useState('');
  const done = (text: string) => {
    setTold(text);
    reload();
    settings.reload();
  };
  return (
    <>
      <section class="say">
        <h1>{said.oneTitle(group)}</h1>
        <div class="tools">
          <GroupActs {...{ queue, group, closed: isOne ? value?.closed : undefined, settings: settings.value, done }} />
          <button type="button" class="ghost" onClick={() => done('')}>
            {words.parts.lookAgain}
          </button>
        </div>
      </section>
      <p role="status">{told}</p>
      <ProblemNote problem={isOne ? problem : undefined} />
      {value === undefined || !isOne ? null : (
        <>
          <GroupFacts queue={queue} group={value} />
          <Keeper {...{ queue, group: value, done }} />
          <section aria-labelledby="holders">
            <header class="sec">
              <h2 id="holders">{said.holders}</h2>
            </header>
            {value.holders.length === 0 ? <p>{said.noHolder}</p> : <Holders queue={queue} holders={value.holders} />}
          </section>
        </>
      )}
    </>
  );
}

function GroupFacts({ queue, group }: { readonly queue: string; readonly group: Schemas['GroupReport'] }) {
  const { waiting, priorities, waitMs, perGroup, weight, intervalMs, maxPending } = group;
  const { high, normal, low } = priorities;
  const jobs = `${addressOf('jobs', queue)}?state=waiting&idPrefix=${encodeURIComponent(`{${group.group}}`)}`;
  const facts: readonly (readonly [name: string, text: string])[] = [
    [said.running, runsText(group)],
    [said.limit, perGroup === undefined ? said.noLimit : numberText(perGroup)],
    [said.rate, intervalMs === undefined ? said.noLimit : said.everyMs(durationText(intervalMs))],
    [said.weight, numberText(weight)],
    ...(maxPending === undefined ? [] : [[columns.pending, pendingText(group)] as const]),
    ...(stateText(group) === '' ? [] : [[columns.own, stateText(group)] as const]),
  ];
  return (
    <>
      <dl class="facts-line">
        <div>
          <dt>{said.inLine}</dt>
          <dd>
            <a href={jobs}>{numberText(waiting)}</a>
          </dd>
        </div>
        {facts.map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {waiting === 0 ? null : (
        <p class="quiet">
          {said.priorities(numberText(high), numberText(normal), numberText(low))};{' '}
          {said.firstFor(durationText(waitMs))}
        </p>
      )}
    </>
  );
}

/** The jobs that were let through, and where they run. */
export function Holders({
  queue,
  holders,
}: {
  readonly queue: string;
  readonly holders: readonly Schemas['Holder'][];
}) {
  const { job, since, attempt: attempts, worker } = said.holderColumns;
  return (
    <Table of={tables.holders} look="list texts" columns={[job, since, { number: attempts }, worker]}>
      {holders.map(({ id, bare, sinceMs, attempt, owner }) => (
        <tr key={`${bare} ${id}`}>
          <th scope="row">
            <JobLink queue={queue} id={id} bare={bare} />
          </th>
          <td>
            <Instant atMs={sinceMs} />
          </td>
          <td class="n">{attempt ?? ''}</td>
          <td>{owner === undefined ? said.notStarted : <Id text={owner} />}</td>
        </tr>
      ))}
    </Table>
  );
}
