// Stands in for modules of Node that a package names and never uses in a browser.
export default {};
