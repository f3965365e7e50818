/** The scripts as Redis gets them, by verb; made by `lua/assemble.mjs`. */
declare const texts: Readonly<Record<string, string>>;
export default texts;
