/**
 * A number that one tries: a slider for whoever wants to see what happens, and a field for whoever knows the number. Both say the
 * same. An empty field is what holds now, and there the slider begins.
 */
import { words } from '../../words/words.ts';
import { countOf, stepOf, stepsTo } from './steps.ts';

const said = words.simulate;

interface KnobOf {
  /** Of the field, as in the address. */
  readonly name: string;
  readonly label: string;
  readonly value: string;
  /** What holds now, in words. */
  readonly isNow: string;
  /** The same as a number, in what the slider counts; undefined: no limit, which is its right end. */
  readonly nowIs: number | undefined;
  readonly max: number;
  /** Behind the number: `/s`. */
  readonly unit?: string;
  readonly set: (value: string) => void;
  /** The slider was let go. */
  readonly play: (value: string) => void;
}

export function Knob({ name, label, value, isNow, nowIs, max, unit = '', set, play }: KnobOf) {
  const steps = stepsTo(max);
  const textAt = (at: number) => (steps[at] === undefined ? '' : `${steps[at]}${unit}`);
  const at = stepOf(steps, value === '' ? nowIs : (countOf(value) ?? nowIs));
  return (
    <div class="knob">
      <label class="field">
        {label}
        <input
          name={name}
          value={value}
          placeholder={isNow}
          autocomplete="off"
          onInput={({ currentTarget }) => set(currentTarget.value.trim())}
        />
      </label>
      <input
        type="range"
        min={0}
        // No limit is one step more, where none is what holds now.
        max={nowIs === undefined ? steps.length : steps.length - 1}
        value={at}
        aria-label={said.slide(label)}
        aria-valuetext={value === '' ? isNow : value}
        onInput={({ currentTarget }) => set(textAt(currentTarget.valueAsNumber))}
        onChange={({ currentTarget }) => play(textAt(currentTarget.valueAsNumber))}
      />
    </div>
  );
}
