/** `dead ls <queue>`: the newest dead letters of all partitions. */
import type { Command } from 'commander';
import { systemClock } from '../../../core/clock.ts';
import { addressOf, contentOf, newestDeadLetters, type Placed } from '../../../operations/dead-letters.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { line, table } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';

export const deadLs: Register = (parent, runner) => {
  const command = parent
    .command('ls <queue>')
    .description('list dead letters, newest first')
    .option('--limit <n>', 'show at most this many', wholeNumber(1, 1000), 50)
    .action((queue: string, { limit }: { readonly limit: number }, command: Command) =>
      runner.run(command, (session) => run(session, queue, limit)),
    );
  withExamples(command, ['duestream dead ls emails --limit 10']);
};

async function run(session: Session, queue: string, limit: number): Promise<Exit> {
  const deadLetters = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const keep = (placed: Placed) => {
      const { record, entry: _entry, ...rest } = placed.deadLetter;
      const { name } = contentOf(record);
      return { deadLetter: addressOf(placed, refs.length), partition: placed.ref.partition, name, ...rest };
    };
    return newestDeadLetters(redis, refs, { limit, keep });
  });
  session.out.answer({ queue, deadLetters }, () => {
    if (deadLetters.length === 0) return [line`no dead letters in ${queue}`];
    const nowMs = systemClock.wallMs();
    const rows = deadLetters.map(({ deadLetter, id, bare, name, reason, attempts, atMs }) => [
      deadLetter,
      id + (bare ? ' (bare)' : ''),
      name,
      attempts,
      moment(atMs, nowMs),
      reason,
    ]);
    return table(session.out.paint, ['dead letter', 'id', 'name', 'attempts', 'died', 'reason'], rows);
  });
  return 0;
}
