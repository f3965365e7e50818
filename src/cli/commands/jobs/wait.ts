/** `wait <queue> [id...]`: until jobs are over, by id or by a filter; their ends, and what their handlers returned. */
import type { Command } from 'commander';
import type { Client, JobEnd, JobFilter, WaitOptions } from '../../../client/client.ts';
import { writtenAs } from '../../../inspect/dead-letters.ts';
import { redactedPast } from '../../../inspect/redacted.ts';
import { partitionOf } from '../../../job/job-id.ts';
import { LIVE_STATES } from '../../../job/state.ts';
import { DuestreamError } from '../../../kernel/errors.ts';
import type { PartitionRef } from '../../../redis/keys.ts';
import { checkQueue, type Exit, type Register, type Session, withClient, withExamples } from '../../session.ts';
import { line } from '../../terminal/output.ts';
import { type FilterFlags, isFilterGiven, readFilter, withFilterFlags } from '../find/filter-flags.ts';
import { resultText } from './show.ts';

interface Flags extends FilterFlags {
  readonly timeout: string;
}

export const wait: Register = (parent, runner) => {
  const command = parent
    .command('wait <queue> [id...]')
    .description('wait until jobs are over; exit status 0: all are done, 1: not all, 75: the time is up');
  withFilterFlags(command, { states: LIVE_STATES })
    .option('--timeout <duration>', 'wait at most for so long, up to 1d', '30s')
    .action((queue: string, ids: readonly string[], flags: Flags, command: Command) =>
      runner.run(command, (session) => run(session, { queue, ids, flags })),
    );
  withExamples(command, [
    'duestream wait reports monthly:2026-03 --timeout 10m',
    'duestream wait reports monthly:2026-03 --json',
    'duestream wait mail --tag campaign:7 --timeout 1h',
  ]);
};

interface Asked {
  readonly queue: string;
  readonly ids: readonly string[];
  readonly flags: Flags;
}

async function run(session: Session, { queue, ids, flags }: Asked): Promise<Exit> {
  const { timeout, ...filter } = flags;
  const isGiven = isFilterGiven(filter);
  if (isGiven === ids.length > 0) {
    const given = isGiven ? 'ids and a filter are both given' : 'no job is named';
    throw new DuestreamError('usage', `${given}; allowed: ids, or a filter such as --tag`);
  }
  const refs = await checkQueue(session, queue);
  const by = isGiven ? readFilter(filter) : ids;
  const ends = await withClient(session, (client) => endsOf(client, { queue, by, options: { timeout } }));
  const shown = ends.map((end) => shownEnd(end, refs));
  session.out.answer({ queue, ends: shown }, () => shown.map(sentence));
  if (ends.some(({ status }) => status === 'timeout')) return 75;
  return ends.every(({ status }) => status === 'done') ? 0 : 1;
}

async function endsOf(
  client: Client,
  {
    queue,
    by,
    options,
  }: { readonly queue: string; readonly by: JobFilter | readonly string[]; readonly options: WaitOptions },
): Promise<readonly JobEnd[]> {
  if (isIds(by)) return client.wait(queue, by, options);
  const ends: JobEnd[] = [];
  for await (const end of client.ends(queue, by, options)) ends.push(end);
  return ends;
}

const isIds = (by: JobFilter | readonly string[]): by is readonly string[] => Array.isArray(by);

/** As the command line shows what a queue redacts, and addresses dead letters. */
function shownEnd(end: JobEnd, refs: readonly PartitionRef[]): JobEnd {
  const partition = partitionOf(end.id, refs.length);
  if (end.status === 'done') return { ...end, ...redactedPast({ result: end.result }, refs[partition]?.redact) };
  if (end.status !== 'dead' || end.deadLetter === undefined) return end;
  return { ...end, deadLetter: writtenAs({ deadLetter: end.deadLetter, partition }, refs.length) };
}

function sentence(end: JobEnd): string {
  switch (end.status) {
    case 'done': {
      const result = resultText(end.result);
      return line`${end.id}  done` + (result === undefined ? '' : line`: ${result}`);
    }
    case 'dead':
      return line`${end.id}  dead: ${end.reason ?? 'its dead letter is gone'}`;
    case 'cancelled':
    case 'expired':
      return line`${end.id}  ${end.status}`;
    case 'unknown':
      return line`${end.id}  unknown: it never existed, or it ended long ago; "duestream show" says more`;
    case 'timeout':
      return line`${end.id}  not over: the time is up`;
  }
}
