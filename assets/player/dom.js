// Making elements. Owns: the only ways in which text reaches the page, so that no text ever becomes markup.
// Must not know: anything about runs.

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Sets text only where it differs: most frames change nothing.
export function setText(target, text) {
  if (target.shownText === text) return;
  target.shownText = text;
  target.textContent = text;
}

export function setTitle(target, text) {
  if (target.title !== text) target.title = text;
}

export function badge(request, extraClass = "") {
  const made = element("span", `badge c${request.colour} ${extraClass}`, request.letter);
  if (request.letter.length > 1) made.classList.add("long");
  return made;
}

// What a request is, for titles: its letter, its id, its prompt.
export function describe(request) {
  const prompt = request.prompt ? `: “${request.prompt}”` : "";
  return `${request.letter} · ${request.id.slice(0, 60)}${prompt}`;
}

export function numberText(value) {
  return value.toLocaleString("en-US");
}

export function countText(value, noun) {
  return `${numberText(value)} ${noun}${value === 1 ? "" : "s"}`;
}

export function secondsText(value) {
  return value < 10 ? `${value.toFixed(2)} s` : `${value.toFixed(1)} s`;
}
