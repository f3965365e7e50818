/**
 * `top`: is anything late, what happens per second, what comes due, what `doctor` found: once a second, in 80 columns. It
 * is what the page *Now* of the dashboard shows. Into a pipe, and with `--json`, it is one frame.
 */
import type { Command } from 'commander';
import { doneLimits } from '../../config/done.ts';
import { createLook, type Look } from '../../inspect/look.ts';
import { systemClock } from '../../kernel/clock.ts';
import { durationMs } from '../../kernel/duration.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { silentLog } from '../../kernel/log.ts';
import { reasonOf } from '../../kernel/reason.ts';
import { type Exit, type Register, wholeNumber, withExamples } from '../register.ts';
import { type Session, withClient } from '../session.ts';
import { line } from '../terminal/text.ts';
import { frameOf } from './top-frame.ts';

interface Flags {
  readonly every: string;
  readonly frames?: number;
}

const EVERY_MIN_MS = 200;

export const top: Register = (parent, runner) => {
  const command = parent
    .command('top')
    .description('show live whether anything is late, what happens per second, and what comes due')
    .option('--every <duration>', 'how often it is looked', '1s')
    .option('--frames <n>', 'end after so many frames; default: go on, or 1 into a pipe', wholeNumber(1, 1_000_000))
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, ['duestream top', 'duestream top --every 5s', 'duestream top --frames 1']);
};

async function run(session: Session, { every, frames }: Flags): Promise<Exit> {
  const { config, out, invocation } = session;
  const everyMs = durationMs(every, '--every');
  if (everyMs < EVERY_MIN_MS) throw new DuestreamError('usage', `--every is ${every}; allowed: at least 200ms`);
  const isLive = invocation.stdout.isTTY === true && !out.json;
  const most = frames ?? (isLive ? Number.POSITIVE_INFINITY : 1);
  await withClient(session, async ({ schedules }) => {
    const examined = {
      namespace: config.namespace,
      horizonMs: config.limits.horizonMs,
      done: doneLimits(config),
    };
    const place = async () => ({ redis: await session.line.redis(), namespace: config.namespace });
    const look = createLook({ backend: { place, schedules, examined }, clock: systemClock, log: silentLog });
    // Rates need two looks; and what is asked at a slower beat is there by the second one.
    await look();
    for (let frame = 1; frame <= most; frame += 1) {
      await systemClock.sleep(frame === 1 ? Math.min(everyMs, 1000) : everyMs);
      show(session, await lookOr(look), isLive);
    }
  });
  return 0;
}

/** An outage is shown, and the next look tries again. */
async function lookOr(look: () => Promise<Look>): Promise<Look | DuestreamError> {
  try {
    return await look();
  } catch (error) {
    return error instanceof DuestreamError
      ? error
      : new DuestreamError('unavailable', reasonOf(error), { cause: error });
  }
}

const HOME = '\u001b[H';
const TO_END_OF_LINE = '\u001b[K';
const TO_END = '\u001b[J';

function show({ out, config, invocation }: Session, found: Look | DuestreamError, isLive: boolean): void {
  if (found instanceof DuestreamError && !isLive) throw found;
  const { namespace } = config;
  const rows = invocation.stdout.rows ?? 24;
  const lines =
    found instanceof DuestreamError
      ? [line`${namespace}  Redis does not answer: ${found.message}`]
      : frameOf(found, { namespace, paint: out.paint, rows: isLive ? rows - 1 : Number.POSITIVE_INFINITY });
  // Written over the frame before: nothing flickers, and nothing has to be put back when a signal ends it.
  if (!isLive) out.answer(found, () => lines);
  else invocation.stdout.write(`${HOME}${lines.map((text) => `${text}${TO_END_OF_LINE}\n`).join('')}${TO_END}`);
}
