// The two doors: a Streamlit component, and a page of its own. Owns: nothing but the mounting.
// Joined last: what it needs is above. Streamlit calls the component again on every change of data or theme, without
// cleaning up in between; so there is one player per root, kept in a WeakMap.

import { newPlayer } from "./player.js";

const PLAYERS = new WeakMap();

export function mountComponent({ data, parentElement, setStateValue }) {
  let player = PLAYERS.get(parentElement);
  if (!player) {
    const root = parentElement.querySelector(".batchviz");
    player = newPlayer(
      root,
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

export function mountPage() {
  const payload = JSON.parse(document.getElementById("batchviz-payload").textContent);
  const player = newPlayer(document.querySelector(".batchviz"), () => {});
  player.refreshTheme();
  player.load(payload);
  window.matchMedia("(prefers-color-scheme: dark)").onchange = () => player.refreshTheme();
}
