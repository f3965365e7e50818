/** What the daemon advises, with its commands set apart: who reads sees where the words end, and what is to be typed. */

/** A command stands behind a colon or in quotes, up to the end or the next sign. */
const COMMAND = /((?<=: |")duestream (?:[^\s";,]+ ?)+)/;

export function Advice({ text }: { readonly text: string }) {
  // Split by a group: each other part is a command.
  return <>{text.split(COMMAND).map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>;
}
