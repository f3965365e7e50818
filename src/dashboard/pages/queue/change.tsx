/** A setting is changed by a form that its row of the table makes: one field, or one for each part. */
import { useState } from 'preact/hooks';
import { askJson } from '../../api.ts';
import { queryOf } from '../../call.ts';
import * as calls from '../../calls.ts';
import { Confirm } from '../../parts/confirm.tsx';
import type { SettingPart, SettingRow } from '../../setting-rows.ts';
import { words } from '../../words/words.ts';
import { addressOf } from './addresses.ts';
import { Field, Reason } from './fields.tsx';
import { bodyOf, settingName, textOf, typedValue } from './values.ts';

const { settings: said } = words.queue;
type Values = Readonly<Record<string, string>>;

interface Changes {
  readonly queue: string;
  readonly row: SettingRow;
  /** As it holds; undefined: nobody said anything. */
  readonly value: unknown;
  readonly finish: (told: string) => void;
  readonly close: () => void;
}

export function ChangeSetting({ queue, row, value, finish, close }: Changes) {
  const [values, setValues] = useState<Values>(() => typedOf(row, value));
  const [reason, setReason] = useState('');
  const name = settingName(row.name);
  async function act(): Promise<void> {
    const body = { [row.name]: changeOf(row, values), ...(reason === '' ? {} : { reason }) };
    const { changed } = await askJson(calls.queuesSet, { queue }, { json: JSON.stringify(body) });
    finish(changed.length > 0 ? said.changed(name) : said.unchanged(name));
  }
  return (
    <Confirm title={said.changeTitle(name)} yes={said.changeYes} {...{ act, close }}>
      <div class="fields">
        <p>{said.docs[row.name] ?? row.doc}.</p>
        <Fields {...{ row, values, set: (part, text) => setValues({ ...values, [part]: text }) }} />
        <Reason value={reason} set={setReason} />
        {['limit', 'rates', 'perGroup'].includes(row.kind) ? (
          <p>
            <a href={`${addressOf('simulate', queue)}${queryOf({ rate: row.kind === 'rates' ? values[ON] : '' })}`}>
              {said.simulate}
            </a>
          </p>
        ) : null}
      </div>
    </Confirm>
  );
}

interface FieldsOf {
  readonly row: SettingRow;
  readonly values: Values;
  readonly set: (part: string, text: string) => void;
}

function Fields({ row, values, set }: FieldsOf) {
  const isOn = values[ON] !== 'false';
  switch (row.kind) {
    case 'bounds':
      return (
        <>
          <Check name={said.isOn} isOn={isOn} set={(on) => set(ON, String(on))} />
          {isOn ? row.parts.map((part) => <Part key={part.name} of={row.name} {...{ part, values, set }} />) : null}
        </>
      );
    case 'perGroup':
      return (
        <>
          {row.parts.map((part) => (
            <Part key={part.name} of={row.name} {...{ part, values, set }} />
          ))}
        </>
      );
    case 'yes':
      return null;
    default:
      return (
        <Field
          name={said.value}
          value={values[ON] ?? ''}
          set={(text) => set(ON, text)}
          hint={`${said.allowed(said.allowedOf[row.name] ?? row.allowed)} ${row.kind === 'limit' || row.kind === 'rates' ? said.emptyIs : ''}`}
        />
      );
  }
}

/** The name of the only field, and of whether something with parts is on: no part is called so. */
const ON = '';

interface PartOf extends Omit<FieldsOf, 'row'> {
  /** The setting that it is a part of. */
  readonly of: string;
  readonly part: SettingPart;
}

function Part({ of, part, values, set }: PartOf) {
  const { name, kind, allowed, otherwise } = part;
  const text = said.parts[name] ?? name;
  if (kind === 'flag') {
    return <Check name={text} isOn={values[name] === 'true'} set={(on) => set(name, String(on))} />;
  }
  const empty = otherwise === undefined ? said.emptyIs : said.emptyPart(otherwise);
  return (
    <Field
      name={text}
      value={values[name] ?? ''}
      set={(typed) => set(name, typed)}
      hint={`${said.allowed(said.allowedOf[`${of}.${name}`] ?? allowed)} ${empty}`}
    />
  );
}

interface CheckOf {
  readonly name: string;
  readonly isOn: boolean;
  readonly set: (isOn: boolean) => void;
}

const Check = ({ name, isOn, set }: CheckOf) => (
  <label class="check">
    <input type="checkbox" checked={isOn} onChange={({ currentTarget }) => set(currentTarget.checked)} />
    {name}
  </label>
);

/** What the fields begin with. */
function typedOf({ kind, parts }: SettingRow, value: unknown): Values {
  if (kind !== 'bounds' && kind !== 'perGroup') return { [ON]: value === false ? '' : textOf(kind, value) };
  const first = parts[0]?.name ?? '';
  const all: Readonly<Record<string, unknown>> =
    typeof value === 'object' ? { ...value } : kind === 'perGroup' && value !== false ? { [first]: value } : {};
  return {
    [ON]: String(value !== false),
    ...Object.fromEntries(parts.map((part) => [part.name, textOf(part.kind, all[part.name])])),
  };
}

/** What the API is given: of limits an empty field takes them back. */
function changeOf({ kind, parts }: SettingRow, values: Values): unknown {
  switch (kind) {
    case 'bounds':
      return values[ON] === 'false' ? false : { ...bodyOf(parts, values) };
    case 'perGroup': {
      const typed = bodyOf(parts, values);
      return Object.fromEntries(parts.map(({ name }) => [name, typed[name] ?? false]));
    }
    case 'yes':
      return true;
    case 'paths':
    case 'names':
      return typedValue(kind, values[ON] ?? '') ?? [];
    case 'limit':
    case 'rates':
    case 'target':
      return typedValue(kind, values[ON] ?? '') ?? false;
    default:
      return typedValue(kind, values[ON] ?? '') ?? 0;
  }
}
