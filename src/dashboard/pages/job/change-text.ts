/**
 * What is to be different about a job → the body of a request. New data go as they were typed: the browser would read
 * 1234567824702058497 as 1234567824702058500, and the API refuses a number that loses digits.
 */

/** @throws Error in words for what is no JSON */
export function changeText(change: Readonly<Record<string, unknown>>, data: string | undefined): string {
  const rest = JSON.stringify(change);
  if (data === undefined) return rest;
  checkJson(data);
  return rest === '{}' ? `{"data":${data}}` : `${rest.slice(0, -1)},"data":${data}}`;
}

/** One value and nothing behind it: so it cannot close what is around it. */
function checkJson(text: string): void {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`the data are no JSON: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
