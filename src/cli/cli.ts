/**
 * The command line: a table of commands, and what is the same for all of them. Exit statuses: 0 ok, 1 failed, 64 wrong
 * use, 69 Redis unavailable, 75 the time is up, 78 bad configuration or another schema. Whatever a command throws becomes one of them here and nowhere else.
 */
import { Command, CommanderError, Option } from 'commander';
import { DuestreamError } from '../kernel/errors.ts';
import { version } from '../kernel/version.ts';
import { auditLs } from './commands/audit-ls.ts';
import { configPrint } from './commands/config-print.ts';
import { conformance } from './commands/conformance.ts';
import { deadLs, deadPurge, deadReplay, deadShow } from './commands/dead.ts';
import { doctor } from './commands/doctor.ts';
import { erase } from './commands/erase.ts';
import { groupsClose, groupsLs, groupsOpen, groupsSet, groupsShow } from './commands/groups.ts';
import { importFromBullmq, importFromRedisson } from './commands/import.ts';
import { cancel, edit, reschedule } from './commands/jobs/change.ts';
import { closedTags, closeTags, openTags } from './commands/jobs/closing.ts';
import { forecast } from './commands/jobs/forecast.ts';
import { ls } from './commands/jobs/ls.ts';
import { schedule } from './commands/jobs/schedule.ts';
import { setsCreate, setsLs, setsRm, setsSeal, setsShow } from './commands/jobs/sets.ts';
import { show } from './commands/jobs/show.ts';
import { wait } from './commands/jobs/wait.ts';
import { limitsCheck, limitsLs, limitsRm, limitsSet } from './commands/limits.ts';
import { mcp } from './commands/mcp.ts';
import { outboxLs, outboxRelay, outboxRetry, outboxRm, outboxTables } from './commands/outbox.ts';
import { plan } from './commands/plan.ts';
import { leaders, workers, workersPause, workersResume } from './commands/processes.ts';
import { prove } from './commands/prove.ts';
import {
  queuesClose,
  queuesLs,
  queuesOpen,
  queuesPause,
  queuesResume,
  queuesShow,
  queuesWhy,
} from './commands/queues/queues.ts';
import { queuesLate } from './commands/queues/queues-late.ts';
import { queuesRm } from './commands/queues/queues-rm.ts';
import { queuesSet } from './commands/queues/queues-set.ts';
import { simulate } from './commands/queues/simulate.ts';
import {
  schedulesBackfill,
  schedulesLs,
  schedulesPause,
  schedulesResume,
  schedulesRm,
  schedulesShow,
  schedulesTrigger,
} from './commands/schedules/schedules.ts';
import { schedulesPreview, schedulesPut } from './commands/schedules/schedules-put.ts';
import { slo } from './commands/slo.ts';
import { start, worker } from './commands/start.ts';
import { targetsTry } from './commands/targets.ts';
import { tokensCreate, tokensLs, tokensRevoke } from './commands/tokens.ts';
import { top } from './commands/top.ts';
import { completion } from './completion.ts';
import { dev } from './dev/dev.ts';
import { type Exit, noteChanges, openSession, type Register, type Runner } from './session.ts';
import type { Invocation } from './terminal/output.ts';
import { helpOf, report, unknownTopic, usageError } from './terminal/report.ts';

/** A word with commands of its own. */
const noun =
  (name: string, about: string, commands: readonly Register[]): Register =>
  (program, runner) => {
    const group = program.command(name).description(about);
    for (const register of commands) register(group, runner);
  };

/** Every command below its heading, in the order of the help. */
const commands: Readonly<Record<string, readonly Register[]>> = {
  'Run:': [dev, start, worker],
  'Jobs:': [
    ...[schedule, ls, show, wait, cancel, reschedule, edit],
    noun('tags', 'close tags so that no job with one starts, and erase what has a tag', [
      ...[closeTags, openTags, closedTags, erase],
    ]),
    noun('sets', 'jobs with one callback, which is made when the last of them is over', [
      ...[setsLs, setsShow, setsCreate, setsSeal, setsRm],
    ]),
    noun('dead', 'list, replay and remove dead letters', [deadLs, deadShow, deadReplay, deadPurge]),
  ],
  'Queues and schedules:': [
    noun('queues', 'list, set, pause and remove queues, and see who leads and serves them', [
      ...[queuesLs, queuesShow, queuesWhy, queuesLate, leaders, workers],
      ...[queuesSet, queuesPause, queuesResume, queuesClose, queuesOpen, queuesRm],
    ]),
    noun('workers', 'pause one worker, and let it go on ("queues workers" lists them)', [workersPause, workersResume]),
    noun('groups', 'show who waits and who runs in a queue with limits, by group', [
      ...[groupsLs, groupsShow, groupsSet, groupsClose, groupsOpen],
    ]),
    noun('limits', 'limits with a name, which several queues share', [limitsLs, limitsSet, limitsRm, limitsCheck]),
    noun('targets', 'try the URL that the jobs of a queue call', [targetsTry]),
    noun('schedules', 'create, show, preview and run recurring jobs', [
      ...[schedulesLs, schedulesShow, schedulesPreview, forecast, schedulesPut, schedulesRm],
      ...[schedulesPause, schedulesResume, schedulesTrigger, schedulesBackfill],
    ]),
    noun('outbox', 'make the calls that stand in a database, and look after them', [
      ...[outboxTables, outboxRelay, outboxLs, outboxRetry, outboxRm],
    ]),
    noun('import', 'take over the jobs of another product', [importFromBullmq, importFromRedisson]),
  ],
  'Watch and look after:': [
    top,
    simulate,
    doctor,
    slo,
    mcp,
    conformance,
    noun('tokens', 'create, list and revoke tokens of the HTTP API', [tokensCreate, tokensLs, tokensRevoke]),
    noun('admin', 'the audit, the configuration, what a load needs, what is promised, and the completion of a shell', [
      ...[auditLs, configPrint, plan, prove, completion],
    ]),
  ],
};

/** Runs one command line and returns the exit status. Nothing it is given makes it throw. */
export async function runCli(invocation: Invocation): Promise<number> {
  let exit: number = 0;
  const run = async (command: Command, act: (session: ReturnType<typeof openSession>) => Promise<Exit>) => {
    const session = openSession(invocation, command.optsWithGlobals());
    try {
      exit = await act(session);
    } finally {
      // Also what was changed before it failed.
      await noteChanges(session);
      await session.line.end();
    }
  };
  const program = createProgram({ run });
  program.configureOutput({
    writeOut: (text) => invocation.stdout.write(text),
    writeErr: (text) => invocation.stderr.write(text),
    // Commander's own form of errors is left out: all errors are reported in one way.
    outputError: () => undefined,
  });
  for (const command of everyCommand(program)) command.copyInheritedSettings(program);
  const refuse = (error: unknown) => {
    const asksForHelp = error instanceof DuestreamError && (error.code === 'usage' || error.code === 'bad-input');
    return report(invocation, error, {
      json: wantsJson(invocation),
      ...(asksForHelp ? helpOf(program, invocation) : {}),
    });
  };
  try {
    const unknown = unknownTopic(program, invocation);
    if (unknown) return refuse(unknown);
    await program.parseAsync([...invocation.args], { from: 'user' });
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) return refuse(error);
    // Help and version end here as well; only they have status 0.
    if (error.exitCode === 0) return 0;
    return error.code === 'commander.help' ? 64 : refuse(usageError(program, invocation, error));
  }
}

/** The program with every command; it does nothing until it is given arguments. */
export function createProgram(runner: Runner): Command {
  const program = new Command('duestream')
    .description('Delayed jobs for the Redis you already have: on time, never lost, cheap, and visible.')
    .version(version, '-v, --version', 'print the version')
    .addOption(new Option('-V').hideHelp())
    .helpOption('-h, --help', 'show help')
    .option('--json', 'answer with one line of JSON on stdout; errors as JSON on stderr')
    .option(
      '--redis <url>',
      'the Redis that holds the jobs: redis://, sentinel:// or cluster:// (with TLS: rediss://, sentinels://, clusters://), or unix://',
    )
    .option('--namespace <name>', 'the prefix of every key')
    .option('--config <file>', 'a configuration file; default ./duestream.yaml')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  // Half of all commands have -v for it, the other half -V.
  program.on('option:V', () => {
    program.configureOutput().writeOut?.(`${version}\n`);
    throw new CommanderError(0, 'commander.version', version);
  });
  for (const [heading, registers] of Object.entries(commands)) {
    program.commandsGroup(heading);
    for (const register of registers) register(program, runner);
  }
  return program;
}

/** A command and all below it. */
export function everyCommand(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function wantsJson({ args }: Invocation): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}
