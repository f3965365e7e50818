/** A word of a command that somebody is to paste into a shell: whatever it holds, it stays one word and runs nothing. */
export const quoted = (text: string): string =>
  /^[\w.,:@/+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
