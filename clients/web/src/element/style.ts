// The style of <volsfu-room>, within its shadow tree.

export const style = `
  :host { display: block; position: relative; min-height: 240px; overflow: hidden; font: 14px/1.4 system-ui, sans-serif; }
  :host([hidden]) { display: none; }
  canvas { position: absolute; inset: 0; width: 100%; height: 100%; display: block; touch-action: none; outline: none; }
  canvas:focus-visible { outline: 2px solid #4c8dff; outline-offset: -2px; }
  p { position: absolute; left: 12px; right: 12px; bottom: 12px; margin: 0; padding: 8px 12px; border-radius: 6px; background: #1b2230e6; color: #fff; }
  button { position: absolute; top: 12px; right: 12px; padding: 6px 12px; border: 0; border-radius: 6px; background: #1b2230b3; color: #fff; font: inherit; cursor: pointer; }
  button[aria-pressed="true"] { background: #2563eb; }
`;
