/** Values of JSON that nobody has checked. */

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is no object has no fields. */
export const objectIn = (value: unknown): JsonObject => (isObject(value) ? value : {});
