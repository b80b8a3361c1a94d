// The colours of the moment, read from the page's CSS for what is drawn on a canvas. No colour is written here.
// Owns: reading. Must not know: which theme it is.

const NUM_COLOURS = 10;

export function readPalette(root) {
  const style = getComputedStyle(root);
  const probe = root.querySelector('[data-part="probe"]');
  const resolve = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const indices = Array.from({ length: NUM_COLOURS }, (_, index) => index);
  const palette = {
    font: style.fontFamily,
    text: resolve("--bv-text"),
    soft: resolve("--bv-soft"),
    faint: resolve("--bv-faint"),
    paper: resolve("--bv-card"),
    warn: resolve("--bv-warn"),
    track: resolve("--bv-track"),
    heldPaper: resolve("--bv-held-paper"),
    heldLine: resolve("--bv-held-line"),
    colours: indices.map((index) => resolve(`--bv-r${index}`)),
    inks: indices.map((index) => resolve(`--bv-i${index}`)),
  };
  palette.key = [palette.text, palette.paper, palette.font].join("|");
  return palette;
}
