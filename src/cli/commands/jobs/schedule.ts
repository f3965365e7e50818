/** `schedule <queue>`: one job from flags, or many from a file with `--bulk`. */
import { type Command, Option } from 'commander';
import type { Scheduled } from '../../../client/producer.ts';
import { queueOptions } from '../../../config/load.ts';
import { systemClock } from '../../../core/clock.ts';
import { DuestreamError } from '../../../core/errors.ts';
import { newJobId } from '../../../core/job.ts';
import { defineQueue } from '../../../core/queue.ts';
import { type Exit, type Register, whole, withExamples } from '../../register.ts';
import { newQueueHint, type Session, withProducer } from '../../session.ts';
import { readBackoff, readData } from '../../terminal/input.ts';
import { absoluteOf } from '../../terminal/instants.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { scheduleBulk } from './bulk.ts';

interface Flags {
  readonly data?: string;
  readonly delay?: string;
  readonly at?: string;
  readonly zone?: string;
  readonly id?: string;
  readonly name?: string;
  readonly ifExists?: 'keep' | 'replace' | 'error';
  readonly attempts?: number;
  readonly timeout?: string;
  readonly backoff?: string;
  readonly expiresAt?: string;
  readonly maxLateness?: string;
  readonly onLate?: 'drop' | 'dead' | 'run';
  readonly bulk?: string;
}

export const schedule: Register = (parent, runner) => {
  const command = parent
    .command('schedule <queue>')
    .description('schedule a job; without --delay or --at it is due now')
    .option('--data <json>', 'the data of the job: JSON, @file, or - for stdin')
    .option('--delay <duration>', 'the due time, from now: 500ms, 90s, 5m, 1h, 3d, or ISO 8601 such as PT1H30M')
    .option('--at <instant>', 'the due time: ISO 8601 such as 2026-03-01T10:00:00+01:00, or with --zone a local time')
    .option('--zone <name>', 'the IANA zone of --at, such as Europe/Berlin; a date means the beginning of that day')
    .option('--id <id>', 'an id of your own, so that scheduling twice gives one job')
    .option('--name <name>', 'the name of the job, which picks its handler')
    .addOption(
      new Option('--if-exists <what>', 'what to do when a job of this id is live (default: keep)').choices([
        'keep',
        'replace',
        'error',
      ]),
    )
    .option('--attempts <n>', 'how often handlers may fail before the job is dead', whole(1, 1000))
    .option('--timeout <duration>', 'how long a handler may run')
    .option('--backoff <json>', 'how long to wait after a failure: {"kind":"fixed","delayMs":5000}, or linear, …')
    .option('--expires-at <instant>', 'no start after this instant: ISO 8601 with Z or an offset')
    .option('--max-lateness <duration>', 'no start later than this after the due time')
    .addOption(
      new Option('--on-late <what>', 'what becomes of a job that is too late (default: drop)').choices([
        'drop',
        'dead',
        'run',
      ]),
    )
    .option(
      '--bulk <file>',
      'a file of many jobs: one JSON object per line, with data and these options in camelCase; - for stdin',
    )
    .action((queue: string, flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, queue, flags)),
    );
  withExamples(command, [
    `duestream schedule emails --data '{"to":"a@b.c"}' --delay 3s`,
    'duestream schedule emails --id welcome:42 --data @welcome.json --at 2026-03-01T10:00:00+01:00',
    'duestream schedule emails --at 2026-03-01T09:00 --zone Europe/Berlin',
    `duestream schedule emails --delay 1h --max-lateness 10m --on-late dead --backoff '{"kind":"fixed","delayMs":5000}'`,
    'duestream schedule emails --bulk jobs.ndjson',
  ]);
};

async function run(session: Session, name: string, { data, bulk, ...flags }: Flags): Promise<Exit> {
  // A queue that is new takes its partitions from the configuration.
  const queue = defineQueue(name, queueOptions(session.config, name));
  if (bulk !== undefined) {
    const single = Object.keys({ ...flags, ...(data === undefined ? {} : { data }) });
    if (single.length > 0) {
      throw new DuestreamError('usage', `--bulk and --${dashed(single[0] ?? '')} are both given; say it in each line`);
    }
    return scheduleBulk(session, queue, bulk);
  }
  const content = await readData(session.invocation, data);
  // Made here and not by the producer, so that the person can repeat the call when its reply is lost.
  const id = flags.id ?? newJobId();
  const options = { ...flags, ...instantsOf(flags), id, backoff: readBackoff(flags.backoff) };
  const hint = await newQueueHint(session, name);
  const scheduled = await withProducer(session, (producer) => producer.schedule(queue, content, options));
  if (hint !== '') session.out.note(line`queue ${name} is new${hint}`);
  session.out.answer(scheduled, () => [sentence(scheduled)]);
  return scheduled.status === 'running' ? 1 : 0;
}

function instantsOf({ at, zone, expiresAt }: Flags) {
  const local = zone === undefined ? 'name a zone' : 'zone given';
  return {
    at: absoluteOf(at, '--at', { local, instead: '--delay' }),
    expiresAt: absoluteOf(expiresAt, '--expires-at', { instead: '--max-lateness' }),
  };
}

function sentence({ id, status, dueMs, over }: Scheduled): string {
  const due = moment(dueMs, systemClock.wallMs());
  switch (status) {
    case 'scheduled':
      return line`${id}  scheduled  due ${due}`;
    case 'replaced':
      return line`${id}  replaced  now due ${due}`;
    case 'exists':
      return line`${id}  exists  a job of this id is live, due ${due}; --if-exists replace changes it`;
    case 'already':
      return over === undefined
        ? line`${id}  already scheduled by the same call  due ${due}`
        : line`${id}  already ${over}  this same call was made before`;
    case 'running':
      return line`${id}  running  not replaced; try again when it has ended`;
  }
}

const dashed = (name: string): string => name.replace(/[A-Z]/g, (capital) => `-${capital.toLowerCase()}`);
