/** `dead show <queue> <dead-letter>`: one dead letter with its data and history. */
import type { Command } from 'commander';
import { addressOf, findDeadLetter } from '../../../inspect/dead-letters.ts';
import { contentOf } from '../../../job/record-content.ts';
import { REDACTED, redactedJob } from '../../../job/redaction.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { type Exit, type Register, withExamples } from '../../register.ts';
import { partitionsOfQueue, type Session, withRedis } from '../../session.ts';
import { fields, line } from '../../terminal/text.ts';
import { moment } from '../../terminal/when.ts';
import { attemptLines, deferredText, jobFields } from '../jobs/report-lines.ts';

export const deadShow: Register = (parent, runner) => {
  const command = parent
    .command('show <queue> <dead-letter>')
    .description('show one dead letter with its data and history')
    .action((queue: string, address: string, _flags: unknown, command: Command) =>
      runner.run(command, (session) => run(session, queue, address)),
    );
  withExamples(command, ['duestream dead show emails 1763719000000-0']);
};

async function run(session: Session, queue: string, address: string): Promise<Exit> {
  const found = await withRedis(session, async (redis) => {
    const refs = await partitionsOfQueue(session, redis, queue);
    const placed = await findDeadLetter(redis, refs, address);
    return { placed, address: addressOf(placed, refs.length) };
  });
  const { record, entry: _entry, ...deadLetter } = found.placed.deadLetter;
  const { partition, redact } = found.placed.ref;
  const content = contentOf(record);
  const shown = {
    ...content,
    data: redactedJob(content, redact),
    unreadable: redact && content.unreadable !== undefined ? REDACTED : content.unreadable,
    tags: content.options.tags,
  };
  const value = {
    queue,
    partition,
    deadLetter: found.address,
    ...deadLetter,
    readable: content.readable,
    name: content.name,
    data: shown.data,
    headers: content.headers,
    askedDueMs: content.askedDueMs,
  };
  session.out.answer(value, () => {
    const nowMs = systemClock.wallMs();
    return [
      ...jobFields({ ...shown, id: deadLetter.id, bare: deadLetter.bare, queue, partition }),
      ...fields([
        ['died', moment(deadLetter.atMs, nowMs)],
        ['reason', deadLetter.reason],
        ['attempts', deadLetter.attempts],
        ['deferred', deferredText(deadLetter.deferred)],
      ]),
      '',
      ...(deadLetter.history.length === 0 ? ['no attempt was recorded'] : deadLetter.history.flatMap(attemptLines)),
      '',
      line`to run it again: duestream dead replay ${queue} ${found.address}`,
    ];
  });
  return 0;
}
