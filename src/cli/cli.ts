/**
 * The command line: a table of verbs, and what is the same for all of them. Exit statuses: 0 ok, 1 failed, 64 wrong
 * use, 69 Redis unavailable, 78 bad configuration. Whatever a verb throws becomes one of them here and nowhere else.
 */
import { readFileSync } from 'node:fs';
import { Command, CommanderError, Option } from 'commander';
import { DuestreamError } from '../core/errors.ts';
import { cancel } from './cancel.ts';
import { configPrint } from './config-print.ts';
import { deadLs } from './dead-ls.ts';
import { deadPurge } from './dead-purge.ts';
import { deadReplay } from './dead-replay.ts';
import { deadShow } from './dead-show.ts';
import type { Desk, Exit, Register } from './desk.ts';
import { dev } from './dev.ts';
import { doctor } from './doctor.ts';
import { report } from './failure.ts';
import { forecast } from './forecast.ts';
import { fsck } from './fsck.ts';
import { leaders } from './leaders.ts';
import { ls } from './ls.ts';
import { queuesPause, queuesResume } from './pauses.ts';
import { queuesLs } from './queues-ls.ts';
import { queuesRm } from './queues-rm.ts';
import { queuesStats } from './queues-stats.ts';
import { schedule } from './schedule.ts';
import { schedulesLs } from './schedules-ls.ts';
import { schedulesPause, schedulesResume } from './schedules-pauses.ts';
import { schedulesPreview } from './schedules-preview.ts';
import { schedulesPut } from './schedules-put.ts';
import { schedulesRm } from './schedules-rm.ts';
import { schedulesBackfill, schedulesTrigger } from './schedules-runs.ts';
import { schedulesShow } from './schedules-show.ts';
import { openSession } from './session.ts';
import { show } from './show.ts';
import { start } from './start.ts';
import { worker } from './worker.ts';
import { workers } from './workers.ts';
import type { World } from './world.ts';
import { helpOf, unknownTopic, wrongUse } from './wrong-use.ts';

/** Every verb, in the order of the help; a group is a word with verbs of its own. */
const verbs: readonly Register[] = [
  dev,
  start,
  worker,
  schedule,
  ls,
  show,
  cancel,
  (program, desk) => {
    const dead = program.command('dead').description('look at dead letters, replay and remove them');
    for (const verb of [deadLs, deadShow, deadReplay, deadPurge]) verb(dead, desk);
  },
  (program, desk) => {
    const queues = program.command('queues').description('look at queues, pause and remove them');
    for (const verb of [queuesLs, queuesStats, queuesPause, queuesResume, queuesRm]) verb(queues, desk);
  },
  (program, desk) => {
    const schedules = program.command('schedules').description('put, look at, preview and run recurring jobs');
    const looks = [schedulesLs, schedulesShow, schedulesPreview];
    const changes = [schedulesPut, schedulesRm, schedulesPause, schedulesResume, schedulesTrigger, schedulesBackfill];
    for (const verb of [...looks, ...changes]) verb(schedules, desk);
  },
  forecast,
  leaders,
  workers,
  doctor,
  fsck,
  (program, desk) => {
    configPrint(program.command('config').description('look at the configuration'), desk);
  },
];

/** Runs one command line and returns the exit status. Nothing it is given makes it throw. */
export async function runCli(world: World): Promise<number> {
  let exit: number = 0;
  const run = async (command: Command, verb: (session: ReturnType<typeof openSession>) => Promise<Exit>) => {
    exit = await verb(openSession(world, command.optsWithGlobals()));
  };
  const program = createProgram({ run });
  program.configureOutput({
    writeOut: (text) => world.stdout.write(text),
    writeErr: (text) => world.stderr.write(text),
    // Commander's own form of errors is left out: all errors are reported in one way.
    outputError: () => undefined,
  });
  for (const command of everyCommand(program)) command.copyInheritedSettings(program);
  const refuse = (error: unknown) => {
    const asksForHelp = error instanceof DuestreamError && (error.code === 'usage' || error.code === 'bad-input');
    return report(world, error, { json: wantsJson(world), ...(asksForHelp ? helpOf(program, world) : {}) });
  };
  try {
    const unknown = unknownTopic(program, world);
    if (unknown) return refuse(unknown);
    await program.parseAsync([...world.args], { from: 'user' });
    return exit;
  } catch (error) {
    if (!(error instanceof CommanderError)) return refuse(error);
    // Help and version end here as well; only they have status 0.
    if (error.exitCode === 0) return 0;
    return error.code === 'commander.help' ? 64 : refuse(wrongUse(program, world, error));
  }
}

/** The program with every verb; it does nothing until it is given arguments. */
export function createProgram(desk: Desk): Command {
  const program = new Command('duestream')
    .description('Delayed jobs for the Redis you already have: on time, never lost, cheap, and visible.')
    .version(version(), '-v, --version', 'print the version')
    .addOption(new Option('-V').hideHelp())
    .helpOption('-h, --help', 'show help')
    .option('--json', 'answer with one line of JSON on stdout; errors as JSON on stderr')
    .option('--redis <url>', 'the Redis that holds the jobs: redis://, rediss:// or unix://')
    .option('--namespace <name>', 'the prefix of every key')
    .option('--config <file>', 'a configuration file; default ./duestream.yaml')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  // Half of all commands have -v for it, the other half -V.
  program.on('option:V', () => {
    program.configureOutput().writeOut?.(`${version()}\n`);
    throw new CommanderError(0, 'commander.version', version());
  });
  for (const register of verbs) register(program, desk);
  return program;
}

/** A command and all below it. */
export function everyCommand(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

function wantsJson({ args }: World): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}

function version(): string {
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
