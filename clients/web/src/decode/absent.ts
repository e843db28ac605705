// Replaces Node modules that a package imports but never uses in a browser.
export default {};
