/** What will happen to a job that is not there yet: when it is due, who comes due beside it, how late the rate makes it, its retries. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { askJson, urlOf } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { ownZone, timeText } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { Axis, Bars, type Tick } from '../../parts/plot.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { ratesOf } from '../../parts/rates.ts';
import { numberText, relativeText, spanText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { When } from '../job/when.tsx';
import { bodyOf, commandOf, curlOf, drainOf, type Filled, type Form, hasDue, programOf } from './form.ts';

const said = words.create.happens;

type Preview = Schemas['JobPreview'];
type Counts = Schemas['QueueCounts'];

/** Typing is over after this. */
const CALM_MS = 350;

export function WhatHappens({ form, set, queues }: Filled & { readonly queues: readonly Counts[] }) {
  const { preview, problem } = usePreview(form);
  const counts = queues.find(({ queue }) => queue === form.queue);
  return (
    <aside class="preview" aria-label={said.title}>
      <header class="sec">
        <h2>{said.title}</h2>
      </header>
      {preview === undefined && problem === undefined ? <p class="quiet">{said.choose}</p> : null}
      <ProblemNote problem={problem} />
      {preview === undefined ? null : (
        <>
          <Steps form={form} set={set} preview={preview} counts={counts} />
          <Beside preview={preview} />
        </>
      )}
      {form.queue === '' ? null : <AsCode form={form} />}
    </aside>
  );
}

interface Looked {
  readonly preview: Preview | undefined;
  readonly problem: unknown;
}

/** The daemon says it, as it would take the job. It writes nothing. */
function usePreview(form: Form): Looked {
  const [looked, setLooked] = useState<Looked>({ preview: undefined, problem: undefined });
  const isAsked = form.queue !== '' && hasDue(form);
  const text = JSON.stringify(form);
  useEffect(() => {
    if (!isAsked) {
      setLooked({ preview: undefined, problem: undefined });
      return undefined;
    }
    let isGone = false;
    const timer = setTimeout(() => {
      void lookAt(form).then((next) => isGone || setLooked(next));
    }, CALM_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [text]);
  return looked;
}

async function lookAt(form: Form): Promise<Looked> {
  try {
    const preview = await askJson(calls.jobsPreview, { queue: form.queue }, { json: bodyOf(form) });
    return { preview, problem: undefined };
  } catch (problem) {
    return { preview: undefined, problem };
  }
}

interface Stepped extends Filled {
  readonly preview: Preview;
  readonly counts: Counts | undefined;
}

function Steps({ form, set, preview, counts }: Stepped) {
  const { dueMs, refusal, there, retries } = preview;
  const nowMs = Date.now();
  const others = besideOf(preview);
  return (
    <ol class="story">
      {refusal === undefined ? null : (
        <Step isWarning head={said.refused}>
          {refusalText(refusal)}
        </Step>
      )}
      {there === undefined ? null : (
        <Step isWarning head={said.there}>
          {said.thereIs(words.states[there.state])}
        </Step>
      )}
      <li>
        <span class="time">
          <When atMs={dueMs} />, {relativeText(dueMs, nowMs)}
        </span>
        <b>{said.due}</b>
        {others === 0 ? null : said.together(numberText(others))}
      </li>
      {counts === undefined ? null : <Obstacles {...{ form, set, preview, counts }} />}
      <Step head={said.ifItFails}>{retriesText(retries, dueMs)}</Step>
      {retries.length === 0 ? null : (
        <li>
          <span class="time">
            <When atMs={retries.at(-1)?.toMs ?? dueMs} />
          </span>
          {said.last}
        </li>
      )}
    </ol>
  );
}

interface OneStep {
  readonly head: string;
  readonly isWarning?: boolean;
  readonly children: ComponentChildren;
}

const Step = ({ head, isWarning = false, children }: OneStep) => (
  <li class={isWarning ? 'warn' : undefined}>
    <span class="time">{head}</span>
    {children}
  </li>
);

/** What comes due in the minute of the job. */
function besideOf({ dueMs, beside: { fromMs, stepMs, counts } }: Preview): number {
  return counts[Math.floor((dueMs - fromMs) / stepMs)] ?? 0;
}

function refusalText(refusal: Schemas['PreviewRefusal']): string {
  const { kind, tag = '', why = '', limit = 0 } = refusal;
  if (kind === 'closed') return said.closed(tag);
  return kind === 'unfit' ? said.unfit(why) : said.full(numberText(limit));
}

/** What will hold it: a pause, no worker, and the rate with those that come due before it. */
function Obstacles({ set, preview: { dueMs, beside }, counts }: Stepped & { readonly counts: Counts }) {
  const { paused, workers, limits, waiting } = counts;
  const nowMs = Date.now();
  const drains = ratesOf(limits).flatMap(
    ({ limit, perMs }) => drainOf(beside, { perSecond: (limit * 1000) / perMs, dueMs, nowMs, waiting }) ?? [],
  );
  const [drain] = drains.toSorted((one, other) => other.lateMs - one.lateMs);
  const free = drain?.freeMs;
  return (
    <>
      {paused ? (
        <Step isWarning head={said.now}>
          {said.paused}
        </Step>
      ) : null}
      {workers === 0 ? (
        <Step isWarning head={said.now}>
          {said.noWorker}
        </Step>
      ) : null}
      {drain === undefined || limits === undefined ? null : (
        <Step isWarning head={`≈ ${timeText(dueMs + drain.lateMs)}`}>
          <b>{said.late(spanText(drain.lateMs))}</b> {said.lets(limits.text)}
          {free === undefined ? null : (
            <span class="diff">
              <button type="button" onClick={() => set({ when: 'at', ...localOf(free) })}>
                {said.instead(timeText(free))}
              </button>
            </span>
          )}
        </Step>
      )}
    </>
  );
}

/** An instant as the fields of the form have it, in the zone of whoever looks. */
function localOf(atMs: number): Pick<Form, 'at' | 'zone'> {
  const shifted = new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000);
  return { at: shifted.toISOString().slice(0, 16), zone: ownZone() };
}

/** More of them are nobody's help. */
const RETRIES_SHOWN = 5;

/** @example retriesText(retries, dueMs) // tried again after 5 s to 10 s, 10 s to 20 s */
function retriesText(retries: Preview['retries'], dueMs: number): string {
  if (retries.length === 0) return said.noRetry;
  const waits = retries.slice(0, RETRIES_SHOWN).map(({ fromMs, toMs }, at) => {
    const before = retries[at - 1] ?? { fromMs: dueMs, toMs: dueMs };
    const [least, most] = [fromMs - before.fromMs, toMs - before.toMs];
    if (least === 0) return most === 0 ? spanText(0) : said.upTo(spanText(most));
    return least === most ? spanText(most) : said.between(spanText(least), spanText(most));
  });
  return said.retried(waits.join(', '), retries.length - waits.length);
}

/** Every so many minutes there is a mark. */
const MARK_MS = 15 * 60_000;

function Beside({ preview: { queue, dueMs, beside } }: { readonly preview: Preview }) {
  const { fromMs, stepMs, counts } = beside;
  const wholeMs = counts.length * stepMs;
  const all = counts.reduce((sum, count) => sum + count, 0);
  const ticks: Tick[] = [];
  for (let ms = Math.ceil(fromMs / MARK_MS) * MARK_MS; ms < fromMs + wholeMs; ms += MARK_MS) {
    ticks.push({ left: ((ms - fromMs) / wholeMs) * 100, text: timeText(ms) });
  }
  if (all === 0) return <p class="quiet alone">{said.alone}</p>;
  return (
    <figure class="plot small">
      <figcaption>
        <b>{said.around(queue, timeText(dueMs))}</b>
        <span>{said.byMinute(numberText(Math.max(...counts)))}</span>
      </figcaption>
      <div class="near">
        {/* A herd is a thousand times as many as its neighbours, which must be seen beside it. */}
        <Bars values={counts.map((count) => Math.log10(count + 1))} label={said.chart(numberText(all))} />
        <i style={{ left: `${((dueMs - fromMs) / wholeMs) * 100}%` }} />
      </div>
      <Axis ticks={ticks} />
    </figure>
  );
}

const FORMS = {
  command: commandOf,
  typescript: programOf,
  curl: (form: Form) => curlOf(form, urlOf(calls.jobsSchedule, { queue: form.queue })),
} as const;

function AsCode({ form }: { readonly form: Form }) {
  const [kind, setKind] = useState<keyof typeof FORMS>('command');
  const [isCopied, setCopied] = useState(false);
  const text = FORMS[kind](form);
  useEffect(() => setCopied(false), [text]);
  return (
    <section class="as-code" aria-label={said.same}>
      <div class="seg">
        {(Object.keys(FORMS) as (keyof typeof FORMS)[]).map((one) => (
          <button key={one} type="button" aria-pressed={kind === one} onClick={() => setKind(one)}>
            {said.forms[one]}
          </button>
        ))}
      </div>
      {/* Only a page over TLS, or of this machine, has it. */}
      {navigator.clipboard === undefined ? null : (
        <button
          type="button"
          class="ghost"
          onClick={() =>
            void navigator.clipboard.writeText(text).then(
              () => setCopied(true),
              () => undefined,
            )
          }
        >
          <Icon name="copy" />
          {isCopied ? said.copied : said.copy}
        </button>
      )}
      <pre tabIndex={0}>{text}</pre>
    </section>
  );
}
