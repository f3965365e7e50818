/** A table as a file that a spreadsheet opens. */

export type Cell = string | number | undefined;

/** What a spreadsheet takes for a formula: whoever names a job may not act in the spreadsheet of whoever looks. */
const FORMULA = /^[=+\-@\t\r]/;

const cellText = (cell: Cell): string => {
  if (typeof cell !== 'string') return cell === undefined ? '' : String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** RFC 4180. @example csvText([['queue', 'late'], ['emails', 3]]) // 'queue,late\r\nemails,3\r\n' */
export const csvText = (rows: readonly (readonly Cell[])[]): string =>
  rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('');
