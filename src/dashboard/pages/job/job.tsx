/** One job: its state in a sentence, where its time went, its starts, what happened to it, what it carries, what can be done with it. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { notKept } from '../../../job/job-facts.ts';
import { isLiveState } from '../../../job/state.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { useEvery } from '../../live.ts';
import { useAsked } from '../../parts/asked.ts';
import { May, useMay } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { Id, JobLink } from '../../parts/table.tsx';
import { relativeText, spanText } from '../../parts/words.ts';
import type { Route } from '../../router.ts';
import { words } from '../../words/words.ts';
import { JobActions } from './actions.tsx';
import { Facts } from './facts.tsx';
import type { Change, Report } from './life.ts';
import { lifeOf, ofThisLife } from './life.ts';
import { Log } from './log.tsx';
import { Attempts, Share } from './picture.tsx';
import { Said } from './said.tsx';
import { Story } from './story.tsx';
import '../../css/job.css';

const NO_CHANGES: readonly Change[] = [];

export function Job({ path: [queue = '', id = ''], query }: Route) {
  const bare = query.get('bare') === 'true' ? 'true' : undefined;
  const { value: job, problem, reload } = useAsked(calls.jobsGet, { queue, id, bare });
  const [told, setTold] = useState('');
  const shown = {
    reload,
    done(text: string) {
      setTold(text);
      reload();
    },
  };
  return (
    <>
      {job === undefined ? <Unknown id={id} reload={reload} /> : <Known job={job} {...shown} />}
      <ProblemNote problem={problem} />
      <p role="status" class={told === '' ? undefined : 'toast job-told'}>
        {told}
      </p>
      {job !== undefined && isLiveState(job.state) ? <Again job={job} reload={reload} /> : null}
    </>
  );
}

/** Before the answer, and where there is none. */
function Unknown({ id, reload }: { readonly id: string; readonly reload: () => void }) {
  return (
    <section class="say">
      <p class="over quiet">{words.job.heading}</p>
      <h1>
        <Id text={id} isWhole />
      </h1>
      <p>
        <button type="button" onClick={reload}>
          {words.parts.lookAgain}
        </button>
      </p>
    </section>
  );
}

/** A job that moves is looked at more often than one that waits for its time. */
const SOON_MS = 3000;
const LATER_MS = 10_000;

function Again({ job: { state, dueMs = 0, nowMs }, reload }: { readonly job: Report; readonly reload: () => void }) {
  useEvery(state === 'scheduled' && dueMs > nowMs + LATER_MS ? LATER_MS : SOON_MS, reload);
  return null;
}

interface Shown {
  readonly job: Report;
  readonly reload: () => void;
  readonly done: (told: string) => void;
}

function Known(shown: Shown) {
  // Whoever may not read the audit is not refused: it is not asked for.
  const isReader = useMay({ scope: 'admin' });
  return isReader ? <WithChanges {...shown} /> : <Page {...shown} changes={undefined} />;
}

/** More changes of one job stand in the audit. */
const CHANGES_MAX = 20;

function WithChanges({ job, reload, done }: Shown) {
  const { queue, id } = job;
  const { value, reload: askAgain } = useAsked(calls.audit, { queue, target: id, limit: CHANGES_MAX });
  // Somebody else may have changed it meanwhile.
  const seen = useRef(`${job.state} ${job.etag}`);
  useEffect(() => {
    const now = `${job.state} ${job.etag}`;
    if (seen.current !== now) askAgain();
    seen.current = now;
  }, [job.state, job.etag, askAgain]);
  const both = () => {
    reload();
    askAgain();
  };
  const told = (text: string) => {
    done(text);
    askAgain();
  };
  return <Page job={job} reload={both} done={told} changes={ofThisLife(job, value?.entries ?? NO_CHANGES)} />;
}

/** @param changes the newest first; undefined where the caller may not see them */
function Page({ job, reload, done, changes }: Shown & { readonly changes: readonly Change[] | undefined }) {
  const life = lifeOf(job);
  const missing = notKept(job);
  return (
    <>
      <div class="job-head">
        <Said job={job} life={life} changes={changes ?? NO_CHANGES} />
        <div class="tools job-tools">
          <May scope="write" queue={job.queue}>
            <JobActions job={job} done={done} />
          </May>
          <button type="button" class="ghost" onClick={reload}>
            {words.parts.lookAgain}
          </button>
        </div>
      </div>
      <div class="split job-split">
        <div>
          {job.progress === undefined ? null : <Progress progress={job.progress} nowMs={job.nowMs} />}
          {job.waitsFor === undefined ? null : <WaitsFor job={job} wait={job.waitsFor} />}
          {life === undefined ? null : <Share life={life} />}
          {life === undefined ? null : <Attempts life={life} />}
          {missing === 0 ? null : <p class="quiet">{words.job.attempts.missing(missing)}</p>}
          <Story job={job} changes={changes} />
          {job.log === undefined ? null : <Log log={job.log} />}
        </div>
        <Facts job={job} />
      </div>
    </>
  );
}

function Progress({ progress, nowMs }: { readonly progress: Schemas['JobProgress']; readonly nowMs: number }) {
  const { fraction, text, atMs } = progress;
  return (
    <section aria-label={words.job.progress} class="job-progress">
      <header class="sec">
        <h2>{words.job.progress}</h2>
        <p>
          <b>{Math.floor(fraction * 100)} %</b>
          {text === undefined ? null : `, ${text}`}, {relativeText(Math.min(atMs, nowMs), nowMs)}
        </p>
      </header>
      <progress value={fraction} max={1} aria-label={words.job.progress} />
    </section>
  );
}

/** Where it stands in line, and what lets nobody through. */
function WaitsFor({ job: { queue, nowMs }, wait }: { readonly job: Report; readonly wait: Schemas['JobWait'] }) {
  const { group, text, obstacles } = wait;
  const { title, held, unstarted, group: itsGroup } = words.job.why;
  return (
    <section aria-label={title}>
      <header class="sec">
        <h2>{title}</h2>
        <p>{text}</p>
        {group === undefined ? null : (
          <a href={`#/groups/${encodeURIComponent(queue)}/${encodeURIComponent(group)}`}>{itsGroup}</a>
        )}
      </header>
      <ul class="obstacles">
        {obstacles.map(({ kind, text: what, holders = [], keeper }) => (
          <li key={kind}>
            {what}
            <ul>
              {keeper === undefined ? null : (
                <li>
                  <JobLink queue={queue} id={keeper.id} bare={keeper.bare} />
                </li>
              )}
              {holders.map(({ id, bare, sinceMs, owner }) => (
                <li key={`${bare} ${id}`}>
                  <JobLink queue={queue} id={id} bare={bare} />{' '}
                  <span class="quiet">
                    {held(spanText(Math.max(0, nowMs - sinceMs)))},{' '}
                    {owner === undefined ? unstarted : <Id text={owner} />}
                  </span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  );
}
