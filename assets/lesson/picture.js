// A picture of one step, from rectangles and words at places (see step_picture.py). Owns: drawing it as SVG elements.
// Must not know: what the shapes mean.

const SVG = "http://www.w3.org/2000/svg";

export function pictureElement(picture) {
  const root = shapeElement("svg", { viewBox: `0 0 ${picture.width} ${picture.height}`, role: "img", class: "picture" });
  root.setAttribute("aria-label", picture.words);
  for (const [x, y, width, height, kind, title] of picture.shapes) {
    const box = shapeElement("rect", { x, y, width: Math.max(width, 0.6), height: Math.max(height, 0.6), class: `shape ${kind}` });
    const words = shapeElement("title", {});
    words.textContent = title;
    box.append(words);
    root.append(box);
  }
  for (const [x, y, kind, text] of picture.texts) {
    const made = shapeElement("text", { x, y, class: kind });
    made.textContent = text;
    root.append(made);
  }
  return root;
}

function shapeElement(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}
