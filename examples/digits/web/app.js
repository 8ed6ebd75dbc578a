// The page: the drawing is the input of the network, its result moves the bars.

import { paint, pixels, show } from "./drawing.js";
import { Network } from "./network.js";

const SAMPLES = 15;
const element = (id) => document.getElementById(id);
const [paper, seen, bars] = ["paper", "seen", "bars"].map(element);
const backend = new URLSearchParams(location.search).get("backend") ?? "cpu";

let network;
let strokes = []; // the drawing; empty while a sample is shown
let image = null; // the 64 input numbers
let busy = false;
let requested = false;

const buttons = Array.from({ length: 10 }, (_, digit) => {
  const button = document.createElement("button");
  button.type = "button";
  button.disabled = true;
  button.innerHTML = `<span class="part"></span><span class="bar"></span><span class="name">${digit}</span>`;
  button.addEventListener("click", () => teach(digit));
  bars.append(button);
  return button;
});

function say(probs) {
  const best = probs ? probs.indexOf(Math.max(...probs)) : -1;
  buttons.forEach((button, digit) => {
    const p = probs ? probs[digit] : 0;
    button.classList.toggle("best", digit === best);
    button.disabled = !probs || busy;
    button.title = probs ? `teach it: this is a ${digit}` : "";
    button.querySelector(".bar").style.height = `${2 + 150 * p}px`;
    button.querySelector(".part").textContent = p >= 0.005 ? `${Math.round(100 * p)}%` : "";
    button.setAttribute("aria-label", `${digit}: ${(100 * p).toFixed(1)} percent`);
  });
  element("digit").textContent = probs ? best : "·";
  const sure = probs ? probs[best] : 0;
  element("words").textContent = !probs
    ? "waiting for a digit"
    : sure > 0.95 ? "I am sure." : sure > 0.7 ? "I think so." : sure > 0.4 ? "Perhaps." : "I can hardly tell.";
}

function refresh() {
  requested = false;
  show(paper, strokes, getComputedStyle(paper).color);
  element("hint").classList.toggle("gone", image !== null || strokes.length > 0);
  element("undo").disabled = element("clear").disabled = busy || !(strokes.length || image);
  element("undo").disabled ||= !strokes.length;
  if (strokes.length) image = pixels(strokes);
  paint(seen, image ?? new Float32Array(64));
  if (network && !busy) say(image ? network.read(image) : null);
}

/** Read soon: at most once for each picture that the screen shows. */
function ask() {
  if (!requested) requestAnimationFrame(refresh);
  requested = true;
}

function mark(sample) {
  document.querySelectorAll("#samples .shown").forEach((other) => other.classList.remove("shown"));
  sample?.classList.add("shown");
}

function place(event) {
  const box = paper.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

paper.addEventListener("pointerdown", (event) => {
  if (busy || event.button) return;
  paper.setPointerCapture(event.pointerId);
  mark(null);
  strokes.push([place(event)]);
  ask();
});
paper.addEventListener("pointermove", (event) => {
  if (busy || !strokes.length || !paper.hasPointerCapture(event.pointerId)) return;
  const moves = event.getCoalescedEvents?.() ?? [];
  strokes.at(-1).push(...(moves.length ? moves : [event]).map(place));
  ask();
});

function clear() {
  strokes = [];
  image = null;
  mark(null);
  ask();
}

element("clear").addEventListener("click", clear);
element("undo").addEventListener("click", () => {
  strokes.pop();
  if (strokes.length) ask();
  else clear();
});

async function tell(words) {
  const { right, all } = await network.score();
  element("status").textContent = `${words}${right} of ${all} test digits are read right`;
}

async function teach(digit) {
  if (busy || !image) return;
  busy = true;
  element("status").textContent = `learning that this is a ${digit}…`;
  const learned = await network.teach(image, digit, say);
  await tell(learned ? `learned; ` : `not yet sure; `);
  busy = false;
  element("forget").disabled = false;
  ask();
}

element("forget").addEventListener("click", async () => {
  if (busy) return;
  network.forget();
  element("forget").disabled = true;
  ask();
  await tell("as it was trained: ");
});

function showSamples() {
  const images = network.testImages.dataSync();
  for (let i = 0; i < SAMPLES; i++) {
    const values = images.slice(64 * i, 64 * (i + 1));
    const button = document.createElement("button");
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 8;
    paint(canvas, values);
    button.type = "button";
    button.append(canvas);
    button.setAttribute("aria-label", `a ${network.testLabels.dataSync()[i]}`);
    button.addEventListener("click", () => {
      if (busy) return;
      [strokes, image] = [[], values];
      mark(button);
      ask();
    });
    element("samples").append(button);
  }
}

try {
  network = await Network.load("build", backend);
  showSamples();
  ask();
  await tell(`${network.count.toLocaleString("en")} parameters can learn; `);
  window.network = network; // for the console, and for the check: everything is loaded now
} catch (error) {
  element("status").textContent = `the network could not be loaded: ${error.message}`;
  throw error;
}
