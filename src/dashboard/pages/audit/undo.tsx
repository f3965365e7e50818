/** The way back from a change, beside it: what the audit says of before is what holds again. Each is a change of its own, with a reason of its own. */
import { useState } from 'preact/hooks';
import { ask, askJson } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { May } from '../../parts/may.tsx';
import { words } from '../../words/words.ts';

const say = words.audit.undo;

export type Entry = Schemas['AuditEntry'];
type Way = keyof typeof say.buttons;

interface Back {
  readonly way: Way;
  readonly act: (reason: string) => Promise<unknown>;
}

/** How one goes back. Undefined: what was done stays done, or the audit does not know what was before. */
function backOf(entry: Entry): Back | undefined {
  const { verb, queue = '', target = '', before = {} } = entry;
  const json = (body: object) => ({ json: JSON.stringify(body) });
  switch (verb) {
    case 'queues.pause':
      return { way: 'resume', act: (reason) => askJson(calls.queuesResume, { queue }, { reason }) };
    case 'schedules.pause':
      return { way: 'resume', act: (reason) => askJson(calls.schedulesResume, { name: target }, { reason }) };
    case 'workers.pause':
      return { way: 'resume', act: (reason) => askJson(calls.workersResume, { worker: target }, { reason }) };
    case 'queues.close':
      return { way: 'open', act: (reason) => askJson(calls.queuesOpen, { queue }, { reason }) };
    case 'groups.close':
      return { way: 'open', act: (reason) => askJson(calls.groupsOpen, { queue, group: target }, { reason }) };
    case 'tags.close':
      return { way: 'open', act: (reason) => askJson(calls.tagsOpen, { queue, tag: target }, { reason }) };
    case 'queues.set':
    case 'queues.unset':
      return { way: 'setBack', act: (reason) => settle(entry, reason) };
    case 'jobs.reschedule': {
      const { dueMs } = before;
      if (typeof dueMs !== 'number' || dueMs <= Date.now() || entry.count !== 1) return undefined;
      const body = json({ at: new Date(dueMs).toISOString() });
      return {
        way: 'moveBack',
        act: (reason) => askJson(calls.jobsReschedule, { queue, id: target }, { ...body, reason }),
      };
    }
    default:
      return undefined;
  }
}

/** What was said before is said again, and of what nothing was said nothing is. */
async function settle({ queue = '', before = {}, after = {} }: Entry, reason: string): Promise<void> {
  const said = Object.entries(before).filter(([, value]) => value !== null && value !== undefined);
  const unsaid = Object.keys(after).filter((field) => before[field] === null || before[field] === undefined);
  if (said.length > 0) await ask(calls.queuesSet, { queue }, { ...Object.fromEntries(said), reason });
  for (const setting of unsaid) await ask(calls.queuesUnset, { queue, setting });
}

/** What a change is about: a later change of the same is the one to take back. */
export const aboutOf = ({ verb, queue = '', target = '' }: Entry): string =>
  JSON.stringify([verb.split('.')[0], queue, target]);

interface UndoOf {
  readonly entry: Entry;
  readonly done: (told: string) => void;
}

export function Undo({ entry, done }: UndoOf) {
  const [isOpen, setOpen] = useState(false);
  const back = backOf(entry);
  if (back === undefined || entry.count === 0) return null;
  const name = entry.target ?? entry.queue ?? '';
  const close = () => setOpen(false);
  const act = async (reason: string) => {
    await back.act(reason);
    close();
    done(say.done[back.way](name));
  };
  return (
    <May scope="write" {...(entry.queue === undefined ? {} : { queue: entry.queue })}>
      <button
        type="button"
        class="ghost"
        aria-label={say.of(say.buttons[back.way], name)}
        onClick={() => setOpen(true)}
      >
        {say.buttons[back.way]}
      </button>
      {isOpen ? (
        <Confirm title={say.titles[back.way](name)} yes={say.yes[back.way]} asksWhy {...{ act, close }}>
          <p>{say.text}</p>
        </Confirm>
      ) : null}
    </May>
  );
}
