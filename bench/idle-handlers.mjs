/** What the worker of `bench:idle` would run, if anything came due. */
export default { bench: async () => undefined };
