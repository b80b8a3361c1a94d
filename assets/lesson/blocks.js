// Blocks of text -> elements. Owns: the only way in which a lesson's words reach the page, as text and never as markup.
// Must not know: cards, runs.

import { element } from "../player/dom.js";

const TAGS = { p: "p", ul: "ul", ol: "ol", h1: "h3", h2: "h3", h3: "h3", pre: "pre" };
const STYLES = { em: "em", strong: "strong", code: "code" };

export function blockElements(blocks) {
  return blocks.map(([tag, content]) => {
    const made = element(TAGS[tag] || "p");
    if (tag === "ul" || tag === "ol") {
      for (const pieces of content) {
        const item = element("li");
        item.append(...pieceElements(pieces));
        made.append(item);
      }
    } else {
      made.append(...pieceElements(content));
    }
    return made;
  });
}

export function pieceElements(pieces) {
  return pieces.map(([style, text]) => (STYLES[style] ? element(STYLES[style], "", text) : document.createTextNode(text)));
}
