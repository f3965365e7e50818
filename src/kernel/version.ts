/** The version of this package. It is written here and in `package.json`, so that it is there in a bundle too; a test compares them. */
export const version = '0.2.0';
