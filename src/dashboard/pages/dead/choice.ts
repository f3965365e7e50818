/** Which dead letters are meant, as it stands in the address and goes to the API. */

const FIELDS = ['reason', 'error', 'name', 'tag', 'id', 'newerThan'] as const;

/** Left out: any. */
export type DeadChoice = Readonly<Partial<Record<(typeof FIELDS)[number], string>>>;

export const choiceFrom = (query: URLSearchParams): DeadChoice =>
  Object.fromEntries(
    FIELDS.flatMap((field) => {
      const value = query.get(field) ?? '';
      return value === '' ? [] : [[field, value]];
    }),
  );

/** For the body of a request: the API wants a word for all of them. */
export const bodyOf = (choice: DeadChoice): DeadChoice | { readonly all: true } =>
  Object.keys(choice).length === 0 ? { all: true } : choice;
