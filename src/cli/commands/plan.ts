/** `plan`: what a load will need of Redis, workers and daemons, with the arithmetic. It asks no Redis. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { doneLimits } from '../../config/options.ts';
import { benchFigures } from '../../inspect/bench-figures.ts';
import { bytesOf, bytesText, countOf, type Price, planOf, priceOf } from '../../inspect/sizing.ts';
import { durationMs } from '../../kernel/duration.ts';
import { messageOf } from '../../kernel/errors.ts';
import { type Exit, type Register, type Session, wholeNumber, withExamples } from '../session.ts';
import { line } from '../terminal/output.ts';

interface Flags {
  readonly jobs: number;
  readonly payload: number;
  readonly rate: number;
  readonly workers?: number;
  readonly id: number;
  readonly handler: number;
  readonly daemons: number;
  readonly producers: number;
  readonly dead: number;
  readonly concurrency?: number;
  readonly price?: Price;
}

const MB = 2 ** 20;

export const plan: Register = (parent, runner) => {
  const command = parent
    .command('plan')
    .description('say how much memory, CPU, partitions, workers and connections a load needs, with the arithmetic')
    .requiredOption('--jobs <n>', 'how many jobs wait at one time: 250k, 10M', count(1, 1e10))
    .requiredOption('--payload <bytes>', 'the data of a job as JSON: 200, 4KiB', size(0, 16 * MB))
    .requiredOption('--rate <n>', 'how many jobs are scheduled per second; as many end', count(1, 1e7))
    .option(
      '--workers <n>',
      'how many worker processes there are; default: as many as are needed',
      wholeNumber(1, 10_000),
    )
    .addOption(
      new Option('--handler <duration>', 'how long a handler runs').argParser(span).default(span('100ms'), '100ms'),
    )
    .option('--id <chars>', 'how long an id is; those that duestream makes have 22', wholeNumber(1, 128), 22)
    .option(
      '--concurrency <n>',
      'how many handlers a worker runs at once; default: worker.concurrency',
      wholeNumber(1, 10_000),
    )
    .option('--daemons <n>', 'how many daemons run', wholeNumber(1, 1000), 2)
    .option('--producers <n>', 'how many processes schedule jobs', wholeNumber(0, 100_000), 1)
    .option('--dead <n>', 'how many dead letters are kept', count(0, 1e9), 0)
    .option('--price <money/commands>', 'also say what a month costs where commands are paid: 0.20/100k', price)
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, [
    'duestream admin plan --jobs 10M --payload 200 --rate 2000 --workers 20',
    'duestream admin plan --jobs 250k --payload 4KiB --rate 50 --handler 2s --json',
    'duestream admin plan --jobs 100k --payload 200 --rate 1 --daemons 1 --price 0.20/100k',
  ]);
};

function run({ config, out }: Session, flags: Flags): Promise<Exit> {
  const { jobs, payload, rate, workers, handler, id, daemons, producers, dead } = flags;
  const planned = planOf({
    jobs,
    payloadBytes: payload,
    perSecond: rate,
    handlerMs: handler,
    workers,
    idChars: id,
    daemons,
    producers,
    dead,
    done: doneLimits(config),
    readyMax: config.mover.readyMax,
    concurrency: flags.concurrency ?? config.worker.concurrency,
    price: flags.price,
  });
  const { steps, warnings, ...numbers } = planned;
  out.answer({ ...numbers, steps, warnings, from: benchFigures.from }, () => {
    const width = Math.max(...steps.map(({ is }) => is.length));
    return [
      ...steps.map(({ what, is, how }) => `${what.padEnd(11)}  ${is.padStart(width)}  ${how}`),
      ...warnings.map((text) => out.paint.yellow(line`warning: ${text}`)),
      out.paint.dim(line`CPU as measured: ${benchFigures.from}; yours may be half as fast or twice as fast`),
    ];
  });
  return Promise.resolve(0);
}

function count(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = countOf(text, { min, max });
    if (value !== undefined) return value;
    throw new InvalidArgumentError(`Allowed: a whole number from ${min} to ${max}, also as 250k, 10M or 1G.`);
  };
}

function size(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = bytesOf(text, { min, max });
    if (value !== undefined) return value;
    throw new InvalidArgumentError(`Allowed: ${min} to ${bytesText(max)}, as 200, 4KiB or 1.5kB.`);
  };
}

function price(text: string): Price {
  const value = priceOf(text);
  if (value !== undefined) return value;
  throw new InvalidArgumentError('Allowed: an amount of money for a number of commands, as 0.20/100k or 3/1M.');
}

function span(text: string): number {
  try {
    return durationMs(/^\d+$/.test(text) ? Number(text) : text, '--handler');
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
}
