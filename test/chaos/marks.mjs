/**
 * Marks: names that stand above lines of the product, alone in a comment, so that tests can find a line whatever its
 * words are. `-- @fence` in Lua and `// @fence` in TypeScript name the next line of code; a mark is there once per file.
 */

const MARK = /^\s*(?:--|\/\/) @([a-z][a-z-]*)$/;
const NO_CODE = /^\s*(?:--|\/\/|\/\*|\*|$)/;

/**
 * Name → index of the line that it names.
 *
 * @param {readonly string[]} lines of a file
 * @returns {ReadonlyMap<string, number>}
 */
export function marksIn(lines) {
  const marks = new Map();
  for (const [at, line] of lines.entries()) {
    const name = MARK.exec(line)?.[1];
    if (name === undefined) continue;
    if (marks.has(name)) throw new Error(`the mark @${name} is there twice`);
    const named = lines.findIndex((next, index) => index > at && !NO_CODE.test(next));
    if (named === -1) throw new Error(`no code follows the mark @${name}`);
    marks.set(name, named);
  }
  return marks;
}

/**
 * The text with one marked line changed.
 *
 * @param {string} text
 * @param {string} mark
 * @param {(line: string) => string} edit
 */
export function edited(text, mark, edit) {
  const lines = text.split('\n');
  const at = marksIn(lines).get(mark);
  if (at === undefined) throw new Error(`no line is marked @${mark}`);
  return lines.with(at, edit(lines[at] ?? '')).join('\n');
}

/** What becomes of a marked line. */
export const dropped = () => '';
/** @param {...string} more lines */
export const before =
  (...more) =>
  (/** @type {string} */ line) =>
    [...more, line].join('\n');
/** @param {...string} more lines */
export const after =
  (...more) =>
  (/** @type {string} */ line) =>
    [line, ...more].join('\n');
