/** The way of a job through the queue: how many are in each stage, and the stage that holds. */
import type { ComponentChildren } from 'preact';
import { isUnserved, type LiveQueue } from '../../live.ts';
import { useMay } from '../../parts/may.tsx';
import { latenessText, numberText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import type { Minutes, Why } from './seen.ts';

const { flow } = words.queue;
type Reason = Why['reasons'][number];

/** The reason → the stage before which jobs stand. */
const HELD_AT: Readonly<Record<Reason['code'], 'scheduled' | 'promoted' | 'waiting' | 'ready' | undefined>> = {
  'redis-full': 'scheduled',
  'no-leader': 'promoted',
  paused: 'promoted',
  lingering: 'promoted',
  waiting: 'waiting',
  'no-worker': 'ready',
  'ready-capped': 'ready',
  busy: 'ready',
  'not-due': undefined,
  empty: undefined,
};

interface Seen {
  readonly found: LiveQueue;
  readonly why: Why | undefined;
  readonly hour: Minutes | undefined;
}

export function Flow({ found, why, hour }: Seen) {
  const { queue, scheduled, waiting, ready, running, limits, slots, workers, perSecond } = found;
  const reason = why?.reasons.find(({ code }) => HELD_AT[code] !== undefined);
  const at = reason && HELD_AT[reason.code];
  const jobs = (state: string) => `#/jobs/${encodeURIComponent(queue)}?state=${state}`;
  const maySeeWorkers = useMay({ scope: 'read' });
  const workersText = slots === undefined || slots === 0 ? flow.workers(workers) : flow.ofSlots(numberText(slots));
  const died = hour?.counts.dead.reduce((sum, one) => sum + one, 0);
  const stage = (name: 'scheduled' | 'promoted' | 'waiting' | 'ready') =>
    at === name ? { held: levelOf(reason) } : {};
  return (
    <ol class="flow" aria-label={flow.label}>
      <Stage name={flow.scheduled} {...stage('scheduled')} note={flow.scheduledNote}>
        <a href={jobs('scheduled')}>{numberText(scheduled)}</a>
      </Stage>
      <Stage name={flow.promoted} {...stage('promoted')} note={promotedNote(found, reason)}>
        {latenessText(found.paused ? null : (hour?.total.promotion.p99Ms ?? null))}
      </Stage>
      {limits === undefined && waiting === 0 ? null : (
        <Stage name={flow.waiting} {...stage('waiting')} note={waitingNote(reason)}>
          <a href={jobs('waiting')}>{numberText(waiting)}</a>
        </Stage>
      )}
      <Stage
        name={flow.ready}
        {...stage('ready')}
        note={isUnserved(found) ? flow.noWorker : ready === 0 ? flow.readyNone : flow.readySome}
      >
        <a href={jobs('ready')}>{numberText(ready)}</a>
      </Stage>
      <Stage name={flow.running} note={maySeeWorkers ? <a href="#/workers">{workersText}</a> : workersText}>
        <a href={jobs('running')}>{numberText(running)}</a>
      </Stage>
      <Stage name={flow.ends} note={died === undefined ? '' : died === 0 ? flow.noneDied : flow.died(numberText(died))}>
        {numberText(perSecond.ended)}
        <i class="u">{flow.perSecond}</i>
      </Stage>
    </ol>
  );
}

interface StageOf {
  readonly name: string;
  /** How bad it is that it holds; left out where it does not. */
  readonly held?: '' | 'warn' | 'bad';
  readonly note: ComponentChildren;
  readonly children: ComponentChildren;
}

function Stage({ name, held, note, children }: StageOf) {
  return (
    <li class={held === undefined ? undefined : `held ${held}`}>
      <span>
        {name}
        {held === undefined ? null : <em class="away">{flow.holds}</em>}
      </span>
      <b>{children}</b>
      <small>{note}</small>
    </li>
  );
}

/** A limit and a pause are somebody's will; what nobody wants is red. */
function levelOf(reason: Reason | undefined): '' | 'warn' | 'bad' {
  if (reason?.code === 'waiting') return '';
  return reason?.code === 'paused' || reason?.code === 'lingering' || reason?.code === 'busy' ? 'warn' : 'bad';
}

function promotedNote({ leaders, paused }: LiveQueue, reason: Reason | undefined): string {
  if (paused) return flow.promotedStopped;
  const led = leaders.filter((one) => one !== null).length;
  if (led === leaders.length) return flow.promotedNote;
  return reason?.code === 'no-leader' && led === 0 ? flow.noLeader : flow.ofLeaders(led, leaders.length);
}

const waitingNote = (reason: Reason | undefined): string =>
  reason?.heldBy === undefined ? flow.waitingNote : flow.held[reason.heldBy];
