// The entry points of the package, by name, with their modules in src. The types that several share
// are those of the first.
export const entries = { index: "client/index.ts", devices: "client/devices.ts", element: "element/index.ts", react: "react/index.ts" };
