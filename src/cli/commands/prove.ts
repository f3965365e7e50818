/** `prove`: tries on this Redis what duestream promises, with faults that harm nobody, and says what held. */
import type { Command } from 'commander';
import { redisOf } from '../../config/redis-options.ts';
import { createAbort } from '../../kernel/abort.ts';
import { counted, span } from '../../kernel/humanize.ts';
import type { Proof } from '../../prove/prove.ts';
import type { Row } from '../../prove/row.ts';
import { type Exit, type Register, type Session, wholeNumber, withAnyRedis, withExamples } from '../session.ts';
import { line, type Paint } from '../terminal/output.ts';

interface Flags {
  readonly jobs: number;
  readonly seconds: number;
  readonly clean?: boolean;
}

export const prove: Register = (parent, runner) => {
  const command = parent
    .command('prove')
    .description('try on this Redis what duestream promises, in a namespace of its own that it removes afterwards')
    .option('--jobs <n>', 'how many jobs a step may schedule', wholeNumber(1, 10_000), 200)
    .option('--seconds <n>', 'end about then; what had no turn is not tried', wholeNumber(5, 600), 55)
    .option('--clean', 'only remove what earlier runs that were killed left behind')
    .action((flags: Flags, command: Command) =>
      runner.run(command, (session) => (flags.clean === true ? clean(session) : run(session, flags))),
    );
  withExamples(command, [
    'duestream admin prove --redis rediss://user:SECRET@redis.example.net:6379',
    'duestream admin prove --jobs 1000 --seconds 120 --json',
    'duestream admin prove --clean',
  ]);
};

async function run(session: Session, { jobs, seconds }: Flags): Promise<Exit> {
  const { out, config } = session;
  const { prove: proveAll } = await import('../../prove/prove.ts');
  const interrupted = createAbort();
  // A second signal ends the process as it always does.
  const stop = () => interrupted.abort();
  for (const signal of SIGNALS) process.once(signal, stop);
  try {
    const proof = await withAnyRedis(session, (redis) =>
      proveAll({
        redis,
        address: redisOf(config),
        read: config.worker.read,
        jobs,
        withinMs: seconds * 1000,
        signal: interrupted.signal,
        onStep: (text) => out.note(line`prove: ${text}`),
      }),
    );
    out.answer(proof, () => report(out.paint, proof));
    if (!proof.ok || interrupted.signal.aborted) return 1;
    return proof.timeIsUp ? 75 : 0;
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

function report(paint: Paint, { namespace, redis, jobs, tookMs, rows }: Proof): readonly string[] {
  const width = Math.max(...rows.map(({ row }) => row.length));
  const count = (status: Row['status']) => rows.filter((row) => row.status === status).length;
  return [
    line`${redis}, namespace ${namespace}, ${counted(jobs, 'job')} a step, ${span(tookMs)}`,
    ...rows.flatMap((row) => lines(paint, row, width)),
    line`${count('held')} held, ${count('failed')} failed, ${count('not tried')} not tried`,
  ];
}

function lines(paint: Paint, { row, status, saw, advice }: Row, width: number): readonly string[] {
  const colour = { held: paint.green, failed: paint.red, 'not tried': paint.yellow }[status];
  const first = `${colour(status.padEnd(9))}  ${row.padEnd(width)}  ${line`${saw}`}`;
  return advice === undefined ? [first] : [first, `${' '.repeat(width + 13)}${line`${advice}`}`];
}

async function clean(session: Session): Promise<Exit> {
  const { clean: cleanAll } = await import('../../prove/namespace.ts');
  const { runs, seen } = await withAnyRedis(session, cleanAll);
  const isWhole = seen === 'all';
  session.out.answer({ ok: isWhole, seen, runs }, () => [
    ...runs.map(({ namespace, removed, isAlive }) =>
      isAlive
        ? line`${namespace}  runs, or ended less than 15 s ago: nothing removed`
        : line`${namespace}  ${counted(removed, 'key')} removed`,
    ),
    ...(runs.length === 0 && isWhole ? ['nothing was left behind'] : []),
    ...(isWhole ? [] : [NOT_ALL[seen]]),
  ]);
  return isWhole ? 0 : 1;
}

const NOT_ALL = {
  some: 'the server has too many keys to look at all of them: run this again when it is less busy',
  names: 'this login may not use SCAN: run this with one that may',
} as const;
