// The three doors: a Streamlit component, a page of its own, and the cover that is seen until Streamlit's own script has
// come. Owns: nothing but the mounting.
// Joined last: what it needs is above. Streamlit calls the component again on every change of data or theme, without
// cleaning up in between; so there is one player per root, kept in a WeakMap.

import { newPlayer } from "./player.js";
import { readOpening } from "./opening.js";

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
  parentElement.querySelector(".batchviz").classList.toggle("no-controls", data.controls === false);
  return () => {
    player.destroy();
    PLAYERS.delete(parentElement);
  };
}

// The player of the cover, if there is one, moves in with all that it is doing: cursor, focus, how far it was scrolled.
function movedIn(parentElement) {
  const cover = document.getElementById("batchviz-cover");
  const first = window.batchvizFirst;
  delete window.batchvizFirst;
  if (first) {
    const focused = first.root.contains(document.activeElement) ? document.activeElement : null;
    const page = document.querySelector('[data-testid="stMain"]');
    const top = cover ? cover.scrollTop : 0;
    parentElement.append(first.root);
    // From the next frame on the page is as high as the player.
    if (page && top) requestAnimationFrame(() => page.scrollTo({ top, behavior: "instant" }));
    if (focused) focused.focus({ preventScroll: true });
  }
  if (cover) cover.remove(); // also one whose script never ran
  return first ? first.player : null;
}

// The markup comes as a template, so that there are never two players on the page.
function builtIn(parentElement) {
  const root = parentElement.querySelector("template").content.querySelector(".batchviz").cloneNode(true);
  parentElement.append(root);
  return newPlayer(root);
}

export function mountCover() {
  const cover = document.getElementById("batchviz-cover");
  const timer = setInterval(() => {
    const isThere = document.getElementById("root").childElementCount > 0;
    if (cover.isConnected && !isThere) return; // nothing lies under it yet: better a player than a blank page
    clearInterval(timer);
    if (!cover.isConnected) return;
    if (window.batchvizFirst) window.batchvizFirst.player.destroy();
    delete window.batchvizFirst;
    cover.remove(); // what lies under it has something to say
  }, COVER_S * 1000);
  window.batchvizFirst = { root: cover.querySelector(".batchviz"), player: playerOnPage() };
}

// A page of its own opens as its file and its address say; the address may change, as a page around it likes.
export function mountPage() {
  const player = playerOnPage();
  const root = document.querySelector(".batchviz");
  const open = (options) => {
    const opening = readOpening(options, window.location.hash);
    if (opening.controls !== null) root.classList.toggle("no-controls", !opening.controls);
    player.open(opening);
  };
  const options = document.getElementById("batchviz-options"); // a page around a player may have none
  open(options ? JSON.parse(options.textContent) : {});
  window.onhashchange = () => open({});
  window.matchMedia("print").onchange = () => player.refreshTheme(true); // paper is light: no frame comes before it
}

function playerOnPage() {
  const payload = JSON.parse(document.getElementById("batchviz-payload").textContent);
  const player = newPlayer(document.querySelector(".batchviz"));
  player.refreshTheme();
  player.load(payload);
  window.matchMedia("(prefers-color-scheme: dark)").onchange = () => player.refreshTheme();
  return player;
}
