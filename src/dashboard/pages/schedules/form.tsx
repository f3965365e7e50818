/** Makes a schedule or changes one: what is asked at the left, what it would do at the right, before it does it. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ApiError, ask, askJson } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useAsked } from '../../parts/asked.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Instant } from '../../parts/table.tsx';
import { capital } from '../../parts/when.ts';
import { go } from '../../router.ts';
import { words } from '../../words/words.ts';
import { ruleText } from './rule.ts';
import { decisionOf, ruleOf, type Schedule } from './schedule-words.ts';

const say = words.schedules;

type Definition = Schemas['ScheduleDefinition'];

/** @param name of one that there is; left out: a new one */
export function ScheduleForm({ name }: { readonly name?: string }) {
  if (name === undefined) return <Form />;
  return <Known name={name} />;
}

function Known({ name }: { readonly name: string }) {
  const { value, problem, isBusy } = useAsked(calls.schedulesGet, { name });
  return (
    <>
      {value === undefined ? <h1 aria-busy={isBusy}>{say.editTitle(name)}</h1> : null}
      <ProblemNote problem={problem} />
      {value === undefined ? null : value.hidden ? (
        <>
          <h1>{say.editTitle(name)}</h1>
          <p class="hidden-data">{say.hiddenData}</p>
        </>
      ) : (
        <Form name={name} there={value} />
      )}
    </>
  );
}

/** As typed. */
interface Typed {
  readonly name: string;
  readonly queue: string;
  readonly kind: 'cron' | 'every';
  readonly rule: string;
  readonly zone: string;
  readonly gap: string;
  readonly overlap: string;
  readonly job: string;
  readonly data: string;
}

interface FormOf {
  readonly name?: string;
  /** What it is now: what the form has no field for stays. */
  readonly there?: Schedule;
}

function typedFrom({ name = '', there }: FormOf): Typed {
  const { cron, every, zone, dst, job, data } = there?.input ?? {};
  const clocks = typeof dst === 'object' && dst !== null ? (dst as { gap?: string; overlap?: string }) : {};
  return {
    name,
    queue: there?.queue ?? '',
    kind: every === undefined ? 'cron' : 'every',
    rule: String(cron ?? every ?? ''),
    zone: zone === undefined ? '' : String(zone),
    gap: clocks.gap ?? '',
    overlap: clocks.overlap ?? '',
    job: job === undefined ? '' : String(job),
    data: data === undefined ? '' : JSON.stringify(data, null, 2),
  };
}

/** @throws Error for data that are no JSON */
function definitionOf(
  { queue, kind, rule, zone, gap, overlap, job, data }: Typed,
  before: Schedule['input'] | undefined,
): Definition {
  const { cron: _cron, every: _every, zone: _zone, dst: _dst, job: _job, data: _data, ...rest } = before ?? {};
  const dst = { ...(gap === '' ? {} : { gap }), ...(overlap === '' ? {} : { overlap }) };
  const given = {
    ...rest,
    queue: queue.trim(),
    [kind]: rule.trim(),
    ...(zone.trim() === '' ? {} : { zone: zone.trim() }),
    ...(Object.keys(dst).length === 0 ? {} : { dst }),
    ...(job.trim() === '' ? {} : { job: job.trim() }),
    ...(data.trim() === '' ? {} : { data: JSON.parse(data) as unknown }),
  };
  return given as Definition;
}

interface Over {
  /** What stays where the form has no field for it. */
  readonly before: Schedule['input'] | undefined;
  /** Only if it still is what was seen. */
  readonly etag: string | undefined;
}

/** @throws Error for data that are no JSON, and as `ask` */
async function put(typed: Typed, { before, etag }: Over): Promise<void> {
  const json = JSON.stringify(definitionOf(typed, before));
  const { name } = await askJson(calls.schedulesPut, { name: typed.name.trim() }, { json, etag });
  go(`schedule/${encodeURIComponent(name)}`);
}

/** Whether the name of a new one is taken. @throws as `ask` */
async function takenBy(name: string): Promise<Schedule | undefined> {
  try {
    return await ask(calls.schedulesGet, { name });
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not-found') return undefined;
    throw error;
  }
}

function Form(given: FormOf) {
  const [typed, setTyped] = useState(() => typedFrom(given));
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [taken, setTaken] = useState<Schedule>();
  const set = (change: Partial<Typed>) => setTyped({ ...typed, ...change });
  async function save(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const found = given.name === undefined ? await takenBy(typed.name.trim()) : undefined;
      setTaken(found);
      if (found === undefined) await put(typed, { before: given.there?.input, etag: given.there?.etag });
    } catch (error) {
      setProblem(error);
    } finally {
      setBusy(false);
    }
  }
  return (
    <>
      <section class="say">
        <h1>{given.name === undefined ? say.makeTitle : say.editTitle(given.name)}</h1>
        {given.there?.source === 'file' ? <p>{say.leavesFile}</p> : null}
      </section>
      {taken === undefined ? null : <Taken typed={typed} taken={taken} close={() => setTaken(undefined)} />}
      <form class="plan" onSubmit={(event) => void save(event)}>
        <div class="fields">
          <Fields typed={typed} set={set} isNew={given.name === undefined} />
          <ProblemNote problem={problem} />
          <p class="actions">
            <button type="submit" class="primary" disabled={isBusy}>
              {given.name === undefined ? say.makeYes : say.editYes}
            </button>
            <a
              class="btn ghost"
              href={given.name === undefined ? '#/schedules' : `#/schedule/${encodeURIComponent(given.name)}`}
            >
              {words.parts.back}
            </a>
          </p>
        </div>
        <Preview typed={typed} before={given.there?.input} />
      </form>
    </>
  );
}

interface TakenOf {
  readonly typed: Typed;
  readonly taken: Schedule;
  readonly close: () => void;
}

/** Nothing of the one that is there stays: its name alone was meant. */
function Taken({ typed, taken, close }: TakenOf) {
  const { name, queue, source, etag } = taken;
  const act = () => put(typed, { before: undefined, etag });
  return (
    <Confirm title={say.takenTitle(name)} yes={say.takenYes} isDangerous act={act} close={close}>
      <p>
        {say.takenIs(queue)} <code>{ruleOf(taken)}</code>
      </p>
      {source === 'file' ? <p>{say.leavesFile}</p> : null}
    </Confirm>
  );
}

interface FieldsOf {
  readonly typed: Typed;
  readonly set: (change: Partial<Typed>) => void;
  readonly isNew: boolean;
}

function Fields({ typed, set, isNew }: FieldsOf) {
  const { fields } = say;
  return (
    <>
      <Text {...{ typed, set }} field="name" name={fields.name} isFixed={!isNew} isNeeded />
      <Text {...{ typed, set }} field="queue" name={fields.queue} isNeeded />
      <label>
        {fields.kind}
        <select
          value={typed.kind}
          onChange={({ currentTarget }) => set({ kind: currentTarget.value === 'every' ? 'every' : 'cron', rule: '' })}
        >
          <option value="cron">{fields.cron}</option>
          <option value="every">{fields.every}</option>
        </select>
      </label>
      <Text
        {...{ typed, set }}
        field="rule"
        name={typed.kind === 'cron' ? fields.cronRule : fields.everyRule}
        hint={typed.kind === 'cron' ? '30 2 * * *' : '15m'}
        isNeeded
      />
      <Text {...{ typed, set }} field="zone" name={fields.zone} hint="Europe/Berlin" list="zones" />
      <datalist id="zones">
        {Intl.supportedValuesOf('timeZone').map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
      <Choice {...{ typed, set }} field="gap" name={fields.gap} values={say.gaps} />
      <Choice {...{ typed, set }} field="overlap" name={fields.overlap} values={say.overlaps} />
      <Text {...{ typed, set }} field="job" name={fields.job} />
      <label>
        {fields.data}
        <textarea value={typed.data} onInput={({ currentTarget }) => set({ data: currentTarget.value })} />
      </label>
    </>
  );
}

interface TextOf extends Omit<FieldsOf, 'isNew'> {
  readonly field: 'name' | 'queue' | 'rule' | 'zone' | 'job';
  readonly name: string;
  readonly hint?: string;
  readonly list?: string;
  readonly isFixed?: boolean;
  readonly isNeeded?: boolean;
}

function Text({ typed, set, field, name, hint, list, isFixed = false, isNeeded = false }: TextOf) {
  return (
    <label>
      {name}
      <input
        value={typed[field]}
        placeholder={hint}
        list={list}
        readOnly={isFixed}
        required={isNeeded}
        onInput={({ currentTarget }) => set({ [field]: currentTarget.value })}
      />
    </label>
  );
}

interface ChoiceOf extends Omit<FieldsOf, 'isNew'> {
  readonly field: 'gap' | 'overlap';
  readonly name: string;
  readonly values: Readonly<Record<string, string>>;
}

function Choice({ typed, set, field, name, values }: ChoiceOf) {
  return (
    <label>
      {name}
      <select value={typed[field]} onChange={({ currentTarget }) => set({ [field]: currentTarget.value })}>
        <option value="">{say.asUsual}</option>
        {Object.entries(values).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Where no queue is typed yet the preview needs a name of one, and nothing of it. */
function previewed(typed: Typed, before: Schedule['input'] | undefined): Promise<Schemas['Preview']> {
  const schedule = definitionOf({ ...typed, queue: typed.queue.trim() || 'preview' }, before);
  return ask(calls.schedulesPreviewNew, {}, { schedule, name: typed.name.trim() || undefined, next: PREVIEWED });
}

const PREVIEWED = 8;
const TYPED_MS = 400;

/** The next runs of what is typed, as soon as nobody types. */
function Preview({ typed, before }: { readonly typed: Typed; readonly before: Schedule['input'] | undefined }) {
  const [shown, setShown] = useState<Schemas['Preview']>();
  const [problem, setProblem] = useState<unknown>();
  const { kind, rule } = typed;
  useEffect(() => {
    let isGone = false;
    const look = async () => {
      try {
        const found = await previewed(typed, before);
        if (isGone) return;
        setShown(found);
        setProblem(undefined);
      } catch (error) {
        if (!isGone) setProblem(error);
      }
    };
    const timer = rule.trim() === '' ? undefined : setTimeout(() => void look(), TYPED_MS);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [JSON.stringify(typed)]);
  if (rule.trim() === '') return <Side>{say.previewEmpty}</Side>;
  return (
    <section aria-labelledby="preview">
      <h2 id="preview">{capital(ruleText({ [kind]: rule }) ?? rule)}</h2>
      <ProblemNote problem={problem} />
      {shown === undefined || problem !== undefined ? null : (
        <ol class="calendar">
          {shown.rows.map((row) => (
            <li key={`${row.atMs} ${row.local}`}>
              <Instant atMs={row.atMs} isLong /> <em class="decision">{decisionOf(row)}</em>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function Side({ children }: { readonly children: ComponentChildren }) {
  return <p class="quiet">{children}</p>;
}
