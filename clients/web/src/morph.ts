// Updates elements of the page in place: unchanged elements are kept, so that the focus, a button
// press and a selection survive.

/**
 * Makes the children of a parent equal to the given ones. Kept elements keep their listeners; new
 * ones have their own. Children with a key (data-key) are matched by it, so that insertions and
 * removals before them do not assign them to another key.
 */
export function morph(parent: Element, children: readonly Node[]): void {
  const keys = new Set(children.map(keyOf));
  children.forEach((next, i) => {
    let before = parent.childNodes[i];
    while (before && keyOf(before) !== undefined && !keys.has(keyOf(before))) {
      before.remove();
      before = parent.childNodes[i];
    }
    if (!before) {
      parent.append(next);
    } else if (keyOf(before) !== keyOf(next)) {
      parent.insertBefore(next, before);
    } else if (!update(before, next)) {
      before.replaceWith(next);
    }
  });
  while (parent.childNodes.length > children.length) {
    parent.lastChild!.remove();
  }
}

/** Returns the key of a child, if it has one. */
function keyOf(node: Node): string | undefined {
  return node instanceof HTMLElement ? node.dataset["key"] : undefined;
}

/** Makes a node equal to another one of the same kind. Returns false for other kinds. */
function update(before: Node, next: Node): boolean {
  if (before.nodeType !== next.nodeType || before.nodeName !== next.nodeName) {
    return false;
  }
  if (before instanceof Element && next instanceof Element) {
    for (const { name } of [...before.attributes]) {
      if (!next.hasAttribute(name)) {
        before.removeAttribute(name);
      }
    }
    for (const { name, value } of [...next.attributes]) {
      if (before.getAttribute(name) !== value) {
        before.setAttribute(name, value);
      }
    }
    morph(before, [...next.childNodes]);
  } else if (before.nodeValue !== next.nodeValue) {
    before.nodeValue = next.nodeValue;
  }
  return true;
}
