/** What one can do with a queue as a whole: pause it, close it for some time, and take the question somewhere else. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import * as calls from '../../calls.ts';
import type { LiveQueue } from '../../live.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Icon } from '../../parts/icon.tsx';
import { May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { words } from '../../words/words.ts';
import { addressOf } from './addresses.ts';
import { For, Reason } from './fields.tsx';

const { act: said } = words.queue;

interface Acts {
  readonly found: LiveQueue;
  /** Until a time, and not paused. */
  readonly isClosed: boolean;
  /** Something about lateness. */
  readonly promises: boolean;
  /** Says what is different now, and asks anew. */
  readonly changed: (told: string) => void;
}

export function Tools({ found, isClosed, promises, changed }: Acts) {
  const { queue } = found;
  return (
    <div class="tools">
      <May scope="write" queue={queue}>
        <Holds {...{ found, isClosed, changed }} />
      </May>
      <a class="btn" href={addressOf('simulate', queue)}>
        <Icon name="simulate" />
        {said.simulate}
      </a>
      {promises ? (
        <a class="btn" href="#/slo">
          <Icon name="slo" />
          {said.slo}
        </a>
      ) : null}
      <May scope="write" queue={queue}>
        <a class="btn" href={addressOf('create', queue)}>
          <Icon name="plus" />
          {said.create}
        </a>
      </May>
    </div>
  );
}

/** A dialog stays the one that was asked for, whatever somebody else does to the queue meanwhile. */
function Holds({ found: { queue, paused, limits }, isClosed, changed }: Omit<Acts, 'promises'>) {
  const [asked, setAsked] = useState<'pause' | 'resume' | 'close'>();
  const [problem, setProblem] = useState<unknown>();
  const done = (told: string) => {
    setAsked(undefined);
    setProblem(undefined);
    changed(told);
  };
  const dialog: Dialog = { queue, done, close: () => setAsked(undefined) };
  const open = () => void ask(calls.queuesOpen, { queue }).then(() => done(said.opened), setProblem);
  return (
    <>
      <button
        type="button"
        class={paused ? 'primary' : undefined}
        onClick={() => setAsked(paused ? 'resume' : 'pause')}
      >
        <Icon name={paused ? 'play' : 'pause'} />
        {paused ? said.resume : said.pause}
      </button>
      {limits === undefined ? null : isClosed ? (
        <button type="button" onClick={open}>
          {said.open}
        </button>
      ) : (
        <button type="button" onClick={() => setAsked('close')}>
          {said.close}
        </button>
      )}
      {asked === 'pause' ? <Pause {...dialog} /> : null}
      {asked === 'resume' ? <Resume {...dialog} /> : null}
      {asked === 'close' ? <Close {...dialog} /> : null}
      <ProblemNote problem={problem} />
    </>
  );
}

interface Dialog {
  readonly queue: string;
  readonly done: (told: string) => void;
  readonly close: () => void;
}

function Pause({ queue, done, close }: Dialog) {
  const [reason, setReason] = useState('');
  async function act(): Promise<void> {
    await ask(calls.queuesPause, { queue }, reason === '' ? {} : { reason });
    done(said.paused);
  }
  return (
    <Confirm title={said.pauseTitle(queue)} yes={said.pauseYes} act={act} close={close}>
      <div class="fields">
        <p>{said.pauseText}</p>
        <Reason value={reason} set={setReason} />
      </div>
    </Confirm>
  );
}

function Resume({ queue, done, close }: Dialog) {
  async function act(): Promise<void> {
    await ask(calls.queuesResume, { queue });
    done(said.resumed);
  }
  return (
    <Confirm title={said.resumeTitle(queue)} yes={said.resumeYes} act={act} close={close}>
      <p>{said.resumeText}</p>
    </Confirm>
  );
}

function Close({ queue, done, close }: Dialog) {
  const [wait, setWait] = useState('1h');
  const [reason, setReason] = useState('');
  async function act(): Promise<void> {
    await ask(calls.queuesClose, { queue }, { for: wait, ...(reason === '' ? {} : { reason }) });
    done(said.closed(wait));
  }
  return (
    <Confirm
      title={said.closeTitle(queue)}
      yes={said.closeYes}
      canConfirm={wait !== ''}
      isDangerous
      act={act}
      close={close}
    >
      <div class="fields">
        <p>{said.closeText}</p>
        <For value={wait} set={setWait} />
        <Reason value={reason} set={setReason} />
      </div>
    </Confirm>
  );
}
