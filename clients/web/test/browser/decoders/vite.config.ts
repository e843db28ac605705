import { defineConfig } from "vitest/config";
import pages from "../../../vite.config";

// A page with the decoders alone, built like the viewer. It is for tests and is not part of the
// server.
export default defineConfig({
  ...pages,
  build: { ...pages.build, copyPublicDir: false, rollupOptions: { input: { decoders: "test/browser/decoders/index.html" } } },
});
