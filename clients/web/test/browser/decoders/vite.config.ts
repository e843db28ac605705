import { defineConfig } from "vitest/config";
import pages from "../../../vite.config";

// A page with the decoders alone, built as the viewer is. It is made for tests, and is no part of the server.
export default defineConfig({
  ...pages,
  build: { ...pages.build, copyPublicDir: false, rollupOptions: { input: { decoders: "test/browser/decoders/index.html" } } },
});
