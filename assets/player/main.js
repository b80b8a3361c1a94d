// The three doors: a Streamlit component, a page of its own, and the cover that is seen until Streamlit's own script has
// come. Owns: nothing but the mounting.
// Joined last: what it needs is above. Streamlit calls the component again on every change of data or theme, without
// cleaning up in between; so there is one player per root, kept in a WeakMap.

import { newPlayer } from "./player.js";

const PLAYERS = new WeakMap();
const COVER_S = 20; // then the page under the cover is shown, whatever it says

export function mountComponent({ data, parentElement, setStateValue }) {
  let player = PLAYERS.get(parentElement);
  if (!player) {
    player = movedIn(parentElement) || builtIn(parentElement);
    player.tellTo(
      (step) => setStateValue("step", step),
      (speed) => setStateValue("speed", speed),
    );
    PLAYERS.set(parentElement, player);
    // Two frames: in the first the player is drawn, after it the browser shows it.
    requestAnimationFrame(() => requestAnimationFrame(() => setStateValue("painted", true)));
  }
  player.refreshTheme();
  player.load(data.payload);
  player.seek(data.seek);
  return () => {
    player.destroy();
    PLAYERS.delete(parentElement);
  };
}

// The player of the cover, if there is one, moves in with all that it is doing.
function movedIn(parentElement) {
  const first = window.batchvizFirst;
  if (!first) return null;
  delete window.batchvizFirst;
  parentElement.append(first.root);
  first.cover.remove();
  return first.player;
}

// The markup comes as a template, so that there are never two players on the page.
function builtIn(parentElement) {
  const root = parentElement.querySelector("template").content.querySelector(".batchviz").cloneNode(true);
  parentElement.append(root);
  return newPlayer(root);
}

export function mountCover() {
  const cover = document.getElementById("batchviz-cover");
  window.batchvizFirst = { cover, root: cover.querySelector(".batchviz"), player: mountPage() };
  const leave = () => {
    if (!window.batchvizFirst) return;
    delete window.batchvizFirst;
    cover.remove(); // what lies under it has something to say, or never came
  };
  setTimeout(leave, COVER_S * 1000);
}

export function mountPage() {
  const payload = JSON.parse(document.getElementById("batchviz-payload").textContent);
  const player = newPlayer(document.querySelector(".batchviz"));
  player.refreshTheme();
  player.load(payload);
  window.matchMedia("(prefers-color-scheme: dark)").onchange = () => player.refreshTheme();
  return player;
}
