// Cameras, microphones and headsets are there once a person has allowed them, by when they may be wanted no longer.

/**
 * Waits for something that is being opened. Where that was called off meanwhile, what was opened is closed at once, and the signal's reason is thrown in its place, so
 * that nothing begins that was to come next.
 */
export async function unlessAborted<T>(signal: AbortSignal, opening: Promise<T>, close: (opened: T) => void): Promise<T> {
  const opened = await opening;
  if (signal.aborted) {
    close(opened);
    throw signal.reason;
  }
  return opened;
}
