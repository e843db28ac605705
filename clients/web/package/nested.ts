// Workers that a worker starts: the same script with another role.

declare const self: { name: string; location: { href: string } };

/** Returns the address of a file that the page has passed. */
export function fileURL(name: string): string {
  return (JSON.parse(self.name) as { files: Record<string, string> }).files[name] ?? name;
}

/** Starts a worker by the path of its module in src. */
export function startWorker(role: string): Worker {
  const { files } = JSON.parse(self.name) as { files: Record<string, string> };
  return new Worker(self.location.href, { type: "module", name: JSON.stringify({ role, files }) });
}
