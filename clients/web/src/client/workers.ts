// The files of the workers. Builds of the viewer have them beside the page, so that there is nothing
// to load before. The package has its own form of this module (package/workers.ts).

/** Workers that receive, or workers that publish points. */
export type Crew = "receive" | "publish";

/**
 * Loads what workers need to start.
 * @param folder is the address of the package's folder "assets"; by default the files are part of
 * the package's modules
 */
export async function loadWorkers(_crew: Crew, _folder?: string): Promise<void> {}
