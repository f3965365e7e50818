/** `import`: the jobs of another product become jobs here. It says what it would do with `--dry-run`, and what has no counterpart. */
import type { Command } from 'commander';
import { queueOptions } from '../../config/load.ts';
import type { ImportedQueue } from '../../import/bullmq/import.ts';
import type { Here, Manner } from '../../import/making.ts';
import { type NameMap, NO_MAP, readNameMap } from '../../import/names.ts';
import type { ImportedDelayed } from '../../import/redisson/import.ts';
import type { Group, Sums } from '../../import/tally.ts';
import { parseExact } from '../../job/json-text.ts';
import { queueFrom } from '../../job/queue.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { counted } from '../../kernel/humanize.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { close, openCommands, type Redis, whenReady } from '../../redis/connection/connect.ts';
import { parseZone } from '../../time/zone.ts';
import { collect, type Exit, type Register, type Session, withClient, withExamples } from '../session.ts';
import { readInput } from '../terminal/input.ts';
import { DURABILITY_FLAG, readDurability } from '../terminal/job-flags.ts';
import { type Cell, line, type Output, table } from '../terminal/output.ts';

/** What both take. */
interface Flags {
  readonly from: string;
  readonly queue?: readonly string[];
  readonly map?: string;
  readonly copy?: boolean;
  readonly again?: boolean;
  readonly dryRun?: boolean;
  readonly durability?: string;
}

const withFlags = (command: Command): Command =>
  command
    .option('--queue <name>', 'only this queue, by its name there; may be given several times', collect)
    .option('--map <file>', 'names here for names there: {"queues":{"paymentReminders":"payments"}}; - for stdin')
    .option('--copy', 'only read there: both have the jobs then, and both run them')
    .option('--again', 'also jobs that an import which was cut short may have made, and that may have run')
    .option('--dry-run', 'write nothing, there or here; say what would be imported and what has no counterpart')
    .option(...DURABILITY_FLAG);

interface BullFlags extends Flags {
  readonly prefix: string;
  readonly failed?: boolean;
  readonly zone: string;
}

export const importFromBullmq: Register = (parent, runner) => {
  const command = parent
    .command('bullmq')
    .description('take the waiting jobs and the job schedulers of BullMQ 5 and 6; what is here leaves BullMQ')
    .requiredOption('--from <url>', 'the Redis of BullMQ; --redis is that of duestream')
    .option('--prefix <prefix>', 'the prefix of its queues', 'bull')
    .option('--failed', 'also jobs that have failed for good: each is due at once, with one attempt')
    .option('--zone <name>', 'the zone of schedulers that say none: an IANA name such as Europe/Berlin', 'UTC');
  withFlags(command).action((flags: BullFlags, command: Command) =>
    runner.run(command, (session) => runBullmq(session, flags)),
  );
  withExamples(command, [
    'duestream import bullmq --from redis://10.0.0.5:6379 --dry-run',
    'duestream import bullmq --from redis://10.0.0.5:6379 --queue mails --queue paymentReminders',
    'duestream import bullmq --from redis://10.0.0.5:6379 --map names.json --zone Europe/Berlin --json',
  ]);
};

async function runBullmq(session: Session, flags: BullFlags): Promise<Exit> {
  const { out } = session;
  const { prefix, failed = false } = flags;
  const options = { ...(await readOptions(session, flags)), prefix, failed, zone: parseZone(flags.zone).name };
  const { importBullmq } = await import('../../import/bullmq/import.ts');
  const onProgress = (queue: string, looked: number) => {
    if (looked % PROGRESS_EVERY === 0) out.note(line`${queue}: ${looked} jobs looked at`);
  };
  const queues = await withBoth(session, flags.from, (redis, here) =>
    importBullmq({ ...here, redis, onProgress }, options),
  );
  out.answer({ mode: options.mode, prefix, queues }, () => report(out, options, { queues, hints: bullHints }));
  return statusOf(queues);
}

const PROGRESS_EVERY = 5000;

interface DelayedFlags extends Flags {
  readonly base64?: boolean;
}

export const importFromRedisson: Register = (parent, runner) => {
  const command = parent
    .command('redisson')
    .description('take what waits in RDelayedQueue of Redisson; an element that is here leaves it')
    .requiredOption('--from <url>', 'the Redis of Redisson; --redis is that of duestream')
    .option('--base64', 'also values of codecs that only Java reads: their data is {"base64":"…"}');
  withFlags(command).action((flags: DelayedFlags, command: Command) =>
    runner.run(command, (session) => runRedisson(session, flags)),
  );
  withExamples(command, [
    'duestream import redisson --from redis://10.0.0.5:6379 --dry-run',
    'duestream import redisson --from redis://10.0.0.5:6379 --queue orders --map names.json',
  ]);
};

async function runRedisson(session: Session, flags: DelayedFlags): Promise<Exit> {
  const { out } = session;
  const options = { ...(await readOptions(session, flags)), base64: flags.base64 === true };
  const { importRedisson } = await import('../../import/redisson/import.ts');
  const queues = await withBoth(session, flags.from, (redis, here) => importRedisson({ ...here, redis }, options));
  out.answer({ mode: options.mode, queues }, () => report(out, options, { queues, hints: delayedHints }));
  return statusOf(queues);
}

const statusOf = (queues: readonly Imported[]): Exit => (queues.some(({ taken }) => taken > 0) ? 1 : 0);

async function readOptions(
  session: Session,
  { queue = [], map, again = false, copy = false, dryRun = false, durability }: Flags,
): Promise<Manner & { readonly queues: readonly string[]; readonly names: NameMap }> {
  if (copy && dryRun) throw new DuestreamError('usage', '--copy and --dry-run are both given; allowed: one of them');
  return {
    queues: queue,
    names: map === undefined ? NO_MAP : await readMap(session, map),
    mode: dryRun ? 'dry-run' : copy ? 'copy' : 'move',
    again,
    durability: readDurability(durability),
  };
}

async function readMap({ invocation }: Session, file: string): Promise<NameMap> {
  const text = await readInput(invocation, file);
  try {
    return readNameMap(parseExact(text, 'map'));
  } catch (error) {
    if (error instanceof DuestreamError) throw error;
    throw new DuestreamError('bad-input', `map is no JSON: ${reasonOf(error)}`, { cause: error });
  }
}

/** Lends a connection to the Redis of the other product, and what an import needs of this one. */
async function withBoth<T>(session: Session, url: string, act: (redis: Redis, here: Here) => Promise<T>): Promise<T> {
  const { config } = session;
  const redis = openCommands({ redis: url, name: 'import' });
  try {
    await whenReady(redis, config.redis.connectTimeoutMs);
    return await withClient(session, (client) =>
      act(redis, {
        client,
        queueOf: (name) => queueFrom(name, queueOptions(config, name)),
        limits: { horizonMs: config.limits.horizonMs, dataBytesMax: config.limits.dataBytesMax },
        windowMs: config.done.max === 0 ? 0 : config.done.windowMs,
      }),
    );
  } finally {
    close(redis);
  }
}

// What is told to people: the counts of each place, then why jobs stay, then what is another thing here.

interface Imported extends Sums {
  readonly from: string;
  readonly to: string;
  readonly taken: number;
}

function report<One extends Imported>(
  { paint }: Output,
  { mode }: Pick<Manner, 'mode'>,
  { queues, hints }: { readonly queues: readonly One[]; readonly hints: (one: One) => readonly string[] },
): readonly string[] {
  return [
    ...table(paint, ['queue', 'here', 'from', 'found', FATES[mode], ...REST], queues.flatMap(rowsOf)),
    ...queues.flatMap((one) => [
      ...one.left.map((group) => groupLine(one, 'left', group)),
      ...hints(one),
      ...(one.taken > 0
        ? [line`${one.from}: ${counted(one.taken, 'job')} taken there and not made here: ${REPEAT}`]
        : []),
      ...one.notes.map((group) => groupLine(one, 'differ', group)),
    ]),
    ...(mode === 'dry-run' ? ['nothing was written'] : []),
    ...(mode === 'copy' ? ['these jobs are there too: stop the workers there, or they run twice'] : []),
  ];
}

const FATES = { move: 'imported', copy: 'imported', 'dry-run': 'would come' } as const;
const REST = ['there already', 'by a schedule', 'left'];
const REPEAT = 'repeat the command';

function rowsOf({ from, to, places }: Imported): readonly (readonly Cell[])[] {
  const rows = Object.entries(places).map(([place, { found, imported, there, covered, left }]) => [
    ...[from, to, place, found],
    ...[imported, there, covered, left],
  ]);
  return rows.length > 0 ? rows : [[from, to, 'nothing', 0, 0, 0, 0, 0]];
}

const groupLine = ({ from }: Imported, what: string, { count, text, ids }: Group): string =>
  line`${from}: ${count} ${what}: ${text}${ids.length === 0 ? '' : ` (${ids.join(', ')})`}`;

/** What else of a queue of BullMQ somebody has to look after. */
function bullHints({ from, to, active, parents, isPaused, concurrency, rate }: ImportedQueue): readonly string[] {
  const limits = [
    ...(concurrency === undefined ? [] : [`a concurrency of ${concurrency}`]),
    ...(rate === undefined ? [] : [`a rate of ${rate}`]),
  ];
  return [
    ...(active > 0
      ? [line`${from}: ${counted(active, 'job')} running in BullMQ: import again when they are over`]
      : []),
    ...(parents > 0 ? [line`${from}: ${counted(parents, 'parent')} of flows stay in BullMQ`] : []),
    ...(isPaused ? [line`${from}: paused in BullMQ, and not here: "duestream queues pause ${to}" pauses it`] : []),
    ...(limits.length > 0
      ? [line`${from}: ${limits.join(' and ')} in BullMQ: "duestream queues set ${to}" sets limits here`]
      : []),
  ];
}

const delayedHints = ({ from, due }: ImportedDelayed): readonly string[] =>
  due > 0 ? [line`${from}: ${counted(due, 'value')} due: their consumers take them there`] : [];
