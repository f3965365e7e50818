/** What a producer offers to change a job that waits: its due time, or its content. Checks come before anything is sent. */
import { dataJson } from '../../job/data-json.ts';
import { bodyFields, headerFields } from '../../job/fields.ts';
import { jobOptions, type OptionsOfFires, type ScheduleOptions } from '../../job/options.ts';
import { type Queue, type QueueInput, queueOf } from '../../job/queue.ts';
import { refuseRedacted } from '../../job/redaction.ts';
import type { InputOf, NameOf } from '../../job/types.ts';
import { hintOf } from '../../kernel/did-you-mean.ts';
import { show } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { createLevels, type DurabilityOption } from '../calls/durability.ts';
import { type IfMatchOption, parseIfMatch } from '../calls/etag.ts';
import { dueOf } from '../calls/plan.ts';
import type { Calls } from '../calls/session.ts';
import { type ClientSettings, parseAnyId } from '../calls/settings.ts';
import type { Parts } from '../parts.ts';
import { onIds } from './act.ts';
import { checkList } from './bulk.ts';
import { type Edited, type EditTarget, editing } from './edit.ts';
import { type Rescheduled, type RescheduleTarget, rescheduling } from './reschedule.ts';

/** When a job that waits is to be due instead: `delay` from now, or `at`. */
export type NewDue = Pick<ScheduleOptions, 'delay' | 'at' | 'zone'> & {
  /** Only if that is `earlier`, or `later`, than it is due now: else it is `kept`. */
  readonly only?: 'earlier' | 'later' | undefined;
};

type EditableOptions = OptionsOfFires & Pick<ScheduleOptions, 'expiresAt' | 'tags'>;

/** What is to be different about a job. What is left out stays; `null` takes an option back to what its queue says. */
export type JobChange<Data = unknown> = IfMatchOption & {
  readonly [Name in keyof EditableOptions]?: EditableOptions[Name] | null;
} & {
  readonly data?: Data | undefined;
  readonly name?: string | undefined;
  /** Only if the content is still the one that `get` showed with this digest. */
  readonly ifDigest?: string | undefined;
};

/** Of a queue with `jobs`, the name is one of theirs, and the data goes with one of the names. */
export type ChangeIn<Data> = JobChange<InputOf<Data>> & { readonly name?: NameOf<Data> | undefined };

/** What became of a request to run a job now. */
export interface RunNow {
  readonly id: string;
  /**
   * `due`: it is due now · `already-due`: it was, and waits for a worker · `running`, `over`, `unknown`: it does not wait,
   * nothing was changed · `changed`: it is not what `ifMatch` says, nothing was changed · `indeterminate`: the reply was
   * lost, and the job has been started, changed or has ended since.
   */
  readonly status: 'due' | 'already-due' | 'running' | 'over' | 'unknown' | 'changed' | 'indeterminate';
  readonly over?: Rescheduled['over'];
}

type How = DurabilityOption;
/** A job, as it was seen. */
type SeenJob = IfMatchOption & { readonly id: string };
type DueOf = NewDue & SeenJob;

/** Changes of jobs that wait: for their time, for a retry, or for a worker. Id, attempts and history stay. */
export interface Changes {
  /**
   * Another due time. A job that runs, is over or unknown is not changed, and the status says so. With `ifMatch` it is
   * changed only if it is what you have seen, else the status is `changed`.
   *
   * @throws DuestreamError `bad-input` without `delay` and `at`, and as `schedule` does
   * @example
   * const { status } = await client.reschedule(reminders, 'payment:42', { delay: '1d', only: 'later' });
   */
  reschedule(
    queue: QueueInput<unknown>,
    id: string,
    due: NewDue & IfMatchOption,
    options?: DurabilityOption,
  ): Promise<Rescheduled>;
  /** Up to a million, results in their order. @example await client.rescheduleMany(mail, ids.map((id) => ({ id, delay: '1h' }))); */
  rescheduleMany(
    queue: QueueInput<unknown>,
    jobs: readonly DueOf[],
    options?: DurabilityOption,
  ): Promise<readonly Rescheduled[]>;
  /**
   * Due now, also before the end of a backoff; with `ifMatch` only if it is what you have seen.
   *
   * @example await client.runNow(reminders, 'payment:42', { ifMatch: job.etag });
   */
  runNow(queue: QueueInput<unknown>, id: string, options?: DurabilityOption & IfMatchOption): Promise<RunNow>;
  /** Up to a million, results in their order. @example await client.runNowMany(reminders, ids); */
  runNowMany(
    queue: QueueInput<unknown>,
    ids: readonly string[],
    options?: DurabilityOption,
  ): Promise<readonly RunNow[]>;
  /**
   * Another content: data, name, options. It is compared and set, so an edit never undoes another one; with `ifMatch` it
   * is refused (`changed`) unless the job is what you have seen, with `ifDigest` unless its content is.
   *
   * @throws DuestreamError `bad-input` for an option that there is not, or one outside its range
   * @example
   * await client.edit(reminders, 'payment:42', { data: { to: 'new@example.org' }, attempts: 3 });
   */
  edit<Data>(queue: QueueInput<Data>, id: string, change: ChangeIn<Data>, options?: DurabilityOption): Promise<Edited>;
  /** Up to a million, results in their order. @example await client.editMany(mail, ids.map((id) => ({ id, attempts: 1 }))); */
  editMany<Data>(
    queue: QueueInput<Data>,
    jobs: readonly (ChangeIn<Data> & { readonly id: string })[],
    options?: DurabilityOption,
  ): Promise<readonly Edited[]>;
}

const DUE_NAMES = ['delay', 'at', 'zone', 'only'];
const OPTION_NAMES: readonly string[] = [...bodyFields, ...headerFields].map(({ name }) => name);
const CONDITIONS = ['ifDigest', 'ifMatch'];
const CHANGE_NAMES = ['data', 'name', ...OPTION_NAMES, ...CONDITIONS];
const DIGEST = /^[0-9a-f]{16}$/;

export function changesOf(settings: ClientSettings, { runChecked }: Pick<Calls, 'runChecked'>): Changes {
  const { clock, dataBytesMax } = settings;
  const levelIn = createLevels(settings);
  const to = (queue: QueueInput<unknown>) => queueOf(queue);

  function rescheduleAll(queue: QueueInput<unknown>, list: readonly DueOf[], how: How) {
    const read = () => {
      const jobs = list.map(({ ifMatch, ...due }) => ({
        ...due,
        id: parseAnyId(due.id, false),
        mode: modeOf(due),
        ifMatch: parseIfMatch(ifMatch),
      }));
      return { queue: to(queue), jobs, calledMs: clock.monotonicMs() };
    };
    const work = async (
      { server, limits, finding }: Parts,
      { queue: found, jobs, calledMs }: ReturnType<typeof read>,
    ) => {
      await server.settle();
      const within = limits(calledMs);
      const requests = jobs.map((due): RescheduleTarget => {
        const { id, mode, ifMatch } = due;
        return { id, mode, dueMs: dueOf(due, within), ifMatch };
      });
      return onIds(finding, { queue: found, items: requests }, rescheduling(finding));
    };
    return runChecked(read, work, () => levelIn(how, []));
  }

  function runAll(queue: QueueInput<unknown>, list: readonly SeenJob[], how: How) {
    return runChecked(
      () => ({ queue: to(queue), requests: list.map(dueNow) }),
      async ({ finding }, { queue: found, requests }) =>
        (await onIds(finding, { queue: found, items: requests }, rescheduling(finding))).map(runNowOf),
      () => levelIn(how, []),
    );
  }

  function editAll(queue: QueueInput<unknown>, list: readonly (JobChange & { readonly id: string })[], how: How) {
    return runChecked(
      () => {
        const found = to(queue);
        return { queue: found, requests: list.map((job) => requestOf(job, { queue: found, dataBytesMax })) };
      },
      ({ finding }, { queue: found, requests }) =>
        onIds(finding, { queue: found, items: requests }, editing(finding, found)),
      () => levelIn(how, []),
    );
  }

  return {
    reschedule: async (queue, id, due, how = {}) => onlyOne(await rescheduleAll(queue, [{ ...due, id }], how)),
    rescheduleMany: async (queue, jobs, how = {}) => rescheduleAll(queue, checked(jobs, 'jobs'), how),
    runNow: async (queue, id, { ifMatch, ...how } = {}) => onlyOne(await runAll(queue, [{ id, ifMatch }], how)),
    runNowMany: async (queue, ids, how = {}) => {
      const list = checked(ids, 'ids').map((id) => ({ id }));
      return runAll(queue, list, how);
    },
    edit: async (queue, id, change, how = {}) => onlyOne(await editAll(queue, [{ ...change, id }], how)),
    editMany: async (queue, jobs, how = {}) => editAll(queue, checked(jobs, 'jobs'), how),
  };
}

const dueNow = ({ id, ifMatch }: SeenJob): RescheduleTarget => ({
  id: parseAnyId(id, false),
  dueMs: 0,
  mode: 'earlier',
  ifMatch: parseIfMatch(ifMatch),
});

function checked<T>(list: readonly T[], what: string): readonly T[] {
  checkList(list, what);
  return list;
}

export function onlyOne<T>([result]: readonly T[]): T {
  if (result === undefined) throw new Error('a call for one job was answered with none');
  return result;
}

function checkNames(given: object, known: readonly string[], what: string): void {
  for (const name in given) {
    if (name === 'id' || known.includes(name)) continue;
    const near = hintOf(name, known) || ';';
    throw new DuestreamError('bad-input', `${what} has no option ${show(name)}${near} allowed: ${known.join(', ')}`);
  }
}

export function modeOf(due: NewDue): RescheduleTarget['mode'] {
  checkNames(due, DUE_NAMES, 'reschedule');
  if (due.delay === undefined && due.at === undefined) {
    throw new DuestreamError(
      'bad-input',
      'neither delay nor at is given; allowed: one of them, or runNow to run it now',
    );
  }
  const { only } = due;
  if (only === undefined) return 'any';
  if (only === 'earlier' || only === 'later') return only;
  throw new DuestreamError('bad-input', `only is ${show(only)}; allowed: earlier, later`);
}

export function requestOf(
  change: JobChange & { readonly id: string },
  { queue, dataBytesMax }: { readonly queue: Queue; readonly dataBytesMax: number },
): EditTarget {
  checkNames(change, CHANGE_NAMES, 'edit');
  const { id, name, data, ifDigest, ifMatch, ...options } = change;
  const changing = CHANGE_NAMES.filter((one) => !CONDITIONS.includes(one));
  if (!changing.some((one) => Reflect.get(change, one) !== undefined)) {
    const allowed = changing.join(', ');
    throw new DuestreamError('bad-input', `nothing is to be different; allowed: at least one of ${allowed}`);
  }
  if (ifDigest !== undefined && !(typeof ifDigest === 'string' && DIGEST.test(ifDigest))) {
    throw new DuestreamError('bad-input', `ifDigest is ${show(ifDigest)}; allowed: the digest that get shows`);
  }
  const hasData = data !== undefined;
  if (queue.jobs && name !== undefined && !hasData) throw nameAlone(name, queue.name);
  if (hasData) checkBytes(dataJson(data), dataBytesMax);
  refuseRedacted(data, queue.redact);
  return {
    id: parseAnyId(id, false),
    ifDigest,
    ifMatch: parseIfMatch(ifMatch),
    change: {
      ...(name === undefined ? {} : { name: jobOptions.name.check(name, 'name') }),
      hasData,
      data,
      options: checkedOptions(options),
    },
  };
}

const nameAlone = (name: string, queue: string): DuestreamError =>
  new DuestreamError(
    'bad-input',
    `name is ${show(name)} without data; allowed: both, because queue ${queue} checks the data of each name`,
  );

/** What is wrong with an option is said before anything is read. Only an expiry depends on the due time of the job. */
function checkedOptions(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  for (const { name, option } of [...bodyFields, ...headerFields]) {
    const given = options[name];
    if (given !== undefined && given !== null) option.check(given, name);
  }
  return options;
}

function checkBytes(json: string, max: number): void {
  const bytes = Buffer.byteLength(json);
  if (bytes <= max) return;
  throw new DuestreamError(
    'bad-input',
    `data is ${bytes} bytes of JSON; allowed: ${max} bytes; store it elsewhere and put a reference to it into the job`,
  );
}

function runNowOf({ id, status, over }: Rescheduled): RunNow {
  if (status === 'rescheduled') return { id, status: 'due' };
  if (status === 'ready' || status === 'already' || status === 'kept') return { id, status: 'already-due' };
  return { id, status, ...(over === undefined ? {} : { over }) };
}
