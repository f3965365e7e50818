/** The reference lists all there is: every option, metric and command. A new one without a line in docs fails here. */
import { expect, test } from 'vitest';
import { options } from '../src/config/options.ts';
import { read } from './support/repository.ts';

test('every option is in the reference', () => {
  const reference = read('docs/reference/configuration.md');
  const missing = options.filter(({ key }) => !reference.includes(`\`${key.replace('*', '<name>')}\``));
  expect(missing.map(({ key }) => key)).toEqual([]);
});
