/** The settings of a queue: which value holds and where it comes from; to change one with a reason, and to take it back. */
import { useState } from 'preact/hooks';
import { ask } from '../../api.ts';
import type { Schemas } from '../../api-types.ts';
import * as calls from '../../calls.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { May } from '../../parts/may.tsx';
import { Id, Instant, Table } from '../../parts/table.tsx';
import { type SettingRow, settingRows } from '../../setting-rows.ts';
import { words } from '../../words/words.ts';
import { groupAddress } from './addresses.ts';
import { ChangeSetting } from './change.tsx';
import { saidText, settingName } from './values.ts';

type View = Schemas['SettingsView'];
type Override = Schemas['SettingOverride'];

const { settings: said, tables } = words.queue;
const { columns } = said;

const nameOf = ({ setting, group }: Override): string =>
  group === undefined ? settingName(setting) : said.limitsOf(group);

interface Shown {
  readonly queue: string;
  readonly settings: View;
  readonly changed: (told: string) => void;
}

type Chosen = { readonly row: SettingRow } | { readonly override: Override };

export function Settings({ queue, settings, changed }: Shown) {
  const [chosen, setChosen] = useState<Chosen>();
  const [isOpen, setOpen] = useState(false);
  const close = () => setChosen(undefined);
  const finish = (told: string) => {
    close();
    changed(told);
  };
  const values: Readonly<Record<string, unknown>> = { ...settings.settings };
  const own = settings.overrides.filter(({ group }) => group !== undefined);
  const isSaid = ({ name }: SettingRow) => values[name] !== undefined;
  const rest = settingRows.filter((row) => !isSaid(row));
  const rowOf = (row: SettingRow) => <Row key={row.name} {...{ queue, row, settings, choose: setChosen }} />;
  return (
    <section aria-labelledby="settings">
      <header class="sec">
        <h2 id="settings">{said.title}</h2>
        <p>{said.text}</p>
      </header>
      <Table
        of={tables.settings}
        look="list texts settings"
        columns={[columns.setting, columns.holds, columns.from, columns.act]}
      >
        {settingRows.filter(isSaid).map(rowOf)}
        {own.map((override) => (
          <GroupRow key={override.group} {...{ queue, override, choose: setChosen }} />
        ))}
      </Table>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>{said.others(rest.length)}</summary>
        <Table
          of={tables.byDefault}
          look="list texts settings"
          columns={[columns.setting, columns.holds, columns.from, columns.act]}
        >
          {isOpen ? rest.map(rowOf) : null}
        </Table>
      </details>
      {chosen !== undefined && 'row' in chosen ? (
        <ChangeSetting {...{ queue, row: chosen.row, value: values[chosen.row.name], close, finish }} />
      ) : null}
      {chosen !== undefined && 'override' in chosen ? (
        <TakeBack {...{ queue, settings, override: chosen.override, close, finish }} />
      ) : null}
    </section>
  );
}

interface RowOf {
  readonly queue: string;
  readonly choose: (chosen: Chosen) => void;
}

function Row({ queue, row, settings, choose }: RowOf & { readonly row: SettingRow; readonly settings: View }) {
  const value = (settings.settings as Readonly<Record<string, unknown>>)[row.name];
  const overrides = settings.overrides.filter(({ setting, group }) => setting === row.name && group === undefined);
  const name = settingName(row.name);
  const [override] = overrides;
  return (
    <tr>
      <th scope="row" title={row.doc}>
        {name}
      </th>
      <td>
        <b>{saidText(row, value)}</b>
      </td>
      <td class="quiet">
        {override === undefined ? whereFrom(row, value, settings) : null}
        {overrides.map((one) => (
          <By key={JSON.stringify(one.value)} row={row} override={one} />
        ))}
      </td>
      <td class="acts">
        <May scope={row.scope} queue={queue}>
          {row.kind === 'groups' || (row.kind === 'yes' && value !== undefined) ? null : (
            <button type="button" class="ghost" aria-label={said.changeOne(name)} onClick={() => choose({ row })}>
              {said.change}
            </button>
          )}
          {override === undefined ? null : (
            <button
              type="button"
              class="ghost"
              aria-label={said.takeBackOne(name)}
              onClick={() => choose({ override })}
            >
              {said.takeBack}
            </button>
          )}
        </May>
      </td>
    </tr>
  );
}

function whereFrom({ name }: SettingRow, value: unknown, { overrides }: View): string {
  if (value === undefined) return said.byDefault;
  // Limits of single groups are set one by one.
  const isByGroup =
    name === 'groups' && Object.keys(Object(value)).every((one) => overrides.some(({ group }) => group === one));
  return isByGroup ? said.byGroup : said.byDefinition;
}

/** Who set it, when and why, and what held before. */
function By({ row, override: { by, atMs, reason, code } }: { readonly row: SettingRow; readonly override: Override }) {
  return (
    <span>
      {by === '' ? said.byCommand : said.by(by)} {atMs === 0 ? null : <Instant atMs={atMs} />}
      {reason === '' ? '. ' : `: ${said.quoted(reason)}. `}
      {code === undefined ? said.codeSaysNothing : said.codeSays(saidText(row, code))}{' '}
    </span>
  );
}

const GROUPS = settingRows.find(({ name }) => name === 'groups');

function GroupRow({ queue, override, choose }: RowOf & { readonly override: Override }) {
  const { group = '', value } = override;
  const row = GROUPS && { ...GROUPS, kind: 'perGroup' as const };
  return (
    <tr>
      <th scope="row">
        <a href={groupAddress(queue, group)}>
          {said.limitsOf('')}
          <Id text={group} />
        </a>
      </th>
      <td>
        <b>{row === undefined ? '' : saidText(row, value)}</b>
      </td>
      <td class="quiet">{row === undefined ? null : <By row={row} override={override} />}</td>
      <td class="acts">
        <May scope="write" queue={queue}>
          <button
            type="button"
            class="ghost"
            aria-label={said.takeBackOne(nameOf(override))}
            onClick={() => choose({ override })}
          >
            {said.takeBack}
          </button>
        </May>
      </td>
    </tr>
  );
}

interface TakesBack {
  readonly queue: string;
  readonly settings: View;
  readonly override: Override;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

function TakeBack({ queue, settings, override, finish, close }: TakesBack) {
  const { setting, group, code } = override;
  const name = nameOf(override);
  // Several limits of each group are set by command, and go together.
  const isOneOfSeveral = settings.overrides.filter((one) => nameOf(one) === name).length > 1;
  const row = settingRows.find((one) => one.name === setting);
  const act = async () => {
    if (group === undefined) await ask(calls.queuesUnset, { queue, setting });
    else await ask(calls.groupsUnset, { queue, group });
    finish(said.takenBack(name));
  };
  return (
    <Confirm title={said.takeBackTitle(name)} yes={said.takeBackYes} {...{ act, close }}>
      <p>
        {isOneOfSeveral
          ? said.takeBackAll(name)
          : code === undefined || row === undefined
            ? said.takeBackNone
            : said.takeBackTo(saidText(row, code))}
      </p>
    </Confirm>
  );
}
