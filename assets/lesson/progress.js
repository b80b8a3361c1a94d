// How far somebody got, for as long as the browser's tab is open. Owns: that memory. Must not know: cards, pages.

const PROGRESS_KEY = "batchviz-lessons";

export function readProgress() {
  try {
    const read = JSON.parse(window.sessionStorage.getItem(PROGRESS_KEY) || "{}");
    return read && typeof read === "object" ? read : {};
  } catch {
    return {}; // no storage here (a file opened in private), or not ours
  }
}

// {seen: how many cards, of: how many there are, chosen: {card: choice}}
export function progressOf(lessonId) {
  const found = readProgress()[lessonId];
  return { seen: 0, of: 0, chosen: {}, ...(found && typeof found === "object" ? found : {}) };
}

export function keepProgress(lessonId, progress) {
  try {
    window.sessionStorage.setItem(PROGRESS_KEY, JSON.stringify({ ...readProgress(), [lessonId]: progress }));
  } catch {
    // nothing is kept, and everything else works
  }
}
