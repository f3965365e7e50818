/** `schedules put <name>`: creates a schedule or changes it, from flags or from a file; the same again changes nothing. */
import type { Command } from 'commander';
import { queueOptions } from '../../../config/load.ts';
import { defineQueue } from '../../../job/queue.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import { declareQueue } from '../../../redis/scripts/queues.ts';
import { parseSchedule } from '../../../schedule/input.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { type Session, withRedis, withSchedules } from '../../session.ts';
import { line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { type DefinitionFlags, definitionOf, saysDefinition, withJobFlags, withRuleFlags } from './schedule-flags.ts';
import { stateText } from './schedule-lines.ts';

export const schedulesPut: Register = (parent, runner) => {
  const command = parent
    .command('put <name>')
    .description('create a schedule or change it; the same definition again changes nothing')
    .option('--file <file>', 'the definition in YAML or JSON; - for stdin')
    .action((name: string, flags: DefinitionFlags, command: Command) =>
      runner.run(command, (session) => run(session, name, flags)),
    );
  withRuleFlags(withJobFlags(command));
  withExamples(command, [
    `duestream schedules put nightly --queue reports --cron '30 2 * * *' --zone Europe/Berlin --data '{"kind":"sales"}'`,
    'duestream schedules put poll --queue feeds --every 5m --overlap skip --catch-up skip',
    `duestream schedules put digest --queue mails --cron '0 9 * * *' --calendar '{"hours":{"mon-fri":"09:00-17:00"},"outside":"next"}'`,
    'duestream schedules put nightly --file nightly.yaml',
  ]);
};

const NEEDS = 'a schedule needs --queue, and --cron or --every; or --file with all of it';

async function run(session: Session, name: string, flags: DefinitionFlags): Promise<Exit> {
  if (!saysDefinition(flags)) {
    throw new DuestreamError('usage', NEEDS);
  }
  if (flags.file === undefined && flags.queue === undefined) {
    throw new DuestreamError('usage', `--queue is missing; ${NEEDS}`);
  }
  const input = await definitionOf(session.invocation, name, flags);
  const { queue } = parseSchedule(name, input, { sinceMs: systemClock.wallMs() });
  await withRedis(session, (redis) => {
    // A queue that is new takes its partitions from the configuration.
    const { partitions } = defineQueue(queue, queueOptions(session.config, queue));
    return declareQueue(redis, { namespace: session.config.namespace, queue, partitions });
  });
  const { status, view } = await withSchedules(session, async (schedules) => {
    const change = await schedules.put(name, input);
    return { ...change, view: await schedules.get(name) };
  });
  const { nextMs, paused, unreadable } = view ?? { nextMs: undefined, paused: undefined, unreadable: undefined };
  session.changes.push({ verb: 'schedules.put', queue, target: name, count: status === 'unchanged' ? 0 : 1 });
  session.out.answer({ name, status, queue, nextMs, paused, unreadable }, () => [
    line`${name}  ${status}  ${nextMs !== undefined ? `next ${moment(nextMs, systemClock.wallMs())}` : stateText({ nextMs, paused, unreadable })}`,
  ]);
  return 0;
}
