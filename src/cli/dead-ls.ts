/** `dead ls <queue>`: the newest dead letters of all partitions. */
import type { Command } from 'commander';
import { systemClock } from '../core/clock.ts';
import { type Exit, type Register, whole, withExamples } from './desk.ts';
import { addressOf, contentOf, newestLetters, type Placed } from './letters.ts';
import { partitionsOfQueue, type Session, withRedis } from './session.ts';
import { line, table } from './text.ts';
import { moment } from './when.ts';

export const deadLs: Register = (parent, desk) => {
  const command = parent
    .command('ls <queue>')
    .description('list dead letters, newest first')
    .option('--limit <n>', 'at most so many', whole(1, 1000), 50)
    .action((queue: string, { limit }: { readonly limit: number }, command: Command) =>
      desk.run(command, (session) => run(session, queue, limit)),
    );
  withExamples(command, ['duestream dead ls emails --limit 10']);
};

async function run(session: Session, queue: string, limit: number): Promise<Exit> {
  const letters = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const keep = (placed: Placed) => {
      const { record, letter: _entry, ...rest } = placed.letter;
      const { name } = contentOf(record);
      return { letter: addressOf(placed, refs.length), partition: placed.ref.partition, name, ...rest };
    };
    return newestLetters(redis, refs, { limit, keep });
  });
  session.out.answer({ queue, letters }, () => {
    if (letters.length === 0) return [line`no dead letters in ${queue}`];
    const nowMs = systemClock.wallMs();
    const rows = letters.map(({ letter, id, bare, name, reason, attempts, atMs }) => [
      letter,
      id + (bare ? ' (bare)' : ''),
      name,
      attempts,
      moment(atMs, nowMs),
      reason,
    ]);
    return table(session.out.paint, ['letter', 'id', 'name', 'attempts', 'died', 'reason'], rows);
  });
  return 0;
}
