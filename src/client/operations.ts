/**
 * The changes that people and programs make, one row each. A change has one name, whichever window carries it out, of one or of
 * many: in the audit, over HTTP and on the command line. A row stands where the method of the client stands that makes the
 * change. It says who may make it, and what of the answer is different now: the audit and the scopes of the HTTP API follow. Where
 * a change takes names and a few fields alone, the row also says which, and carries it out: route and command follow too.
 */
import { type QueueInput, queueOf } from '../job/queue.ts';
import { WORDS_CHARS_MAX } from '../kernel/checks.ts';
import type { Change, Said } from '../redis/audit.ts';
import type { DeadLetters } from './dead/dead-letters.ts';
import type { Erase, ErasedQueue } from './erase/erasure.ts';
import type { GroupChange, Groups } from './groups/groups.ts';
import type { Changes, NewDue } from './jobs/changes.ts';
import type { Sets } from './jobs/sets.ts';
import type { Tags } from './jobs/tags.ts';
import type { LimitChange, Limits } from './limits/limits.ts';
import type { Queues } from './queues/queues.ts';
import type { WorkerChange, Workers } from './queues/workers.ts';
import type { ScheduleChange, ScheduleInput, Schedules } from './schedules/schedules.ts';

/** The parts of a client that change something besides making jobs. */
interface Changing extends Changes {
  readonly queues: Queues;
  readonly workers: Workers;
  readonly limits: Limits;
  readonly groups: Groups;
  readonly tags: Tags;
  readonly sets: Sets;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly erase: Erase;
}

/** A change for the audit; by whom and by which way is known. */
export type Noted = Omit<Change, 'who' | 'way'>;
/** Notes a change that was made. It never rejects: an audit that cannot be written undoes nothing. */
export type Note = (change: Noted) => Promise<void>;
/** What is different now. A count of 0 is not noted. */
type Told = Omit<Noted, 'verb'>;

/** What a change is given besides names: a field of the body over HTTP, a flag of the command line. */
export const askFields = {
  for: { kind: 'duration', metavar: '<duration>', doc: 'For how long', example: '10m' },
  reason: {
    kind: 'words',
    metavar: '<text>',
    doc: 'Why, for the next person who looks',
    example: 'the provider is down',
  },
  group: { kind: 'group', metavar: '<group>', doc: 'In a queue with limits: the group of the set', example: 'acme' },
} as const;
export type AskField = keyof typeof askFields;
/** What names the thing that is changed: parts of the path over HTTP, arguments of the command line. */
export type AskName = 'queue' | 'group' | 'tag' | 'set' | 'worker';

/** What was asked for, of which a row has what it lists. Nothing was checked: the method does that. */
export interface Asked extends Readonly<Record<AskName | 'for', string>> {
  readonly reason?: string | undefined;
  /** Who asks; left out: the user of this process. */
  readonly by?: string | undefined;
}

interface Ask<Body = unknown> {
  /** The queue first, if it is about one. */
  readonly names: readonly AskName[];
  readonly needs?: readonly AskField[];
  readonly takes?: readonly AskField[];
  /** Makes the change. @returns what both windows answer */
  readonly run: (client: Changing, asked: Asked) => Promise<Body>;
}

/** A row whose change route and command make by what it says. */
export interface Askable<Body> extends Pick<Operation, 'name' | 'scope'> {
  readonly ask: Ask<Body>;
}

type Method = (...given: never[]) => Promise<unknown>;

/** @typeParam Call the method that makes the change */
interface Operation<Call extends Method = Method> {
  readonly name: string;
  /** What a token needs for it. */
  readonly scope: 'write' | 'admin';
  /** Noted also where a program makes it. What programs do for single jobs would push all else out of the audit. */
  readonly isRare?: true;
  /** Left out: the change is watched. */
  readonly told?: (
    done: Awaited<ReturnType<Call>>,
    given: Parameters<Call>,
    client: Changing,
  ) => Told | readonly Told[] | Promise<Told>;
  /** What is there before the call, where its answer does not say it; it is told too, if anything is different then. */
  readonly was?: (given: Parameters<Call>, client: Changing) => Promise<Partial<Told>>;
  /** Left out: the windows ask for more than names and a few fields, each in its way. */
  readonly ask?: Ask;
  /** Of a call that may fail when it has changed something: what is given instead, and what is different at its end. */
  readonly watch?: (given: Parameters<Call>) => Watched<Parameters<Call>>;
}

interface Watched<Given> {
  readonly given: Given;
  readonly told: () => readonly Told[];
}

type Rows<Owner> = {
  readonly [Name in keyof Owner]?: Owner[Name] extends Method ? Operation<Owner[Name]> : Rows<Owner[Name]>;
};

const write = { scope: 'write' } as const;
const rare = { scope: 'write', isRare: true } as const;
const admin = { scope: 'admin' } as const;

/** In the places of their methods. */
export const operations = {
  cancel: { ...write, name: 'jobs.cancel', told: became('cancelled', 'requested') },
  reschedule: {
    ...write,
    name: 'jobs.reschedule',
    told: (done, [queue, target, due]) => ({ ...became('rescheduled')(done, [queue, target]), ...dueTold(done, due) }),
  },
  edit: {
    ...write,
    name: 'jobs.edit',
    told: (done, [queue, target, change]) => ({
      ...became('edited')(done, [queue, target]),
      ...editTold(done, change),
    }),
  },
  runNow: { ...write, name: 'jobs.run', told: became('due') },
  deadLetters: {
    replay: { ...write, name: 'dead.replay', told: became('scheduled') },
    remove: { ...admin, name: 'dead.purge', told: became('removed') },
  },
  erase: { ...admin, isRare: true, name: 'erase', watch: erasing },
  tags: {
    close: {
      ...write,
      name: 'tags.close',
      told: ({ full = [] }, [queue, tag, { reason }]) =>
        tagsOf(
          queue,
          listOf(tag).filter((one) => !full.includes(one)),
          reason,
        ),
      ask: {
        names: ['queue', 'tag'],
        needs: ['for'],
        takes: ['reason'],
        run: async ({ tags }, { queue, tag, ...until }) => ({
          queue,
          tag,
          ...(await tags.close(queue, tag, untilOf(until))),
        }),
      },
    },
    open: {
      ...write,
      name: 'tags.open',
      told: ({ opened }, [queue]) => tagsOf(queue, opened),
      ask: {
        names: ['queue', 'tag'],
        async run({ tags }, { queue, tag }) {
          const { opened } = await tags.open(queue, tag);
          return { queue, tag, changed: opened.length > 0 };
        },
      },
    },
  },
  sets: {
    begin: { ...write, name: 'sets.create', told: ({ set, status }, [queue]) => one(queue, set, status === 'made') },
    seal: {
      ...write,
      name: 'sets.seal',
      told: ({ set, status }, [queue]) => one(queue, set, status === 'sealed'),
      ask: {
        names: ['queue', 'set'],
        takes: ['group'],
        run: async ({ sets }, { queue, set, group }) => ({ queue, ...(await sets.seal(queue, set, { group })) }),
      },
    },
    remove: {
      ...write,
      name: 'sets.remove',
      told: (_, [queue, set]) => one(queue, set, true),
      ask: {
        names: ['queue', 'set'],
        takes: ['group'],
        run: async ({ sets }, { queue, set, group }) => ({ queue, ...(await sets.remove(queue, set, { group })) }),
      },
    },
  },
  groups: {
    set: {
      ...rare,
      name: 'groups.set',
      told: (done, [queue, group, , said]) => ({
        ...one(queue, group, isChanged(done)),
        ...limitsTold(done),
        reason: said?.reason,
      }),
    },
    unset: {
      ...rare,
      name: 'groups.unset',
      told: (done, [queue, group, said]) => ({
        ...one(queue, group, isChanged(done)),
        ...limitsTold(done),
        reason: said?.reason,
      }),
    },
    close: {
      ...write,
      name: 'groups.close',
      told: (done, [queue, group, { for: length, reason }]) => ({
        ...one(queue, group, isChanged(done)),
        after: { for: length },
        reason,
      }),
      ask: {
        names: ['queue', 'group'],
        needs: ['for'],
        takes: ['reason'],
        run: async ({ groups }, { queue, group, ...until }) =>
          groupTold(queue, group, await groups.close(queue, group, untilOf(until))),
      },
    },
    open: {
      ...write,
      name: 'groups.open',
      told: (done, [queue, group]) => one(queue, group, isChanged(done)),
      ask: {
        names: ['queue', 'group'],
        run: async ({ groups }, { queue, group, ...asked }) =>
          groupTold(queue, group, await groups.open(queue, group, byOf(asked))),
      },
    },
  },
  queues: {
    set: {
      ...rare,
      name: 'queues.set',
      told: ({ changed, before, after }, [queue, , said]) => ({
        ...whole(queue, changed.length),
        ...{ before, after, reason: said?.reason },
      }),
    },
    unset: {
      ...rare,
      name: 'queues.unset',
      told: ({ changed, before, after }, [queue, , said]) => ({
        ...whole(queue, changed.length),
        ...{ before, after, reason: said?.reason },
      }),
    },
    pause: {
      ...rare,
      name: 'queues.pause',
      told: (done, [queue, said]) => ({ ...whole(queue, Number(isChanged(done))), reason: said?.reason }),
      ask: {
        names: ['queue'],
        takes: ['reason'],
        async run({ queues }, { queue, reason, ...asked }) {
          const { status, ...held } = await queues.pause(queue, { reason, ...byOf(asked) });
          return { queue, paused: true, changed: status === 'changed', ...held };
        },
      },
    },
    resume: {
      ...rare,
      name: 'queues.resume',
      told: (done, [queue]) => whole(queue, Number(isChanged(done))),
      ask: {
        names: ['queue'],
        async run({ queues }, { queue, ...asked }) {
          const { status, ...held } = await queues.resume(queue, byOf(asked));
          return { queue, paused: false, changed: status === 'changed', ...held };
        },
      },
    },
    close: {
      ...rare,
      name: 'queues.close',
      told: (done, [queue, { for: length, reason }]) => ({
        ...whole(queue, Number(isChanged(done))),
        after: { for: length },
        reason,
      }),
      ask: {
        names: ['queue'],
        needs: ['for'],
        takes: ['reason'],
        run: async ({ queues }, { queue, ...until }) => ({
          queue,
          closed: true,
          changed: isChanged(await queues.close(queue, untilOf(until))),
        }),
      },
    },
    open: {
      ...rare,
      name: 'queues.open',
      told: (done, [queue]) => whole(queue, Number(isChanged(done))),
      ask: {
        names: ['queue'],
        run: async ({ queues }, { queue, ...asked }) => ({
          queue,
          closed: false,
          changed: isChanged(await queues.open(queue, byOf(asked))),
        }),
      },
    },
    remove: {
      ...rare,
      name: 'queues.rm',
      // Also of a queue that held nothing: that it is gone is the change.
      told: ({ isRemoved, jobs }, [queue]) => whole(queue, isRemoved ? Math.max(1, jobs) : 0),
    },
  },
  workers: {
    pause: {
      ...rare,
      name: 'workers.pause',
      told: (done, [worker, said]) => ({ target: worker, count: Number(isChanged(done)), reason: said?.reason }),
      ask: {
        names: ['worker'],
        takes: ['reason'],
        run: async ({ workers }, { worker, reason, ...asked }) =>
          workerTold(worker, true, await workers.pause(worker, { reason, ...byOf(asked) })),
      },
    },
    resume: {
      ...rare,
      name: 'workers.resume',
      told: (done, [worker]) => ({ target: worker, count: Number(isChanged(done)) }),
      ask: {
        names: ['worker'],
        run: async ({ workers }, { worker, ...asked }) =>
          workerTold(worker, false, await workers.resume(worker, byOf(asked))),
      },
    },
  },
  limits: {
    set: {
      ...rare,
      name: 'limits.set',
      told: (done, [name, , said]) => limitTold(name, done, said),
    },
    remove: {
      ...rare,
      name: 'limits.rm',
      told: (done, [name, said]) => limitTold(name, done, said),
    },
    check: {
      ...rare,
      name: 'limits.check',
      told: (done) => done.map(({ limit, queue, freed }) => ({ queue, target: limit, count: freed })),
    },
  },
  schedules: {
    put: {
      ...rare,
      name: 'schedules.put',
      told: (done, [name, { queue }]) => ({
        ...ofSchedule(name, isChanged(done)),
        ...ruleTold(done),
        queue: queueOf(queue).name,
      }),
    },
    remove: {
      ...rare,
      name: 'schedules.rm',
      told: (isGone, [name]) => ofSchedule(name, isGone),
      async was([name], { schedules }) {
        const { input } = (await schedules.get(name)) ?? {};
        return { queue: input?.queue, ...ruleTold({ before: input }) };
      },
    },
    pause: {
      ...rare,
      name: 'schedules.pause',
      told: async (done, [name, reason], client) => ({
        ...(await housed(client, ofSchedule(name, isChanged(done)))),
        reason,
      }),
    },
    resume: {
      ...rare,
      name: 'schedules.resume',
      told: (done, [name], client) => housed(client, ofSchedule(name, isChanged(done))),
    },
    trigger: {
      ...write,
      name: 'schedules.trigger',
      told: ({ status }, [name], client) => housed(client, ofSchedule(name, status === 'scheduled')),
    },
    backfill: {
      ...write,
      name: 'schedules.backfill',
      told: (jobs, [name], client) =>
        housed(client, { target: name, count: jobs.filter(({ status }) => status === 'scheduled').length }),
    },
  },
} as const satisfies Rows<Changing>;

const byOf = ({ by }: Pick<Asked, 'by'>) => ({ by: by?.slice(0, WORDS_CHARS_MAX) });
const untilOf = ({ for: forText, reason, by }: Pick<Asked, 'for' | 'reason' | 'by'>) => ({
  for: forText,
  reason,
  ...byOf({ by }),
});
const workerTold = (worker: string, paused: boolean, done: WorkerChange) => ({
  ...{ worker, paused, changed: isChanged(done) },
  pause: done.pause,
});
const limitTold = (target: string, done: LimitChange, said?: { readonly reason?: string | undefined }): Told => ({
  ...{ target, count: Number(isChanged(done)), reason: said?.reason },
  ...{ before: saidIn(done.before), after: saidIn(done.after) },
});
const groupTold = (queue: string, group: string, done: GroupChange) => ({ queue, group, changed: isChanged(done) });

// What is different after one call.

const one = (queue: QueueInput<unknown>, target: string, isDifferent: boolean): Told => ({
  queue: queueOf(queue).name,
  target,
  count: Number(isDifferent),
});
const whole = (queue: QueueInput<unknown>, count: number): Told => {
  const { name } = queueOf(queue);
  return { queue: name, target: name, count };
};
const ofSchedule = (target: string, isDifferent: boolean): Told => ({ target, count: Number(isDifferent) });
const isChanged = ({ status }: { readonly status: string }): boolean => !SAME.includes(status);
const SAME: readonly string[] = ['same', 'unchanged'];

const limitsTold = ({ before, after }: GroupChange) => ({ before: saidIn(before), after: saidIn(after) });
const saidIn = (value: object | undefined): Said | undefined => value && { ...value };

/** What is others of a rule. The data of its jobs is not told: a reader of the audit may lack the scope `data`. */
function ruleTold({ before, after }: Pick<ScheduleChange, 'before' | 'after'>): Pick<Told, 'before' | 'after'> {
  const [was, is] = [hidden(before), hidden(after)];
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  const isOther = (name: string) => JSON.stringify(Object(before)[name]) !== JSON.stringify(Object(after)[name]);
  const only = (of: Said) =>
    Object.fromEntries(names.filter((name) => name in of && isOther(name)).map((name) => [name, of[name]]));
  return { before: before && only(was), after: after && only(is) };
}

const hidden = (input: ScheduleInput | undefined): Said => ({
  ...input,
  ...(input?.data !== undefined && { data: '…' }),
  ...(input?.headers !== undefined && { headers: '…' }),
});

/** What became of the one job that was named. */
const onlyOf = (done: object): object => (Array.isArray(done) ? (done.length === 1 ? Object(done[0]) : {}) : done);

/** The due time of one job, and of several what was asked for. */
function dueTold(done: object, due: NewDue | undefined): Pick<Told, 'before' | 'after'> {
  const { wasMs, dueMs }: { readonly wasMs?: number; readonly dueMs?: number } = onlyOf(done);
  if (dueMs === undefined) return { after: saidIn(due) };
  return { before: wasMs === undefined ? undefined : { dueMs: wasMs }, after: { dueMs } };
}

/** Which parts of a job are others, and its due time; what it holds is not told. */
function editTold(done: object, change: object | undefined): Pick<Told, 'after'> {
  const { dueMs }: { readonly dueMs?: number } = onlyOf(done);
  const changed = Object.entries({ ...change }).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  return { after: { ...(changed.length > 0 && { changed }), ...(dueMs !== undefined && { dueMs }) } };
}

/** With the queue of the schedule, which the answer does not say. */
async function housed({ schedules }: Changing, told: Told): Promise<Told> {
  if (told.count === 0) return told;
  const seen = await schedules.get(told.target ?? '').catch(() => undefined);
  return { ...told, queue: seen?.queue };
}

/** One entry for each queue. */
const tagsOf = (
  queue: QueueInput<unknown> | readonly QueueInput<unknown>[],
  tags: readonly string[],
  reason?: string,
): readonly Told[] =>
  listOf(queue).map((each) => ({ queue: queueOf(each).name, target: targetOf(tags), count: tags.length, reason }));

const isList = <T>(given: T | readonly T[]): given is readonly T[] => Array.isArray(given);
const listOf = <T>(given: T | readonly T[]): readonly T[] => (isList(given) ? given : [given]);

interface Result {
  readonly id?: string | undefined;
  readonly deadLetter?: string | undefined;
  readonly status: string;
}
interface Counted {
  readonly changed: number;
  readonly requested?: number;
  /** The first of them; dead letters have another name. */
  readonly ids?: readonly string[];
  readonly deadLetters?: readonly string[];
}

/**
 * Of jobs that were named, or of all that a filter means.
 *
 * @param statuses those of what is different now
 */
function became(...statuses: readonly string[]) {
  return (
    done: Result | readonly Result[] | Counted,
    [to, target]: readonly [queue: QueueInput<unknown>, target: unknown, ...rest: unknown[]],
  ): Told => {
    const queue = queueOf(to).name;
    if ('changed' in done) {
      const { changed, requested = 0, ids = done.deadLetters } = done;
      return { queue, target: targetOf(Object(target)), ids, count: changed + requested };
    }
    const named = listOf(target);
    const results = listOf(done);
    const names = results.map(({ id, deadLetter }, at) => id ?? deadLetter ?? String(named[at]));
    const ids = names.filter((_, at) => statuses.includes(results[at]?.status ?? ''));
    return { queue, target: targetOf(names), count: ids.length, ...(names.length > 1 && { ids }) };
  };
}

/** Also what was removed before a call failed. By which tag is not told: it may name a person. */
function erasing([filter, options]: Parameters<Erase>): Watched<Parameters<Erase>> {
  const gone = new Map<string, number>();
  const onProgress = (progress: ErasedQueue) => {
    if (!progress.dryRun) gone.set(progress.queue, goneOf(progress));
    options?.onProgress?.(progress);
  };
  return {
    given: [filter, { ...options, onProgress }],
    told: () => [...gone].map(([queue, count]) => ({ queue, count })),
  };
}

const goneOf = ({ jobs, running, deadLetters, history, logs }: ErasedQueue): number =>
  jobs + running + deadLetters + history + logs;

const NAMED_MAX = 3;
/** A handler may have written these texts, and a reader of the audit may lack the scope `data`. */
const HIDDEN: readonly string[] = ['error', 'reason'];

/**
 * What a change was about, in a few words: the first names of a list, or what a filter says.
 *
 * @example targetOf(['a', 'b', 'c', 'd', 'e']) // 'a, b, c and 2 more'
 * @example targetOf({ tag: 'user:42', state: ['scheduled', 'ready'] }) // 'state scheduled|ready, tag user:42'
 */
export function targetOf(named: readonly string[] | object): string {
  if (!Array.isArray(named)) return wordsOf(named) || 'all';
  const rest = named.length - NAMED_MAX;
  return `${named.slice(0, NAMED_MAX).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** In one order, whichever window asks. */
const wordsOf = (fields: object): string =>
  Object.entries(fields)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${HIDDEN.includes(name) ? '…' : wordOf(value)}`]))
    .join(', ');

function wordOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.join('|');
  return typeof value === 'object' && value !== null ? wordsOf(value).replace(', ', ' ') : String(value);
}

// A client whose changes are noted.

/** How changes are noted. */
interface Noting {
  readonly note: Note;
  /** Only what is noted where a program makes it. */
  readonly rareOnly?: boolean;
  /** A stop of the client waits for this as well. */
  readonly track?: <T>(call: Promise<T>) => Promise<T>;
}

type AnyOperation = Operation<(...given: unknown[]) => Promise<unknown>>;
type AnyRows = { readonly [name: string]: AnyOperation | AnyRows };
type AnyOwner = Readonly<Record<string, unknown>>;

/** The same client, whose changes are noted before their calls resolve. */
export function noting<Of extends Changing>(client: Of, how: Noting): Of {
  const around = (owner: AnyOwner, rows: AnyRows): AnyOwner => ({
    ...owner,
    ...Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, its(owner[name], row)])),
  });
  const its = (part: unknown, row: AnyOperation | AnyRows): unknown => {
    if (!isOperation(row)) return around(part as AnyOwner, row);
    return how.rareOnly && !row.isRare ? part : noted(client, { ...how, row, call: part as AnyCall });
  };
  return around(client as unknown as AnyOwner, operations as unknown as AnyRows) as unknown as Of;
}

type AnyCall = (...given: readonly unknown[]) => Promise<unknown>;

const isOperation = (row: AnyOperation | AnyRows): row is AnyOperation => typeof row.name === 'string';

function noted(
  client: Changing,
  { row, call, note, track = (made) => made }: Noting & { readonly row: AnyOperation; readonly call: AnyCall },
): AnyCall {
  const noteAll = async (all: readonly Told[]) => {
    for (const told of all) if (told.count > 0) await note({ verb: row.name, ...told });
  };
  const carried = async (given: unknown[]) => {
    const watched = row.watch?.(given);
    // It is asked for first, and the call waits for no answer: calls take effect in the order in which they are made.
    const before = row.was?.(given, client).catch(() => undefined);
    try {
      const done = await call(...(watched?.given ?? given));
      const told = listOf((await row.told?.(done, given, client)) ?? []);
      const was = before && (await before);
      await noteAll(told.map((one) => ({ ...one, ...was })));
      return done;
    } finally {
      await noteAll(watched?.told() ?? []);
    }
  };
  return (...given) => track(carried([...given]));
}
