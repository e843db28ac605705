// The full-screen mode of the page.

/** Switches the mode and returns the new state. It throws errors with a message for the user. */
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
