/**
 * What may be told of what a handler threw: the message and the stack go into the history of its job, into dead letters
 * and into the log, where a queue that redacts data shows none of it.
 */
import type { JobRecord } from './codec.ts';
import { readRecord } from './compensation.ts';
import { type Redaction, redactedText } from './redaction.ts';

/** Whose values a message may quote. */
export interface Quoted {
  /** As the handler got it. */
  readonly record: JobRecord;
  readonly life: { readonly started: { readonly record: string } };
  readonly rules: { readonly redact?: Redaction | undefined };
}

/** The text without the values of redacted fields, as they were stored and as the handler got them. */
export function toldMessage(text: string, { record, life, rules: { redact } }: Quoted): string {
  return redact ? redactedText(text, [record, ...storedIn(life.started.record)], redact) : text;
}

function storedIn(text: string): readonly JobRecord[] {
  try {
    return [readRecord(text)];
  } catch {
    return [];
  }
}
