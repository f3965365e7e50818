/** Where the time of a job went, as pictures to scale: all of it as one bar, and each start on a line of time. */
import { useState } from 'preact/hooks';
import type { Schemas } from '../../api-types.ts';
import { dateText, secondText, timeText } from '../../parts/clock.ts';
import { Icon } from '../../parts/icon.tsx';
import { Axis, type Tick } from '../../parts/plot.tsx';
import { State } from '../../parts/state.tsx';
import { Id } from '../../parts/table.tsx';
import { spanText } from '../../parts/words.ts';
import { words } from '../../words/words.ts';
import { type Attempt, COLOURS, isFailed, type Life, type Piece, type Sum, sumsOfLife } from './life.ts';
import { When } from './when.tsx';

const { share, attempts: said, causes, lines } = words.job;

const lengthText = ({ ms, isAbout }: Pick<Sum, 'ms' | 'isAbout'>): string =>
  isAbout ? lines.about(spanText(ms)) : spanText(ms);

export function Share({ life }: { readonly life: Life }) {
  const sums = sumsOfLife(life);
  const wholeMs = Math.max(1, life.toMs - life.fromMs);
  const label = sums.map((sum) => `${causes[sum.why]} ${lengthText(sum)}`).join(', ');
  if (sums.length === 0) return null;
  return (
    <section aria-labelledby="where">
      <header class="sec">
        <h2 id="where">{share.title}</h2>
        {sums.some(({ isAbout }) => isAbout) ? <p>{share.about}</p> : null}
      </header>
      <div class="share" role="img" aria-label={label}>
        {life.attempts
          .flatMap(({ pieces }) => pieces)
          .map(({ why, fromMs, toMs }) => (
            <i key={`${fromMs} ${why}`} class={`c-${COLOURS[why]}`} style={{ flexGrow: String(toMs - fromMs) }} />
          ))}
      </div>
      <dl class="share-key">
        {sums.map((sum) => (
          <div key={sum.why}>
            <dt>
              <Swatch why={sum.why} />
              {causes[sum.why]}
            </dt>
            <dd>
              {lengthText(sum)} <span class="of">{percentText(sum.ms / wholeMs)}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const percentText = (part: number): string => (part < 0.01 ? share.below : `${Math.round(part * 100)} %`);

const Swatch = ({ why }: Pick<Piece, 'why'>) => <i class={`sw c-${COLOURS[why]}`} aria-hidden="true" />;

/** The part of the life that is drawn. */
interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

export function Attempts({ life }: { readonly life: Life }) {
  const [isWhole, setWhole] = useState(true);
  const { attempts } = life;
  const last = attempts.at(-1);
  const range = rangeOf(isWhole || last === undefined ? life : last);
  const longest = attempts.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0];
  const zoom = (text: string, isOn: boolean) => (
    <button type="button" aria-pressed={isWhole === isOn} onClick={() => setWhole(isOn)}>
      {text}
    </button>
  );
  return (
    <section aria-labelledby="attempts" class="axis-section">
      <header class="sec">
        <h2 id="attempts">{said.title}</h2>
        <p>{said.say}</p>
        {attempts.length < 2 ? null : (
          <span class="seg">
            {zoom(said.whole, true)}
            {zoom(said.last(last?.attempt ?? attempts.length), false)}
          </span>
        )}
      </header>
      <div class="fall">
        <div class="fr head">
          <span>{said.due(secondText(life.fromMs))}</span>
          <div class="track">
            <Axis ticks={ticksOf(range)} />
          </div>
          <span class="n">{spanText(life.toMs - life.fromMs)}</span>
        </div>
        {attempts.map((attempt, at) => (
          <AttemptRow key={at} {...{ attempt, range }} isOpen={attempt === longest} />
        ))}
      </div>
    </section>
  );
}

const lengthOf = ({ fromMs, toMs }: Range): number => toMs - fromMs;
const rangeOf = ({ fromMs, toMs }: Range): Range => ({ fromMs, toMs: Math.max(toMs, fromMs + 1) });

interface Row {
  readonly attempt: Attempt;
  readonly range: Range;
  readonly isOpen: boolean;
}

function AttemptRow({ attempt: one, range, isOpen }: Row) {
  const { attempt, pieces, end } = one;
  return (
    <details class="att" open={isOpen}>
      <summary class="fr">
        <span>
          <span class="turn">
            <Icon name="chevron" />
          </span>
          {attempt === undefined ? said.unknown : said.one(attempt)}
        </span>
        <Track pieces={pieces} range={range} end={end} />
        <span class="n">
          <EndState attempt={one} />
        </span>
      </summary>
      <ol>
        {pieces.map((piece) => (
          <li key={`${piece.fromMs} ${piece.why}`} class="fr">
            <span>
              <Swatch why={piece.why} />
              {causes[piece.why]}
            </span>
            <Track pieces={[piece]} range={range} end={undefined} />
            <span class="n">{lengthText({ ms: lengthOf(piece), isAbout: piece.isAbout })}</span>
          </li>
        ))}
      </ol>
      <Failure attempt={one} />
    </details>
  );
}

function EndState({ attempt: { state, end } }: Pick<Row, 'attempt'>) {
  if (end?.kind === 'deferred' || end?.kind === 'handed-back') {
    return <State of="scheduled" text={said.ends[end.kind]} />;
  }
  return <State of={state} />;
}

function Track({
  pieces,
  range,
  end,
}: { readonly pieces: readonly Piece[]; readonly range: Range } & Pick<Attempt, 'end'>) {
  const x = (ms: number) => Math.min(100, Math.max(0, ((ms - range.fromMs) / lengthOf(range)) * 100));
  const seen = pieces.filter(({ fromMs, toMs }) => toMs > range.fromMs && fromMs < range.toMs);
  const endMs = pieces.at(-1)?.toMs;
  const isFailure = end !== undefined && isFailed(end);
  return (
    <div class="track" aria-hidden="true">
      {seen.map(({ why, fromMs, toMs }) => (
        <i
          key={`${fromMs} ${why}`}
          class={`c-${COLOURS[why]}${COLOURS[why] === 'run' ? ' run' : ''}`}
          style={{ left: `${x(fromMs)}%`, width: `${x(toMs) - x(fromMs)}%` }}
        />
      ))}
      {isFailure && endMs !== undefined && endMs > range.fromMs ? (
        <i class="fin failed" style={{ left: `${x(endMs)}%` }} />
      ) : null}
      {isFailure && endMs !== undefined && x(endMs) < ROOM ? (
        <em style={{ left: `calc(${x(endMs)}% + 18px)` }}>{end.message ?? ''}</em>
      ) : null}
    </div>
  );
}

/** Right of it, in per cent, there is no room for an error. */
const ROOM = 80;

function Failure({ attempt: { end, owner } }: Pick<Row, 'attempt'>) {
  const { message, stack, kind, atMs } = end ?? ({} as Partial<Schemas['Moment']>);
  if (end === undefined || atMs === undefined || (!isFailed(end) && message === undefined)) return null;
  return (
    <div class={isFailed(end) ? 'err' : 'err calm'}>
      <p>
        <b>{message ?? words.job.story.kinds[kind ?? 'failure']}</b>
      </p>
      <p class="quiet">
        <When atMs={atMs} />
        {owner === undefined ? null : (
          <>
            {' '}
            {said.on('')}
            <a href="#/workers">
              <Id text={owner} />
            </a>
          </>
        )}
      </p>
      {stack === undefined ? null : (
        <details>
          <summary>{said.stack}</summary>
          <pre tabIndex={0}>{stack}</pre>
        </details>
      )}
    </div>
  );
}

// The axis: offsets from the due time within a minute, the clock of whoever looks beyond, days beyond those.

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const TICKS_MAX = 8;
const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000],
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 7, 14, 30, 90, 365].map((days) => days * DAY_MS),
];

export function ticksOf({ fromMs, toMs }: Range): readonly Tick[] {
  const wholeMs = toMs - fromMs;
  const stepMs = STEPS_MS.find((ms) => wholeMs / ms <= TICKS_MAX) ?? wholeMs;
  const isShort = wholeMs < MINUTE_MS;
  const zoneMs = new Date(fromMs).getTimezoneOffset() * MINUTE_MS;
  const firstMs = isShort ? fromMs + stepMs : Math.ceil((fromMs - zoneMs) / stepMs) * stepMs + zoneMs;
  const ticks: Tick[] = [];
  for (let ms = firstMs; ms <= toMs; ms += stepMs) {
    const left = Math.round(((ms - fromMs) / wholeMs) * 1000) / 10;
    ticks.push({ left, text: isShort ? `+${spanText(ms - fromMs)}` : clockText(ms, stepMs) });
  }
  return ticks;
}

function clockText(ms: number, stepMs: number): string {
  if (stepMs >= DAY_MS) return dateText(ms);
  return (stepMs >= MINUTE_MS ? timeText : secondText)(ms);
}
