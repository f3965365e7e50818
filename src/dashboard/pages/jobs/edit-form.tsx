/** What is to be different about the selected jobs. What is left empty stays as it is. */
import { words } from '../../words/words.ts';

export interface Edit {
  readonly attempts?: number;
  readonly timeout?: string;
  readonly priority?: 'high' | 'normal' | 'low';
  readonly name?: string;
  /** JSON as it was typed. */
  readonly data?: string;
}

export const NO_EDIT: Edit = {};

interface Form {
  readonly edit: Edit;
  readonly set: (edit: Edit) => void;
}

const PRIORITIES = ['high', 'normal', 'low'] as const;

export function EditForm({ edit, set }: Form) {
  const change = (name: keyof Edit, value: string | number | undefined) => {
    const { [name]: _, ...rest } = edit;
    const next = value === undefined ? rest : { ...rest, [name]: value };
    set(Object.keys(next).length === 0 ? NO_EDIT : next);
  };
  const text = (name: 'timeout' | 'name' | 'data') => (event: { readonly currentTarget: { readonly value: string } }) =>
    change(name, event.currentTarget.value.trim() === '' ? undefined : event.currentTarget.value.trim());
  return (
    <div class="edit">
      <label class="field">
        {words.jobs.attempts}
        <input
          type="number"
          min={1}
          onInput={({ currentTarget: { value } }) => change('attempts', value === '' ? undefined : Number(value))}
        />
      </label>
      <label class="field">
        {words.jobs.timeout}
        <input placeholder="30s" onInput={text('timeout')} />
      </label>
      <label class="field">
        {words.jobs.priority}
        <select onChange={({ currentTarget: { value } }) => change('priority', value === '' ? undefined : value)}>
          <option value="">{words.jobs.asItIs}</option>
          {PRIORITIES.map((one) => (
            <option key={one} value={one}>
              {words.jobs.priorities[one]}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        {words.jobs.column.name}
        <input onInput={text('name')} />
      </label>
      <label class="field wide">
        {words.jobs.newData}
        <textarea rows={3} onInput={text('data')} />
      </label>
    </div>
  );
}
