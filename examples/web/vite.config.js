// The pages of the examples. Bundlers need no settings for @volsfu/client itself.
export default {
  base: "./",
  build: { target: "es2022", rollupOptions: { input: ["index.html", "react.html", "renderer.html", "embed.html"] }, chunkSizeWarningLimit: 900 },
  esbuild: { jsx: "automatic" },
};
