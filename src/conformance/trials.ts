/** The trials of `duestream conformance --worker`: each has a queue and programs of its own, and says what it saw of some rules. */
import { systemClock } from '../kernel/clock.ts';
import { counted, span } from '../kernel/humanize.ts';
import type { Faults } from './faulty-line.ts';
import {
  everyTrial,
  failed,
  held,
  judged,
  longestSilenceMs,
  namesIn,
  notTried,
  repeatVerdict,
  settlesOf,
  type Verdict,
} from './judge.ts';
import { LEASE_MS, ONCE_QUEUE } from './orders.ts';
import { type Call, type Happenings, jobsIn, runOf, runsIn, runsOf } from './record.ts';
import type { RuleName } from './rules.ts';
import { NotSeen, Scene, type Stage } from './scene.ts';

export interface Trial {
  /** For people, while it runs. */
  readonly doing: string;
  /** What fails where the program does not do what the trial waits for. */
  readonly rules: readonly RuleName[];
  /** Rules that are judged in every trial, and of which this one shows most. */
  readonly also?: readonly RuleName[];
  readonly queue: string;
  /** It changes what others need, such as the daemons. */
  readonly isAlone?: true;
  readonly faults?: (scene: () => Scene) => Faults;
  readonly act: (scene: Scene) => Promise<readonly Verdict[]>;
}

const JOBS = 30;
const idsOf = (prefix: string, count = JOBS): readonly string[] =>
  Array.from({ length: count }, (_, at) => `${prefix}-${at}`);
const NTH = 3;

export const trials: readonly Trial[] = [
  {
    doing: 'jobs that end, and handlers that run for two and a half leases',
    rules: ['beat'],
    also: ['token'],
    queue: 'ordinary',
    act: ordinary,
  },
  { doing: 'answers are lost', rules: ['repeat'], also: ['number'], queue: 'lost', faults: lostAnswers, act: runsAll },
  { doing: 'a daemon is killed', rules: ['repeat'], queue: 'killed', isAlone: true, act: daemonKilled },
  { doing: 'answers to claims arrive late', rules: ['late'], queue: 'late', faults: lateAnswers, act: answersLate },
  { doing: 'the program is frozen for longer than a lease', rules: ['lease'], queue: 'frozen', act: frozen },
  { doing: 'nobody answers for longer than a lease', rules: ['lease'], queue: 'silent', faults: silence, act: silent },
  { doing: 'a job is cancelled, and the time of one is up', rules: ['words'], queue: 'words', act: toldToStop },
  { doing: 'jobs that may run once', rules: ['once'], queue: ONCE_QUEUE, faults: begins, act: atMostOnce },
  { doing: 'the program is killed', rules: ['name'], queue: 'names', act: killed },
  { doing: 'the program is told to stop', rules: ['leave'], queue: 'leave', faults: endsPutOff, act: leaves },
  { doing: 'a daemon refuses the claim', rules: ['refused'], queue: 'refused', faults: refusals, act: refused },
  { doing: 'the program forks itself', rules: ['fork'], queue: 'forked', act: forked },
];

/** Plays one trial. What it waits for in vain fails its rules. What a trial is made for is said before what holds in each of them. */
export async function play(trial: Trial, stage: Stage, queue = trial.queue): Promise<readonly Verdict[]> {
  const scene: Scene = new Scene(
    stage,
    queue,
    trial.faults?.(() => scene),
  );
  const { happened } = scene;
  try {
    return [...(await trial.act(scene)), ...everyTrial(happened)];
  } catch (error) {
    if (!(error instanceof NotSeen)) throw error;
    return [...trial.rules.map((rule) => failed(rule, error.message)), ...everyTrial(happened)];
  } finally {
    await scene.close();
  }
}

async function ordinary(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  scene.begin();
  const ids = idsOf('job');
  await scene.schedule('return', ids);
  await scene.schedule('fail', ['bad'], { attempts: 1 });
  const long = ['long', 'too'];
  await scene.schedule('wait', long);
  for (const id of long) await scene.began(id);
  await scene.rest(2.5 * LEASE_MS);
  const silences = long.map((id) => longestSilenceMs(happened, id) ?? Number.POSITIVE_INFINITY);
  const isKept = long.every((id) => happened.said('began', id).length === 1);
  for (const id of long) await scene.cancel(id);
  await scene.states(ids, 'done');
  await scene.states(['bad'], 'dead');
  const silenceMs = Math.max(...silences);
  if (!Number.isFinite(silenceMs)) return [failed('beat', 'no beat named a run that lived for two and a half leases')];
  if (!isKept) return [failed('beat', 'a run that lived went to another worker')];
  const saw = `of two runs one was not named for ${span(silenceMs)} at most; beatMs is ${span(LEASE_MS / 3)}, leaseMs ${span(LEASE_MS)}`;
  // Two beats fit into a lease for a client that beats in time, whatever the machine does.
  return [judged('beat', silenceMs < (LEASE_MS * 2) / 3, { so: saw, not: saw })];
}

/** Every third answer of a claim or a settle is lost, and the first calls are put off. */
function lostAnswers(): Faults {
  const seen = new Map<string, number>();
  let putOff = 0;
  return {
    asked({ verb }) {
      if (verb !== 'claim' || putOff >= 2) return undefined;
      putOff += 1;
      const status = putOff === 1 ? 503 : 429;
      return { status, body: { code: putOff === 1 ? 'unavailable' : 'too-many' }, retryAfter: putOff === 1 ? 0 : 1 };
    },
    answered({ verb }) {
      const count = (seen.get(verb) ?? 0) + 1;
      seen.set(verb, count);
      return verb !== 'beat' && count % NTH === 1 ? 'lose' : undefined;
    },
  };
}

/** Two of the longest pauses of a client, and what a machine takes that is busy. */
const PAUSES_MS = 12_000;

async function runsAll(scene: Scene): Promise<readonly Verdict[]> {
  scene.begin();
  const ids = idsOf('job');
  await scene.schedule('return', ids);
  await scene.states(ids, 'done');
  // The last answer may be lost, and its call is on its way again.
  const isAgain = () => repeatVerdict(scene.happened).status !== 'failed';
  await scene.until('every call that was lost is sent again', isAgain, PAUSES_MS).catch((error: unknown) => {
    // The verdict says why.
    if (!(error instanceof NotSeen)) throw error;
  });
  return [repeatVerdict(scene.happened), ...twiceVerdict(scene.happened, ids)];
}

/** None of these may begin twice: an answer that was lost is answered again with the same runs. */
function twiceVerdict(happened: Happenings, ids: readonly string[]): readonly Verdict[] {
  const twice = ids.filter((id) => happened.said('began', id).length > 1);
  return twice.length === 0
    ? []
    : [failed('number', `${counted(twice.length, 'job')} began twice, such as ${twice[0]}`)];
}

async function daemonKilled(scene: Scene): Promise<readonly Verdict[]> {
  scene.begin();
  const [before, after] = [idsOf('before', 10), idsOf('after', 10)];
  await scene.schedule('return', before);
  await scene.states(before, 'done');
  await scene.killDaemon(0);
  await scene.schedule('return', after);
  await scene.states(after, 'done');
  return [held('repeat', 'a daemon was killed, and the other one got the calls')];
}

/** `kept` arrives after 0.7 of a lease, `resent` is lost once and arrives as late, `lost` arrives when another worker has it. */
function lateAnswers(scene: () => Scene): Faults {
  let isTaken = false;
  let isResent = false;
  return {
    async answered(call, answered) {
      const ids = new Set(jobsIn({ ...call, answer: { ...answered, nth: 0, atMs: 0 } }).map(({ id }) => id));
      if (ids.has('kept')) await scene().rest(0.7 * LEASE_MS);
      if (ids.has('resent')) {
        await scene().rest(0.35 * LEASE_MS);
        const isFirst = !isResent;
        isResent = true;
        if (isFirst) return 'lose';
      }
      if (ids.has('lost') && !isTaken) {
        isTaken = true;
        await scene().takeOver('lost');
      }
      return undefined;
    },
  };
}

async function answersLate(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  scene.begin();
  // Another job runs to its end after them, so the program has read the answers that were held.
  for (const id of ['kept', 'resent', 'lost', 'after']) {
    await scene.schedule('return', [id]);
    await scene.states([id], 'done');
  }
  const ran = happened.said('began', 'lost').length;
  return [
    judged('late', wasAsked(happened, 'kept'), {
      so: 'an answer came after 0.7 of a lease, and a beat came before the handler',
      not: 'an answer came after 0.7 of a lease, and the handler began without a beat',
    }),
    judged('late', wasAsked(happened, 'resent'), {
      so: 'a claim was sent again, was answered 0.7 of a lease after it was sent first, and a beat came before the handler',
      not: 'a claim was sent again, was answered 0.7 of a lease after it was sent first, and the handler began without a beat',
    }),
    judged('late', ran === 0, {
      so: 'a start that another worker had taken over was not run',
      not: 'a start that another worker had taken over was run',
    }),
  ];
}

/** Whether a beat for this job was answered before its handler began. */
function wasAsked(happened: Happenings, id: string): boolean {
  const run = runOf(happened, id);
  const began = happened.said('began', id).at(-1);
  const beat = happened.calls.find((call) => runsIn(call).some((one) => one.kind === 'beat' && one.run === run));
  return began !== undefined && beat?.answer !== undefined && beat.answer.nth < began.nth;
}

async function frozen(scene: Scene): Promise<readonly Verdict[]> {
  const program = scene.begin();
  await scene.schedule('wait', ['long']);
  await scene.began('long');
  program.signal('SIGSTOP');
  await scene.takeOver('long');
  program.signal('SIGCONT');
  return stopsAndIsSilent(scene, 'long', { while: 'it was frozen' });
}

/** From `isCut` on nobody is reached. */
function silence(scene: () => Scene): Faults {
  // The trial begins it when the handler runs.
  const isCut = () =>
    scene().happened.said('began', 'long').length > 0 && scene().happened.said('stopped', 'long').length === 0;
  return { asked: ({ verb }) => (isCut() && verb !== 'leave' ? 'cut' : undefined) };
}

async function silent(scene: Scene): Promise<readonly Verdict[]> {
  scene.begin();
  await scene.schedule('wait', ['long']);
  await scene.began('long');
  return stopsAndIsSilent(scene, 'long', { while: 'nobody answered' });
}

/** The handler is told, and the run is not settled when its lease is lost; the worker goes on with other jobs. */
async function stopsAndIsSilent(
  scene: Scene,
  id: string,
  { while: when }: { readonly while: string },
): Promise<readonly Verdict[]> {
  const { happened } = scene;
  const runs = runsOf(happened, id);
  await scene.until(`a handler prints "stopped ${id}" after ${when}`, () => happened.said('stopped', id).length > 0);
  const [stopped] = happened.said('stopped', id);
  await scene.schedule('return', ['after']);
  await scene.states(['after'], 'done');
  // What it settles goes with its claims at the latest: two of them were answered meanwhile.
  const settled = settlesOf(happened, runs, stopped?.nth ?? 0).length;
  return [
    judged('lease', settled === 0, {
      so: `${when} for longer than a lease: the handler was stopped, and its run was not settled`,
      not: `${when} for longer than a lease: the run was settled all the same`,
    }),
  ];
}

async function toldToStop(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  scene.begin();
  await scene.schedule('wait', ['cancelled']);
  await scene.schedule('wait', ['late'], { timeout: 500, attempts: 1 });
  await scene.began('cancelled');
  await scene.began('late');
  await scene.cancel('cancelled');
  const isTold = (id: string) =>
    scene.until(`a handler prints "stopped ${id}"`, () => happened.said('stopped', id).length > 0);
  await isTold('cancelled');
  await isTold('late');
  await scene.until('the end of a run that was cancelled is settled', () =>
    settlesOf(happened, runsOf(happened, 'cancelled')).some(({ word }) => word !== ''),
  );
  await scene.states(['cancelled'], 'cancelled');
  await scene.states(['late'], 'dead');
  const told = happened.calls.find((call) => runsIn(call).some(({ word }) => word === 'timeout'));
  const settled = settlesOf(happened, runsOf(happened, 'late'), told?.answer?.nth).length;
  return [
    held('words', 'handlers were stopped at "cancel" and at "timeout"'),
    judged('words', told === undefined || settled === 0, {
      so: 'the end of the cancelled run was settled, and nothing of the one whose time was up',
      not: 'a run whose beat was answered "timeout" was settled after that',
    }),
  ];
}

const isBegin = (call: Call): boolean => runsIn(call).some(({ end }) => end === 'begin');

/** The first answer is lost; `refused` is told that it is gone. */
function begins(scene: () => Scene): Faults {
  let lost = 0;
  const idIn = (call: Call) => {
    const [one] = runsIn(call).filter(({ end }) => end === 'begin');
    const job = scene()
      .happened.calls.flatMap(jobsIn)
      .find(({ run }) => run === one?.run);
    return job?.id;
  };
  return {
    asked(call) {
      if (!isBegin(call) || idIn(call) !== 'refused') return undefined;
      const body = call.verb === 'begin' ? { result: 'gone' } : { results: ['gone'], ended: ['gone'] };
      return { status: 200, body, retryAfter: 0 };
    },
    answered(call) {
      if (!isBegin(call) || lost > 0) return undefined;
      lost += 1;
      return 'lose';
    },
  };
}

async function atMostOnce(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  scene.begin();
  // One after the other, so that a client that begins several in one call is judged too.
  for (const id of ['first', 'refused', 'last']) {
    await scene.schedule('return', [id]);
    await scene.until(`"begin" is sent for ${id}`, () => answeredBegin(happened, id) !== undefined);
  }
  for (const id of ['first', 'last']) {
    await scene.began(id);
    await scene.until(`the run of ${id} is completed`, () =>
      settlesOf(happened, runsOf(happened, id)).some(({ word }) => word !== ''),
    );
  }
  const early = ['first', 'last'].filter(
    (id) => (happened.said('began', id)[0]?.nth ?? 0) < (answeredBegin(happened, id) ?? 0),
  );
  const twice = ['first', 'last'].filter((id) => happened.said('began', id).length > 1);
  const wasRefused = happened.said('began', 'refused').length > 0;
  return [
    judged('once', early.length === 0 && twice.length === 0, {
      so: 'handlers began after "begin" was answered, once each; one answer was lost',
      not:
        early.length > 0 ? `the handler of ${early[0]} began before "begin" was answered` : `${twice[0]} began twice`,
    }),
    judged('once', !wasRefused, {
      so: 'a run whose "begin" was answered "gone" was not run',
      not: 'a run whose "begin" was answered "gone" was run',
    }),
  ];
}

/** Where among all that happened `begin` of this job was first answered with a word. */
function answeredBegin(happened: Happenings, id: string): number | undefined {
  const run = runOf(happened, id);
  return happened.calls.find(
    (call) => call.answer !== undefined && runsIn(call).some((one) => one.end === 'begin' && one.run === run),
  )?.answer?.nth;
}

async function killed(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  const first = scene.begin();
  await scene.schedule('wait', ['long']);
  await scene.began('long');
  await first.end();
  scene.begin();
  await scene.until(
    'the program that was started again begins the job',
    () => happened.said('began', 'long').length > 1,
  );
  const names = namesIn(happened);
  return [
    judged('name', names.length === 2, {
      so: 'after a restart the name was another one',
      not: 'after a restart the name was the same',
    }),
  ];
}

/** Longer than the program waits for its handlers at a stop. */
const STOPPING_MS = 1500;

/** Whatever carries the end of a run is put off, also for a while after the program was told to stop. */
function endsPutOff(scene: () => Scene): Faults {
  return {
    asked: (call) =>
      scene().stoppingMs < STOPPING_MS && runsIn(call).some(({ kind }) => kind === 'settle')
        ? { status: 503, body: { code: 'unavailable' }, retryAfter: 0 }
        : undefined,
  };
}

async function leaves(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  const program = scene.begin();
  await scene.schedule('wait', ['long']);
  await scene.began('long');
  await scene.schedule('return', ['ended']);
  await scene.until('the end of a run is told', () => settlesOf(happened, runsOf(happened, 'ended')).length > 0);
  scene.stop(program);
  await scene.until(
    'the program calls "leave"',
    () => happened.calls.some(({ verb, answer }) => verb === 'leave' && answer?.status === 200),
    60_000,
  );
  await scene.until('the program ends', () => program.isOver);
  const left = happened.calls.find(({ verb }) => verb === 'leave')?.nth ?? 0;
  const later = happened.calls.filter(({ nth, verb }) => verb !== 'leave' && verb !== 'beat' && nth > left);
  const isTold = settlesOf(happened, runsOf(happened, 'ended')).some(
    ({ call, word }) => word !== '' && (call.answer?.nth ?? left) < left,
  );
  const failures = settlesOf(happened, runsOf(happened, 'long')).filter(({ end }) => end === 'fail').length;
  return [
    judged('leave', later.length === 0, {
      so: 'it left, and called nothing after that',
      not: `after "leave" it called ${later[0]?.verb}`,
    }),
    judged('leave', isTold, {
      so: 'the end of a run was settled before that',
      not: 'it left before the end of a run was settled',
    }),
    judged('leave', failures === 0, {
      so: 'a run that it stopped went back',
      not: 'a run that it stopped was settled as a failure, which uses an attempt',
    }),
  ];
}

function refusals(): Faults {
  return {
    asked: ({ verb }) =>
      verb === 'claim'
        ? { status: 409, body: { status: 409, code: 'superseded', detail: 'played by the kit' }, retryAfter: 0 }
        : undefined,
  };
}

async function refused(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  const program = scene.begin();
  await scene.until('the program claims', () => happened.calls.some(({ answer }) => answer?.status === 409));
  const untilMs = systemClock.monotonicMs() + LEASE_MS;
  await scene.until('a lease passes', () => program.isOver || systemClock.monotonicMs() > untilMs);
  const more = happened.calls.filter(({ verb }) => verb === 'claim').length - 1;
  return [
    judged('refused', more === 0, {
      so: 'it claimed no more',
      not: `it claimed ${counted(more, 'more time')}`,
    }),
  ];
}

async function forked(scene: Scene): Promise<readonly Verdict[]> {
  const { happened } = scene;
  scene.begin({ DUESTREAM_FORK: '1' });
  const isSaid = (word: string) => happened.lines.some(({ words }) => words.join(' ').startsWith(word));
  const isTold = () => isSaid('refused') || isSaid('no fork') || namesIn(happened).length > 1;
  await scene.until(
    'the program claims, or one of its processes refuses',
    () => isTold() || namesIn(happened).length > 0,
  );
  const untilMs = systemClock.monotonicMs() + 2 * LEASE_MS;
  await scene.until('both processes work, or one refuses', () => isTold() || systemClock.monotonicMs() > untilMs);
  if (isSaid('no fork')) return [notTried('fork', 'the program says that it cannot fork')];
  return [
    judged('fork', isTold(), {
      so: isSaid('refused') ? 'the child was refused' : 'the child has another name',
      not: 'both processes work under one name',
    }),
  ];
}
