/** What one can do with a group: close it for some time and open it again, and give it limits of its own. */
import { useState } from 'preact/hooks';
import { ask, askJson } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { May } from '../../parts/may.tsx';
import { ProblemNote } from '../../parts/problem.tsx';
import { groupLimits } from '../../setting-rows.ts';
import { words } from '../../words/words.ts';
import { Field, For, Reason } from './fields.tsx';
import { bodyOf, textOf } from './values.ts';

const { groups: said } = words.queue;

interface Acts {
  readonly queue: string;
  /** Or the beginning of names and an asterisk, which cannot be closed. */
  readonly group: string;
  readonly closed: Schemas['Group']['closed'];
  readonly settings: Schemas['SettingsView'] | undefined;
  readonly done: (told: string) => void;
}

export function GroupActs({ queue, group, closed, settings, done }: Acts) {
  const [asked, setAsked] = useState<'close' | 'limits'>();
  const [problem, setProblem] = useState<unknown>();
  const dialog = {
    ...{ queue, group, settings, close: () => setAsked(undefined) },
    done(told: string) {
      setAsked(undefined);
      done(told);
    },
  };
  return (
    <May scope="write" queue={queue}>
      {closed !== undefined ? (
        <button
          type="button"
          aria-label={said.openOne(group)}
          // It does no harm, and closing it again is one step.
          onClick={() => void ask(calls.groupsOpen, { queue, group }).then(() => done(said.opened(group)), setProblem)}
        >
          {said.open}
        </button>
      ) : group.endsWith('*') ? null : (
        <button type="button" class="ghost" aria-label={said.closeOne(group)} onClick={() => setAsked('close')}>
          {said.close}
        </button>
      )}
      <button type="button" class="ghost" aria-label={said.limitsOne(group)} onClick={() => setAsked('limits')}>
        {said.limits}
      </button>
      {problem === undefined ? null : <ProblemNote problem={problem} />}
      {asked === 'close' ? <CloseGroup {...dialog} /> : null}
      {asked === 'limits' ? <LimitGroup {...dialog} /> : null}
    </May>
  );
}

interface Dialog extends Omit<Acts, 'closed'> {
  readonly close: () => void;
}

function CloseGroup({ queue, group, done, close }: Dialog) {
  const [wait, setWait] = useState('1h');
  const [reason, setReason] = useState('');
  async function act(): Promise<void> {
    await ask(calls.groupsClose, { queue, group }, { for: wait, ...(reason === '' ? {} : { reason }) });
    done(said.closed(group, wait));
  }
  return (
    <Confirm
      title={said.closeTitle(group)}
      yes={said.closeYes}
      isDangerous
      canConfirm={wait !== ''}
      {...{ act, close }}
    >
      <div class="fields">
        <p>{said.closeText}</p>
        <For value={wait} set={setWait} />
        <Reason value={reason} set={setReason} />
      </div>
    </Confirm>
  );
}

/** It begins with what the group has of its own. */
function LimitGroup({ queue, group, settings, done, close }: Dialog) {
  const own: Readonly<Record<string, unknown>> = { ...settings?.settings.groups?.[group] };
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(groupLimits.map(({ name, kind }) => [name, textOf(kind, own[name])])),
  );
  const [reason, setReason] = useState('');
  async function act(): Promise<void> {
    const body = { ...bodyOf(groupLimits, values), ...(reason === '' ? {} : { reason }) };
    await askJson(calls.groupsSet, { queue, group }, { json: JSON.stringify(body) });
    done(said.limitsSet(group));
  }
  return (
    <Confirm title={said.limitsTitle(group)} yes={said.limitsYes} {...{ act, close }}>
      <div class="fields">
        <p>{said.limitsText}</p>
        {groupLimits.map(({ name, allowed }) => (
          <Field
            key={name}
            name={words.queue.settings.parts[name] ?? name}
            value={values[name] ?? ''}
            set={(value) => setValues({ ...values, [name]: value })}
            hint={allowed}
          />
        ))}
        <Reason value={reason} set={setReason} />
      </div>
    </Confirm>
  );
}
