/** `dead show <queue> <letter>`: one dead letter with its data and history. */
import type { Command } from 'commander';
import { systemClock } from '../core/clock.ts';
import { type Exit, type Register, withExamples } from './desk.ts';
import { addressOf, contentOf, findLetter } from './letters.ts';
import { partitionsOfQueue, type Session, withRedis } from './session.ts';
import { attemptLine, jobFields } from './story.ts';
import { fields, line } from './text.ts';
import { moment } from './when.ts';

export const deadShow: Register = (parent, desk) => {
  const command = parent
    .command('show <queue> <letter>')
    .description('show one dead letter with its data and history')
    .action((queue: string, address: string, _flags: unknown, command: Command) =>
      desk.run(command, (session) => run(session, queue, address)),
    );
  withExamples(command, ['duestream dead show emails 1763719000000-0']);
};

async function run(session: Session, queue: string, address: string): Promise<Exit> {
  const found = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const placed = await findLetter(redis, refs, address);
    return { placed, address: addressOf(placed, refs.length) };
  });
  const { record, letter: _entry, ...letter } = found.placed.letter;
  const { partition } = found.placed.ref;
  const content = contentOf(record);
  const value = {
    queue,
    partition,
    letter: found.address,
    ...letter,
    readable: content.readable,
    name: content.name,
    data: content.data,
    askedDueMs: content.askedDueMs,
  };
  session.out.answer(value, () => {
    const nowMs = systemClock.wallMs();
    return [
      ...jobFields({ id: letter.id, bare: letter.bare, queue, partition, content, record }),
      ...fields([
        ['died', moment(letter.atMs, nowMs)],
        ['reason', letter.reason],
        ['attempts', letter.attempts],
      ]),
      '',
      ...(letter.history.length === 0 ? ['no attempt was recorded'] : letter.history.map(attemptLine)),
      '',
      line`to run it again: duestream dead replay ${queue} ${found.address}`,
    ];
  });
  return 0;
}
