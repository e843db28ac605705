import { defineConfig } from "vitest/config";

// Everything is addressed relative to the page, so that the server may stand behind any path of a proxy.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    outDir: "dist/site",
    emptyOutDir: true,
    // Scripts in data: addresses are forbidden by the server's content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: { input: { viewer: "index.html", console: "console/index.html" } },
    chunkSizeWarningLimit: 900,
  },
  worker: { format: "es" },
  // Unit tests only: what runs in a browser is driven by Go (test/browser).
  test: { include: ["test/unit/**/*.test.ts"] },
  // Draco's loader asks for these where it runs in Node, which it does not.
  resolve: { alias: [{ find: /^(node:)?(fs|path)$/, replacement: "/src/decode/absent.ts" }] },
});
