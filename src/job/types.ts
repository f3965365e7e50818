/**
 * What the compiler knows of a queue whose jobs have names with a schema each. It is the data type of that queue, a type
 * that no value has: so every function that takes data of a queue asks for the name first.
 */
import type { Job } from './job.ts';

declare const byName: unique symbol;

/** The data type of a queue with `jobs`; `Jobs` is name → what goes in, and what a handler gets. */
export interface NamedData<Jobs> {
  readonly [byName]: Jobs;
}

/** One name: data as it is scheduled, and as its schema gives it to the handler. */
export interface InOut<Input = unknown, Output = unknown> {
  readonly input: Input;
  readonly output: Output;
}

type TypesOf<Schema> = Schema extends { readonly '~standard': { readonly types?: infer Types } }
  ? NonNullable<Types>
  : never;

/** The data type of a queue with these schemas. */
export type DataBySchemas<Schemas> = NamedData<{
  readonly [Name in keyof Schemas]: TypesOf<Schemas[Name]> extends InOut<infer Input, infer Output>
    ? InOut<Input, Output>
    : InOut;
}>;

/** The names of the jobs of a queue; any text where they are not known. */
export type NameOf<Data> = Data extends NamedData<infer Jobs> ? keyof Jobs & string : string;

/** What may be scheduled, whatever its name. */
export type InputOf<Data> = 0 extends 1 & Data
  ? Data
  : [Data] extends [NamedData<infer Jobs>]
    ? { readonly [Name in keyof Jobs]: InputIn<Jobs, Name> }[keyof Jobs]
    : Data;

export type InputIn<Jobs, Name extends keyof Jobs> = Jobs[Name] extends InOut<infer Input> ? Input : never;
export type OutputIn<Jobs, Name extends keyof Jobs> = Jobs[Name] extends InOut<unknown, infer Output> ? Output : never;

/** `{ name: 'welcome' }`, or also nothing for `default`. */
export type NameIn<Key extends string, Name> = Name extends 'default'
  ? { readonly [K in Key]?: Name | undefined }
  : { readonly [K in Key]: Name };

/** A job of any of the names, which its name tells apart. */
export type AnyJobOf<Jobs> = {
  readonly [Name in keyof Jobs & string]: Job<OutputIn<Jobs, Name>> & { readonly name: Name };
}[keyof Jobs & string];

/**
 * What a handler gets as `job.data`: of a queue with `jobs` by the name of the job, else of the queue.
 *
 * @example type Welcome = JobData<typeof mail, 'welcome'>;
 */
export type JobData<Queue, Name extends string = 'default'> = Queue extends { readonly data?: infer Data }
  ? NonNullable<Data> extends NamedData<infer Jobs>
    ? Name extends keyof Jobs
      ? OutputIn<Jobs, Name>
      : never
    : NonNullable<Data>
  : never;
