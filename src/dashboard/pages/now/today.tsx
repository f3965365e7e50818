/** What came to be in the last day: what the diaries of the queues and the audit tell, and hours that were late or in which jobs died. */
import type { ComponentChildren } from 'preact';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useEvery } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { timeText, utcText } from '../../parts/clock.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { May, useMay } from '../../parts/may.tsx';
import { midnightMs, momentText } from '../../parts/when.ts';
import { durationText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { whereAt } from '../jobs/at.tsx';
import { type Spell, spellsIn } from './saying.ts';

const said = words.now;
const SHOWN_MAX = 10;

type DayEvent = Schemas['DayEvent'];

interface Event {
  readonly key: string;
  readonly atMs: number;
  readonly icon: IconName;
  readonly level?: 'bad' | 'warn';
  readonly text: ComponentChildren;
}

export function Today({ day }: { readonly day: Schemas['Day'] | undefined }) {
  return (
    <aside class="events" aria-label={said.today}>
      <header class="sec">
        <h2>{said.today}</h2>
        <May scope="admin">
          <a href="#/audit">{said.audit}</a>
        </May>
      </header>
      {day === undefined ? null : <Asked day={day} />}
    </aside>
  );
}

/** The audit is for administrators; others see what the diaries tell. */
function Asked({ day }: { readonly day: Schemas['Day'] }) {
  const events = [...together(day.events).map(diaryEvent), ...spellsIn(day).map(spellEvent)];
  return useMay({ scope: 'admin' }) ? <WithAudit day={day} events={events} /> : <List events={events} />;
}

const EVERY_MS = 60_000;

function WithAudit({ day, events }: { readonly day: Schemas['Day']; readonly events: readonly Event[] }) {
  const from = utcText(day.startMs);
  const { value, reload } = useAsked(calls.audit, { from, limit: 100 });
  useEvery(EVERY_MS, reload);
  const changes = value?.entries.filter(({ verb }) => !inDiary.has(verb)) ?? [];
  return <List events={[...events, ...changes.map(auditEvent)]} />;
}

/** A diary tells these, with more of what they did. */
const inDiary = new Set([
  ...['queues.pause', 'queues.resume', 'queues.close', 'queues.open', 'queues.set', 'queues.unset'],
  ...['groups.close', 'groups.open'],
]);

function List({ events }: { readonly events: readonly Event[] }) {
  if (events.length === 0) return <p class="quiet">{said.calm}</p>;
  return (
    <ol>
      {toldOf(events).map(({ key, atMs, icon, level, text }) => (
        <li key={key} class={level}>
          <Icon name={icon} />
          <a class="t" href={momentAddress(atMs)} title={said.ranAt(whenText(atMs))}>
            <time dateTime={utcText(atMs)}>{whenText(atMs)}</time>
          </a>
          <p>{text}</p>
        </li>
      ))}
    </ol>
  );
}

/** Trouble is told before what somebody did, where there is no room for both; the newest at the top. */
function toldOf(events: readonly Event[]): readonly Event[] {
  const newest = events.toSorted((a, b) => b.atMs - a.atMs);
  const [trouble, others] = [newest.filter(({ level }) => level), newest.filter(({ level }) => !level)];
  return [...trouble, ...others].slice(0, SHOWN_MAX).toSorted((a, b) => b.atMs - a.atMs);
}

/** `09:00` of today; else with its day. */
function whenText(atMs: number): string {
  const nowMs = Date.now();
  return midnightMs(atMs) === midnightMs(nowMs) ? timeText(atMs) : momentText(atMs, nowMs);
}

/** The page of what ran at a moment. */
const momentAddress = (atMs: number): string => `#/${whereAt(atMs)}`;

const Several = ({ queue, others }: { readonly queue: string; readonly others: number }) => (
  <>
    {queueLink(queue)} {said.andOthers(others)}
  </>
);

const queueLink = (queue: string) => <a href={`#/queue/${encodeURIComponent(queue)}`}>{queue}</a>;

function spellEvent({ queue, what, fromMs, toMs, size }: Spell): Event {
  const key = `${what} ${queue} ${fromMs}`;
  if (what === 'died') {
    return { key, atMs: fromMs, icon: 's-dead', level: 'warn', text: said.events.died(queueLink(queue), size) };
  }
  const tell = toMs === undefined ? said.events.lateStill : said.events.late;
  const text = tell(queueLink(queue), durationText(size));
  return { key, atMs: fromMs, icon: 'clock', level: toMs === undefined ? 'bad' : 'warn', text };
}

const ICONS: Readonly<Record<DayEvent['what'], IconName>> = {
  paused: 'pause',
  resumed: 'play',
  closed: 'pause',
  opened: 'play',
  set: 'person',
  unserved: 'workers',
  served: 'workers',
  elected: 'ship',
};
const WARN = new Set(['paused', 'closed', 'unserved']);

/** What befell several queues at once is one line: a deploy stops the workers of all of them. */
function together(events: readonly DayEvent[]): readonly (DayEvent & { readonly others: number })[] {
  const found: (DayEvent & { others: number })[] = [];
  for (const event of events) {
    const isSame = (one: DayEvent) => one.what === event.what && Math.abs(one.atMs - event.atMs) < NEAR_MS;
    const first = OF_PROCESSES.has(event.what) ? found.find(isSame) : undefined;
    if (first) first.others += 1;
    else found.push({ ...event, others: 0 });
  }
  return found;
}

const NEAR_MS = 60_000;
const OF_PROCESSES = new Set(['served', 'unserved', 'elected']);

function diaryEvent({ others, ...event }: DayEvent & { readonly others: number }): Event {
  const { queue, what, atMs, by = '' } = event;
  const link = others === 0 ? queueLink(queue) : <Several queue={queue} others={others} />;
  const details = detailsOf(event);
  const text = (
    <>
      {what === 'elected' ? electedText(link, event) : said.events[what](link, by)}
      {details === '' ? '' : `: ${details}`}
    </>
  );
  const key = `${what} ${queue} ${atMs} ${event.group ?? ''}`;
  return { key, atMs, icon: ICONS[what], ...(WARN.has(what) ? { level: 'warn' } : {}), text };
}

/** The first leader of a partition was preceded by none. */
const electedText = (link: ComponentChildren, { atMs, fromMs }: DayEvent) =>
  fromMs === undefined ? said.events.led(link) : said.events.elected(link, durationText(atMs - fromMs));

function detailsOf({ group, untilMs, why, before = {}, after = {} }: DayEvent): string {
  const changed = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const valueIn = (some: object, name: string) => settingText(Reflect.get(some, name));
  return [
    ...(group === undefined ? [] : [said.group(group)]),
    ...changed.map((name) => said.fromTo(name, valueIn(before, name), valueIn(after, name))),
    ...(untilMs === undefined ? [] : [said.until(whenText(untilMs))]),
    ...(why ? [why] : []),
  ].join(', ');
}

/** `20/m`, `within 5s, of 0.99`: as somebody would say it in a definition. */
function settingText(value: unknown): string {
  if (value === undefined || value === false) return said.unset;
  if (typeof value !== 'object' || value === null) return String(value);
  const parts = Object.entries(value).map(
    ([name, one]) => `${name} ${typeof one === 'object' ? JSON.stringify(one) : one}`,
  );
  return parts.join(' ');
}

/** As the audit says it; what a newer daemon has says its name itself. */
const verbText = (verb: string): string => (words.audit.verbs as Readonly<Record<string, string>>)[verb] ?? verb;

function auditEvent({ entry, atMs, who, verb, target, queue, count, reason }: Schemas['AuditEntry']): Event {
  const what = [target, count > 1 ? `${count} ×` : ''].filter((one) => one !== undefined && one !== '').join(', ');
  const text = (
    <>
      {said.did(who, verbText(verb))} {what} {queue === undefined ? null : queueLink(queue)}
      {reason ? `: ${reason}` : ''}
    </>
  );
  return { key: entry, atMs, icon: 'person', text };
}
