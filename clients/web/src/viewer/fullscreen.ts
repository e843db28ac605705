// The full-screen mode of the page.

/** Switches the mode and returns the new state. It throws errors with a message for the user. */
export async function toggleFullScreen(): Promise<boolean> {
  if (document.fullscreenElement) {
    await document.exitFullscreen();
    return false;
  }
  if (!document.fullscreenEnabled) {
    throw new Error("this page has no permission for full screen. If it is part of another page, open it separately.");
  }
  try {
    await document.documentElement.requestFullscreen();
  } catch (error) {
    throw new Error(`the browser refuses it (${error instanceof Error ? error.message : String(error)}). Try the browser's key for full screen, usually F11.`);
  }
  return true;
}
