// Cameras, microphones and headsets open only after the user's permission. By then, the device
// may no longer be wanted.

/**
 * Waits for a device that is being opened. If the signal is aborted meanwhile, the device is closed
 * immediately, and the signal's reason is thrown, so that the following steps do not start.
 */
export async function unlessAborted<T>(signal: AbortSignal, opening: Promise<T>, close: (opened: T) => void): Promise<T> {
  const opened = await opening;
  if (signal.aborted) {
    close(opened);
    throw signal.reason;
  }
  return opened;
}
