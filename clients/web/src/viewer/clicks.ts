// Clicks and taps on the space, as opposed to drags that move the view.

/** A pointer that moves farther than this, in pixels, or stays longer than this, in milliseconds, drags. */
const mostMovement = 6;
const mostTime = 500;

export class Clicks {
  private pressed: { id: number; x: number; y: number; at: number } | undefined;

  /** @param clicked is called with the position in pixels from the corner of the element */
  constructor(
    private readonly element: HTMLElement,
    private readonly clicked: (x: number, y: number) => void,
  ) {
    element.addEventListener("pointerdown", this.down);
    element.addEventListener("pointerup", this.up);
  }

  private readonly down = (event: PointerEvent): void => {
    // A second finger moves the view.
    this.pressed = this.pressed || event.button !== 0 ? undefined : { id: event.pointerId, x: event.clientX, y: event.clientY, at: event.timeStamp };
  };

  private readonly up = (event: PointerEvent): void => {
    const { pressed } = this;
    this.pressed = undefined;
    if (pressed?.id === event.pointerId && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) <= mostMovement && event.timeStamp - pressed.at <= mostTime) {
      const { left, top } = this.element.getBoundingClientRect();
      this.clicked(event.clientX - left, event.clientY - top);
    }
  };

  close(): void {
    this.element.removeEventListener("pointerdown", this.down);
    this.element.removeEventListener("pointerup", this.up);
  }
}
