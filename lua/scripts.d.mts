/** The scripts as Redis gets them, by verb; made by `lua/assemble.mjs`. */
export const texts: Readonly<Record<string, string>>;
