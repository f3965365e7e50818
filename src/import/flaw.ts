/** What another product stores and nobody can read, in words. */
export interface Flaw {
  readonly flaw: string;
}

export const isFlaw = (read: object): read is Flaw => 'flaw' in read;
