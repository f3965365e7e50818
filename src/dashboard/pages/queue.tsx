/** One queue: its counts, why nothing moves if nothing does, how fast and how late it is; pause and resume. */

import { useCallback, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import type { Schemas } from '../api-types.ts';
import * as calls from '../calls.ts';
import { isUnserved, type LiveQueue, useEvery, useLive } from '../live.ts';
import { useAsked } from '../parts/asked.ts';
import { type Line, TimeChart } from '../parts/chart.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { May, useMay } from '../parts/may.tsx';
import { ProblemNote } from '../parts/problem.tsx';
import { Instant, Table } from '../parts/table.tsx';
import { latenessText, numberText } from '../parts/words.ts';
import type { Route } from '../router.ts';
import { LongestGroups } from './groups.tsx';

const WHY_EVERY_MS = 5000;

export function Queue({ path: [queue = ''] }: Route) {
  const { now } = useLive();
  const found = now?.queues.find((one) => one.queue === queue);
  const name = encodeURIComponent(queue);
  return (
    <>
      <h1>
        Queue <span class="id">{queue}</span>
        {found?.paused ? <em class="badge">paused</em> : null}
      </h1>
      {now !== undefined && found === undefined ? <p class="problem">This queue was never used.</p> : null}
      {found === undefined ? null : (
        <>
          <Counts {...found} />
          <Reasons queue={queue} />
          <May scope="write" queue={queue}>
            <Actions queue={found} />
          </May>
          <Overrides queue={queue} />
          {found.limits === undefined ? null : <LongestGroups queue={queue} />}
        </>
      )}
      <p class="actions">
        <a href={`#/jobs/${name}`}>Jobs</a> <a href={`#/dead/${name}`}>Dead letters</a>{' '}
        <a href={`#/closed/${name}`}>Closed tags</a> <a href={`#/sets/${name}`}>Sets</a>
      </p>
      <Charts queue={queue} />
    </>
  );
}

function Counts(found: LiveQueue) {
  const { queue, scheduled, waiting, ready, running, dead, perSecond, workers, leaders, limits } = found;
  const name = encodeURIComponent(queue);
  const led = leaders.filter((one) => one !== null).length;
  const maySeeWorkers = useMay({ scope: 'read' });
  return (
    <dl class="tiles">
      {(
        [
          ['Scheduled', scheduled, `#/jobs/${name}?state=scheduled`],
          ...(waiting > 0 ? [['In line', waiting, `#/jobs/${name}?state=waiting`] as const] : []),
          ['Ready', ready, `#/jobs/${name}?state=ready`],
          ['Running', running, `#/jobs/${name}?state=running`],
          ['Dead letters', dead, `#/dead/${name}`],
        ] as const
      ).map(([text, count, href]) => (
        <div key={text} class="tile">
          <dt>{text}</dt>
          <dd>
            <a href={href}>{numberText(count)}</a>
          </dd>
        </div>
      ))}
      {limits === undefined ? null : (
        <div class="tile">
          <dt>Limits</dt>
          <dd>{limits.text}</dd>
        </div>
      )}
      <div class="tile">
        <dt>Starts per second</dt>
        <dd>{numberText(perSecond.started)}</dd>
      </div>
      <div class={isUnserved(found) ? 'tile bad' : 'tile'}>
        <dt>Workers</dt>
        <dd>{maySeeWorkers ? <a href="#/workers">{numberText(workers)}</a> : numberText(workers)}</dd>
      </div>
      <div class={led < leaders.length ? 'tile bad' : 'tile'}>
        <dt>Partitions with a leader</dt>
        <dd>
          {led} of {leaders.length}
        </dd>
      </div>
    </dl>
  );
}

function Reasons({ queue }: { readonly queue: string }) {
  const { value, problem, reload } = useAsked(calls.queuesWhy, { queue });
  useEvery(WHY_EVERY_MS, useCallback(reload, [reload]));
  return (
    <section aria-label="Why nothing moves" aria-live="polite">
      <ProblemNote problem={problem} />
      {value === undefined ? null : value.reasons.length === 0 ? (
        <p class="good">Nothing hinders this queue.</p>
      ) : (
        <ul class="findings">
          {value.reasons.map(({ text, advice }) => (
            <li key={text} class={value.moves ? 'ok' : 'warn'}>
              {text}
              <span class="quiet"> – {advice}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Actions({ queue: { queue, paused } }: { readonly queue: LiveQueue }) {
  const [isAsking, setAsking] = useState(false);
  const [told, setTold] = useState('');
  const finish = (text: string) => {
    setTold(text);
    setAsking(false);
  };
  return (
    <div class="actions">
      <button type="button" onClick={() => setAsking(true)}>
        {paused ? 'Resume …' : 'Pause …'}
      </button>
      <span role="status">{told}</span>
      {isAsking ? <PauseQueue queue={queue} paused={paused} finish={finish} close={() => setAsking(false)} /> : null}
    </div>
  );
}

// What somebody set by command, above what the code says, and the way back to that.

type Override = Schemas['SettingOverride'];

function Overrides({ queue }: { readonly queue: string }) {
  const { value, problem, reload } = useAsked(calls.queuesSettings, { queue });
  const [asked, setAsked] = useState<Override>();
  const [told, setTold] = useState('');
  if (value === undefined) return <ProblemNote problem={problem} />;
  return (
    <>
      <p role="status">{told}</p>
      {value.overrides.length === 0 ? null : (
        <section aria-labelledby="overrides">
          <h2 id="overrides">Set by command</h2>
          <Table
            of="settings that were set by command"
            columns={['Setting', 'Holds', 'The code says', 'By', 'Since', 'Reason', 'Change']}
          >
            {value.overrides.map((one) => (
              <tr key={`${nameOf(one)} ${JSON.stringify(one.value)}`}>
                <th scope="row">{nameOf(one)}</th>
                <td class="id">{saidText(one, one.value)}</td>
                <td class="id">{one.code === undefined ? 'nothing' : saidText(one, one.code)}</td>
                <td>{one.by}</td>
                <td>
                  <Instant atMs={one.atMs} />
                </td>
                <td>{one.reason}</td>
                <td>
                  <May scope={one.setting === 'redact' ? 'admin' : 'write'} queue={queue}>
                    <button type="button" onClick={() => setAsked(one)}>
                      Take back …
                    </button>
                  </May>
                </td>
              </tr>
            ))}
          </Table>
        </section>
      )}
      {asked === undefined ? null : (
        <TakeBack
          {...{ queue, override: asked }}
          isOneOfSeveral={value.overrides.filter((one) => nameOf(one) === nameOf(asked)).length > 1}
          close={() => setAsked(undefined)}
          finish={() => {
            setTold(`The override of ${nameOf(asked)} is taken back.`);
            setAsked(undefined);
            reload();
          }}
        />
      )}
    </>
  );
}

interface TakesBack {
  readonly queue: string;
  readonly override: Override;
  /** Several limits of each group are set by command, and go together. */
  readonly isOneOfSeveral: boolean;
  readonly finish: () => void;
  readonly close: () => void;
}

function TakeBack({ queue, override, isOneOfSeveral, finish, close }: TakesBack) {
  const { setting, group, code } = override;
  return (
    <Confirm
      title={`Take ${nameOf(override)} back`}
      yes="Take it back"
      close={close}
      act={async () => {
        if (group === undefined) await ask(calls.queuesUnset, { queue, setting });
        else await ask(calls.groupsUnset, { queue, group });
        finish();
      }}
    >
      <p>
        {isOneOfSeveral
          ? `All that was set of ${nameOf(override)} by command is taken back. Then what the code says holds.`
          : code === undefined
            ? `The code says nothing of ${nameOf(override)}, so the default holds.`
            : `Then what the code says holds: ${saidText(override, code)}.`}
      </p>
    </Confirm>
  );
}

const nameOf = ({ setting, group }: Override): string => (group === undefined ? setting : `the limits of ${group}`);

function saidText({ setting }: Override, value: unknown): string {
  if (value === false) return setting === 'history' || setting === 'broadcast' ? 'off' : 'no limit';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

// Throughput, lateness and run time of the last hour or day.

const EVERY_MS = 30_000;

function Charts({ queue }: { readonly queue: string }) {
  const [hours, setHours] = useState<'1' | '24'>('1');
  const { value, problem, reload } = useAsked(calls.queuesMinutes, { queue, hours });
  useEvery(EVERY_MS, useCallback(reload, [reload]));
  return (
    <section aria-label="Charts">
      <h2>{hours === '1' ? 'The last hour' : 'The last day'}</h2>
      <p class="actions">
        {(['1', '24'] as const).map((choice) => (
          <button key={choice} type="button" aria-pressed={hours === choice} onClick={() => setHours(choice)}>
            {choice === '1' ? 'Hour' : 'Day'}
          </button>
        ))}
      </p>
      <ProblemNote problem={problem} />
      {value === undefined ? null : value.on ? (
        <Drawn minutes={value} />
      ) : (
        <p>
          There are no counts by the minute yet. The first come within two minutes, if the daemon that leads the queue
          has the role <code>http</code> or <code>http.minutes: on</code>.
        </p>
      )}
    </section>
  );
}

function Drawn({ minutes }: { readonly minutes: Schemas['QueueMinutes'] }) {
  const { startMs, stepMs, counts, known } = minutes;
  const atMs = known.map((_, step) => startMs + step * stepMs);
  const rate = (values: readonly number[]) =>
    values.map((count, step) => (known[step] === true ? Math.round((count / stepMs) * 10_000) / 10 : null));
  return (
    <div class="charts">
      <TimeChart
        title="Jobs per second"
        atMs={atMs}
        lines={[
          { name: 'scheduled', values: rate(counts.scheduled), colour: 2 },
          { name: 'completed', values: rate(counts.done), colour: 1 },
          { name: 'retried', values: rate(counts.retried), colour: 3 },
          { name: 'dead', values: rate(counts.dead), colour: 4 },
        ]}
        text={numberText}
      />
      <TimeChart title="Lateness of starts" atMs={atMs} lines={spread(minutes.start)} text={latenessText} />
      <TimeChart title="Lateness of promotions" atMs={atMs} lines={spread(minutes.promotion)} text={latenessText} />
      <TimeChart title="Run time" atMs={atMs} lines={spread(minutes.run)} text={latenessText} />
    </div>
  );
}

const spread = ({ p50Ms, p99Ms }: Schemas['SpreadSteps']): readonly Line[] => [
  { name: 'p50', values: p50Ms, colour: 1 },
  { name: 'p99', values: p99Ms, colour: 2 },
];

// Pause with a reason for the next person who looks, and resume.

interface Asked {
  readonly queue: string;
  readonly paused: boolean;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

const REASON_MAX = 200;

function PauseQueue({ queue, paused, finish, close }: Asked) {
  const [reason, setReason] = useState('');

  async function act(): Promise<void> {
    if (paused) await ask(calls.queuesResume, { queue });
    else await ask(calls.queuesPause, { queue }, reason === '' ? {} : { reason });
    finish(paused ? 'The queue goes on.' : 'The queue is paused. Running jobs go on to their end.');
  }

  return (
    <Confirm
      title={paused ? `Resume ${queue}` : `Pause ${queue}`}
      yes={paused ? 'Resume' : 'Pause'}
      act={act}
      close={close}
    >
      {paused ? (
        <p>What is due starts at once.</p>
      ) : (
        <div class="fields">
          <label>
            Reason
            <input maxLength={REASON_MAX} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        </div>
      )}
    </Confirm>
  );
}
