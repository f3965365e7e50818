/** What one can do with a queue as a whole: pause it, close it for some time, and take the question somewhere else. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import * as calls from '../../calls.ts';
import type { LiveQueue } from '../../live.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Icon } from '../../parts/icon.tsx';
import { May } from '../../parts/may.tsx';
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
  const { queue, paused, limits } = found;
  const [asked, setAsked] = useState<'pause' | 'close'>();
  const back = { close: () => setAsked(undefined) };
  const done = (told: string) => {
    setAsked(undefined);
    changed(told);
  };
  return (
    <div class="tools">
      <May scope="write" queue={queue}>
        <button type="button" class={paused ? 'primary' : undefined} onClick={() => setAsked('pause')}>
          <Icon name={paused ? 'play' : 'pause'} />
          {paused ? said.resume : said.pause}
        </button>
        {limits === undefined ? null : isClosed ? (
          <button type="button" onClick={() => void ask(calls.queuesOpen, { queue }).then(() => changed(said.opened))}>
            {said.open}
          </button>
        ) : (
          <button type="button" onClick={() => setAsked('close')}>
            {said.close}
          </button>
        )}
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
      {asked === 'pause' ? <Pause {...{ found, done }} {...back} /> : null}
      {asked === 'close' ? <Close {...{ queue, done }} {...back} /> : null}
    </div>
  );
}

interface Dialog {
  readonly done: (told: string) => void;
  readonly close: () => void;
}

function Pause({ found: { queue, paused }, done, close }: Dialog & { readonly found: LiveQueue }) {
  const [reason, setReason] = useState('');
  async function act(): Promise<void> {
    if (paused) await ask(calls.queuesResume, { queue });
    else await ask(calls.queuesPause, { queue }, reason === '' ? {} : { reason });
    done(paused ? said.resumed : said.paused);
  }
  return (
    <Confirm
      title={paused ? said.resumeTitle(queue) : said.pauseTitle(queue)}
      yes={paused ? said.resumeYes : said.pauseYes}
      act={act}
      close={close}
    >
      {paused ? (
        <p>{said.resumeText}</p>
      ) : (
        <div class="fields">
          <p>{said.pauseText}</p>
          <Reason value={reason} set={setReason} />
        </div>
      )}
    </Confirm>
  );
}

function Close({ queue, done, close }: Dialog & { readonly queue: string }) {
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
