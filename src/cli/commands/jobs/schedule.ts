/** `schedule <queue>`: one job from flags, or many from a file with `--bulk`. */
import type { Command } from 'commander';
import type { Scheduled } from '../../../client/client.ts';
import { queueOptions } from '../../../config/load.ts';
import { allOptions } from '../../../job/fields.ts';
import { newJobId } from '../../../job/new-job-id.ts';
import { defineQueue } from '../../../job/queue.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { newQueueHint, type Session, withClient } from '../../session.ts';
import { DURABILITY_FLAG, readDurability } from '../../terminal/durability-flag.ts';
import { readData } from '../../terminal/input.ts';
import { dashed, type JobFlags, readFlags, withFlags } from '../../terminal/job-flags.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { scheduleBulk } from './bulk.ts';

interface Flags extends JobFlags {
  readonly data?: string;
  readonly bulk?: string;
  readonly durability?: string;
}

export const schedule: Register = (parent, runner) => {
  const command = parent
    .command('schedule <queue>')
    .description('schedule a job; without --delay or --at it is due now')
    .option('--data <json>', 'the data of the job: JSON, @file, or - for stdin');
  withFlags(command, allOptions)
    .option(
      '--bulk <file>',
      'a file of many jobs: one JSON object per line, with data and these options in camelCase; - for stdin',
    )
    .option(...DURABILITY_FLAG)
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

async function run(session: Session, name: string, { data, bulk, durability, ...flags }: Flags): Promise<Exit> {
  // A queue that is new takes its partitions from the configuration.
  const durable = readDurability(durability);
  const queue = defineQueue(name, queueOptions(session.config, name));
  if (bulk !== undefined) {
    const single = Object.keys({ ...flags, ...(data === undefined ? {} : { data }) });
    if (single.length > 0) {
      throw new DuestreamError('usage', `--bulk and --${dashed(single[0] ?? '')} are both given; say it in each line`);
    }
    return scheduleBulk(session, { queue, file: bulk, durable });
  }
  const content = await readData(session.invocation, data);
  // Made here and not by the producer, so that the person can repeat the call when its reply is lost.
  const id = flags.id ?? newJobId();
  const options = { ...readFlags(flags, allOptions), ...durable, id };
  const hint = await newQueueHint(session, name);
  const scheduled = await withClient(session, (producer) => producer.schedule(queue, content, options));
  if (hint !== '') session.out.note(line`queue ${name} is new${hint}`);
  session.out.answer(scheduled, () => [sentence(scheduled)]);
  return scheduled.status === 'running' ? 1 : 0;
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
