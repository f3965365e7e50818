/** Paths and addresses whose parts may hold anything. */

/** A path of the API: at`queues/${queue}/jobs/${id}`, each value percent-encoded. */
export const at = (texts: TemplateStringsArray, ...values: readonly string[]): string =>
  texts.reduce((path, text, index) => `${path}${encodeURIComponent(values[index - 1] ?? '')}${text}`);

/** `?state=dead&limit=50`, without what is empty. */
export function queryOf(given: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}
