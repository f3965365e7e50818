/** What users see in their editor of an option is the comment of its row, although the types are made from the table. */
import { join } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { optionNames, optionsOfFires } from '../../src/job/fields.ts';
import { root } from '../support/repository.ts';

const path = join(root, 'src/schedule/input.ts');
const program = ts.createProgram([path], {
  strict: true,
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  types: [],
  skipLibCheck: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  exactOptionalPropertyTypes: true,
});

/** The properties of a type that a file exports → whether each has a comment. */
function commented(file: string, name: string): ReadonlyMap<string, boolean> {
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(join(root, file));
  const symbol = source && checker.getSymbolAtLocation(source);
  const type = symbol && checker.getExportsOfModule(symbol).find((one) => one.name === name);
  if (!type) throw new Error(`${file} does not export ${name}`);
  return new Map(
    checker
      .getDeclaredTypeOfSymbol(type)
      .getProperties()
      .map((property) => [property.name, property.getDocumentationComment(checker).length > 0]),
  );
}

test('every option of ScheduleOptions has its comment', () => {
  const found = commented('src/job/options.ts', 'ScheduleOptions');
  expect([...found.keys()]).toEqual(optionNames);
  expect([...found].filter(([, has]) => !has)).toEqual([]);
});

test('every option that a schedule can say has its comment in ScheduleInput', () => {
  const found = commented('src/schedule/input.ts', 'ScheduleInput');
  expect(optionsOfFires.filter(({ name }) => found.get(name) !== true)).toEqual([]);
});
