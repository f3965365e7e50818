/**
 * The command line: a table of commands, and what is the same for all of them. Exit statuses: 0 ok, 1 failed, 64 wrong
 * use, 69 Redis unavailable, 75 the time is up, 78 bad configuration or another schema. Whatever a command throws becomes one of them here and nowhere else.
 */
import { Command, CommanderError, Option } from 'commander';
import { DuestreamError } from '../kernel/errors.ts';
import { version } from '../kernel/version.ts';
import { auditLs } from './commands/audit-ls.ts';
import { configPrint } from './commands/config-print.ts';
import { deadGroups, deadLs, deadPurge, deadReplay, deadShow } from './commands/dead.ts';
import { doctor } from './commands/doctor.ts';
import { erase } from './commands/erase.ts';
import { count } from './commands/find/count.ts';
import { fsck } from './commands/fsck.ts';
import { groupsClose, groupsLs, groupsOpen, groupsSet, groupsShow, groupsUnset } from './commands/groups.ts';
import { cancel, edit, noteChanges, reschedule, runNow } from './commands/jobs/change.ts';
import { closedTags, closeTags, openTags } from './commands/jobs/closing.ts';
import { forecast } from './commands/jobs/forecast.ts';
import { historyLs } from './commands/jobs/history-ls.ts';
import { ls } from './commands/jobs/ls.ts';
import { schedule } from './commands/jobs/schedule.ts';
import { setsCreate, setsLs, setsRm, setsSeal, setsShow } from './commands/jobs/sets.ts';
import { show } from './commands/jobs/show.ts';
import { wait } from './commands/jobs/wait.ts';
import { outboxLs, outboxRelay, outboxRetry, outboxRm, outboxTables } from './commands/outbox.ts';
import { plan } from './commands/plan.ts';
import { leaders, workers } from './commands/processes.ts';
import { prove } from './commands/prove.ts';
import {
  queuesClose,
  queuesLs,
  queuesOpen,
  queuesPause,
  queuesResume,
  queuesStats,
  queuesWhy,
} from './commands/queues/queues.ts';
import { queuesRm } from './commands/queues/queues-rm.ts';
import { queuesSet, queuesUnset } from './commands/queues/queues-set.ts';
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
import { start, worker } from './commands/start.ts';
import { tokensCreate, tokensLs, tokensRevoke } from './commands/tokens.ts';
import { top } from './commands/top.ts';
import { completion } from './completion.ts';
import { dev } from './dev/dev.ts';
import { type Exit, openSession, type Register, type Runner } from './session.ts';
import type { Invocation } from './terminal/output.ts';
import { helpOf, report, unknownTopic, usageError } from './terminal/report.ts';

/** Every command, in the order of the help; a group is a word with commands of its own. */
const commands: readonly Register[] = [
  dev,
  start,
  worker,
  schedule,
  ls,
  count,
  show,
  wait,
  cancel,
  reschedule,
  runNow,
  edit,
  closeTags,
  openTags,
  closedTags,
  (program, runner) => {
    const sets = program
      .command('sets')
      .description('jobs with one callback, which is made when the last of them is over');
    for (const register of [setsLs, setsShow, setsCreate, setsSeal, setsRm]) register(sets, runner);
  },
  (program, runner) => {
    const dead = program.command('dead').description('list, replay and remove dead letters');
    for (const register of [deadLs, deadGroups, deadShow, deadReplay, deadPurge]) register(dead, runner);
  },
  (program, runner) => {
    historyLs(program.command('history').description('list jobs that are over'), runner);
  },
  erase,
  (program, runner) => {
    const queues = program.command('queues').description('list, set, pause and remove queues');
    const looks = [queuesLs, queuesStats, queuesWhy];
    const stops = [queuesPause, queuesResume, queuesClose, queuesOpen];
    for (const register of [...looks, queuesSet, queuesUnset, ...stops, queuesRm]) register(queues, runner);
  },
  (program, runner) => {
    const groups = program
      .command('groups')
      .description('show who waits and who runs in a queue with limits, by group');
    for (const register of [groupsLs, groupsShow, groupsSet, groupsUnset, groupsClose, groupsOpen])
      register(groups, runner);
  },
  (program, runner) => {
    const schedules = program.command('schedules').description('create, show, preview and run recurring jobs');
    const looks = [schedulesLs, schedulesShow, schedulesPreview];
    const changes = [schedulesPut, schedulesRm, schedulesPause, schedulesResume, schedulesTrigger, schedulesBackfill];
    for (const register of [...looks, ...changes]) register(schedules, runner);
  },
  (program, runner) => {
    const outbox = program
      .command('outbox')
      .description('make the calls that stand in a database, and look after them');
    for (const register of [outboxTables, outboxRelay, outboxLs, outboxRetry, outboxRm]) register(outbox, runner);
  },
  top,
  forecast,
  leaders,
  workers,
  (program, runner) => {
    const tokens = program.command('tokens').description('create, list and revoke tokens of the HTTP API');
    for (const register of [tokensCreate, tokensLs, tokensRevoke]) register(tokens, runner);
  },
  (program, runner) => {
    auditLs(program.command('audit').description('show who changed what'), runner);
  },
  doctor,
  prove,
  fsck,
  plan,
  (program, runner) => {
    configPrint(program.command('config').description('show the configuration'), runner);
  },
  completion,
];

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
  for (const register of commands) register(program, runner);
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
