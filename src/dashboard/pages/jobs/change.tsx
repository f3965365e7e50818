/**
 * What is done with the selected jobs, or with all that the filter means. A dialog shows what will be, asks why, and its button names
 * the number. Jobs go by their ids, each as it was seen: what is sent twice is done once. What has started meanwhile stays as it is.
 */
import { useEffect, useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { Confirm, Which } from '../../parts/confirm.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useMay } from '../../parts/may.tsx';
import { ProblemNote, Unread } from '../../parts/problem.tsx';
import { quoted } from '../../parts/shell.ts';
import { words } from '../../words/words.ts';
import { carryOut, type Done, mayChange, type Plan, VERBS, type Verb } from './batches.ts';
import { type Edit, EditForm, NO_EDIT } from './edit-form.tsx';
import { askedOf, type JobFilter } from './filters.ts';
import { isLiveRow, keyOf, type Row } from './list.tsx';
import { isForgetful } from './missed.tsx';
import { byOf, type Move, MoveForm, moved } from './move-form.tsx';
import { Toast } from './toast.tsx';

interface PickedOf {
  readonly rows: readonly Row[];
  /** All that it means, also what is not shown yet. */
  readonly all: JobFilter | undefined;
  /** Undefined: all that there are, are shown. */
  readonly takeAll: (() => void) | undefined;
  readonly none: () => void;
  /** Something was changed. */
  readonly done: () => void;
  /** Its dialog opens when jobs are selected for the first time. */
  readonly first: Verb | undefined;
}

export function Picked({ rows, all, takeAll, none, done, first }: PickedOf) {
  const [verb, setVerb] = useState<Verb>();
  const hasRows = rows.length > 0;
  const [isFirst, setFirst] = useState(first !== undefined);
  useEffect(() => {
    if (!isFirst || !hasRows) return;
    setFirst(false);
    setVerb(first);
  }, [hasRows]);
  const [told, setTold] = useState<Done>();
  const may = useMay({ scope: 'write', ...(rows[0] && { queue: rows[0].queue }) });
  const started = rows.filter(({ state }) => state === 'running').length;
  const finish = (what: Done) => {
    setVerb(undefined);
    setTold(what);
    done();
  };
  return (
    <>
      {rows.length === 0 || !may ? null : (
        <div class="picked" role="toolbar" aria-label={words.jobs.withSelected}>
          <b>{all ? words.jobs.allSelected : words.jobs.selected(rows.length)}</b>
          {all || started === 0 ? null : (
            <span class="quiet">{words.jobs.canChange(rows.length - started, started)}</span>
          )}
          {all || takeAll === undefined ? null : (
            <button type="button" class="ghost" onClick={takeAll}>
              {words.jobs.takeAll}
            </button>
          )}
          <span class="acts">
            {VERBS.map((one) => (
              <button
                key={one}
                type="button"
                class={one === 'move' ? 'primary' : one === 'cancel' ? 'danger' : undefined}
                onClick={() => setVerb(one)}
              >
                {words.jobs.verbs[one].button}
              </button>
            ))}
            <button type="button" class="ghost" aria-label={words.jobs.selectNone} onClick={none}>
              <Icon name="close" />
            </button>
          </span>
        </div>
      )}
      {verb === undefined || !may ? null : (
        <Question {...{ verb, rows, all, finish }} close={() => setVerb(undefined)} />
      )}
      <Toast done={told} close={() => setTold(undefined)} undone={(what) => finish(what)} />
    </>
  );
}

interface Questions extends Pick<PickedOf, 'rows' | 'all'> {
  readonly verb: Verb;
  readonly finish: (done: Done) => void;
  readonly close: () => void;
}

function Question({ verb, rows, all, finish, close }: Questions) {
  const target = useTarget(rows, all);
  const [move, setMove] = useState<Move>();
  const [edit, setEdit] = useState<Edit>(NO_EDIT);
  const [reason, setReason] = useState('');
  // After an error the next press goes on behind what is done.
  const [plan, setPlan] = useState<Plan>();
  const able = target.rows.filter((row) => mayChange(verb, row));
  const count = words.jobs.count(able.length);
  const isSaid = verb === 'move' ? move !== undefined : verb === 'edit' ? edit !== NO_EDIT : true;
  const say = words.jobs.verbs[verb];

  async function act(): Promise<void> {
    const nowMs = Date.now();
    const begun: Plan = plan ?? {
      verb,
      reason: reason.trim(),
      edit,
      left: able.map((row) => ({ row, ...(move && { dueMs: Math.max(nowMs, moved(move, row.dueMs ?? nowMs)) }) })),
      result: undefined,
    };
    finish(await carryOut(begun, setPlan));
  }

  return (
    <Confirm
      title={`${say.title} ${target.isWhole ? count : ''}`}
      yes={verb === 'move' && move ? say.yes(count, byOf(move)) : say.yes(count, '')}
      no={words.jobs.back}
      isDangerous={verb === 'cancel'}
      canConfirm={target.isWhole && able.length > 0 && isSaid}
      act={act}
      close={close}
    >
      <ProblemNote problem={target.problem} />
      <Unread unread={target.unread} />
      {target.isWhole ? null : <p role="status">{words.jobs.lookedAt(target.rows.length)}</p>}
      {verb === 'move' ? <MoveForm rows={able} move={move} set={setMove} /> : null}
      {verb === 'edit' ? <EditForm edit={edit} set={setEdit} /> : null}
      <Notes verb={verb} target={target} able={able} />
      <label class="field">
        {words.jobs.why}
        <input
          value={reason}
          maxLength={200}
          placeholder={words.jobs.whySuch}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
      <Command verb={verb} rows={able} move={move} />
    </Confirm>
  );
}

interface Target {
  readonly problem?: unknown;
  /** Queues that could not be looked through: their jobs stay as they are. */
  readonly unread?: readonly Schemas['UnreadQueue'][];
  readonly rows: readonly Row[];
  /** All are there. */
  readonly isWhole: boolean;
  /** There are more than are changed at once. */
  readonly isCut: boolean;
}

const PAGE = 1000;
/** So many are changed at once. */
const AT_ONCE_MAX = 10_000;

/** The selected jobs, or page after page all that the filter means. */
function useTarget(rows: readonly Row[], all: JobFilter | undefined): Target {
  const [target, setTarget] = useState<Target>({ rows: all ? [] : rows, isWhole: all === undefined, isCut: false });
  useEffect(() => {
    if (all === undefined) return undefined;
    let isGone = false;
    const tell = (found: Target) => {
      if (!isGone) setTarget(found);
      return !isGone;
    };
    void pagesOf(all, tell).catch((problem: unknown) => tell({ problem, rows: [], isWhole: false, isCut: false }));
    return () => {
      isGone = true;
    };
  }, []);
  return target;
}

async function pagesOf(filter: JobFilter, tell: (target: Target) => boolean): Promise<void> {
  const found = new Map<string, Row>();
  const unread = new Map<string, Schemas['UnreadQueue']>();
  let cursor: string | undefined;
  do {
    const page = await ask(calls.jobsFind, { ...askedOf(filter), limit: PAGE, cursor });
    for (const row of page.jobs.filter(isLiveRow)) found.set(keyOf(row), row);
    for (const one of page.unread.filter((silent) => !isForgetful(silent))) unread.set(one.queue, one);
    cursor = page.cursor;
    const isCut = cursor !== undefined && found.size >= AT_ONCE_MAX;
    const isWhole = cursor === undefined || isCut;
    const rows = [...found.values()].slice(0, AT_ONCE_MAX);
    if (!tell({ rows, unread: [...unread.values()], isWhole, isCut })) return;
    if (isWhole) return;
  } while (cursor !== undefined);
}

const IDS_SHOWN = 20;

function Notes({
  verb,
  target,
  able,
}: {
  readonly verb: Verb;
  readonly target: Target;
  readonly able: readonly Row[];
}) {
  const runs = target.rows.filter(({ state }) => state === 'running').length;
  const bare = target.rows.filter((row) => row.bare && !mayChange(verb, row)).length;
  const notes = [
    ...(target.isCut ? [words.jobs.cut(AT_ONCE_MAX)] : []),
    ...(runs > 0 ? [verb === 'cancel' ? words.jobs.runningAsked(runs) : words.jobs.runningStay(runs)] : []),
    ...(bare > 0 ? [words.jobs.bareStay(bare)] : []),
    ...(verb === 'cancel' ? [words.jobs.noUndo] : []),
  ];
  return (
    <>
      {able.length === 0 || verb === 'move' ? null : (
        <Which of={words.jobs.name}>
          {able.slice(0, IDS_SHOWN).map((row) => (
            <li key={keyOf(row)} class="id">
              {row.id}
            </li>
          ))}
        </Which>
      )}
      {able.length > IDS_SHOWN && verb !== 'move' ? (
        <p class="quiet">{words.jobs.andOthers(able.length - IDS_SHOWN)}</p>
      ) : null}
      <ul class="notes">
        {notes.map((note) => (
          <li key={note}>
            <Icon name="clock" />
            {note}
          </li>
        ))}
      </ul>
    </>
  );
}

const COMMANDS_MAX = 20;
const COMMANDS: Readonly<Record<Verb, string | undefined>> = {
  move: 'reschedule',
  run: 'reschedule',
  cancel: 'cancel',
  edit: undefined,
};

/** The same on the command line: for a note, or for a night shift that has no browser. */
function Command({
  verb,
  rows,
  move,
}: {
  readonly verb: Verb;
  readonly rows: readonly Row[];
  readonly move: Move | undefined;
}) {
  const name = COMMANDS[verb];
  const flag = verb === 'run' ? ' --now' : verb === 'move' ? flagOf(move) : '';
  if (name === undefined || rows.length === 0 || rows.length > COMMANDS_MAX || flag === undefined) return null;
  const queues = [...new Set(rows.map(({ queue }) => queue))];
  const lines = queues.map((queue) => {
    const ids = rows.filter((row) => row.queue === queue).map(({ id }) => quoted(id));
    return `duestream ${name} ${quoted(queue)} ${ids.join(' ')}${flag}`;
  });
  return (
    <details class="command">
      <summary>{words.jobs.command}</summary>
      <pre>{lines.join('\n')}</pre>
    </details>
  );
}

function flagOf(move: Move | undefined): string | undefined {
  if (move === undefined) return undefined;
  return move.kind === 'at' ? ` --at ${new Date(move.atMs).toISOString()}` : ` --shift ${quoted(move.text)}`;
}
