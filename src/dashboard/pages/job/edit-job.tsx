/** Changes name, attempts and data of a job that waits: only if it still is what was shown. */
import { useState } from 'preact/hooks';
import { ApiError, askJson } from '../../api.ts';
import { at } from '../../parts/at.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { changeText } from './change-text.ts';
import type { Job } from './job-shape.ts';

interface Edit {
  readonly job: Job;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

export function EditJob({ job, finish, close }: Edit) {
  const before = job.data === undefined ? '' : JSON.stringify(job.data, undefined, 2);
  const [data, setData] = useState(before);
  const [attempts, setAttempts] = useState(String(job.options.attempts ?? ''));
  const [name, setName] = useState(job.name ?? '');

  async function act(): Promise<void> {
    const change = changeText(changeOf(job, { name, attempts }), data === before || job.hidden ? undefined : data);
    if (change === '{}') {
      finish('Nothing was changed.');
      return;
    }
    const headers: Record<string, string> = job.etag === undefined ? {} : { 'If-Match': `"${job.etag}"` };
    await askJson(`PATCH ${at`queues/${job.queue}/jobs/${job.id}`}`, change, headers).catch(inWords);
    finish('Changed.');
  }

  return (
    <Confirm title="Edit the job" yes="Save" act={act} close={close}>
      <div class="fields">
        <label>
          Name
          <input value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          Attempts, empty: as the queue says
          <input
            inputMode="numeric"
            value={attempts}
            onInput={(event) => setAttempts(event.currentTarget.value.trim())}
          />
        </label>
        {job.hidden ? (
          <p>Your token may not see the data, so they stay as they are.</p>
        ) : (
          <label>
            Data (JSON)
            <textarea
              rows={10}
              spellcheck={false}
              value={data}
              onInput={(event) => setData(event.currentTarget.value)}
            />
          </label>
        )}
      </div>
    </Confirm>
  );
}

/** The API speaks of a header; whoever edits wants to know what to do. */
function inWords(error: unknown): never {
  if (!(error instanceof ApiError) || error.code !== 'changed') throw error;
  throw new Error(
    'Somebody has changed this job since you opened it, so nothing was saved. Go back, press "Look again", and edit it anew.',
    { cause: error },
  );
}

/** What differs from the job as it was shown. */
function changeOf(
  job: Job,
  { name, attempts }: { readonly name: string; readonly attempts: string },
): Readonly<Record<string, unknown>> {
  const isRenamed = name !== '' && name !== (job.name ?? '');
  const isSame = attempts === String(job.options.attempts ?? '');
  return {
    ...(isRenamed ? { name } : {}),
    ...(isSame ? {} : { attempts: attempts === '' ? null : Number(attempts) }),
  };
}
