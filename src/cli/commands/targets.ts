/** `targets try`: one request to the target of a queue, from this machine and with its configuration; no job is made. */
import type { Command } from 'commander';
import { tryTarget } from '../../daemon/try-target.ts';
import { allOptions } from '../../job/fields.ts';
import { createAbort } from '../../kernel/abort.ts';
import { systemClock } from '../../kernel/clock.ts';
import { DuestreamError, messageOf } from '../../kernel/errors.ts';
import { type Exit, type Register, type Session, withExamples, withRedis } from '../session.ts';
import { type JobFlags, readFlags, withFlags } from '../terminal/job-flags.ts';
import { line } from '../terminal/output.ts';

interface Flags extends Pick<JobFlags, 'target'> {
  readonly data?: string;
}

const OF_JOB = allOptions.filter(({ name }) => name === 'target');

export const targetsTry: Register = (parent, runner) => {
  const command = parent
    .command('try <queue>')
    .description('send one request to the target of a queue, from here, and say step by step what came of it')
    .option('--data <json>', 'the data of the job that it stands for');
  withFlags(command, OF_JOB);
  command.action((queue: string, flags: Flags, command: Command) =>
    runner.run(command, (session) => run(session, queue, flags)),
  );
  withExamples(command, [
    'duestream targets try hooks',
    'duestream targets try hooks --target /orders/7',
    `duestream targets try hooks --data '{"order": 42}' --config duestream.yaml`,
  ]);
};

async function run(session: Session, queue: string, { data, ...flags }: Flags): Promise<Exit> {
  const { config } = session;
  const parts = { config, clock: systemClock, signal: createAbort().signal };
  const asked = { data: data === undefined ? null : parsed(data), ...readFlags(flags, OF_JOB) };
  const tried = await withRedis(session, (redis) => tryTarget(queue, asked, { ...parts, redis }));
  const { method, url, steps, means, why, answer } = tried;
  session.out.answer(tried, () => [
    line`${method} ${url}`,
    ...steps.map(({ step, isWell, text }) => `${(isWell ? 'ok' : 'fail').padEnd(4)} ${line`${step}: ${text}`}`),
    ...(answer === undefined ? [] : [line`answer: ${answer}`]),
    why === undefined ? line`a job would be ${means}` : line`a job: ${means} (${why})`,
  ]);
  return means === 'done' ? 0 : 1;
}

/** @throws DuestreamError `usage` */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new DuestreamError('usage', line`--data is no JSON: ${messageOf(error)}; allowed: such as '{"order": 42}'`);
  }
}
