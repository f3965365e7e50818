/** `conformance`: plays what can go wrong against a client in another language, and says which rules it keeps. */
import type { Command } from 'commander';
import type { Conformance, RuleRow } from '../../conformance/conformance.ts';
import type { ProducerConformance } from '../../conformance/producer.ts';
import { clientRules, type RuleName } from '../../conformance/rules.ts';
import { createAbort } from '../../kernel/abort.ts';
import { DuestreamError } from '../../kernel/errors.ts';
import { span } from '../../kernel/humanize.ts';
import { collect, type Exit, type Register, type Session, wholeNumber, withExamples } from '../session.ts';
import { line, type Paint } from '../terminal/output.ts';

interface Flags {
  readonly worker?: string;
  readonly producer?: string;
  readonly rule?: readonly string[];
  readonly seconds: number;
}

export const conformance: Register = (parent, runner) => {
  const command = parent
    .command('conformance')
    .description(
      'play lost answers, kills, freezes and time-outs against a client in any language, and judge its rules',
    )
    .option('--worker <command>', 'a shell command that starts a program with a worker over HTTP')
    .option('--producer <command>', 'a shell command that starts a program which answers the golden vectors')
    .option('--rule <name>', 'of a worker: only this rule (again for more)', collect)
    .option('--seconds <n>', 'end about then; what had no turn is not tried', wholeNumber(5, 3600), 300)
    .action((flags: Flags, command: Command) => runner.run(command, (session) => run(session, flags)));
  withExamples(command, [
    'duestream conformance --worker "python3 probe.py"',
    'duestream conformance --worker ./probe --rule late --rule lease --json',
    'duestream conformance --producer "python3 answer_vectors.py"',
  ]);
};

async function run(session: Session, { worker, producer, rule = [], seconds }: Flags): Promise<Exit> {
  const { out, invocation } = session;
  if ((worker === undefined) === (producer === undefined)) {
    throw new DuestreamError('usage', 'conformance tries one program; allowed: --worker or --producer, one of the two');
  }
  const only = rule.map(ruleOf);
  const interrupted = createAbort();
  // A second signal ends the process as it always does.
  const stop = () => interrupted.abort();
  for (const signal of SIGNALS) process.once(signal, stop);
  const given = { env: invocation.env, withinMs: seconds * 1000, signal: interrupted.signal };
  try {
    if (producer !== undefined) {
      const { conformProducer } = await import('../../conformance/producer.ts');
      const found = await conformProducer({ ...given, command: producer });
      out.answer(found, () => producerLines(out.paint, found));
      return found.ok ? 0 : 1;
    }
    const { conformWorker } = await import('../../conformance/conformance.ts');
    const onStep = (text: string) => out.note(line`conformance: ${text}`);
    const found = await conformWorker({ ...given, command: worker ?? '', only, onStep });
    out.answer(found, () => workerLines(out.paint, found));
    if (!found.ok || interrupted.signal.aborted) return 1;
    return found.timeIsUp ? 75 : 0;
  } finally {
    for (const signal of SIGNALS) process.off(signal, stop);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** @throws DuestreamError `usage` */
function ruleOf(name: string): RuleName {
  if (isRule(name)) return name;
  throw new DuestreamError('usage', `--rule is ${name}; allowed: ${Object.keys(clientRules).join(', ')}`);
}

const isRule = (name: string): name is RuleName => Object.hasOwn(clientRules, name);

function workerLines(paint: Paint, { rows, tookMs }: Conformance): readonly string[] {
  const width = Math.max(...rows.map(({ rule }) => rule.length));
  return [...rows.flatMap((row) => ruleLines(paint, row, width)), summary(rows, tookMs)];
}

function ruleLines(
  paint: Paint,
  { rule, status, saw, says, else: otherwise }: RuleRow,
  width: number,
): readonly string[] {
  const first = `${COLOUR[status](paint)(status.padEnd(9))}  ${rule.padEnd(width)}  ${line`${saw}`}`;
  if (otherwise === undefined) return [first];
  const indent = ' '.repeat(width + 13);
  return [first, `${indent}${line`the rule: ${says}`}`, `${indent}${line`else: ${otherwise}`}`];
}

function producerLines(paint: Paint, { rows, tookMs }: ProducerConformance): readonly string[] {
  const width = Math.max(...rows.map(({ ask }) => ask.length));
  return [
    ...rows.map(
      ({ ask, status, saw }) => `${COLOUR[status](paint)(status.padEnd(9))}  ${ask.padEnd(width)}  ${line`${saw}`}`,
    ),
    summary(rows, tookMs),
  ];
}

type Status = RuleRow['status'];

const COLOUR: Readonly<Record<Status, (paint: Paint) => (text: string) => string>> = {
  held: ({ green }) => green,
  failed: ({ red }) => red,
  'not tried': ({ yellow }) => yellow,
};

function summary(rows: readonly { readonly status: Status }[], tookMs: number): string {
  const count = (status: Status) => rows.filter((row) => row.status === status).length;
  return line`${count('held')} held, ${count('failed')} failed, ${count('not tried')} not tried, ${span(tookMs)}`;
}
