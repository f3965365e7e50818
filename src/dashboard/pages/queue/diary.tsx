/** What rarely happens to a queue, as its diary tells it: who paused, closed, set or led it, and when no worker lived. */
import type { ComponentChildren } from 'preact';
import type { Schemas } from '../../api-types.ts';
import type { Asked } from '../../parts/asked.ts';
import { utcText, weekSecondText } from '../../parts/clock.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { durationText } from '../../parts/words.ts';
import { settingRows } from '../../setting-rows.ts';
import { words } from '../../words/words.ts';
import { nightAddress } from './addresses.ts';
import { clockText } from './say.tsx';
import { saidText, settingName } from './values.ts';

type Entry = Schemas['QueueLate']['diary']['entries'][number];

const { diary: said } = words.queue;

export function Diary({ queue, asked }: { readonly queue: string; readonly asked: Asked<Schemas['QueueLate']> }) {
  const { value, problem } = asked;
  return (
    <section class="events" aria-labelledby="diary">
      <header class="sec">
        <h2 id="diary">{said.title}</h2>
        <p>{said.text}</p>
        <a href={nightAddress(queue)}>{said.night}</a>
      </header>
      <ProblemNote problem={problem} />
      {value === undefined ? null : <Entries entries={value.diary.entries} />}
    </section>
  );
}

/** So many at once; the others are behind a fold. */
const SHOWN = 12;

/** The newest first. */
export function Entries({ entries }: { readonly entries: readonly Entry[] }) {
  if (entries.length === 0) return <p class="quiet">{said.none}</p>;
  const newest = entries.toReversed();
  const rest = newest.slice(SHOWN);
  return (
    <>
      <List entries={newest.slice(0, SHOWN)} />
      {rest.length === 0 ? null : (
        <details>
          <summary>{said.more(rest.length)}</summary>
          <List entries={rest} />
        </details>
      )}
    </>
  );
}

const ICONS: Readonly<Record<Entry['what'], readonly [icon: IconName, level: '' | 'warn' | 'bad']>> = {
  paused: ['pause', 'warn'],
  resumed: ['play', ''],
  closed: ['close', 'warn'],
  opened: ['play', ''],
  set: ['simulate', ''],
  elected: ['ship', ''],
  resigned: ['ship', 'warn'],
  unserved: ['workers', 'bad'],
  served: ['workers', ''],
};

const List = ({ entries }: { readonly entries: readonly Entry[] }) => (
  <ol class="diary">
    {entries.map((entry) => {
      const [icon, level] = ICONS[entry.what];
      return (
        <li key={entry.entry} class={level}>
          <Icon name={icon} />
          <time class="t" dateTime={utcText(entry.atMs)} title={utcText(entry.atMs)}>
            {weekSecondText(entry.atMs)}
          </time>
          <span>
            <Told entry={entry} />
          </span>
        </li>
      );
    })}
  </ol>
);

function Told({ entry }: { readonly entry: Entry }) {
  const { what, by, why = '', untilMs, fromMs, atMs } = entry;
  const isLeader = what === 'elected' || what === 'resigned';
  return (
    <>
      <b>{happenedText(entry)}</b>
      {isLeader ? ` ${by ?? ''}` : null}
      {what === 'set' ? ` ${changeText(entry)}` : null}
      {untilMs === undefined ? null : ` ${said.until(clockText(untilMs))}`}
      {by === undefined || isLeader ? null : ` ${said.by(by)}`}
      {fromMs === undefined || fromMs >= atMs ? null : ` ${said.since(durationText(atMs - fromMs))}`}
      {why === '' ? null : <Reason>{why}</Reason>}
    </>
  );
}

const Reason = ({ children }: { readonly children: ComponentChildren }) => <span class="why-said">: “{children}”</span>;

function happenedText({ what, group }: Entry): string {
  if (group !== undefined && what === 'closed') return said.closedGroup(group);
  if (group !== undefined && what === 'opened') return said.openedGroup(group);
  return said[what];
}

/** From what to what. */
function changeText({ before, after }: Entry): string {
  const [was, is] = [before, after].map((one) => ({ ...one }) as Readonly<Record<string, unknown>>);
  const names = settingRows.filter(({ name }) => was?.[name] !== undefined || is?.[name] !== undefined);
  return names
    .map((row) => said.fromTo(settingName(row.name), saidText(row, was?.[row.name]), saidText(row, is?.[row.name])))
    .join('; ');
}
