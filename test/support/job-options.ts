/** An option of a job as its row in the table shows it, for tests that go through all of them. */
import { allOptions } from '../../src/job/fields.ts';
import type { OptionName, ScheduleOptions } from '../../src/job/options.ts';

/** The option with its example, and whatever it means nothing without. */
export function exampleOf(name: OptionName): ScheduleOptions {
  const found = allOptions.find((one) => one.name === name);
  if (!found) throw new Error(`the table has no ${name}`);
  return { ...found.option.beside, [name]: found.option.example };
}
