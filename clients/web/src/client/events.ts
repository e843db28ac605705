// Events with typed listeners, without the browser's EventTarget, whose events have no types.

/** The listeners of an object by the names of its events. */
export type Listeners<E> = { [K in keyof E]?: E[K] };

type Listener = (...values: never[]) => void;

export class Emitter<E extends { [K in keyof E]: Listener }> {
  private readonly listeners = new Map<keyof E, Set<Listener>>();

  constructor(first: Listeners<E> = {}) {
    for (const name of Object.keys(first) as (keyof E)[]) {
      const listener = first[name];
      if (listener) {
        this.on(name, listener);
      }
    }
  }

  /** Adds a listener, and returns the function that removes it. */
  on<K extends keyof E>(name: K, listener: E[K]): () => void {
    const all = this.listeners.get(name) ?? new Set<Listener>();
    this.listeners.set(name, all);
    all.add(listener);
    return () => all.delete(listener);
  }

  /** Returns the number of listeners of an event. */
  count(name: keyof E): number {
    return this.listeners.get(name)?.size ?? 0;
  }

  /**
   * Calls the listeners of an event. An exception of a listener is reported as an uncaught one, and
   * disturbs neither the other listeners nor the session.
   */
  emit<K extends keyof E>(name: K, ...values: Parameters<E[K]>): void {
    for (const listener of [...(this.listeners.get(name) ?? [])]) {
      try {
        listener(...(values as never[]));
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
