/** What is shown of a queue. It goes into the address when somebody presses Enter or the button. */
import { useState } from 'preact/hooks';
import { instantOf, type JobFilter, localOf, STATES } from './filters.ts';

interface Form {
  readonly filter: JobFilter;
  readonly apply: (filter: JobFilter) => void;
}

const TEXTS = [
  { field: 'idPrefix', label: 'Id begins with' },
  { field: 'name', label: 'Name' },
  { field: 'tag', label: 'Tag' },
] as const;
const DUES = [
  { field: 'dueFrom', label: 'Due from' },
  { field: 'dueTo', label: 'Due before' },
] as const;

/** Give it the filter of the address as `key`: another address, another form. */
export function FilterForm({ filter, apply }: Form) {
  const [draft, setDraft] = useState(filter);
  const set = (field: keyof JobFilter, value: string) => setDraft({ ...draft, [field]: value });
  return (
    <form
      class="filters"
      aria-label="Filter"
      onSubmit={(event) => {
        event.preventDefault();
        apply(draft);
      }}
    >
      <label>
        State
        <select value={draft.state} onChange={(event) => apply({ ...draft, state: event.currentTarget.value })}>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {state}
            </option>
          ))}
          <option value="scheduled,ready,running">all that live</option>
        </select>
      </label>
      {TEXTS.map(({ field, label }) => (
        <label key={field}>
          {label}
          <input value={draft[field]} onInput={(event) => set(field, event.currentTarget.value)} />
        </label>
      ))}
      {DUES.map(({ field, label }) => (
        <label key={field}>
          {label}
          <input
            type="datetime-local"
            value={localOf(draft[field])}
            onInput={(event) => set(field, instantOf(event.currentTarget.value))}
          />
        </label>
      ))}
      <button type="submit" class="primary">
        Show
      </button>
    </form>
  );
}
