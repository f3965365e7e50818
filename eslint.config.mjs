/**
 * Only what Biome cannot see: rules that need types, and how long a function is. A promise nobody waits for is how a scheduler loses a job without
 * a trace, and Biome's own rule missed un-awaited Redis calls; test/lint.test.ts plants some and sees them caught.
 */
import tseslint from 'typescript-eslint';

export default [
  { ignores: ['dist/', 'coverage/', '.cache/', '.duestream/'] },
  {
    files: ['**/*.ts', '**/*.tsx', '**/*.mjs'],
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    languageOptions: {
      parser: tseslint.parser,
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { '@typescript-eslint': tseslint.plugin },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  {
    // A function fits a screen. What was built as one closure is functions over an object of parts instead.
    files: ['src/**/*.ts'],
    rules: { 'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }] },
  },
];
