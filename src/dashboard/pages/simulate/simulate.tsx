/**
 * What a queue would do with other limits, workers or run times, beside what it does as it is. Nothing is changed here: the
 * command that would change it stands below.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useLive } from '../../live.ts';
import { timeText, weekTimeText } from '../../parts/clock.ts';
import { ProblemNote } from '../../parts/problem.tsx';
import { ratesOf, ratesText } from '../../parts/rates.ts';
import { quoted } from '../../parts/shell.ts';
import { durationText, numberText } from '../../parts/words.ts';
import { go, type Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { rateFlags, typedRates } from '../queue/values.ts';
import { Knob } from './knob.tsx';
import { OverTime } from './over-time.tsx';
import '../../css/simulate.css';

const said = words.simulate;

type Simulation = Schemas['Simulation'];
type Run = Simulation['asItIs'];

/** What is typed: empty means as it is. */
interface Knobs {
  readonly rate: string;
  readonly concurrency: string;
  readonly workers: string;
  readonly slots: string;
  readonly runTime: string;
  readonly until: string;
}

const UNTILS = ['6h', '24h', '3d', '7d'];
const AS_IT_IS: Knobs = { rate: '', concurrency: '', workers: '', slots: '', runTime: '', until: '24h' };

function QueueChoice({ queue }: { readonly queue: string }) {
  const names = (useLive().now?.queues ?? []).map((one) => one.queue);
  const all = queue === '' || names.includes(queue) ? names : [queue, ...names];
  return (
    <label class="field">
      {said.queue}
      <select value={queue} onChange={({ currentTarget: { value } }) => go(`simulate/${encodeURIComponent(value)}`)}>
        {queue === '' ? <option value="">–</option> : null}
        {all.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Played {
  /** An answer that comes when another queue was chosen is not shown. */
  readonly queue: string;
  readonly simulation: Simulation | undefined;
  readonly problem: unknown;
  readonly isBusy: boolean;
}

const notPlayed = (queue: string): Played => ({
  queue,
  simulation: undefined,
  problem: undefined,
  isBusy: queue !== '',
});

interface Question {
  readonly ask: () => Promise<Simulation>;
  readonly answered: (simulation: Simulation) => void;
  readonly failed: (problem: unknown) => void;
}

/** One at a time: who moves a slider asks often, and what counts is where it stands when the answer before has come. */
function useAsking(): (question: Question) => void {
  const running = useRef(false);
  const next = useRef<Question>();
  const begin = ({ ask: run, answered, failed }: Question) => {
    running.current = true;
    const over = (tell: () => void) => {
      running.current = false;
      const waits = next.current;
      next.current = undefined;
      if (waits === undefined) tell();
      else begin(waits);
    };
    run().then(
      (simulation) => over(() => answered(simulation)),
      (problem: unknown) => over(() => failed(problem)),
    );
  };
  return (question) => {
    if (running.current) next.current = question;
    else begin(question);
  };
}

/** The form stays while another queue is chosen: who goes through the chooser by keyboard keeps the focus there. */
export function Simulate({ path: [queue = ''], query }: Route) {
  const rate = query.get('rate') ?? '';
  const [knobs, setKnobs] = useState<Knobs>({ ...AS_IT_IS, rate });
  const [played, setPlayed] = useState<Played>(notPlayed(queue));
  const asking = useAsking();
  const play = (some: Knobs) => {
    const set = (next: Partial<Played>) =>
      setPlayed((before) => (before.queue === queue ? { ...before, ...next } : before));
    set({ problem: undefined, isBusy: true });
    asking({
      ask: () => ask(calls.queuesSimulate, { queue }, bodyOf(some)),
      answered: (simulation) => set({ simulation, isBusy: false }),
      failed: (problem) => set({ problem, isBusy: false }),
    });
  };
  useEffect(() => {
    const asItIs = { ...AS_IT_IS, rate };
    setKnobs(asItIs);
    setPlayed(notPlayed(queue));
    if (queue !== '') play(asItIs);
  }, [queue, rate]);
  const { simulation, problem, isBusy } = played.queue === queue ? played : notPlayed(queue);
  return (
    <>
      <Sentence queue={queue} simulation={simulation} isBusy={isBusy} />
      <ProblemNote problem={problem} />
      <div class="sim">
        <Form queue={queue} knobs={knobs} set={setKnobs} play={play} />
        <div aria-busy={isBusy}>
          {simulation === undefined ? null : <OverTime simulation={simulation} />}
          {simulation === undefined ? null : <Compared simulation={simulation} />}
          <Command queue={queue} knobs={knobs} />
        </div>
      </div>
    </>
  );
}

/** A number that is none is refused by the API, in its words. */
function bodyOf({ rate, concurrency, workers, slots, runTime, until }: Knobs) {
  const limits = {
    ...(rate === '' ? {} : { rate: typedRates(rate) }),
    ...(concurrency === '' ? {} : { concurrency: Number(concurrency) }),
  };
  return {
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(workers === '' ? {} : { workers: Number(workers) }),
    ...(slots === '' ? {} : { slots: Number(slots) }),
    ...(runTime === '' ? {} : { runTime }),
    until,
  };
}

function Sentence({
  queue,
  simulation,
  isBusy,
}: {
  readonly queue: string;
  readonly simulation: Simulation | undefined;
  readonly isBusy: boolean;
}) {
  if (queue === '') {
    return (
      <section class="say">
        <h1>{said.choose}</h1>
        <p>{said.chooseWhat}</p>
      </section>
    );
  }
  const link = <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>;
  if (simulation === undefined) {
    return (
      <section class="say">
        <h1>
          {link}: {isBusy ? said.playing : said.refused}
        </h1>
      </section>
    );
  }
  const { asItIs, asAsked, due, scheduled, coming, usual = 0 } = simulation;
  const jobs = said.played(numberText(due + scheduled + coming + usual));
  return (
    <section class="say">
      <h1>{asAsked === undefined ? said.isLate(link, lateText(asItIs)) : said.wouldBeLate(link, lateText(asAsked))}</h1>
      <p>
        {asAsked === undefined ? '' : said.asItIs(lateText(asItIs))} {jobs} {said.unchanged}
      </p>
    </section>
  );
}

const lateText = ({ maxMs }: Run): string => durationText(maxMs);

interface FormOf {
  readonly queue: string;
  readonly knobs: Knobs;
  readonly set: (knobs: Knobs) => void;
  readonly play: (knobs: Knobs) => void;
}

function Form(form: FormOf) {
  const { queue, knobs, play } = form;
  return (
    <form
      class="knobs"
      aria-label={said.whatIf}
      onSubmit={(event) => {
        event.preventDefault();
        if (queue !== '') play(knobs);
      }}
    >
      <header class="sec">
        <h2>{said.whatIf}</h2>
      </header>
      <QueueChoice queue={queue} />
      {queue === '' ? null : <Fields key={queue} {...form} />}
    </form>
  );
}

/** Right ends of the sliders; a field takes more. */
const RATE_MAX = 10_000;
const SLOTS_MAX = 1000;
const WORKERS_MAX = 100;

function Fields({ queue, knobs, set, play }: FormOf) {
  const now = useLive().now?.queues.find((one) => one.queue === queue);
  const { limits, workers = 0, slots = 0 } = now ?? {};
  const each = Math.max(1, Math.round(slots / Math.max(1, workers)));
  const knob = (name: keyof Knobs, more: Pick<Parameters<typeof Knob>[0], 'isNow' | 'nowIs' | 'max' | 'unit'>) => (
    <Knob
      {...{ name, ...more }}
      label={said.knobs[name]}
      value={knobs[name]}
      set={(value) => set({ ...knobs, [name]: value })}
      play={(value) => play({ ...knobs, [name]: value })}
    />
  );
  const perSecond = ratesOf(limits).map(({ limit, perMs }) => (limit * 1000) / perMs);
  return (
    <>
      {knob('rate', {
        isNow: said.now(ratesText(limits) || said.none),
        nowIs: perSecond.length === 0 ? undefined : Math.min(...perSecond),
        max: RATE_MAX,
        unit: '/s',
      })}
      {knob('concurrency', {
        isNow: said.now(limits?.concurrency === undefined ? said.none : String(limits.concurrency)),
        nowIs: limits?.concurrency,
        max: SLOTS_MAX,
      })}
      {knob('workers', { isNow: said.now(String(workers)), nowIs: Math.max(1, workers), max: WORKERS_MAX })}
      {knob('slots', {
        isNow: slots === 0 ? '' : said.now(String(each)),
        nowIs: each,
        max: SLOTS_MAX,
      })}
      <label class="field">
        {said.knobs.runTime}
        <input
          name="runTime"
          value={knobs.runTime}
          placeholder={said.asMeasured}
          autocomplete="off"
          onInput={({ currentTarget }) => set({ ...knobs, runTime: currentTarget.value.trim() })}
        />
      </label>
      <label class="field">
        {said.knobs.until}
        <select value={knobs.until} onChange={({ currentTarget }) => set({ ...knobs, until: currentTarget.value })}>
          {UNTILS.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <footer>
        <button type="submit" class="primary">
          {said.play}
        </button>
        <button
          type="button"
          class="ghost"
          onClick={() => {
            set(AS_IT_IS);
            play(AS_IT_IS);
          }}
        >
          {said.reset}
        </button>
      </footer>
    </>
  );
}

function Compared({ simulation: { asItIs, asAsked, assumptions } }: { readonly simulation: Simulation }) {
  const rows: readonly (readonly [string, (run: Run) => string])[] = [
    [said.rows.limits, ({ limits }) => limits],
    [said.rows.slots, ({ slots }) => numberText(slots)],
    [said.rows.latest, lateText],
    [said.rows.p99, ({ p99Ms }) => (p99Ms === undefined ? '–' : durationText(p99Ms))],
    [said.rows.p50, ({ p50Ms }) => (p50Ms === undefined ? '–' : durationText(p50Ms))],
    [said.rows.worst, ({ worstMinuteMs }) => whenText(worstMinuteMs)],
    [said.rows.line, ({ maxLine, maxLineAtMs }) => said.lineAt(numberText(maxLine), timeText(maxLineAtMs))],
    [said.rows.backlog, ({ backlogThroughMs }) => whenText(backlogThroughMs)],
    [said.rows.through, ({ throughMs }) => whenText(throughMs)],
    [said.rows.left, ({ left }) => numberText(left)],
  ];
  return (
    <>
      <table class="list sim-table">
        <thead>
          <tr>
            <td />
            <th scope="col" class="n">
              {said.columns.asItIs}
            </th>
            {asAsked === undefined ? null : (
              <th scope="col" class="n">
                {said.columns.asAsked}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, textOf]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="n">{textOf(asItIs)}</td>
              {asAsked === undefined ? null : <td class="n">{textOf(asAsked)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      <Groups groups={(asAsked ?? asItIs).groups} />
      <ul class="assumptions quiet">
        {assumptions.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </>
  );
}

const whenText = (ms: number | undefined): string => (ms === undefined ? '–' : weekTimeText(ms));

function Groups({ groups }: Pick<Run, 'groups'>) {
  if (groups.length === 0) return null;
  const { group, jobs, latest, through } = said.groups;
  return (
    <table class="list sim-table">
      <thead>
        <tr>
          <th scope="col">{group}</th>
          {[jobs, latest, through].map((name) => (
            <th key={name} scope="col" class="n">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {groups.map((one) => (
          <tr key={one.group}>
            <th scope="row">{one.group}</th>
            <td class="n">{numberText(one.jobs)}</td>
            <td class="n">{durationText(one.maxMs)}</td>
            <td class="n">{whenText(one.throughMs)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Limits are settings of the queue; workers and their slots are nobody's to set from here. */
function Command({ queue, knobs: { rate, concurrency } }: { readonly queue: string; readonly knobs: Knobs }) {
  if (rate === '' && concurrency === '') return null;
  const flags = [
    ...(rate === '' ? [] : [rateFlags(rate)]),
    ...(concurrency === '' ? [] : [`--concurrency ${quoted(concurrency)}`]),
  ];
  return (
    <p class="command">
      {said.command} <code>duestream queues set {[quoted(queue), ...flags].join(' ')}</code>
    </p>
  );
}
