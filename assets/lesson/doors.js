// The two doors of a lesson: a Streamlit component, and a page of its own on any file host.
// Owns: the mounting, and what the address says. Joined last. Streamlit calls the component again on every change of data.

import { newLesson } from "./lesson.js";

const LESSONS = new WeakMap();

export function mountLessonComponent({ data, parentElement, setStateValue }) {
  let lesson = LESSONS.get(parentElement);
  if (!lesson) {
    const root = parentElement.querySelector("template").content.querySelector(".bv-lesson").cloneNode(true);
    parentElement.append(root);
    const query = (id, stop) => (id ? `?lesson=${encodeURIComponent(id)}${stop ? `&stop=${stop}` : ""}` : "?");
    let now = "";
    lesson = newLesson(root, {
      links: true,
      href: (id) => query(id, 0),
      lesson: (id) => setStateValue("wanted", id),
      // The address follows without a message to the server; it is read when somebody opens the link.
      place: (number) => window.history.replaceState(window.history.state, "", query(now, number)),
    });
    LESSONS.set(parentElement, { ...lesson, at: (id) => (now = id) });
    lesson = LESSONS.get(parentElement);
  }
  lesson.player.refreshTheme();
  lesson.at(data.lesson.id || "");
  lesson.load(data.lesson, data.place);
  if (data.present) lesson.present(true);
  return () => {
    lesson.destroy();
    LESSONS.delete(parentElement);
  };
}

export function mountLessonPage() {
  const data = JSON.parse(document.getElementById("batchviz-lesson").textContent);
  const number = (name) => {
    const found = Number.parseInt(new URLSearchParams(window.location.hash.slice(1)).get(name) || "0", 10);
    return Number.isFinite(found) ? found : 0;
  };
  const href = (id) => (id ? `${encodeURIComponent(id)}.html` : "index.html");
  const lesson = newLesson(document.querySelector(".bv-lesson"), {
    links: false,
    href,
    lesson: (id) => {
      window.location.href = href(id);
    },
    place: (at) => window.history.replaceState(null, "", at ? `#stop=${at}` : "#"),
  });
  lesson.player.refreshTheme();
    const isPresenting = number("present"); // before the address follows the cards
  lesson.load(data, number("stop"));
  window.onhashchange = () => lesson.go(number("stop"));
  window.matchMedia("(prefers-color-scheme: dark)").onchange = () => lesson.player.refreshTheme();
  if (isPresenting) lesson.present(true);
}
