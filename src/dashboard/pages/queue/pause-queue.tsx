/** Pause with a reason for the next person who looks, and resume. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import { at } from '../../parts/at.ts';
import { Confirm } from '../../parts/confirm.tsx';

interface Asked {
  readonly queue: string;
  readonly paused: boolean;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

const REASON_MAX = 200;

export function PauseQueue({ queue, paused, finish, close }: Asked) {
  const [reason, setReason] = useState('');

  async function act(): Promise<void> {
    if (paused) await ask(`POST ${at`queues/${queue}/resume`}`);
    else await ask(`POST ${at`queues/${queue}/pause`}`, reason === '' ? {} : { reason });
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
