import { defineConfig } from "vitest/config";

// All addresses are relative to the page, so that the server may be behind any path of a proxy.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    outDir: "dist/site",
    emptyOutDir: true,
    // The server's content security policy forbids scripts in data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: { viewer: "index.html", console: "console/index.html", test: "test/index.html" } },
    chunkSizeWarningLimit: 900,
  },
  worker: { format: "es" },
  // Unit tests only: Go controls tests in browsers (test/browser).
  // The limits end tests that hang: beside other load, a test takes many times as long as alone.
  test: { include: ["test/unit/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
  // Draco's loader imports these in Node, which is not used here.
  resolve: { alias: [{ find: /^(node:)?(fs|path)$/, replacement: "/src/decode/absent.ts" }] },
});
