/** Who works: what each process runs, whether that is usual, and whether it has room. Below, who leads which partition. */
import { useCallback, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import type { Schemas } from '../api-types.ts';
import * as calls from '../calls.ts';
import { useEvery } from '../live.ts';
import { useAsked } from '../parts/asked.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Icon } from '../parts/icon.tsx';
import { May } from '../parts/may.tsx';
import { ProblemNote, Unread } from '../parts/problem.tsx';
import { Id, JobLink, Table } from '../parts/table.tsx';
import { durationText, numberText } from '../parts/words.ts';
import { words } from '../words/words.ts';
import '../css/workers.css';

const say = words.workers;

type Worker = Schemas['Worker'];
type Led = Schemas['Led'];
type Job = Worker['jobs'][number];

const EVERY_MS = 5000;
/** What is usual changes slowly, and is read from each queue. */
const USUAL_EVERY_MS = 60_000;

export function Workers() {
  const workers = useAsked(calls.workers, {});
  const leaders = useAsked(calls.leaders, {});
  const lateness = useAsked(calls.lateness, {});
  const again = () => {
    workers.reload();
    leaders.reload();
  };
  useEvery(EVERY_MS, useCallback(again, [workers.reload, leaders.reload]));
  useEvery(USUAL_EVERY_MS, lateness.reload);
  const usual = usualOf(lateness.value);
  const { value } = workers;
  return (
    <>
      <Sentence workers={value} usual={usual} />
      <ProblemNote problem={workers.problem ?? leaders.problem} />
      <Unread unread={leaders.value?.unread} />
      {value === undefined ? null : <Processes workers={value.workers} usual={usual} again={again} />}
      <Leaders partitions={leaders.value?.partitions ?? []} />
    </>
  );
}

// How long jobs of a queue run, as a rule.

interface Usual {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

type UsualByQueue = ReadonlyMap<string, Usual>;

function usualOf(hour: Schemas['LastHour'] | undefined): UsualByQueue {
  return new Map(
    (hour?.queues ?? []).flatMap(({ queue, run: { p50Ms, p99Ms } }) =>
      p50Ms === null || p99Ms === null ? [] : [[queue, { p50Ms, p99Ms }] as const],
    ),
  );
}

/** So much longer than nearly all others is not usual; below a second nobody looks. */
const UNUSUAL_TIMES = 3;
const UNUSUAL_MS = 1000;

const runsForMs = ({ startedMs }: Job, nowMs: number): number =>
  startedMs === undefined ? 0 : Math.max(0, nowMs - startedMs);

function isUnusual(job: Job, usual: UsualByQueue, nowMs: number): boolean {
  const p99Ms = usual.get(job.queue)?.p99Ms;
  const forMs = runsForMs(job, nowMs);
  return p99Ms !== undefined && forMs > UNUSUAL_MS && forMs > p99Ms * UNUSUAL_TIMES;
}

/** Undefined where the process does not say it. */
const slotsOf = ({ slots }: Worker): number | undefined =>
  slots === undefined ? undefined : Object.values(slots).reduce((sum, one) => sum + one, 0);

interface SaidOf {
  readonly workers: Schemas['Workers'] | undefined;
  readonly usual: UsualByQueue;
}

function Sentence({ workers, usual }: SaidOf) {
  const nowMs = Date.now();
  const all = workers?.workers ?? [];
  const alive = all.filter(({ state }) => state === 'alive');
  const taken = alive.reduce((sum, { pending }) => sum + pending, 0);
  const paused = alive.filter(({ pause }) => pause !== undefined).length;
  const slots = alive.reduce((sum, one) => sum + (one.pause === undefined ? (slotsOf(one) ?? 0) : 0), 0);
  const unusual = all.flatMap(({ jobs }) => jobs).filter((job) => isUnusual(job, usual, nowMs));
  const [worst] = unusual.toSorted((one, other) => runsForMs(other, nowMs) - runsForMs(one, nowMs));
  const versions = workers?.versions ?? [];
  return (
    <section class="say">
      <h1>
        {workers === undefined
          ? words.places.workers
          : alive.length === 0
            ? say.none
            : say.sum({ workers: alive.length, taken, slots })}
      </h1>
      {all.length > alive.length ? <p>{say.missing(all.length - alive.length)}</p> : null}
      {paused === 0 ? null : <p>{say.pausedOnes(paused)}</p>}
      {worst === undefined ? null : (
        <p>
          {say.unusual({
            many: unusual.length,
            longest: durationText(runsForMs(worst, nowMs)),
            usual: durationText(usual.get(worst.queue)?.p99Ms ?? 0),
          })}
        </p>
      )}
      {versions.length === 0 ? null : (
        <p class={versions.length > 1 ? 'versions many' : 'versions'}>
          {say.versions(versions.length)}{' '}
          {versions
            .map(({ version = say.unknownVersion, processes }) => `${version} (${say.processes(processes)})`)
            .join(', ')}
        </p>
      )}
    </section>
  );
}

interface ProcessesOf {
  readonly workers: readonly Worker[];
  readonly usual: UsualByQueue;
  /** Something is different: asks anew. */
  readonly again: () => void;
}

function Processes({ workers, usual, again }: ProcessesOf) {
  const [queue, setQueue] = useState('');
  const [search, setSearch] = useState('');
  const queues = [...new Set(workers.flatMap((one) => one.queues))].sort();
  const shown = workers.filter(
    (one) =>
      (queue === '' || one.queues.includes(queue)) && JSON.stringify(one).toLowerCase().includes(search.toLowerCase()),
  );
  if (workers.length === 0) {
    return (
      <section class="empty">
        <h2>{say.none}</h2>
        <p>{say.noneWhy}</p>
        <pre>duestream worker handlers.mjs</pre>
      </section>
    );
  }
  const { heads } = say;
  return (
    <>
      <form class="filter" aria-label={say.filter} onSubmit={(event) => event.preventDefault()}>
        <label class="chip open">
          {say.queue}
          <select value={queue} onChange={({ currentTarget }) => setQueue(currentTarget.value)}>
            <option value="">{say.any}</option>
            {queues.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label class="grow">
          <span class="away">{say.search}</span>
          <input
            value={search}
            placeholder={say.searchFor}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        </label>
      </form>
      <section class="wks" aria-label={words.places.workers}>
        <div class="wk-head" aria-hidden="true">
          {[heads.process, heads.serves, heads.slots].map((text) => (
            <span key={text}>{text}</span>
          ))}
          <span class="n">{heads.runs}</span>
          <span>{heads.version}</span>
          <span>{heads.since}</span>
        </div>
        {shown.map((worker) => (
          <Process key={worker.id} worker={worker} usual={usual} again={again} />
        ))}
        {shown.length === 0 ? <p>{say.noneSuch}</p> : null}
      </section>
    </>
  );
}

function Process({ worker, usual, again }: Pick<ProcessesOf, 'usual' | 'again'> & { readonly worker: Worker }) {
  const nowMs = Date.now();
  const { id, host, pid, via, address, state, queues, pending, version, startedMs, beatAgoMs, pause, jobs } = worker;
  const slots = slotsOf(worker);
  const unusual = jobs.filter((job) => isUnusual(job, usual, nowMs)).length;
  return (
    <details class="wk">
      <summary>
        <span class="who">
          <Icon name="chevron" />
          {host === undefined ? <Id text={id} /> : <b>{host}</b>}
          {pid === undefined || via === 'http' ? null : <span class="quiet">{say.pid(pid)}</span>}
          {via === 'http' ? <span class="quiet">{say.viaHttp(address ?? '')}</span> : null}
        </span>
        <span class="qs">
          {queues.join(', ')}
          {state === 'alive' ? null : <span class="warn-text">{say.isMissing}</span>}
          {pause === undefined ? null : <span class="warn-text">{pauseText(pause, nowMs)}</span>}
          {unusual === 0 ? null : <span class="warn-text">{say.unusualHere(unusual)}</span>}
        </span>
        <Slots taken={pending} slots={slots} old={unusual} />
        <span class="n">
          {numberText(pending)} <span class="of">{slots === undefined ? '' : `/ ${numberText(slots)}`}</span>
        </span>
        <span class="quiet v">{version ?? '–'}</span>
        <span class="quiet since">{startedMs === undefined ? '–' : durationText(Math.max(0, nowMs - startedMs))}</span>
      </summary>
      <div class="runs">
        <p class="quiet">
          <Id text={id} />
          {beatAgoMs === undefined ? '' : ` · ${say.beat(durationText(beatAgoMs))}`}
        </p>
        <Act worker={worker} again={again} />
        <Runs jobs={jobs} usual={usual} nowMs={nowMs} />
        {pending > jobs.length ? <p class="quiet">{say.moreHeld(pending - jobs.length)}</p> : null}
      </div>
    </details>
  );
}

function pauseText({ sinceMs, by, reason }: NonNullable<Worker['pause']>, nowMs: number): string {
  const why = reason === undefined ? '' : `: “${reason}”`;
  return `${say.paused(durationText(Math.max(0, nowMs - sinceMs)), by)}${why}`;
}

/** One process is paused, and let go on. An older one does not hear of it. */
function Act({ worker, again }: Pick<ProcessesOf, 'again'> & { readonly worker: Worker }) {
  // What was asked stays asked, whatever somebody else does to the worker meanwhile.
  const [asked, setAsked] = useState<'pause' | 'resume'>();
  const { id, host = id, version, state, pause, pauses } = worker;
  const next = pause === undefined ? 'pause' : 'resume';
  const said = say.act[next];
  if (state !== 'alive') return null;
  if (!pauses) return <p class="quiet">{say.act.cannot(version ?? say.unknownVersion)}</p>;
  async function act(reason: string): Promise<void> {
    if (asked === 'pause') await ask(calls.workersPause, { worker: id }, reason === '' ? {} : { reason });
    else await ask(calls.workersResume, { worker: id });
    setAsked(undefined);
    again();
  }
  return (
    <May scope="write">
      <p>
        <button type="button" aria-label={said.of(host)} onClick={() => setAsked(next)}>
          <Icon name={next === 'pause' ? 'pause' : 'play'} />
          {said.button}
        </button>
      </p>
      {asked === undefined ? null : (
        <Confirm
          title={say.act[asked].title(host)}
          yes={say.act[asked].yes}
          asksWhy={asked === 'pause'}
          act={act}
          close={() => setAsked(undefined)}
        >
          <p>{say.act[asked].text}</p>
        </Confirm>
      )}
    </May>
  );
}

/** More squares than these are a wall. */
const SQUARES_MAX = 60;

interface SlotsOf {
  readonly taken: number;
  readonly slots: number | undefined;
  /** Taken for longer than is usual. */
  readonly old: number;
}

function Slots({ taken, slots, old }: SlotsOf) {
  if (slots === undefined) return <span class="none">–</span>;
  const per = Math.max(1, Math.ceil(slots / SQUARES_MAX));
  const squares = Math.ceil(slots / per);
  const on = Math.min(squares, Math.ceil(taken / per));
  return (
    <span class="slots" role="img" aria-label={say.slotsTaken(taken, slots)}>
      {Array.from({ length: squares }, (_, at) => (
        <i key={at} class={at >= on ? undefined : at >= on - Math.ceil(old / per) ? 'old' : 'on'} />
      ))}
    </span>
  );
}

interface RunsOf {
  readonly jobs: readonly Job[];
  readonly usual: UsualByQueue;
  readonly nowMs: number;
}

function Runs({ jobs, usual, nowMs }: RunsOf) {
  if (jobs.length === 0) return <p class="quiet">{say.runsNothing}</p>;
  const longest = Math.max(1, ...jobs.flatMap((job) => [runsForMs(job, nowMs), usual.get(job.queue)?.p99Ms ?? 0]));
  const { heads } = say;
  return (
    <div role="list" aria-label={heads.runsNow}>
      <div class="rj head" aria-hidden="true">
        {[heads.runsNow, heads.queue, heads.usual, ''].map((text) => (
          <span key={text}>{text}</span>
        ))}
      </div>
      {jobs.map((job) => (
        <div key={`${job.queue} ${job.partition} ${job.bare} ${job.id}`} class="rj" role="listitem">
          <JobLink queue={job.queue} id={job.id} bare={job.bare} />
          <span class="quiet">{job.queue}</span>
          <Beside forMs={runsForMs(job, nowMs)} usual={usual.get(job.queue)} longest={longest} />
          <span class={isUnusual(job, usual, nowMs) ? 'n warn-text' : 'n'}>
            {job.startedMs === undefined ? say.aboutToStart : durationText(runsForMs(job, nowMs))}
          </span>
        </div>
      ))}
    </div>
  );
}

interface BesideOf {
  readonly forMs: number;
  readonly usual: Usual | undefined;
  readonly longest: number;
}

/** How long it runs beside the band in which nearly all end. */
function Beside({ forMs, usual, longest }: BesideOf) {
  const part = (ms: number) => `${(ms / longest) * 100}%`;
  const isLong = usual !== undefined && forMs > UNUSUAL_MS && forMs > usual.p99Ms * UNUSUAL_TIMES;
  return (
    <span class="usual" title={usual && say.usualIs(durationText(usual.p50Ms), durationText(usual.p99Ms))}>
      {usual === undefined ? null : (
        <i class="band" style={{ left: part(usual.p50Ms), width: part(usual.p99Ms - usual.p50Ms) }} />
      )}
      <i class={isLong ? 'now warn' : 'now'} style={{ width: part(forMs) }} />
    </span>
  );
}

// Who leads: a row for each process, and one for what nobody leads.

interface Leading {
  readonly leader: Led['leader'];
  readonly led: Led[];
}

function Leaders({ partitions }: { readonly partitions: readonly Led[] }) {
  const processes = new Map<string, Leading>();
  for (const one of partitions) {
    const key = one.leader?.process ?? '';
    const known = processes.get(key) ?? { leader: one.leader, led: [] };
    processes.set(key, known);
    known.led.push(one);
  }
  const led = partitions.filter(({ leader }) => leader !== undefined).length;
  const { leads } = say;
  return (
    <section class="leaders" aria-label={say.leaders}>
      <header class="sec">
        <h2>{say.leaders}</h2>
        <p>{partitions.length === 0 ? say.nothingToLead : say.led(led, partitions.length)}</p>
      </header>
      <Table
        of={say.leadersTable}
        columns={[
          leads.process,
          leads.leads,
          leads.version,
          leads.since,
          { number: leads.pass },
          { number: leads.lag },
          { number: leads.backlog },
        ]}
      >
        {[...processes].map(([key, { leader, led: mine }]) => (
          <tr key={key}>
            <th scope="row">
              {leader === undefined ? (
                <span class="bad-text">{say.nobody}</span>
              ) : leader.host === undefined ? (
                <Id text={leader.process} />
              ) : (
                <span title={leader.process}>
                  {leader.host} <span class="quiet">{leader.pid === undefined ? '' : say.pid(leader.pid)}</span>
                </span>
              )}
            </th>
            <td>{ledText(mine)}</td>
            <td>{leader?.version ?? '–'}</td>
            <td>{leader === undefined ? '–' : durationText(Math.max(0, Date.now() - leader.sinceMs))}</td>
            <td class="number">{leader?.lastPassAgoMs === undefined ? '–' : durationText(leader.lastPassAgoMs)}</td>
            <td class="number">{durationText(Math.max(0, ...mine.map(({ lagMs = 0 }) => lagMs)))}</td>
            <td class="number">{numberText(mine.reduce((sum, { backlog }) => sum + backlog, 0))}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

/** `emails 0–3, reports 0` */
function ledText(led: readonly Led[]): string {
  return [...Map.groupBy(led, ({ queue }) => queue)]
    .map(([queue, all]) => {
      const numbers = all.map(({ partition }) => partition).sort((one, other) => one - other);
      const [first, last] = [numbers[0], numbers.at(-1)];
      const isRange = first !== undefined && last !== undefined && last - first === numbers.length - 1;
      return `${queue} ${isRange && numbers.length > 1 ? `${first}–${last}` : numbers.join(', ')}`;
    })
    .join('; ');
}
