/** The version of this package. It is written here and in `package.json`, so that it is there in a bundle too; a test compares them. */
export const version = '0.2.0';

/** Its major and minor number. Versions of one line differ by repairs alone. @example lineOf('0.2.7') // '0.2' */
export const lineOf = (text: string): string => text.split('.').slice(0, 2).join('.');
