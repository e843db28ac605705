// The page on the whole screen.

/** Goes there or comes back, and tells where it is then. It throws what a person is told. */
export async function toggleFullScreen(): Promise<boolean> {
  if (document.fullscreenElement) {
    await document.exitFullscreen();
    return false;
  }
  if (!document.fullscreenEnabled) {
    throw new Error("this browser gives this page no full screen. Where it stands within another page, open it by itself.");
  }
  try {
    await document.documentElement.requestFullscreen();
  } catch (error) {
    throw new Error(`the browser refuses it (${error instanceof Error ? error.message : String(error)}). Try the browser's own key for it, mostly F11.`);
  }
  return true;
}
