// Brings elements on the page up to date in place: what has not changed is left alone, so that the focus, a press of a button and a selection outlive it.

/**
 * Makes the children of a parent like those given. Listeners stand on what stays; what is new has those of its own. Children that name what they are about (data-key) become
 * those that name the same, so that somebody who comes or goes before them does not give them to another.
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

/** What a child is about, where it says so. */
function keyOf(node: Node): string | undefined {
  return node instanceof HTMLElement ? node.dataset["key"] : undefined;
}

/** Makes a node like another, where they are of one kind. */
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
