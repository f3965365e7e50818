/** `edit <queue> [id...]`: other data, another name or other options for jobs that wait, by id or by a filter. */
import { type Command, InvalidArgumentError } from 'commander';
import type { Edited, JobChange } from '../../../client/client.ts';
import { bodyFields, headerFields } from '../../../job/fields.ts';
import { jobOptions } from '../../../job/options.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import type { Session } from '../../session.ts';
import { readData } from '../../terminal/input.ts';
import { flagOf, type JobFlags, readFlags, withFlags } from '../../terminal/job-flags.ts';
import { line } from '../../terminal/text.ts';
import { takeFilterFlags, withFilterFlags } from '../find/filter-flags.ts';
import { type ChangeFlags, isByFilter, runChange, unchanged, withChangeFlags } from './change.ts';

/** `--name` and `--tag` say what is to be. */
const PREFIX = 'where-';
const OPTIONS = [...bodyFields, ...headerFields].map(({ name, option }) => ({ name, option }));
const EDITED = [{ name: 'name' as const, option: jobOptions.name }, ...OPTIONS];

interface Flags extends JobFlags, ChangeFlags {
  readonly data?: string;
  readonly unset?: readonly string[];
  readonly ifDigest?: string;
}

export const edit: Register = (parent, runner) => {
  const command = parent
    .command('edit <queue> [id...]')
    .description('change the data, the name or the options of jobs that wait; id, due time, attempts and history stay')
    .option('--data <json>', 'new data: JSON, @file, or - for stdin');
  withFlags(command, EDITED)
    .option(
      '--unset <option>',
      "take an option back to the queue's, by the name of its flag; may be given more than once",
      (given: string, before: readonly string[] = []) => [...before, optionNamed(given)],
    )
    .option('--if-digest <digest>', 'only if the job is still what "duestream show --json" showed with this digest');
  withChangeFlags(withFilterFlags(command, { prefix: 'where-', states: ['scheduled', 'waiting', 'ready'] })).action(
    (queue: string, ids: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, ids, flags })),
  );
  withExamples(command, [
    `duestream edit reminders payment:42 --data '{"to":"new@example.org"}'`,
    'duestream edit reminders payment:42 payment:43 --attempts 3 --unset timeout',
    'duestream edit reminders --where-tag user:42 --timeout 1m --dry-run',
  ]);
};

function optionNamed(given: string): string {
  const known = OPTIONS.map(flagOf);
  if (known.includes(given)) return given;
  throw new InvalidArgumentError(`Allowed: ${known.join(', ')}.`);
}

interface Asked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly flags: Flags;
}

async function run(session: Session, { queue, ids, flags }: Asked): Promise<Exit> {
  const { filter, rest } = takeFilterFlags(flags, PREFIX);
  const asked = { queue, ids, filter, flags: rest };
  const { ifDigest } = rest;
  if (isByFilter(asked) && ifDigest !== undefined) {
    throw new DuestreamError('usage', '--if-digest goes with ids; a filter is given here');
  }
  const change = await changeOf(session, rest);
  return runChange<Edited>(session, asked, {
    verb: 'jobs.edit',
    prefix: PREFIX,
    done: 'edited',
    byIds: (client, named) =>
      client.edit(
        queue,
        named.map((id) => ({ id, ifDigest })),
        change,
      ),
    byFilter: (client, jobs, options) => client.edit(queue, jobs, change, options),
    changed: ['edited'],
    isFine: ({ status }) => status === 'edited' || status === 'already',
    sentence,
  });
}

async function changeOf(session: Session, flags: Flags): Promise<JobChange> {
  const { data, unset = [], ...options } = flags;
  const cleared = OPTIONS.filter((one) => unset.includes(flagOf(one))).map(({ name }) => [name, null]);
  return {
    ...readFlags(options, EDITED),
    ...(Object.fromEntries(cleared) as JobChange),
    ...(data === undefined ? {} : { data: await readData(session.invocation, data) }),
  };
}

function sentence({ id, status, digest, over }: Edited): string {
  switch (status) {
    case 'edited':
      return line`${id}  edited  digest ${digest ?? '-'}`;
    case 'already':
      return line`${id}  is so already  digest ${digest ?? '-'}`;
    case 'changed':
      return line`${id}  not changed: somebody else has changed it; look again with "duestream show"`;
    case 'unreadable':
      return line`${id}  not changed: its record cannot be read`;
    default:
      return unchanged({ id, status, over });
  }
}
