// Strokes, and the images that the network gets of them.
//
// A stroke is a list of points [x, y] of the unit square. The digits of the training data were scanned, fitted into a
// frame, and averaged down to 8 x 8 pixels; the same happens to strokes here, so that size and place do not matter.

export const SIDE = 8;
const FINE = 256; // the frame before it is averaged
const PEN = 36; // width of a line in it
const HEIGHT = FINE - PEN;
const WIDTH = 172; // hardly any digit is as wide as the frame

function trace(context, strokes, place) {
  context.lineCap = context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    stroke.map(place).forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    if (stroke.length === 1) context.lineTo(...place(stroke[0])); // a dot
    context.stroke();
  }
}

/** Draw strokes as they were made on a canvas of any size. */
export function show(canvas, strokes, color) {
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.strokeStyle = color;
  context.lineWidth = canvas.width / 18;
  trace(context, strokes, ([x, y]) => [x * canvas.width, y * canvas.height]);
}

/** The 64 numbers from 0 to 1 that the network is given for strokes, row by row. */
export function pixels(strokes) {
  const points = strokes.flat();
  const [left, right] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
  const [top, bottom] = [Math.min(...points.map((p) => p[1])), Math.max(...points.map((p) => p[1]))];
  const scale = Math.min(HEIGHT / Math.max(bottom - top, 0.02), WIDTH / Math.max(right - left, 0.02));
  const place = ([x, y]) => [
    FINE / 2 + scale * (x - (left + right) / 2),
    FINE / 2 + scale * (y - (top + bottom) / 2),
  ];
  const canvas = new OffscreenCanvas(FINE, FINE);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.lineWidth = PEN;
  trace(context, strokes, place);
  const { data } = context.getImageData(0, 0, FINE, FINE);
  const cell = FINE / SIDE;
  const out = new Float32Array(SIDE * SIDE);
  for (let y = 0; y < FINE; y++) {
    for (let x = 0; x < FINE; x++) {
      out[Math.floor(y / cell) * SIDE + Math.floor(x / cell)] += data[4 * (y * FINE + x) + 3] / 255 / cell ** 2;
    }
  }
  return out.map((v) => Math.round(v * 16) / 16); // as coarse as the digits of the data
}

/** Paint 64 numbers into a canvas of 8 x 8. */
export function paint(canvas, values) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(SIDE, SIDE);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const [r, g, b] = dark ? [236, 234, 244] : [31, 37, 64];
  values.forEach((v, i) => image.data.set([r, g, b, 255 * v], 4 * i));
  context.putImageData(image, 0, 0);
}
